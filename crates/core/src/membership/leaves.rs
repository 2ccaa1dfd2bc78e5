//! Leaves that have not taken effect yet, and how long leaves take.

use core::time::Duration;

use weir_units::Time;

/// Whether a receiver's latest leave is still to take effect, and how long leaves take.
///
/// The laboratory's leaves act at once; a real network may take seconds. Schemes ask in two ways: whether a leave is still to
/// take effect, so that its congestion is not answered twice, and how long leaves take, so as to leave ahead of need.
///
/// A host hears nothing more of a channel that it has left: its kernel withholds what still comes. What the leave was made for
/// tells instead. A leave is pending until the queue has fallen as far as the scheme asks ([`Fall`]), and no packet has been lost
/// for [`QUIET`]. A queue that others keep full may not fall at all, so a leave is pending for no longer than `at_most`. What waited in the
/// queue that stood at the leave was sent before it, so a scheme may ask for as much time on top ([`Leaves::after_the_queue`]).
///
/// A scheme calls [`Leaves::on_leave`] when it gives up channels to lower its rate, and not when it swaps channels. It tells of every loss
/// and, every 100 ms or more often, of the queue. Other calls in any order do no harm.
#[derive(Debug)]
pub(crate) struct Leaves {
    /// How long a leave may be pending; zero where leaves act at once.
    at_most: Duration,
    fall: Fall,
    /// Whether it is pending for as much longer as the queue was that stood at the leave.
    after_the_queue: bool,
    pending: Option<Pending>,
    /// When one was pending last, as far as [`Leaves::on_queue`] knows.
    was_pending: Option<Time>,
    /// The longest that a leave took, a little less with each leave since.
    longest: Duration,
}

/// How far a queue falls before the leave counts as having acted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fall {
    /// By an eighth, so that a leave shows next to flows that keep the rest of the queue.
    Eighth,
    /// To half, so that the queue which the given-up channels built is not taken for one of those that are left.
    Half,
}

/// A leave that may not have taken effect.
#[derive(Debug, Clone, Copy)]
struct Pending {
    left: Time,
    /// When it is pending no more in any case.
    over: Time,
    /// A queue of this much or less has fallen.
    fallen: Duration,
    /// The queue when it was last told.
    queue: Duration,
    /// When a packet was last lost; at first when the channels were left.
    lost: Time,
    /// When a loss or the queue last showed that the leave had not taken effect.
    shown: Time,
}

impl Leaves {
    /// No leave yet. None will be pending for longer than `at_most`.
    pub(crate) const fn new(at_most: Duration, fall: Fall) -> Leaves {
        Leaves { at_most, fall, after_the_queue: false, pending: None, was_pending: None, longest: Duration::ZERO }
    }

    /// A leave may be pending for `at_most` from when the packets have arrived that waited when it was made.
    pub(crate) const fn after_the_queue(self) -> Leaves {
        Leaves { after_the_queue: true, ..self }
    }

    /// Channels were left to lower the rate. `queue` is the one-way queuing delay now, `packet_time` a packet's at the rate that
    /// is kept: a queue no longer than that is none.
    pub(crate) fn on_leave(&mut self, now: Time, queue: Duration, packet_time: Duration) {
        let fallen = match self.fall {
            Fall::Eighth => queue * 7 / 8,
            Fall::Half => queue / 2,
        };
        let fallen = fallen.max(packet_time).max(LEAST_QUEUE);
        let over = now + self.at_most + if self.after_the_queue { queue } else { Duration::ZERO };
        self.pending = Some(Pending { left: now, over, fallen, queue, lost: now, shown: now });
        self.longest = self.longest * 15 / 16;
    }

    /// The network lost a packet. What is lost on an empty path is the path's own, and tells nothing of leaves.
    pub(crate) fn on_loss(&mut self, now: Time) {
        self.end_if_over(now);
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.queue > LEAST_QUEUE) {
            (pending.lost, pending.shown) = (now, now);
        }
    }

    /// The one-way queuing delay is this now.
    pub(crate) fn on_queue(&mut self, now: Time, queue: Duration) {
        let Some(pending) = &mut self.pending else { return };
        pending.queue = queue;
        if queue > pending.fallen {
            pending.shown = now;
        }
        self.end_if_over(now);
        if self.is_pending(now) {
            self.was_pending = Some(now);
        }
    }

    /// Whether the latest leave is still to take effect.
    pub(crate) fn is_pending(&self, now: Time) -> bool {
        self.pending.is_some_and(|pending| !pending.has_acted(now) && now < pending.over)
    }

    /// Whether a leave is to take effect, or was within the last `span`, to within the time between two calls of [`Leaves::on_queue`].
    pub(crate) fn was_pending(&self, now: Time, span: Duration) -> bool {
        self.is_pending(now) || self.was_pending.is_some_and(|at| now.since(at) <= span)
    }

    /// How long leaves take: the longest that was seen, fading. What the queue takes to fall is part of it. Zero where neither
    /// queue nor loss was there to see it by.
    pub(crate) const fn latency(&self) -> Duration {
        self.longest
    }

    /// Forgets a leave that is pending no more, and learns from it, unless it only took too long: then others may have kept the
    /// queue full.
    fn end_if_over(&mut self, now: Time) {
        let Some(pending) = self.pending.filter(|_| !self.is_pending(now)) else { return };
        self.pending = None;
        if now < pending.over {
            self.longest = self.longest.max(pending.shown.since(pending.left));
        }
    }
}

impl Pending {
    fn has_acted(&self, now: Time) -> bool {
        self.queue <= self.fallen && now.since(self.lost) >= QUIET
    }
}

/// On real networks a leave is waited for as long as this: switches that ask twice, a second apart, whether anybody is left stop
/// within three seconds.
pub(crate) const LONGEST_LEAVE: Duration = Duration::from_millis(3500);
/// Without a loss for so long, an overload is over: where a receiver takes 500 kbit/s and a step of 15 % too much, a packet is
/// lost every 160 ms.
const QUIET: Duration = Duration::from_millis(250);
/// Real clocks and senders vary by this much on an empty path.
const LEAST_QUEUE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET_TIME: Duration = Duration::from_millis(6);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A leave at 1 s with this queue.
    fn left(queue: u64) -> Leaves {
        let mut leaves = Leaves::new(LONGEST_LEAVE, Fall::Eighth);
        assert!(!leaves.is_pending(at(999)));
        leaves.on_leave(at(1000), ms(queue), PACKET_TIME);
        leaves
    }

    /// From `from` on, every 100 ms until `to`, a queue of so much, and a loss if it is `lossy`.
    fn congested(leaves: &mut Leaves, from: u64, to: u64, queue: u64, lossy: bool) {
        for millis in (from..to).step_by(100) {
            assert!(leaves.is_pending(at(millis)), "at {millis} ms");
            leaves.on_queue(at(millis), ms(queue));
            if lossy {
                leaves.on_loss(at(millis));
            }
        }
    }

    #[test]
    fn a_leave_is_pending_until_the_queue_has_fallen_and_a_quarter_of_a_second_brought_no_loss() {
        let mut leaves = left(100);
        congested(&mut leaves, 1000, 3000, 100, true);
        leaves.on_queue(at(3000), ms(88));
        assert!(leaves.is_pending(at(3400)), "the queue has not fallen by an eighth");
        leaves.on_queue(at(3400), ms(87));
        assert!(!leaves.is_pending(at(3400)));
        assert_eq!(leaves.latency(), ms(2000));

        let mut leaves = left(100);
        congested(&mut leaves, 1000, 3000, 100, true);
        leaves.on_queue(at(3000), ms(20));
        assert!(leaves.is_pending(at(3149)), "the last loss was at 2.9 s");
        assert!(!leaves.is_pending(at(3150)));
        leaves.on_queue(at(3200), ms(0));
        assert_eq!(leaves.latency(), ms(1900));
    }

    #[test]
    fn a_leave_that_has_acted_was_pending_a_short_while_ago() {
        let mut leaves = left(100);
        assert!(!Leaves::new(LONGEST_LEAVE, Fall::Half).was_pending(at(1000), ms(1000)));
        congested(&mut leaves, 1000, 3000, 100, true);
        [3000, 3100, 3200].into_iter().for_each(|millis| leaves.on_queue(at(millis), ms(20)));
        assert!(!leaves.is_pending(at(3200)) && leaves.was_pending(at(3200), ms(100)));
        assert!(leaves.was_pending(at(3600), ms(500)) && !leaves.was_pending(at(3601), ms(500)));
    }

    #[test]
    fn a_scheme_that_waits_for_half_the_queue_sees_a_leave_later() {
        let mut leaves = Leaves::new(LONGEST_LEAVE, Fall::Half);
        leaves.on_leave(at(1000), ms(100), PACKET_TIME);
        leaves.on_queue(at(1300), ms(51));
        assert!(leaves.is_pending(at(1300)), "the queue has not fallen to half");
        leaves.on_queue(at(1400), ms(50));
        assert!(!leaves.is_pending(at(1400)));
    }

    #[test]
    fn where_leaves_act_at_once_one_is_over_soon() {
        let mut leaves = left(100);
        leaves.on_loss(at(1010));
        leaves.on_queue(at(1100), ms(60));
        leaves.on_queue(at(1200), ms(30));
        assert!(leaves.is_pending(at(1259)) && !leaves.is_pending(at(1260)));
    }

    #[test]
    fn with_a_short_queue_losses_alone_tell() {
        let mut leaves = left(3);
        assert!(leaves.is_pending(at(1249)) && !leaves.is_pending(at(1250)));
        leaves.on_queue(at(1300), ms(3));
        assert_eq!(leaves.latency(), Duration::ZERO, "there was nothing to see");

        let mut leaves = left(3);
        congested(&mut leaves, 1100, 2000, 5, true);
        leaves.on_queue(at(2100), ms(6));
        assert!(leaves.is_pending(at(2149)) && !leaves.is_pending(at(2150)));
        leaves.on_queue(at(2200), ms(2));
        assert_eq!(leaves.latency(), ms(900));
    }

    #[test]
    fn a_queue_that_grows_after_the_leave_shows_that_it_has_not_acted() {
        let mut leaves = left(10);
        congested(&mut leaves, 1000, 3000, 40, false);
        leaves.on_queue(at(3100), ms(6));
        assert!(!leaves.is_pending(at(3100)));
        assert_eq!(leaves.latency(), ms(1900));
    }

    #[test]
    fn a_queue_that_others_keep_full_is_waited_for_until_the_bound_and_tells_nothing_of_leaves() {
        let mut leaves = left(100);
        congested(&mut leaves, 1000, 4500, 90, false);
        assert!(!leaves.is_pending(at(4500)));
        leaves.on_queue(at(4500), ms(90));
        leaves.on_queue(at(4600), ms(0));
        assert_eq!(leaves.latency(), Duration::ZERO);
    }

    #[test]
    fn losses_on_an_empty_path_are_not_waited_for() {
        let mut leaves = left(0);
        congested(&mut leaves, 1000, 1200, 0, true);
        leaves.on_loss(at(1240));
        assert!(leaves.is_pending(at(1249)) && !leaves.is_pending(at(1250)));
    }

    #[test]
    fn a_scheme_may_wait_for_the_queue_that_stood_at_the_leave_as_well() {
        let mut leaves = Leaves::new(LONGEST_LEAVE, Fall::Half).after_the_queue();
        leaves.on_leave(at(1000), ms(2600), PACKET_TIME);
        congested(&mut leaves, 1000, 7100, 2600, true);
        assert!(!leaves.is_pending(at(7100)));
    }

    #[test]
    fn losses_with_a_short_queue_are_waited_for_until_the_bound_and_then_are_losses_again() {
        let mut leaves = left(3);
        congested(&mut leaves, 1000, 4500, 3, true);
        leaves.on_loss(at(4500));
        assert!(!leaves.is_pending(at(4500)));
        leaves.on_loss(at(4600));
        assert!(!leaves.is_pending(at(4600)));
    }

    #[test]
    fn of_leaves_in_a_row_the_latest_is_waited_for() {
        let mut leaves = left(100);
        congested(&mut leaves, 1000, 4000, 100, true);
        leaves.on_leave(at(4000), ms(100), PACKET_TIME);
        congested(&mut leaves, 4000, 6000, 100, true);
        leaves.on_queue(at(6000), ms(40));
        assert!(!leaves.is_pending(at(6150)));
    }

    #[test]
    fn a_loss_long_after_a_leave_does_not_make_it_pending() {
        let mut leaves = left(100);
        leaves.on_queue(at(1100), ms(10));
        leaves.on_loss(at(2000));
        assert!(!leaves.is_pending(at(2000)));
        leaves.on_loss(at(2010));
        leaves.on_queue(at(2010), ms(100));
        assert!(!leaves.is_pending(at(2020)));
    }

    #[test]
    fn without_a_wait_no_leave_is_ever_pending() {
        let mut leaves = Leaves::new(Duration::ZERO, Fall::Eighth);
        leaves.on_leave(at(1000), ms(100), PACKET_TIME);
        leaves.on_queue(at(1000), ms(100));
        leaves.on_loss(at(1000));
        assert!(!leaves.is_pending(at(1000)));
        assert_eq!(leaves.latency(), Duration::ZERO);
    }

    #[test]
    fn of_what_leaves_took_the_longest_counts_and_fades() {
        let mut leaves = left(100);
        congested(&mut leaves, 1000, 1800, 100, true);
        leaves.on_queue(at(1800), ms(0));
        leaves.on_queue(at(2000), ms(0));
        assert_eq!(leaves.latency(), ms(700));
        leaves.on_leave(at(3000), ms(100), PACKET_TIME);
        assert_eq!(leaves.latency(), ms(700) * 15 / 16);
        leaves.on_queue(at(3100), ms(100));
        leaves.on_queue(at(3300), ms(0));
        assert_eq!(leaves.latency(), ms(700) * 15 / 16, "this one took 100 ms");
    }
}
