//! A reliable stream over a tree.

use weir_units::Time;

use super::{ClientRecord, Packets};

/// A reliable stream over a tree.
#[derive(Debug, Clone, Default)]
pub struct TreeRecord {
    /// Its members. What one received is what its application was given, packets counted whole.
    pub members: Vec<ClientRecord>,
    /// Its packets.
    pub packets: Packets,
    /// How much of a packet is payload.
    pub payload_share: f64,
    /// Acknowledgements that reached the node above.
    pub acks_arrived: u64,
    /// Acknowledgements that a link dropped, any link.
    pub acks_dropped: u64,
    /// What its sender said of its windows.
    pub sender: Vec<Windows>,
    /// What each member said of its own.
    pub agents: Vec<Vec<Windows>>,
}

/// What a node of a tree says of its windows.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// When.
    pub at: Time,
    /// Its own, packets.
    pub own: f64,
    /// Whether that is in slow start.
    pub in_slow_start: bool,
    /// The least of its own and of those below, packets.
    pub least: f64,
}

impl TreeRecord {
    /// Rate of the member that was given least, headers counted.
    pub(in crate::metric) fn slowest_kbps(&self, from: Time, to: Time) -> Option<f64> {
        let rates: Option<Vec<f64>> = self.members.iter().map(|member| member.received_kbps(from, to)).collect();
        rates?.into_iter().reduce(f64::min)
    }

    /// The same without headers.
    pub(in crate::metric) fn goodput_kbps(&self, from: Time, to: Time) -> Option<f64> {
        self.slowest_kbps(from, to).map(|kbps| kbps * self.payload_share)
    }

    /// Milliseconds from each time that a member falls into slow start to when the least window that the sender knows has come
    /// half of the way down to that member's. Falls to more than half of what the sender knew do not count.
    pub(in crate::metric) fn reactions_ms(&self, member: usize, from: Time, to: Time) -> Vec<f64> {
        let reports = self.agents.get(member).map_or(&[][..], |reports| reports);
        let falls = reports.windows(2).filter(|two| !two[0].in_slow_start && two[1].in_slow_start).map(|two| two[1]);
        let of_fall = |fall: Windows| {
            let (before, after) = self.sender.split_at(self.sender.partition_point(|report| report.at < fall.at));
            let known = before.last().filter(|before| fall.own <= before.least / 2.0)?.least;
            let follows = |report: &&Windows| report.least <= (known + fall.own) / 2.0;
            let until = after.iter().find(follows).map_or(to, |report| report.at);
            Some(until.min(to).since(fall.at).as_secs_f64() * 1e3)
        };
        falls.filter(|fall| (from..to).contains(&fall.at)).filter_map(of_fall).collect()
    }

    pub(in crate::metric) fn acknowledgement_loss_percent(&self) -> Option<f64> {
        let sent = self.acks_arrived + self.acks_dropped;
        (sent > 0).then(|| self.acks_dropped as f64 / sent as f64 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_as_fast_as_its_slowest_member() {
        let member = |received: &[u64]| ClientRecord { received: received.to_vec(), ..ClientRecord::default() };
        let members = vec![member(&[2_000, 2_000]), member(&[1_000, 2_000])];
        let tree =
            TreeRecord { members, payload_share: 0.5, acks_arrived: 30, acks_dropped: 10, ..TreeRecord::default() };
        let end = Time::from_millis(200);
        assert_eq!(tree.slowest_kbps(Time::ZERO, end), Some(120.0));
        assert_eq!(tree.goodput_kbps(Time::ZERO, end), Some(60.0));
        assert_eq!(tree.acknowledgement_loss_percent(), Some(25.0));
        assert_eq!(TreeRecord::default().goodput_kbps(Time::ZERO, end), None);
    }

    #[test]
    fn the_sender_s_reaction_to_a_fall_is_when_it_knows_of_a_window_about_as_small() {
        let windows = |at, own, in_slow_start, least| Windows { at: Time::from_millis(at), own, in_slow_start, least };
        let quiet = |at, own| windows(at, own, false, own);
        let fall = |at| windows(at, 2.0, true, 2.0);
        let tree = TreeRecord {
            agents: vec![vec![
                quiet(0, 20.0),
                fall(1_000),
                quiet(2_000, 9.0),
                fall(3_000),
                quiet(3_500, 9.0),
                fall(5_000),
            ]],
            sender: vec![
                quiet(900, 20.0),
                quiet(1_100, 12.0),
                quiet(1_250, 11.0),
                quiet(1_500, 3.0),
                quiet(4_000, 9.0),
                quiet(5_040, 2.0),
            ],
            ..TreeRecord::default()
        };
        let all = |member| tree.reactions_ms(member, Time::ZERO, Time::from_secs(9));
        assert_eq!(all(0), [250.0, 40.0], "at the second fall it knew a window nearly as small");
        assert_eq!(all(1), [0.0; 0], "there is no such member");
        let cut = tree.reactions_ms(0, Time::from_secs(2), Time::from_millis(5_010));
        assert_eq!(cut, [10.0], "it did not follow before the end");
    }
}
