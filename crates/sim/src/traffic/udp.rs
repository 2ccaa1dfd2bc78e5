//! Datagrams without control: at a constant rate, or in bursts of it.

use weir_units::{Bytes, Random, Rate, Time};

use super::Distribution;

/// When a source sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Always.
    Constant,
    /// In turns, beginning with a burst. Seconds.
    OnOff {
        /// How long a burst lasts; rounded to whole datagrams, at least one (as in ns-2).
        on: Distribution,
        /// How long the silence after it.
        off: Distribution,
    },
}

/// What a source is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UdpConfig {
    /// A datagram on the wire.
    pub packet_size: Bytes,
    /// While it sends.
    pub rate: Rate,
    /// When it sends.
    pub pattern: Pattern,
}

/// A source of datagrams, which are numbered from 0.
#[derive(Debug, Clone)]
pub struct UdpSource {
    config: UdpConfig,
    random: Random,
    next: Option<Time>,
    /// Datagrams left in this burst.
    burst: u64,
    /// What the last gap was rounded down by, in nanoseconds times the rate.
    remainder: u64,
    sent: u64,
}

impl UdpSource {
    /// A source that has not begun. `random` decides how long it sends and is silent.
    pub fn new(config: UdpConfig, random: Random) -> UdpSource {
        UdpSource { config, random, next: None, burst: 0, remainder: 0, sent: 0 }
    }

    /// Begins, or begins again after [`UdpSource::stop`]. At a rate of zero nothing is ever sent.
    pub fn start(&mut self, now: Time, out: &mut impl FnMut(u64)) {
        if self.config.rate > Rate::ZERO && self.next.is_none() {
            self.remainder = 0;
            self.burst = self.draw_burst();
            self.next = Some(now);
            self.expire(now, out);
        }
    }

    /// Falls silent.
    pub fn stop(&mut self) {
        self.next = None;
    }

    /// A deadline may have passed: hands the numbers of the datagrams that are due to `out`.
    pub fn expire(&mut self, now: Time, out: &mut impl FnMut(u64)) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            out(self.sent);
            self.sent += 1;
            self.next = Some(self.after(at));
        }
    }

    /// When [`UdpSource::expire`] is wanted.
    pub fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What it is like.
    pub fn config(&self) -> &UdpConfig {
        &self.config
    }

    /// When the datagram after the one of `at` is due.
    fn after(&mut self, at: Time) -> Time {
        let bps = self.config.rate.bps();
        let work = u128::from(self.config.packet_size.count()) * 8_000_000_000 + u128::from(self.remainder);
        self.remainder = (work % u128::from(bps)) as u64;
        let mut due = Time::from_nanos(at.as_nanos().saturating_add((work / u128::from(bps)).max(1) as u64));
        if let Pattern::OnOff { off, .. } = self.config.pattern {
            self.burst -= 1;
            if self.burst == 0 {
                due += off.draw_span(&mut self.random);
                self.burst = self.draw_burst();
            }
        }
        due
    }

    fn draw_burst(&mut self) -> u64 {
        match self.config.pattern {
            Pattern::Constant => 1,
            Pattern::OnOff { on, .. } => {
                let packets_per_sec = self.config.rate.packets_per_sec(self.config.packet_size);
                (on.draw(&mut self.random) * packets_per_sec + 0.5).max(1.0) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(config: UdpConfig, until: Time) -> Vec<Time> {
        let mut source = UdpSource::new(config, Random::new(1, "source"));
        let mut times = Vec::new();
        source.start(Time::ZERO, &mut |_| times.push(Time::ZERO));
        while let Some(at) = source.deadline().filter(|at| *at < until) {
            source.expire(at, &mut |_| times.push(at));
        }
        times
    }

    fn at(rate: Rate, pattern: Pattern) -> UdpConfig {
        UdpConfig { packet_size: Bytes::new(1000), rate, pattern }
    }

    #[test]
    fn a_constant_rate_is_kept_to_the_nanosecond() {
        // 8000 bits at 3 Mbit/s take 2.666… ms: three datagrams take 8 ms.
        let times = times(at(Rate::from_mbps(3), Pattern::Constant), Time::from_secs(8));
        assert_eq!(times.len(), 3000);
        assert_eq!(times[2997], Time::from_millis(7992));
    }

    #[test]
    fn fixed_bursts_and_silences_take_turns() {
        let (on, off) = (Distribution::Fixed(0.003), Distribution::Fixed(0.010));
        let times = times(at(Rate::from_mbps(8), Pattern::OnOff { on, off }), Time::from_millis(20));
        let millis: Vec<u64> = times.iter().map(|at| at.as_micros() / 1000).collect();
        assert_eq!(millis, [0, 1, 2, 13, 14, 15]);
    }

    #[test]
    fn random_bursts_send_their_share_of_the_time() {
        let on = Distribution::Exponential { mean: 0.5 };
        for off in [Distribution::Exponential { mean: 1.0 }, Distribution::Pareto { mean: 1.0, shape: 2.5 }] {
            let sent = times(at(Rate::from_mbps(1), Pattern::OnOff { on, off }), Time::from_secs(5000)).len() as f64;
            let share = sent / (5000.0 * 125.0);
            assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
        }
    }

    #[test]
    fn a_stopped_source_is_silent_until_it_is_started_again() {
        let mut source = UdpSource::new(at(Rate::from_mbps(8), Pattern::Constant), Random::new(1, "source"));
        let mut numbers = Vec::new();
        source.start(Time::ZERO, &mut |number| numbers.push(number));
        source.stop();
        source.expire(Time::from_secs(1), &mut |number| numbers.push(number));
        assert_eq!(source.deadline(), None);
        source.start(Time::from_secs(2), &mut |number| numbers.push(number));
        assert_eq!((numbers, source.deadline()), (vec![0, 1], Some(Time::from_millis(2001))));
    }
}
