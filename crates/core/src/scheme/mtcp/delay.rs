//! Delays: relative ones, whose clocks differ by any constant, and round trips.

use core::time::Duration;

use weir_units::Time;

use crate::estimate::Extreme;

/// The sender's clock, as the 32-bit stamps of packets show it, put onto this node's clock: the first stamp is taken to be of the
/// time at which it was read. What that is wrong by is the same for all that follow, and cancels out.
///
/// A stamp of a packet that would have come much earlier than over the empty path is not believed, unless the next ones go on from
/// there (decision 25): anybody can send one, and the least delay would remember it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SenderClock {
    last: Option<Reading>,
    /// The least delay of a packet that was believed, microseconds.
    least: Option<i64>,
    /// The delay of the last packet that was not, and how many there were in a row.
    early: Option<(i64, u32)>,
}

/// A stamp, when it was read, and when its packet was sent.
#[derive(Debug, Clone, Copy)]
struct Reading {
    stamp: u32,
    read: i64,
    sent: i64,
}

impl SenderClock {
    /// When a packet with this stamp was sent, microseconds; the clock goes on from there. Only one that `is_fresh` from the sender
    /// tells of the empty path.
    pub(super) fn note(&mut self, now: Time, stamp: u32, is_fresh: bool) -> i64 {
        let read = now.as_micros() as i64;
        let sent = self.unwrapped(now, stamp).unwrap_or(read);
        let delay = read - sent;
        if let Some(least) = self.least.filter(|_| self.is_early(delay))
            && !(is_fresh && self.goes_on(delay))
        {
            return read - least;
        }
        if is_fresh {
            let starts_again = self.early.take().is_some_and(|(_, packets)| packets >= AGREEING);
            self.least = Some(self.least.filter(|_| !starts_again).map_or(delay, |least| least.min(delay)));
        }
        self.last = Some(Reading { stamp, read, sent });
        sent
    }

    /// The same, of a stamp that somebody repeats; `None` before the first, and of one that is not believed.
    pub(super) fn sent(&self, now: Time, stamp: u32) -> Option<i64> {
        self.unwrapped(now, stamp).filter(|sent| !self.is_early(now.as_micros() as i64 - sent))
    }

    /// Whether a packet with this delay cannot be here yet.
    fn is_early(&self, delay: i64) -> bool {
        self.least.is_some_and(|least| delay < least - UNSEEN_FALL_MICROS)
    }

    /// A packet came too early, with this delay. Whether enough have in a row.
    fn goes_on(&mut self, delay: i64) -> bool {
        let before = self.early.filter(|(before, _)| (delay - before).abs() <= NEAR_MICROS);
        let packets = before.map_or(1, |(_, packets)| packets + 1);
        self.early = Some((delay, packets));
        packets >= AGREEING
    }

    fn unwrapped(&self, now: Time, stamp: u32) -> Option<i64> {
        let Reading { stamp: last, read, sent } = self.last?;
        // Both clocks have gone on for as long since: the stamp lies near that, however long ago the last one was.
        let elapsed = now.as_micros() as i64 - read;
        let ahead = stamp.wrapping_sub(last.wrapping_add(elapsed as u32)) as i32;
        Some(sent + elapsed + i64::from(ahead))
    }
}

/// The relative time delay (§3.2): from when a packet was sent to now, on whatever clocks. Seconds.
pub(super) fn relative_delay(now: Time, sent_micros: i64) -> f64 {
    (now.as_micros() as i64 - sent_micros) as f64 * 1e-6
}

/// The time at which a packet that was sent then has been on its way for `timeout` seconds (§3.5).
pub(super) fn overdue(sent_micros: i64, timeout: f64) -> Time {
    let due = sent_micros.saturating_add((timeout * 1e6) as i64);
    Time::from_micros(u64::try_from(due).unwrap_or(0))
}

/// The average of a delay, its deviation, and the time-out made of them (§3.4). Seconds; of any sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeout {
    /// Average and deviation.
    measured: Option<(f64, f64)>,
    floor: f64,
}

impl Timeout {
    pub(super) fn new(floor: Duration) -> Timeout {
        Timeout { measured: None, floor: floor.as_secs_f64() }
    }

    /// Takes a sample: §3.4, with the gains of TCP.
    pub(super) fn sample(&mut self, delay: f64) {
        self.measured = Some(match self.measured {
            None => (delay, 0.0),
            Some((average, deviation)) => {
                let error = delay - average;
                (average + AVERAGE_GAIN * error, deviation + DEVIATION_GAIN * (error.abs() - deviation))
            }
        });
    }

    pub(super) fn average(&self) -> Option<f64> {
        self.measured.map(|(average, _)| average)
    }

    /// After this long a packet is overdue.
    pub(super) fn value(&self) -> Option<f64> {
        self.measured.map(|(average, deviation)| average + (4.0 * deviation).max(self.floor))
    }
}

/// The least delay: of the whole session, or of the last half to whole of a span, so that a path that got longer or a clock
/// that drifts is not taken for a queue for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseDelay {
    span: Option<Duration>,
    least: Extreme<f64>,
}

impl BaseDelay {
    pub(super) fn new(span: Option<Duration>) -> BaseDelay {
        BaseDelay { span, least: Extreme::new(f64::min) }
    }

    /// Takes a sample; gives by how much it is above the base.
    pub(super) fn excess(&mut self, now: Time, delay: f64) -> f64 {
        delay - self.least(now, delay)
    }

    /// Takes a sample; gives the least.
    pub(super) fn least(&mut self, now: Time, delay: f64) -> f64 {
        self.least.take(now, self.span.map_or(Duration::MAX, |span| span / 2), delay);
        self.least.value().unwrap_or(delay)
    }
}

/// Paths become shorter by less, and a queue falls by no more than packets are sent apart.
const UNSEEN_FALL_MICROS: i64 = 100_000;
/// Packets in a row that agree, to within a queue.
const AGREEING: u32 = 3;
const NEAR_MICROS: i64 = 1_000_000;
const AVERAGE_GAIN: f64 = 1.0 / 8.0;
const DEVIATION_GAIN: f64 = 1.0 / 4.0;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn fig_2_a_packet_of_time_4_that_is_acknowledged_at_7_has_a_relative_delay_of_3() {
        assert_eq!(relative_delay(Time::from_secs(7), 4_000_000), 3.0);
    }

    #[test]
    fn fig_3_with_a_sender_clock_ahead_the_relative_delay_is_minus_1_and_7_2_is_overdue_at_6_2() {
        assert_eq!(relative_delay(Time::from_secs(4), 5_000_000), -1.0);
        assert_eq!(overdue(7_200_000, -1.0), Time::from_millis(6_200));
        // The sender's clock is ahead by three: there it is 9.2.
        assert_eq!(overdue(7_200_000, -1.0) + Duration::from_secs(3), Time::from_millis(9_200));
    }

    #[test]
    fn stamps_go_on_where_32_bits_wrap_and_after_hours_of_silence() {
        let (mut clock, now) = (SenderClock::default(), Time::from_micros(1_000));
        assert_eq!(clock.sent(now, 7), None);
        assert_eq!(clock.note(now, u32::MAX - 9, true), 1_000);
        assert_eq!(clock.note(now, 5, true), 1_015);
        assert_eq!(clock.sent(now, u32::MAX), Some(1_009));
        let later = Time::from_secs(30_000);
        assert_eq!(clock.sent(later, later.as_micros() as u32 - 1_010 - 20), Some(later.as_micros() as i64 - 20));
    }

    #[test]
    fn differences_between_delays_are_the_same_whatever_the_clocks_show() {
        let delays = |ahead: u64, stamp: u32| {
            let mut clock = SenderClock::default();
            [(10, 0), (25, 12), (40, 20)].map(|(came, sent)| {
                let sent = clock.note(Time::from_micros(ahead + came), stamp.wrapping_add(sent), true);
                relative_delay(Time::from_micros(ahead + came + 5), sent)
            })
        };
        assert_eq!(delays(0, 7), delays(1_000_000_000, u32::MAX - 3));
    }

    #[test]
    fn a_stamp_of_a_packet_that_cannot_be_here_yet_counts_when_two_more_go_on_from_there() {
        for seconds in [3, 9, 2_000] {
            let mut clock = SenderClock::default();
            let (at, step) = (Time::from_millis, seconds * 1_000_000);
            // A packet each 10 ms, on its way for 20 to 50.
            let mut note = |number: u64, ahead: u64| {
                let (came, sent) = (at(number * 10 + 20 + number % 4 * 10), number * 10_000);
                let delay = came.as_micros() as i64 - clock.note(came, (sent + ahead) as u32, true);
                (delay, clock.sent(came, (sent + ahead) as u32).is_some())
            };
            let honest: Vec<i64> = (0..8).map(|number| note(number, 0).0).collect();
            assert_eq!(note(8, step), (honest[4], false), "it counts as one that came over the empty path");
            assert_eq!([9, 10, 11].map(|number| note(number, 0).0), honest[1..4]);
            assert_eq!(note(12, step).0, honest[4]);
            assert_eq!(note(13, step).0, honest[4]);
            assert_eq!((14..18).map(|number| note(number, step).1).collect::<Vec<_>>(), [true; 4], "{seconds} s");
        }
    }

    #[test]
    fn what_is_sent_again_tells_nothing_of_the_empty_path() {
        let mut clock = SenderClock::default();
        clock.note(Time::from_secs(9), 4_000_000, false);
        assert_eq!(clock.note(Time::from_secs(9), 8_990_000, true), 13_990_000, "the first one took no time");
        assert_eq!(clock.sent(Time::from_secs(9), 8_990_000), Some(13_990_000));
    }

    #[test]
    fn a_timeout_is_the_average_and_four_deviations_but_at_least_the_floor() {
        let mut timeout = Timeout::new(Duration::from_millis(200));
        assert_eq!(timeout.value(), None);
        timeout.sample(-1.0);
        assert_eq!(timeout.value(), Some(-0.8));
        timeout.sample(1.0);
        // −1 + 2/8; 0 + 2/4.
        assert_eq!(timeout.value(), Some(-0.75 + 2.0));
    }

    #[test]
    fn the_base_forgets_what_is_older_than_its_span() {
        let mut base = BaseDelay::new(Some(Duration::from_secs(30)));
        assert_eq!(base.excess(Time::from_secs(1), 0.25), 0.0);
        assert_eq!(base.excess(Time::from_secs(2), 0.75), 0.5);
        assert_eq!(base.excess(Time::from_secs(17), 0.75), 0.5);
        assert_eq!(base.excess(Time::from_secs(33), 0.75), 0.0);
        let mut of_all = BaseDelay::new(None);
        of_all.excess(Time::from_secs(1), 0.25);
        assert_eq!(of_all.excess(Time::from_secs(1000), 0.75), 0.5);
    }
}
