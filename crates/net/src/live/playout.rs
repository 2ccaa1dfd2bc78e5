//! When each packet of a stream is given out: a fixed time after the sender got it, as the fastest path and the sender's clock would
//! have it. A state machine without clock or socket.

use std::time::Duration;

use weir_units::Time;

/// Gives packets the times at which they are due. The clocks of both ends may differ, and drift: what counts is the shortest way that a
/// packet took lately.
#[derive(Debug, Clone)]
pub struct PlayOut {
    latency: Duration,
    base: Option<Base>,
}

/// The least difference of the two clocks: what this host's shows at an arrival, less what the sender's showed. Microseconds.
#[derive(Debug, Clone, Copy)]
struct Base {
    /// The sender's clock at the newest packet, as it was told and without its wraps.
    told: u32,
    sent: i64,
    offset: i64,
    /// The least of the window that runs since then.
    least: i64,
    began: Time,
}

impl PlayOut {
    /// Packets are due `latency` after the sender got them.
    pub fn new(latency: Duration) -> PlayOut {
        PlayOut { latency, base: None }
    }

    /// When a packet is due that came at `now` and that the sender got when its clock showed `told`, in microseconds; wraps.
    pub fn due(&mut self, now: Time, told: u32) -> Time {
        let arrival = micros(now);
        let base = self.base.get_or_insert(Base { told, sent: 0, offset: arrival, least: i64::MAX, began: now });
        let sent = base.sent.saturating_add(i64::from(told.wrapping_sub(base.told) as i32));
        (base.told, base.sent) = (told, sent);
        base.least = base.least.min(arrival.saturating_sub(sent));
        base.offset = base.offset.min(base.least);
        if now.since(base.began) >= WINDOW {
            let late = base.least.saturating_sub(base.offset);
            let is_another_path = late > self.latency.as_micros() as i64;
            base.offset += if is_another_path { late } else { late.min(MOST_DRIFT) };
            (base.least, base.began) = (i64::MAX, now);
        }
        let at = sent.saturating_add(base.offset).saturating_add(self.latency.as_micros() as i64);
        Time::from_micros(u64::try_from(at).unwrap_or(0))
    }
}

fn micros(at: Time) -> i64 {
    i64::try_from(at.as_micros()).unwrap_or(i64::MAX)
}

/// How often it is looked whether the clocks have drifted.
const WINDOW: Duration = Duration::from_secs(5);
/// By how many microseconds the clocks may drift apart in that time: 500 parts in a million, several times what crystals do. What grows
/// faster is a queue, and the bound on the delay holds. Only where no packet of a window came in time, the path is another.
const MOST_DRIFT: i64 = 2_500;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LATENCY: Duration = Duration::from_millis(300);

    /// A packet every 10 ms, whose way takes as long as `way` says; by how much later than it was sent each is due, milliseconds.
    fn lags(seconds: u64, clock_at_zero: u32, way: impl Fn(u64) -> Duration, drift: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut play_out = PlayOut::new(LATENCY);
        let step = |n: u64| {
            let sent = Time::from_millis(10_000 + n * 10);
            let told = clock_at_zero.wrapping_add(sent.as_micros().wrapping_add(drift(n)) as u32);
            play_out.due(sent + way(n), told).since(sent).as_secs_f64() * 1e3
        };
        (0..seconds * 100).map(step).collect()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn packets_are_due_the_latency_after_the_fastest_way() {
        let lags = lags(20, 0, |n| ms(40 + n * 7 % 30), |_| 0);
        assert!(lags[30..].iter().all(|lag| (*lag - 340.0).abs() < 3.0), "{lags:?}");
    }

    #[test]
    fn a_queue_that_stays_moves_nothing_by_more_than_clocks_drift() {
        let lags = lags(20, 0, |n| if n < 500 { ms(10) } else { ms(200) }, |_| 0);
        assert!(lags.iter().all(|lag| (309.0..320.0).contains(lag)), "{lags:?}");
    }

    #[test]
    fn a_longer_path_on_which_nothing_would_be_in_time_counts_after_a_while() {
        let lags = lags(30, 0, |n| if n < 500 { ms(10) } else { ms(500) }, |_| 0);
        assert_eq!(lags.last().map(|lag| lag.round()), Some(800.0));
    }

    proptest! {
        #[test]
        fn whatever_times_a_sender_tells_nothing_waits_for_longer_than_the_latency(told in proptest::collection::vec(any::<u32>(), 1..200)) {
            let mut play_out = PlayOut::new(LATENCY);
            for (n, told) in told.into_iter().enumerate() {
                let now = Time::from_millis(n as u64 * 100);
                prop_assert!(play_out.due(now, told) <= now + LATENCY);
            }
        }

        #[test]
        fn clocks_that_differ_wrap_and_drift_by_a_tenth_of_a_thousandth_do_not_matter(at_zero in any::<u32>(), fast in any::<bool>()) {
            // Microseconds in 10 ms.
            let drift = |n: u64| if fast { n } else { 0u64.wrapping_sub(n) };
            let lags = lags(60, at_zero, |n| ms(20 + n * 13 % 40), drift);
            prop_assert!(lags[100..].iter().all(|lag| (*lag - 320.0).abs() < 5.0), "{:?}", lags);
        }
    }
}
