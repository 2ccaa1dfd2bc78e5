//! What a run leaves behind for the measures: who joined when, who was at which level, what passed the bottleneck.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// A run's events.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// When the run ended.
    pub end: Time,
    /// The bottleneck as a whole.
    pub bottleneck: LinkRecord,
    /// Sessions by name; several if the scenario has several alike.
    pub sessions: BTreeMap<String, Vec<SessionRecord>>,
    /// Streams over trees by name.
    pub trees: BTreeMap<String, Vec<TreeRecord>>,
    /// Flows by name.
    pub flows: BTreeMap<String, Vec<FlowRecord>>,
}

/// What the bottleneck did.
#[derive(Debug, Clone, Default)]
pub struct LinkRecord {
    /// Its rate at the start; `None` is without limit.
    pub rate: Option<Rate>,
    /// Packets that came.
    pub offered: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Bytes that left it.
    pub sent: Bytes,
}

/// A session.
#[derive(Debug, Clone, Default)]
pub struct SessionRecord {
    /// How long, from its first packet, a client counts as starting up.
    pub startup: Duration,
    /// Its clients.
    pub clients: Vec<ClientRecord>,
    /// Its packets at the bottleneck, in order.
    pub passages: Vec<Passage>,
}

/// A reliable stream over a tree.
#[derive(Debug, Clone, Default)]
pub struct TreeRecord {
    /// Its members. What one received is what its application was given, packets counted whole.
    pub members: Vec<ClientRecord>,
    /// Its packets at the bottleneck, in order.
    pub passages: Vec<Passage>,
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

/// A client of a session, or a member of a tree.
#[derive(Debug, Clone, Default)]
pub struct ClientRecord {
    /// When it joined.
    pub joined: Time,
    /// When it received its first packet.
    pub first_packet: Option<Time>,
    /// Its levels, each with the time from which it was there.
    pub levels: Vec<(Time, usize)>,
    /// When it joined or left a channel, once for each.
    pub memberships: Vec<Time>,
    /// Bytes that it received in each [`ClientRecord::BIN`] of the run.
    pub received: Vec<u64>,
}

/// A unicast flow.
#[derive(Debug, Clone, Default)]
pub struct FlowRecord {
    /// Its packets at the bottleneck, in order.
    pub passages: Vec<Passage>,
    /// Of a paced stream: the round trips that its source measured.
    pub round_trips: Vec<(Time, Duration)>,
    /// Of a paced stream: when its source backed off.
    pub back_offs: Vec<Time>,
    /// Of a TCP connection: how many packets it had on the way, looked up every [`FlowRecord::SAMPLING`].
    pub outstanding: Vec<(Time, u64)>,
    /// Of a TCP connection: how often its sender had timed out, looked up as often.
    pub time_outs: Vec<(Time, u64)>,
}

/// A packet at the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// When.
    pub at: Time,
    /// Its bytes on the link.
    pub bytes: u32,
    /// What happened to it.
    pub fate: Fate,
}

/// What happens to a packet at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It came. Every packet does, before anything else.
    Came,
    /// It was dropped.
    Dropped,
    /// It left for the other end.
    Left,
}

impl Record {
    /// When all clients of all sessions have left their start-up phase; the start of the run if there are none.
    pub fn steady_from(&self) -> Time {
        let clients = self
            .sessions
            .values()
            .flatten()
            .flat_map(|session| session.clients.iter().map(|client| client.startup_end(session.startup)));
        clients.max().unwrap_or(Time::ZERO)
    }
}

impl FlowRecord {
    /// How often what has no events is looked up.
    pub const SAMPLING: Duration = Duration::from_millis(100);
}

impl LinkRecord {
    pub(super) fn kbps(&self) -> Option<f64> {
        self.rate.map(|rate| rate.bps() as f64 / 1e3)
    }

    pub(super) fn loss_percent(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.dropped as f64 / self.offered as f64 * 100.0)
    }

    pub(super) fn use_percent(&self, end: Time) -> Option<f64> {
        let could = self.kbps()? * end.as_secs_f64();
        (could > 0.0).then(|| self.sent.count() as f64 * 8.0 / 1e3 / could * 100.0)
    }
}

impl SessionRecord {
    /// From the first join until all clients have left their start-up phase.
    pub(super) fn startup_phase(&self) -> Option<(Time, Time)> {
        let first = self.clients.iter().map(|client| client.joined).min()?;
        let last = self.clients.iter().map(|client| client.startup_end(self.startup)).max()?;
        Some((first, last))
    }
}

impl TreeRecord {
    /// Rate of the member that was given least, headers counted.
    pub(super) fn slowest_kbps(&self, from: Time, to: Time) -> Option<f64> {
        let rates: Option<Vec<f64>> = self.members.iter().map(|member| member.received_kbps(from, to)).collect();
        rates?.into_iter().reduce(f64::min)
    }

    /// The same without headers.
    pub(super) fn goodput_kbps(&self, from: Time, to: Time) -> Option<f64> {
        self.slowest_kbps(from, to).map(|kbps| kbps * self.payload_share)
    }

    /// Milliseconds from each time that a member falls into slow start to when the least window that the sender knows has come
    /// half of the way down to that member's. Falls to more than half of what the sender knew do not count.
    pub(super) fn reactions_ms(&self, member: usize, from: Time, to: Time) -> Vec<f64> {
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

    pub(super) fn acknowledgement_loss_percent(&self) -> Option<f64> {
        let sent = self.acks_arrived + self.acks_dropped;
        (sent > 0).then(|| self.acks_dropped as f64 / sent as f64 * 100.0)
    }
}

impl ClientRecord {
    /// How long a bin of `received` is.
    pub const BIN: Duration = Duration::from_millis(100);

    /// Takes down what came.
    pub(crate) fn receive(&mut self, now: Time, bytes: u64) {
        let bin = (now.as_nanos() / ClientRecord::BIN.as_nanos() as u64) as usize;
        if self.received.len() <= bin {
            self.received.resize(bin + 1, 0);
        }
        self.received[bin] += bytes;
    }

    /// When its start-up phase of `startup` ends. One that never received anything counts from its join.
    pub(super) fn startup_end(&self, startup: Duration) -> Time {
        self.first_packet.unwrap_or(self.joined) + startup
    }

    /// Mean rate of what it received between two times, in whole bins.
    pub(super) fn received_kbps(&self, from: Time, to: Time) -> Option<f64> {
        let bin = ClientRecord::BIN.as_nanos() as u64;
        let (from, to) = (from.as_nanos().div_ceil(bin), to.as_nanos() / bin);
        let bins = self.received.iter().skip(from as usize).take(to.saturating_sub(from) as usize);
        let secs = ClientRecord::BIN.as_secs_f64() * to.saturating_sub(from) as f64;
        (secs > 0.0).then(|| bins.sum::<u64>() as f64 * 8.0 / 1e3 / secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(joined: u64, first_packet: Option<u64>) -> ClientRecord {
        let first_packet = first_packet.map(Time::from_millis);
        ClientRecord { joined: Time::from_millis(joined), first_packet, ..ClientRecord::default() }
    }

    #[test]
    fn the_steady_state_begins_when_the_last_client_has_left_its_start_up_phase() {
        let startup = Duration::from_secs(5);
        let clients = vec![client(0, Some(80)), client(4000, Some(4100)), client(1000, None)];
        let session = SessionRecord { startup, clients, passages: Vec::new() };
        assert_eq!(session.startup_phase(), Some((Time::ZERO, Time::from_millis(9100))));
        let record = Record { sessions: BTreeMap::from([("a".to_owned(), vec![session])]), ..Record::default() };
        assert_eq!(record.steady_from(), Time::from_millis(9100));
        assert_eq!(Record::default().steady_from(), Time::ZERO);
    }

    #[test]
    fn a_client_s_rate_is_that_of_the_bins_within() {
        let client = ClientRecord { received: vec![9_000, 1_000, 2_000, 3_000, 9_000], ..ClientRecord::default() };
        let rate = client.received_kbps(Time::from_millis(50), Time::from_millis(400));
        assert_eq!(rate.map(f64::round), Some(160.0), "6000 bytes in 0.3 s");
        assert_eq!(client.received_kbps(Time::from_secs(1), Time::from_secs(1)), None);
    }

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

    #[test]
    fn a_link_s_loss_and_use_are_those_of_the_whole_run() {
        let rate = Some(Rate::from_kbps(80));
        let link = LinkRecord { rate, offered: 40, dropped: 10, sent: Bytes::new(5_000) };
        assert_eq!(link.loss_percent(), Some(25.0));
        assert_eq!(link.use_percent(Time::from_secs(1)), Some(50.0));
        assert_eq!(LinkRecord::default().loss_percent(), None);
    }
}
