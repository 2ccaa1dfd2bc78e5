//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the bottleneck's rate, as measured, and keeps
//! a little more than a bandwidth–delay product on the way.

use weir_units::Time;

use super::Config;
use super::control::{AckEvent, Window};
use super::delivery_rate::{DeliveryRate, RateSample};

/// 2 / ln 2: doubles the rate in a round trip (§4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Rounds for which the largest bandwidth counts (§4.1.1.3).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Seconds for which the least round trip counts (§4.1.2.2).
const RTT_WINDOW_SECS: f64 = 10.0;
/// The window never is smaller (§4.2.3.2), and is so small while the round trip is probed.
const MIN_WINDOW: f64 = 4.0;
/// For how long the round trip is probed, seconds (§4.3.5).
const PROBE_RTT_SECS: f64 = 0.2;
/// Pacing gains of the bandwidth probe, a round trip each (§4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// What BBR is doing (§3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// State of BBR. Rates are in segments per second, times in seconds unless they are instants.
#[derive(Debug, Clone)]
pub(super) struct Bbr {
    state: State,
    rate: DeliveryRate,
    segment_bytes: f64,
    initial_window: f64,
    bandwidth: MaxFilter,
    /// The least round trip of the last ten seconds, and when it was seen.
    min_rtt: f64,
    min_rtt_at: Time,
    round: u64,
    round_ends: u64,
    pacing_gain: f64,
    window_gain: f64,
    pacing_rate: f64,
    next_send: Time,
    /// Bandwidth that Startup must exceed by a quarter, and rounds in which it did not (§4.3.2.2).
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    cycle: usize,
    cycle_began: Time,
    /// When the probe of the round trip may end, once the pipe is small enough, and whether a round has passed since.
    probe_ends: Option<Time>,
    probe_round_done: bool,
    idle_restart: bool,
    prior_window: f64,
    /// For a round after a loss, what leaves the network is replaced and no more (§4.2.3.4).
    conserving: bool,
    conserve_until: u64,
    recovering: bool,
    first_phase: u64,
}

impl Bbr {
    /// `cycle_phase` is where in the bandwidth probe's cycle to begin, 0 to 6.
    pub(super) fn new(config: &Config, cycle_phase: u64) -> Bbr {
        let initial_window = f64::from(config.initial_window.max(1));
        Bbr {
            state: State::Startup,
            rate: DeliveryRate::default(),
            segment_bytes: config.segment_size.count().max(1) as f64,
            initial_window,
            bandwidth: MaxFilter::default(),
            min_rtt: f64::INFINITY,
            min_rtt_at: Time::ZERO,
            round: 0,
            round_ends: 0,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            // Before a round trip is known it counts as 1 ms (§4.2.1).
            pacing_rate: HIGH_GAIN * initial_window / 1e-3,
            next_send: Time::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            cycle: 0,
            cycle_began: Time::ZERO,
            probe_ends: None,
            probe_round_done: false,
            idle_restart: false,
            prior_window: 0.0,
            conserving: false,
            conserve_until: 0,
            recovering: false,
            first_phase: cycle_phase,
        }
    }

    /// When the pacer lets the next segment out, if not now.
    pub(super) fn earliest_send(&self, now: Time) -> Option<Time> {
        (self.next_send > now).then_some(self.next_send)
    }

    /// Segment `seq` is sent, for the first time or `again`; `pipe` were on the way before it. `last` if the application
    /// has no more.
    pub(super) fn sent(&mut self, now: Time, una: u64, seq: u64, pipe: u64, again: bool, last: bool) {
        if pipe == 0 && self.rate.is_app_limited() {
            // Restart from idle (§4.4): at the bandwidth that is known.
            self.idle_restart = true;
            if self.state == State::ProbeBandwidth {
                self.pacing_rate = self.bandwidth.max();
            }
        }
        self.rate.sent(now, una, seq, pipe, again);
        if last {
            self.rate.limit(pipe + 1);
        }
        let gap = (1e9 / self.pacing_rate) as u64;
        self.next_send = Time::from_nanos(self.next_send.max(now).as_nanos().saturating_add(gap));
    }

    /// The segments of `bits`, counted from `first`, are delivered.
    #[inline]
    pub(super) fn delivered(&mut self, now: Time, first: u64, bits: u64) {
        self.rate.delivered(now, first, bits);
    }

    /// `BBRUpdateOnACK()` (§3.5.1).
    pub(super) fn acknowledged(&mut self, event: &AckEvent, window: &mut Window, recovering: bool) {
        self.recovering = recovering;
        if let Some(sample) = self.rate.sample(event.now, self.min_rtt) {
            self.update_model(event, &sample, window);
        }
        self.set_pacing_rate();
        self.set_window(event, window);
    }

    fn update_model(&mut self, event: &AckEvent, sample: &RateSample, window: &mut Window) {
        let round_start = sample.prior_delivered >= self.round_ends;
        if round_start {
            self.round_ends = self.rate.total();
            self.round += 1;
            if self.conserving && sample.prior_delivered >= self.conserve_until {
                self.conserving = false;
            }
        }
        if let Some(rate) = sample.rate
            && (!sample.app_limited || rate >= self.bandwidth.max())
        {
            self.bandwidth.update(self.round, rate);
        } else {
            self.bandwidth.expire(self.round);
        }
        self.check_cycle(event);
        self.check_full(round_start, sample.app_limited);
        self.check_drain(event);
        let expired = secs(event.now, self.min_rtt_at) > RTT_WINDOW_SECS;
        if let Some(rtt) = sample.rtt
            && (rtt <= self.min_rtt || expired)
        {
            self.min_rtt = rtt;
            self.min_rtt_at = event.now;
        }
        self.check_probe_rtt(event, window, expired, round_start);
        self.idle_restart = false;
    }

    /// The bandwidth probe goes on to its next phase (§4.3.4.3).
    fn check_cycle(&mut self, event: &AckEvent) {
        if self.state != State::ProbeBandwidth {
            return;
        }
        let full_length = secs(event.now, self.cycle_began) > self.min_rtt;
        let before = event.pipe_before as f64;
        let over = if self.pacing_gain > 1.0 {
            full_length && (event.lost > 0 || before >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full_length || before <= self.inflight(1.0)
        } else {
            full_length
        };
        if over {
            self.advance_cycle(event.now);
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle_began = now;
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.cycle];
    }

    /// Three rounds in which the bandwidth did not grow by a quarter: the pipe is full (§4.3.2.2).
    fn check_full(&mut self, round_start: bool, app_limited: bool) {
        if self.filled || !round_start || app_limited {
            return;
        }
        if self.bandwidth.max() >= self.full_bandwidth * 1.25 {
            self.full_bandwidth = self.bandwidth.max();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    /// Drain what Startup has left in the queue (§4.3.3).
    fn check_drain(&mut self, event: &AckEvent) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.window_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && event.pipe as f64 <= self.inflight(1.0) {
            self.probe_bandwidth(event.now);
        }
    }

    fn probe_bandwidth(&mut self, now: Time) {
        self.state = State::ProbeBandwidth;
        self.pacing_gain = 1.0;
        self.window_gain = 2.0;
        // Any phase but the draining one, which has nothing to drain.
        self.cycle = CYCLE.len() - 1 - self.first_phase as usize;
        self.advance_cycle(now);
    }

    /// Now and then the queue is emptied, to see the round trip without it (§4.3.5).
    fn check_probe_rtt(&mut self, event: &AckEvent, window: &mut Window, expired: bool, round_start: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_window(window);
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.window_gain) = (1.0, 1.0);
            self.probe_ends = None;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.rate.limit(event.pipe);
        match self.probe_ends {
            None if event.pipe as f64 <= MIN_WINDOW => {
                self.probe_ends = Some(Time::from_nanos(event.now.as_nanos() + (PROBE_RTT_SECS * 1e9) as u64));
                self.probe_round_done = false;
                self.round_ends = self.rate.total();
            }
            None => {}
            Some(ends) => {
                self.probe_round_done |= round_start;
                if self.probe_round_done && event.now > ends {
                    self.min_rtt_at = event.now;
                    window.cwnd = window.cwnd.max(self.prior_window);
                    self.end_probe_rtt(event.now);
                }
            }
        }
    }

    fn end_probe_rtt(&mut self, now: Time) {
        if self.filled {
            self.probe_bandwidth(now);
        } else {
            self.state = State::Startup;
            (self.pacing_gain, self.window_gain) = (HIGH_GAIN, HIGH_GAIN);
        }
    }

    /// Segments on the way at `gain` times the bandwidth–delay product, with three send quanta to spare (§4.2.3.2).
    fn inflight(&self, gain: f64) -> f64 {
        if self.min_rtt == f64::INFINITY {
            return self.initial_window;
        }
        gain * self.bandwidth.max() * self.min_rtt + 3.0 * self.send_quantum()
    }

    /// Segments that a host sends at once to spare its processor (§4.2.2). Here it makes room only: pacing is exact.
    fn send_quantum(&self) -> f64 {
        let bits_per_sec = self.pacing_rate * self.segment_bytes * 8.0;
        if bits_per_sec < 1.2e6 {
            1.0
        } else if bits_per_sec < 24e6 {
            2.0
        } else {
            (self.pacing_rate * 1e-3).min(65_536.0 / self.segment_bytes)
        }
    }

    /// §4.2.1: in Startup the rate only rises.
    fn set_pacing_rate(&mut self) {
        let rate = self.pacing_gain * self.bandwidth.max();
        if rate > 0.0 && (self.filled || rate > self.pacing_rate || self.round <= 1) {
            self.pacing_rate = rate;
        }
    }

    /// §4.2.3.
    fn set_window(&mut self, event: &AckEvent, window: &mut Window) {
        let target = self.inflight(self.window_gain);
        let delivered = event.delivered as f64;
        if self.recovering && event.lost > 0 {
            window.cwnd = (window.cwnd - event.lost as f64).max(1.0);
        }
        if self.recovering && self.conserving {
            window.cwnd = window.cwnd.max(event.pipe as f64 + delivered);
        } else {
            if self.filled {
                window.cwnd = (window.cwnd + delivered).min(target);
            } else if window.cwnd < target || (self.rate.total() as f64) < self.initial_window {
                window.cwnd += delivered;
            }
            window.cwnd = window.cwnd.max(MIN_WINDOW);
        }
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_WINDOW);
        }
        window.cwnd = window.cwnd.min(window.limit);
    }

    /// §4.2.3.4: for a round, no more is sent than is delivered.
    pub(super) fn enter_recovery(&mut self, event: &AckEvent, window: &mut Window) {
        self.save_window(window);
        window.cwnd = (event.pipe + event.delivered.max(1)) as f64;
        self.conserving = true;
        self.recovering = true;
        self.conserve_until = self.rate.total();
    }

    /// All that was outstanding at the loss is acknowledged: the window is what it was.
    pub(super) fn leave_recovery(&mut self, window: &mut Window) {
        self.conserving = false;
        self.recovering = false;
        window.cwnd = window.cwnd.max(self.prior_window).min(window.limit);
    }

    /// The timer ran out (§4.2.3.4).
    pub(super) fn collapse(&mut self, window: &mut Window) {
        self.save_window(window);
        window.cwnd = 1.0;
        self.conserving = false;
    }

    fn save_window(&mut self, window: &Window) {
        let held = self.recovering || self.state == State::ProbeRtt;
        self.prior_window = if held { self.prior_window.max(window.cwnd) } else { window.cwnd };
    }
}

/// The largest sample of the last ten rounds: the best one, and the best since each of the last two.
#[derive(Debug, Clone, Copy, Default)]
struct MaxFilter {
    /// Falling values, rising rounds.
    best: [(u64, f64); 3],
}

impl MaxFilter {
    fn max(&self) -> f64 {
        self.best[0].1
    }

    fn update(&mut self, round: u64, sample: f64) {
        if sample >= self.best[0].1 {
            self.best = [(round, sample); 3];
        } else if sample >= self.best[1].1 {
            self.best[1] = (round, sample);
            self.best[2] = (round, sample);
        } else if sample >= self.best[2].1 {
            self.best[2] = (round, sample);
        }
        self.expire(round);
        // The runners-up must not all be of the time when the best was.
        if self.best[1].0 == self.best[0].0 && round > self.best[1].0 + BANDWIDTH_ROUNDS / 4 {
            self.best[1] = (round, sample);
            self.best[2] = (round, sample);
        } else if self.best[2].0 == self.best[1].0 && round > self.best[2].0 + BANDWIDTH_ROUNDS / 2 {
            self.best[2] = (round, sample);
        }
    }

    fn expire(&mut self, round: u64) {
        while round > self.best[0].0 + BANDWIDTH_ROUNDS && self.best[1].0 > self.best[0].0 {
            self.best = [self.best[1], self.best[2], self.best[2]];
        }
    }
}

/// Seconds from `earlier` to `later`.
fn secs(later: Time, earlier: Time) -> f64 {
    later.since(earlier).as_nanos() as f64 / 1e9
}
