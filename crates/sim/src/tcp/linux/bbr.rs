//! BBR, version 1, as Linux has it: sends at the bottleneck's rate, as measured, and keeps a little more than a bandwidth–delay
//! product on the way. Its window is in `bbr_window`, its view of policers in `policer`.
//!
//! Cardwell, Cheng et al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00 has the sections named here.

use std::time::Duration;

use weir_units::{Random, Time};

use super::aggregation::Aggregation;
use super::filter::MaxFilter;
use super::policer::Policer;
use super::rate::Sample;

/// What BBR is doing (§3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// What BBR sees of its connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) now: Time,
    /// Segments on the way.
    pub(super) in_flight: u64,
    /// Delivered and lost so far.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// When the pacer lets the next segment out.
    pub(super) next_send: Time,
    pub(super) srtt: Duration,
    pub(super) segment_bytes: f64,
    /// Fast recovery, or after a time-out.
    pub(super) recovering: bool,
    pub(super) is_fast_recovery: bool,
}

/// State of BBR. Rates are in segments per second.
#[derive(Debug, Clone)]
pub(super) struct Bbr {
    pub(super) state: State,
    pub(super) bandwidth: MaxFilter,
    pub(super) policer: Policer,
    pub(super) aggregation: Aggregation,
    /// The least round trip of the last ten seconds, and when it was seen.
    pub(super) min_rtt: Option<Duration>,
    min_rtt_at: Time,
    pub(super) round: u64,
    pub(super) round_start: bool,
    /// The round trip ends when this much is delivered.
    pub(super) round_ends: u64,
    pub(super) pacing_gain: f64,
    pub(super) window_gain: f64,
    /// `None` before the first round trip.
    pub(super) pacing_rate: Option<f64>,
    /// Bandwidth that Startup must exceed by a quarter, and rounds in which it did not (§4.3.2.2).
    full_bandwidth: f64,
    full_rounds: u32,
    pub(super) filled: bool,
    pub(super) cycle: usize,
    cycle_began: Time,
    /// When the probe of the round trip may end, once the pipe is small enough, and whether a round has passed since.
    probe_ends: Option<Time>,
    probe_round_done: bool,
    idle_restart: bool,
    pub(super) prior_window: u64,
    /// For a round after a loss, what leaves the network is replaced and no more (§4.2.3.4).
    pub(super) conserving: bool,
    pub(super) was_recovering: bool,
    random: Random,
}

impl Bbr {
    /// `random` decides where the bandwidth probe's cycle begins.
    pub(super) fn new(random: Random) -> Bbr {
        Bbr {
            state: State::Startup,
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            round: 0,
            round_start: false,
            round_ends: 0,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing_rate: None,
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            cycle: 0,
            cycle_began: Time::ZERO,
            probe_ends: None,
            probe_round_done: false,
            idle_restart: false,
            prior_window: 0,
            conserving: false,
            was_recovering: false,
            random,
        }
    }

    /// `BBRUpdateOnACK()` (§3.5.1), but for the window.
    pub(super) fn update(&mut self, view: &View, sample: &Sample, app_limited: &mut u64, cwnd: &mut u64) {
        self.update_bandwidth(view, sample);
        self.aggregation.update(view, sample, self.round_start, self.bandwidth_in_use(), *cwnd);
        if self.state == State::ProbeBandwidth && self.is_phase_over(view, sample) {
            self.advance_cycle(view.now);
        }
        self.check_full(sample);
        self.check_drain(view);
        self.update_min_rtt(view, sample, app_limited, cwnd);
        self.set_gains();
        self.set_pacing_rate(view, *cwnd, self.pacing_gain);
    }

    /// The bandwidth that counts: the greatest of late, or a policer's.
    pub(super) fn bandwidth_in_use(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    fn update_bandwidth(&mut self, view: &View, sample: &Sample) {
        self.round_start = false;
        let Some((delivered, interval)) = sample.delivered else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = view.delivered;
            self.round += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let in_probe = self.state == State::ProbeBandwidth;
        if self.policer.sample(view, sample.losses, sample.app_limited, self.round_start, in_probe) {
            self.probe_bandwidth(view.now);
        }
        let rate = delivered as f64 / (interval.as_nanos() as f64 / 1e9);
        if !sample.app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.update(self.round, rate);
        }
    }

    /// Whether the bandwidth probe goes on to its next phase (§4.3.4.3).
    fn is_phase_over(&self, view: &View, sample: &Sample) -> bool {
        let is_full_length = self.min_rtt.is_some_and(|least| view.now.since(self.cycle_began) > least);
        if self.pacing_gain == 1.0 {
            return is_full_length;
        }
        let in_flight = self.in_network_at_next_send(view, sample.prior_in_flight);
        let bandwidth = self.bandwidth.max();
        if self.pacing_gain > 1.0 {
            return is_full_length
                && (sample.losses > 0 || in_flight >= self.in_flight(view, bandwidth, self.pacing_gain));
        }
        is_full_length || in_flight <= self.in_flight(view, bandwidth, 1.0)
    }

    /// What will be on the way when the next segment is sent: what is now, less what is delivered until then.
    fn in_network_at_next_send(&self, view: &View, in_flight: u64) -> u64 {
        let wait = view.next_send.since(view.now).as_nanos() as f64 / 1e9;
        let delivered = (self.bandwidth_in_use() * wait) as u64;
        let sends = if self.pacing_gain > 1.0 { self.batch(view.segment_bytes) } else { 0 };
        (in_flight + sends).saturating_sub(delivered)
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = now;
    }

    /// Three rounds in which the bandwidth did not grow by a quarter: the pipe is full (§4.3.2.2).
    fn check_full(&mut self, sample: &Sample) {
        if self.filled || !self.round_start || sample.app_limited {
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
    fn check_drain(&mut self, view: &View) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
        }
        let bandwidth = self.bandwidth.max();
        if self.state == State::Drain
            && self.in_network_at_next_send(view, view.in_flight) <= self.in_flight(view, bandwidth, 1.0)
        {
            self.probe_bandwidth(view.now);
        }
    }

    fn probe_bandwidth(&mut self, now: Time) {
        self.state = State::ProbeBandwidth;
        // Any phase but the draining one, which has nothing to drain.
        self.cycle = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.advance_cycle(now);
    }

    /// The least round trip, and now and then an emptied queue to see it (§4.3.5).
    fn update_min_rtt(&mut self, view: &View, sample: &Sample, app_limited: &mut u64, cwnd: &mut u64) {
        let expired = view.now.since(self.min_rtt_at) > RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), view.now);
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_window(*cwnd);
            self.state = State::ProbeRtt;
            self.probe_ends = None;
        }
        if self.state == State::ProbeRtt {
            *app_limited = (view.delivered + view.in_flight).max(1);
            match self.probe_ends {
                None if view.in_flight <= MIN_WINDOW => {
                    self.probe_ends = Some(view.now + PROBE_RTT);
                    self.probe_round_done = false;
                    self.round_ends = view.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_round_done |= self.round_start;
                    if self.probe_round_done {
                        self.end_probe_rtt(view.now, cwnd);
                    }
                }
            }
        }
        if sample.delivered.is_some_and(|(delivered, _)| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn end_probe_rtt(&mut self, now: Time, cwnd: &mut u64) {
        if self.probe_ends.is_none_or(|ends| now <= ends) {
            return;
        }
        self.min_rtt_at = now;
        *cwnd = (*cwnd).max(self.prior_window);
        if self.filled { self.probe_bandwidth(now) } else { self.state = State::Startup }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            State::ProbeBandwidth if self.policer.rate().is_some() => (1.0, 2.0),
            State::ProbeBandwidth => (CYCLE[self.cycle], 2.0),
            State::ProbeRtt => (1.0, 1.0),
        };
    }

    /// §4.2.1: in Startup the rate only rises; one per cent less than the bandwidth keeps the queue short.
    fn set_pacing_rate(&mut self, view: &View, cwnd: u64, gain: f64) {
        let known = *self.pacing_rate.get_or_insert_with(|| initial_rate(view.srtt, cwnd));
        let rate = self.bandwidth_in_use() * gain * PACING_MARGIN;
        if rate > 0.0 && (self.filled || rate > known) {
            self.pacing_rate = Some(rate);
        }
    }

    /// Segments per second; before the first round trip that counts as 1 ms.
    pub(super) fn rate(&self, cwnd: u64) -> f64 {
        self.pacing_rate.unwrap_or_else(|| initial_rate(Duration::from_millis(1), cwnd))
    }

    /// The sender had nothing on its way and sends again (§4.4).
    pub(super) fn restart_from_idle(&mut self, view: &View, cwnd: &mut u64) {
        self.idle_restart = true;
        self.aggregation.restart(view.now);
        if self.state == State::ProbeBandwidth {
            self.set_pacing_rate(view, *cwnd, 1.0);
        } else if self.state == State::ProbeRtt {
            self.end_probe_rtt(view.now, cwnd);
        }
    }

    /// The retransmission timer ran out: as the end of a round with a loss, and Startup looks for the bandwidth again.
    pub(super) fn timed_out(&mut self, view: &View) {
        self.was_recovering = true;
        self.full_bandwidth = 0.0;
        self.round_start = true;
        self.policer.sample(view, 1, false, true, self.state == State::ProbeBandwidth);
    }

    /// Segments that the host sends at once (§4.2.2).
    pub(super) fn batch(&self, segment_bytes: f64) -> u64 {
        let bytes_per_second = self.pacing_rate.unwrap_or(0.0) * segment_bytes;
        let least = if bytes_per_second < MIN_BATCH_RATE { 1 } else { 2 };
        ((bytes_per_second / 1024.0).min(MAX_BATCH_BYTES) / segment_bytes).max(f64::from(least)) as u64
    }
}

fn initial_rate(rtt: Duration, cwnd: u64) -> f64 {
    let secs = rtt.max(Duration::from_micros(1)).as_nanos() as f64 / 1e9;
    HIGH_GAIN * cwnd as f64 / secs
}

/// 2 / ln 2: doubles the rate in a round trip (§4.3.2.1).
const HIGH_GAIN: f64 = 2885.0 / 1000.0;
/// Rounds for which the largest bandwidth counts (§4.1.1.3).
const BANDWIDTH_ROUNDS: u64 = 10;
/// For how long the least round trip counts (§4.1.2.2).
const RTT_WINDOW: Duration = Duration::from_secs(10);
/// The window never is smaller (§4.2.3.2), and is so small while the round trip is probed.
pub(super) const MIN_WINDOW: u64 = 4;
/// For how long the round trip is probed (§4.3.5).
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Pacing gains of the bandwidth probe, a round trip each (§4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PACING_MARGIN: f64 = 0.99;
/// Below 1.2 Mbit/s segments go one by one.
const MIN_BATCH_RATE: f64 = 1.2e6 / 8.0;
const MAX_BATCH_BYTES: f64 = 65_536.0 - 1.0 - 320.0;
