//! The configuration: ns-2's constants, and what they become on real networks.

use core::time::Duration;

use crate::definition::Habitat;
use crate::membership::LONGEST_LEAVE;

/// Everything that can be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// C, the check value: layers are joined after so long, up to the least estimate of that time.
    pub check: Duration,
    /// With fewer estimates, it takes longer.
    pub least_estimates: u64,
    /// What a share is read from.
    pub estimator: Estimator,
    /// Packets that come faster than one in this time come too fast for the receiver's time stamps.
    pub resolution: Duration,
    /// Packets that are sent back to back: 2 for pairs, more for trains.
    pub burst_packets: u64,
    /// Between the bursts of a channel there is at least so much; meanwhile its packets are sent one by one.
    pub burst_every: Duration,
    /// A channel's next packets come early or late by up to this part of the time until then.
    pub jitter: f64,
    /// Whether packets are cut as ns-2's UDP agent cuts them, into 1000 bytes and the rest (decision 3).
    pub cut: bool,
    /// More loss than this costs a layer.
    pub loss: f64,
    /// After a layer was given up for loss or silence, so long none is.
    pub blind: Duration,
    /// So long without a packet costs a layer; `None` is never.
    pub silence: Option<Duration>,
    /// A session that was left is joined again after this.
    pub rejoin: Duration,
    /// Whether the base layer is kept whatever happens (decision 5).
    pub protect_base: bool,
    /// Whether the receiver tests that the path is fair-queued, and follows delay and loss where it is not (decision 7).
    pub test_premise: bool,
    /// How long at most a leave may take to act while the premise is not tested.
    pub leave_wait: Duration,
    /// A missing packet counts as lost after this number of later packets of its channel.
    pub reorder_packets: u64,
}

/// What a share is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// The first two packets of each burst.
    Pairs,
    /// The tails of bursts.
    Trains,
}

impl Config {
    /// The defaults of a habitat.
    pub fn new(habitat: Habitat) -> Config {
        let lab = Config {
            check: Duration::from_secs(1),
            least_estimates: 3,
            estimator: Estimator::Pairs,
            resolution: Duration::ZERO,
            burst_packets: 2,
            burst_every: Duration::ZERO,
            jitter: 0.5,
            cut: false,
            loss: 0.1,
            blind: Duration::from_millis(500),
            silence: Some(Duration::from_millis(500)),
            rejoin: Duration::from_secs(30),
            protect_base: false,
            test_premise: false,
            leave_wait: Duration::ZERO,
            reorder_packets: 1,
        };
        match habitat {
            Habitat::Lab => lab,
            Habitat::Sockets => Config {
                least_estimates: 1,
                estimator: Estimator::Trains,
                resolution: Duration::from_micros(20),
                burst_packets: 16,
                burst_every: Duration::from_secs(1),
                jitter: 0.1,
                protect_base: true,
                test_premise: true,
                leave_wait: LONGEST_LEAVE,
                reorder_packets: 3,
                ..lab
            },
        }
    }

    /// With what ns-2.35 does otherwise.
    pub(super) fn as_ns2(self) -> Config {
        Config { cut: true, silence: None, ..self }
    }
}
