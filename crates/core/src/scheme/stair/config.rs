//! The configuration: the paper's constants, and what it leaves open.

use core::time::Duration;

use super::choice::StairRule;
use crate::definition::Habitat;

/// Everything that can be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// When a loss lowers the rate (decision 1).
    pub decrease: Decrease,
    /// Which stairs a round-trip time takes (§4.3).
    pub stair_rule: StairRule,
    /// How many stairs the sender offers.
    pub stairs: u64,
    /// Steps of the fastest stair at least: h of §3.2.
    pub stair_height: u64,
    /// Where the round-trip time is from.
    pub rtt_method: RttMethod,
    /// The round-trip time that stands until one is measured, or for good.
    pub initial_rtt: Duration,
    /// How a receiver gets to its first loss (decision 3).
    pub start_up: StartUp,
    /// How long before it is needed a join is made (§4.1).
    pub join_latency: Latency,
    /// How long before it is to act a leave is made.
    pub leave_latency: Latency,
    /// How long a leave may take to act while losses belong to what it was made for.
    pub leave_wait: Duration,
    /// Later packets of a channel that make a missing one lost.
    pub reorder_packets: u64,
    /// Round-trip probes a second that the sender wants of all receivers together (decision 5).
    pub probes_per_sec: u64,
    /// The sender looks for due packets this often; zero is at their exact times (decision 7).
    pub period: Duration,
}

/// When a loss lowers the rate: three readings of §4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decrease {
    /// At the end of the stair period in which it happened.
    PeriodEnd,
    /// At once, the first time in a period; a period with a loss ends without an increase.
    AtOnce,
    /// At once, once a round-trip time, and the period ends with an increase if nothing was lost since.
    AtOnceEachRtt,
}

/// Where a receiver's round-trip time is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMethod {
    /// Probes that the sender answers.
    Measured,
    /// The same, but the stair is chosen by the shortest of them (decision 5).
    Least,
    /// It was measured before the session.
    Fixed,
}

/// How a receiver gets to its first loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartUp {
    /// The rate doubles every round-trip time.
    SlowStart,
    /// The rate climbs as ever after.
    Additive,
}

/// How long a change of membership takes to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// As the receiver finds.
    Measured,
    /// As the user says.
    Fixed(Duration),
}

/// `None` is as measured.
impl From<Option<Duration>> for Latency {
    fn from(fixed: Option<Duration>) -> Latency {
        fixed.map_or(Latency::Measured, Latency::Fixed)
    }
}

impl From<Latency> for Option<Duration> {
    fn from(latency: Latency) -> Option<Duration> {
        match latency {
            Latency::Measured => None,
            Latency::Fixed(fixed) => Some(fixed),
        }
    }
}

impl Config {
    /// The defaults of a habitat.
    pub fn new(habitat: Habitat) -> Config {
        let sockets = habitat == Habitat::Sockets;
        Config {
            decrease: Decrease::PeriodEnd,
            stair_rule: StairRule::One,
            stairs: 4,
            stair_height: 4,
            rtt_method: RttMethod::Measured,
            initial_rtt: Duration::from_millis(100),
            start_up: if sockets { StartUp::SlowStart } else { StartUp::Additive },
            join_latency: Latency::Measured,
            leave_latency: Latency::Measured,
            leave_wait: if sockets { Duration::from_millis(2_500) } else { Duration::ZERO },
            reorder_packets: if sockets { 3 } else { 0 },
            probes_per_sec: 50,
            period: Duration::from_millis(if sockets { 5 } else { 0 }),
        }
    }
}
