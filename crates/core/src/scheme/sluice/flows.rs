//! Whether the path queues each channel apart, as fair queues do, and what one flow would get there.
//!
//! There, a channel that sends less than a flow's share never waits, so neither a queue nor a loss tells a receiver of many channels that it
//! has more than its share. A folded burst does: it is the next level, sent as one flow.

use core::time::Duration;

use weir_units::{Rate, Time};

use super::burst::Verdict;

/// What folded bursts told.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Until when the path is taken to queue channels apart.
    apart: Option<Time>,
    /// Until when it takes two bursts in a row to say so, as one has said otherwise.
    doubted: Option<Time>,
    /// Bursts in a row that waited alone.
    alone: u32,
    /// Bursts in a row that were more than one flow gets, and what it got in the last two.
    too_much: u32,
    shares: [Rate; 2],
    /// Bursts in a row that one flow got through, and up to which rate levels may be joined after the last one.
    fitted: u32,
    most: Rate,
}

impl Flows {
    /// A folded burst is over.
    pub(super) fn on_burst(&mut self, now: Time, verdict: &Verdict, packet_time: Duration) {
        if verdict.is_too_much(packet_time) {
            if verdict.waited_alone() { self.on_one_alone(now, verdict.met()) } else { self.on_one_among_others(now) }
        } else if verdict.fits(packet_time) {
            (self.too_much, self.fitted, self.most) = (0, self.fitted + 1, verdict.rate.scale(BEYOND));
        }
    }

    /// A burst waited, and what followed it in other channels did not.
    fn on_one_alone(&mut self, now: Time, share: Rate) {
        self.alone += 1;
        if self.alone >= AGREEING || self.doubted.is_none_or(|until| now >= until) {
            self.apart = Some(now + REMEMBERED);
        }
        (self.too_much, self.fitted, self.most) = (self.too_much + 1, 0, Rate::ZERO);
        self.shares = [self.shares[1], share];
    }

    /// What followed it waited, too: there is one queue. Next to TCPs it may empty so fast that a burst looks as if it had one of its own;
    /// where it has, hardly any looks as if it had none.
    fn on_one_among_others(&mut self, now: Time) {
        (self.alone, self.too_much, self.apart) = (0, 0, None);
        self.doubted = Some(now + REMEMBERED);
    }

    /// The receiver's level has changed.
    pub(super) fn on_change(&mut self) {
        self.too_much = 0;
    }

    /// What one flow gets, if that is less than the next level, and two bursts in a row said so: the larger of what they said.
    pub(super) fn share(&self) -> Option<Rate> {
        (self.too_much >= AGREEING).then(|| self.shares[0].max(self.shares[1]))
    }

    /// Whether a level of this rate may be joined: one flow was seen to get about so much, or channels do not queue apart.
    pub(super) fn let_join(&self, now: Time, rate: Rate) -> bool {
        rate <= self.most || !self.are_apart(now)
    }

    /// What was counted before says nothing any more.
    pub(super) fn count_again(&mut self) {
        (self.too_much, self.fitted) = (0, 0);
    }

    /// Whether two bursts in a row got through as one flow.
    pub(super) const fn fit(&self) -> bool {
        self.fitted >= AGREEING
    }

    /// Whether a start may begin.
    pub(super) fn let_start(&self, now: Time) -> bool {
        self.fit() || !self.are_apart(now)
    }

    /// Whether the path queues channels apart.
    pub(super) fn are_apart(&self, now: Time) -> bool {
        self.apart.is_some_and(|until| now < until)
    }
}

/// A single burst may mislead, so this many in a row have to agree.
pub(super) const AGREEING: u32 = 2;
/// What fitted is so much less than what may be joined before the next burst tells.
const BEYOND: f64 = 1.3;
/// A path that does not queue channels apart any more is found out after this time.
const REMEMBERED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::cycle::Burst;
    use super::*;

    const PACKET_TIME: Duration = Duration::from_millis(1);

    /// 10 Mbit/s for 100 ms to a flow that gets this much, with what comes after it waiting for so long.
    fn burst(mbps: f64, after_millis: f64) -> Verdict {
        let slope = (10.0 / mbps - 1.0).max(0.0);
        Verdict {
            kind: Burst::Folded,
            limit: None,
            rate: Rate::from_mbps(10),
            length: Duration::from_millis(100),
            slope,
            packets: 100.0,
            expected: 100.0,
            own_loss: 0.05,
            after: Some(after_millis * 1e-3),
        }
    }

    fn after(bursts: &[(f64, f64)]) -> Flows {
        let mut flows = Flows::default();
        bursts.iter().for_each(|(mbps, after)| flows.on_burst(Time::ZERO, &burst(*mbps, *after), PACKET_TIME));
        flows
    }

    #[test]
    fn two_bursts_that_wait_alone_tell_what_one_flow_gets() {
        assert_eq!(after(&[(5.0, 0.0)]).share(), None);
        let share = after(&[(4.0, 0.0), (5.0, 0.0)]).share().expect("two agree");
        assert!((4_999_000..=5_001_000).contains(&share.bps()));
        assert_eq!(after(&[(5.0, 0.0), (10.0, 0.0), (5.0, 0.0)]).share(), None);
        assert_eq!(after(&[(5.0, 95.0), (5.0, 95.0)]).share(), None, "what came after it waited in the same queue");
    }

    #[test]
    fn a_burst_in_a_queue_for_all_says_that_channels_do_not_queue_apart_and_then_it_takes_two_that_do() {
        let are_apart = |bursts: &[(f64, f64)]| after(bursts).are_apart(Time::ZERO);
        let (alone, with_others) = ((5.0, 0.0), (5.0, 95.0));
        assert!(are_apart(&[alone]) && !are_apart(&[alone, with_others]));
        assert!(!are_apart(&[with_others, alone]) && are_apart(&[with_others, alone, alone]));
        let mut flows = after(&[with_others]);
        flows.on_burst(Time::from_secs(60), &burst(5.0, 0.0), PACKET_TIME);
        assert!(flows.are_apart(Time::from_secs(60)), "the other one is long ago");
    }

    #[test]
    fn where_channels_queue_apart_levels_are_joined_after_a_burst_that_fits_and_a_start_begins_after_two() {
        let joins = |flows: &Flows, mbps| flows.let_join(Time::ZERO, Rate::from_mbps(mbps));
        let starts = |flows: &Flows| flows.let_start(Time::ZERO);
        let unknown = Flows::default();
        assert!(joins(&unknown, 100) && starts(&unknown));
        let narrow = after(&[(5.0, 0.0)]);
        assert!(!joins(&narrow, 1) && !starts(&narrow));
        let once = after(&[(5.0, 0.0), (10.0, 0.0)]);
        assert!(joins(&once, 12) && !joins(&once, 14), "three tenths more than what fitted");
        assert!(!starts(&once) && starts(&after(&[(5.0, 0.0), (10.0, 0.0), (10.0, 0.0)])));
        assert!(narrow.let_join(Time::from_secs(60), Rate::from_mbps(100)), "it is long ago");
    }
}
