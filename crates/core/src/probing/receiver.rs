//! A receiver's round-trip time: probes at random times, and their echoes (decision 5 of `docs/papers/stair.md`).

use core::time::Duration;

use weir_units::{Random, Time, math};
use weir_wire::Probe;
use weir_wire::probe::Kind;

use super::announcement::Interval;

/// Probes, and the average of what they found.
#[derive(Debug)]
pub(crate) struct Probing {
    rtt: Duration,
    least_rtt: Duration,
    is_measured: bool,
    interval: Interval,
    /// How many times the interval is between probes.
    rarity: u32,
    random: Random,
    /// When the next probe is due, and the interval by which that was drawn.
    next: Option<(Time, Interval)>,
    /// The last probe's clock, until its echo has come.
    sent: Option<(u32, Time)>,
}

impl Probing {
    /// Probes of a receiver that takes the round trip for `initial_rtt` until it knows better.
    pub(crate) fn new(initial_rtt: Duration, random: Random) -> Probing {
        Probing {
            rtt: initial_rtt,
            least_rtt: initial_rtt,
            is_measured: false,
            interval: Interval::LEAST,
            rarity: 1,
            random,
            next: None,
            sent: None,
        }
    }

    /// Probes begin.
    ///
    /// The first one comes in the time `within`, late in it rather than early: in a large group a few are early, and the
    /// sender's answer to them, a longer interval, reaches the many in time (Nonnenmacher and Biersack's timers).
    pub(crate) fn start(&mut self, now: Time, within: Duration) {
        let early = math::ln_1p(self.random.unit() * math::exp_m1(CROWDING)) / CROWDING;
        self.next = Some((now + within.mul_f64(early), self.interval));
    }

    pub(crate) fn stop(&mut self) {
        self.next = None;
    }

    /// The smoothed round-trip time.
    pub(crate) const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The shortest round-trip time that was measured.
    pub(crate) const fn least_rtt(&self) -> Duration {
        self.least_rtt
    }

    /// Sets how many intervals lie between one probe and the next, after the next one.
    pub(crate) fn set_rarity(&mut self, intervals: u32) {
        self.rarity = intervals;
    }

    /// What the sender announced last.
    pub(crate) const fn interval(&self) -> Interval {
        self.interval
    }

    /// A random number from 0 to 1, for a scheme that spreads its other reports over time.
    pub(crate) fn turn(&mut self) -> f64 {
        self.random.unit()
    }

    /// What the sender announces.
    pub(crate) fn on_interval(&mut self, interval: Interval) {
        self.interval = interval;
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    /// The probe that is due now, if one is.
    pub(crate) fn on_time(&mut self, now: Time) -> Option<Probe> {
        let (_, drawn_by) = self.next.filter(|(at, _)| *at <= now)?;
        if self.interval.span() >= drawn_by.span() * 2 {
            // The group turned out to be larger: the turn is drawn again (as RFC 3550 §6.3.3 does).
            let wait = self.interval.span().mul_f64(self.random.unit());
            self.next = Some((now + wait, self.interval));
            return None;
        }
        let wait = (self.interval.span() * self.rarity).mul_f64(self.random.uniform(0.5, 1.5));
        self.next = Some((now + wait, self.interval));
        let clock_micros = now.as_micros() as u32;
        self.sent = Some((clock_micros, now));
        Some(Probe { kind: Kind::Probe, clock_micros })
    }

    /// An echo came: the round trip that it measured, if it is one of ours.
    pub(crate) fn on_echo(&mut self, now: Time, clock_micros: u32) -> Option<Duration> {
        let (_, at) = self.sent.take_if(|(clock, _)| *clock == clock_micros)?;
        let sample = now.since(at).max(SHORTEST);
        self.least_rtt = if self.is_measured { self.least_rtt.min(sample) } else { sample };
        self.rtt = match self.is_measured {
            false => sample,
            true => self.rtt - self.rtt / GAIN_DIVISOR + sample / GAIN_DIVISOR,
        };
        self.is_measured = true;
        Some(sample)
    }
}

/// Nonnenmacher and Biersack's λ: ten thousand receivers send a handful of probes before the sender can answer.
const CROWDING: f64 = 10.0;
/// A sample's weight is one eighth (RFC 6298 §2).
const GAIN_DIVISOR: u32 = 8;
const SHORTEST: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    fn probing() -> Probing {
        probing_of(1)
    }

    fn probing_of(seed: u64) -> Probing {
        let mut probing = Probing::new(Duration::from_millis(100), Random::new(seed, "receiver"));
        probing.start(Time::from_nanos(12_345), Interval::LEAST.span());
        probing
    }

    fn next_probe(probing: &mut Probing) -> (Time, Probe) {
        loop {
            let at = probing.deadline().expect("it probes for ever");
            if let Some(probe) = probing.on_time(at) {
                return (at, probe);
            }
        }
    }

    #[test]
    fn the_first_echo_is_the_round_trip_and_later_ones_enter_by_an_eighth() {
        let mut probing = probing();
        assert_eq!(probing.rtt(), Duration::from_millis(100), "until something is known");
        let mut answer = |millis| {
            let (at, probe) = next_probe(&mut probing);
            let echo = at + Duration::from_millis(millis);
            assert!(probing.on_echo(echo, probe.clock_micros).is_some());
            assert!(probing.on_echo(echo, probe.clock_micros).is_none(), "an echo counts once");
            probing.rtt()
        };
        assert_eq!(answer(40), Duration::from_millis(40));
        assert_eq!(answer(120), Duration::from_millis(50));
        assert_eq!(probing.least_rtt(), Duration::from_millis(40));
    }

    #[test]
    fn receivers_with_equal_clocks_probe_at_times_of_their_own_that_their_seeds_give() {
        let times = |seed| {
            let mut probing = probing_of(seed);
            [(); 3].map(|()| next_probe(&mut probing).0)
        };
        let all: BTreeSet<_> = (0..200).flat_map(times).collect();
        assert_eq!(all.len(), 600, "no two probes are sent in one nanosecond");
        assert_eq!(times(7), times(7));
    }

    #[test]
    fn an_echo_of_something_else_is_nothing() {
        let mut probing = probing();
        let (at, probe) = next_probe(&mut probing);
        assert_eq!(probing.on_echo(at, probe.clock_micros.wrapping_add(1)), None);
        assert_eq!(probing.rtt(), Duration::from_millis(100));
    }

    #[test]
    fn a_longer_interval_postpones_what_was_drawn_by_a_shorter_one() {
        let mut probing = probing();
        probing.on_interval(Interval::from_wire(80));
        let at = probing.deadline().expect("the first probe");
        assert_eq!(probing.on_time(at), None);
        assert!(probing.deadline().is_some_and(|next| next > at));
    }

    #[test]
    fn probes_can_be_made_rare() {
        let mut probing = probing();
        let (first, _) = next_probe(&mut probing);
        probing.set_rarity(30);
        let (second, _) = next_probe(&mut probing);
        let (third, _) = next_probe(&mut probing);
        assert!(second.since(first) <= Duration::from_millis(1_500), "it was drawn before");
        assert!((15.0..=45.0).contains(&third.since(second).as_secs_f64()), "{:?}", third.since(second));
    }
}
