//! The configuration: AVMRC's Table 1, and what real networks need besides.

use core::time::Duration;

use crate::definition::Habitat;
use crate::estimate::DelayWindow;
use crate::membership::LONGEST_LEAVE;

/// Everything that can be set. [`Config::default`] is AVMRC with the paper's Table 1 and the readings that the page
/// `docs/papers/avmrc.md` gives for what the paper leaves open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The throughput model.
    pub model: Model,
    /// τ: length of a time slot (Table 1).
    pub tau: Duration,
    /// n_add: slots between those in which a channel may be added (Table 1).
    pub n_add: u64,
    /// n_drop: slots after an add in which the quick drop applies (Table 1).
    pub n_drop: u64,
    /// n_startup: length of the start-up phase in slots, in which a channel may be added in every slot (Table 1).
    pub n_startup: u64,
    /// γ1: add hysteresis, in steps of the ladder (Table 1).
    pub gamma_add: f64,
    /// γ2: drop hysteresis, in steps of the ladder (Table 1).
    pub gamma_drop: f64,
    /// R: the aggressiveness constant (Table 1).
    pub aggressiveness: Duration,
    /// What bounds β (§3.1), for [`Model::AdaptiveVegas`].
    pub beta_rule: BetaRule,
    /// Over how long the packets of a level are counted that bound β; `None` is over a slot (§3.1).
    pub beta_span: Option<Duration>,
    /// β, packets, for [`Model::FixedVegas`].
    pub fixed_beta_packets: f64,
    /// Weight of the computed β against the old one (§3.1: 0.05).
    pub beta_gain: f64,
    /// Weight of a packet's TSD in the short-term average (§3.2: 0.25).
    pub short_gain: f64,
    /// Weight of the short-term average in the long-term one (§3.2: 0.05).
    pub long_gain: f64,
    /// Share of the expected rate that must arrive for slow start to go on (§3.4: 0.95).
    pub slow_start_share: f64,
    /// Whether the sender's signal coordinates adds (§6.1).
    pub synchronisation: Synchronisation,
    /// What stands for the round-trip time in the model (§6.2).
    pub rtt_method: RttMethod,
    /// Round-trip time of the initial exchange, free of queuing, for [`RttMethod::Measured`].
    pub initial_rtt: Duration,
    /// How often the sender schedules packets (§6.3; §4.2: 100 ms).
    pub period: Duration,
    /// Whether a channel's last packet in a period may be smaller than full (§4.2: yes).
    pub small_packets: bool,
    /// Over what the smallest TSD is taken (§3.2).
    pub delay_window: DelayWindow,
    /// How many later packets of its channel give a missing packet up.
    pub reorder_packets: u64,
    /// How long at most a leave may take to act while further drops are held back.
    pub leave_wait: Duration,
    /// The loss-free interval before the first loss event.
    pub first_interval: FirstInterval,
    /// From when the start-up phase counts.
    pub startup: Startup,
    /// Whether an add of the start-up phase needs slow start's test to pass too (decision 10).
    pub confirm_startup: bool,
    /// Whether the window of Eq. 3 is cut to the one of relation 6, beyond which the equation does not hold.
    pub stable_window_only: bool,
    /// Slow start begins at the highest level that sends at most this number of packets in R, or at level 1 (decision 19).
    pub initial_packets: f64,
    /// Slow start adds the fewest channels that multiply the rate by this, at least one (decision 19).
    pub slow_start_growth: f64,
    /// What a step of slow start waits for.
    pub step_test: StepTest,
    /// Packet times at the current rate by which slow start's delay may grow in a slot on top of its 5 %.
    pub jitter_packets: f64,
}

/// The throughput model of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// AVMRC: TCP Vegas, β from relation 6.
    AdaptiveVegas,
    /// VMRC: TCP Vegas, β fixed.
    FixedVegas,
    /// RMRC: TCP Reno.
    Reno,
}

/// What β_max is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetaRule {
    /// The packets of a slot at the highest level there is (§3.1).
    Literal,
    /// The packets of a slot at the highest level that the receiver has sustained (decision 6).
    Sustained,
}

/// Whether receivers add channels at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronisation {
    /// Slots are the sender's, and channels are added in those that it signals.
    Weak,
    /// Slots are the receiver's own, and channels are added in every n_add-th.
    None,
}

/// What stands for the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMethod {
    /// R plus the average one-way queuing delay (AVMRC's own).
    FixedPlusQueuing,
    /// R alone.
    Fixed,
    /// What an initial exchange with the sender measured, plus the average one-way queuing delay since.
    Measured,
}

/// The loss-free interval before the first loss event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstInterval {
    /// The packets received until then.
    Counted,
    /// These, or the interval at which the model gives the rate that is kept, whichever is longer (decision 8).
    Seeded,
}

/// What a step of slow start waits for (decisions 13, 20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTest {
    /// The test of the last slot alone, whether the newest channel has brought packets or not (§3.4).
    Last,
    /// The test of a slot in whose first half, at the latest, the newest channel took effect.
    Half,
    /// The test of a whole slot of all channels; the step to the top waits for it too.
    Whole,
}

/// From when the start-up phase counts its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup {
    /// From the first packet (§3.4).
    Join,
    /// From the end of slow start (decision 9).
    SlowStartEnd,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            model: Model::AdaptiveVegas,
            tau: Duration::from_millis(100),
            n_add: 20,
            n_drop: 20,
            n_startup: 50,
            gamma_add: 0.5,
            gamma_drop: 0.5,
            aggressiveness: Duration::from_millis(100),
            beta_rule: BetaRule::Literal,
            beta_span: None,
            fixed_beta_packets: 6.0,
            beta_gain: 0.05,
            short_gain: 0.25,
            long_gain: 0.05,
            slow_start_share: 0.95,
            synchronisation: Synchronisation::Weak,
            rtt_method: RttMethod::FixedPlusQueuing,
            initial_rtt: Duration::from_millis(100),
            period: Duration::from_millis(100),
            small_packets: true,
            delay_window: DelayWindow::Everything,
            reorder_packets: 0,
            leave_wait: Duration::ZERO,
            first_interval: FirstInterval::Counted,
            startup: Startup::Join,
            confirm_startup: false,
            stable_window_only: false,
            initial_packets: 0.0,
            slow_start_growth: 1.0,
            step_test: StepTest::Last,
            jitter_packets: 0.0,
        }
    }
}

impl Config {
    /// The defaults for a `model` in a `habitat`.
    pub fn new(model: Model, habitat: Habitat) -> Config {
        let paper = Config { model, ..Config::default() };
        match habitat {
            Habitat::Lab => paper,
            Habitat::Sockets => Config {
                period: Duration::from_millis(5),
                small_packets: false,
                delay_window: DelayWindow::Moving(Duration::from_secs(600)),
                reorder_packets: 3,
                leave_wait: LONGEST_LEAVE,
                first_interval: FirstInterval::Seeded,
                startup: Startup::SlowStartEnd,
                confirm_startup: true,
                stable_window_only: true,
                initial_packets: 10.0,
                slow_start_growth: 2.0,
                step_test: StepTest::Whole,
                jitter_packets: 2.0,
                ..paper
            },
        }
    }
}
