//! What can be claimed of an outcome, and whether it holds.

use std::fmt;
use std::time::Duration;

use weir_units::{Bytes, Time};

use super::{HostOutcome, Outcome, Scenario};

/// From one second to another.
pub type Span = (u64, u64);

/// A claim about one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim {
    /// The receiver spends at least `share` of `span` at levels from the first to the second of `levels`.
    Holds {
        /// Which host.
        host: usize,
        /// When.
        span: Span,
        /// Lowest and highest.
        levels: (usize, usize),
        /// Least share of the time.
        share: f64,
    },
    /// At some time in `span` the receiver is at one of `levels`.
    Reaches {
        /// Which host.
        host: usize,
        /// When.
        span: Span,
        /// Lowest and highest.
        levels: (usize, usize),
    },
    /// The application's mean rate in `span`, all headers included.
    Rate {
        /// Which host.
        host: usize,
        /// When.
        span: Span,
        /// Least and most, kbit/s.
        kbps: (u64, u64),
    },
    /// The share of the packets of `span` that the network lost, as the receiver saw it.
    Loss {
        /// Which host.
        host: usize,
        /// When.
        span: Span,
        /// Least and most.
        share: (f64, f64),
    },
    /// In `span` the receiver sees a queue of at least so long.
    Queue {
        /// Which host.
        host: usize,
        /// When.
        span: Span,
        /// Short-term average at the end of a slot, ms.
        at_least_ms: u64,
    },
    /// The first packet comes so long after the receiver's start.
    FirstPacket {
        /// Which host.
        host: usize,
        /// Least and most, ms.
        ms: (u64, u64),
    },
    /// When the receiver has finished, what comes over its link ends.
    Ends {
        /// Which host.
        host: usize,
        /// What may still come, for other protocols.
        at_most: Bytes,
    },
}

/// What a claim found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: Claim,
    /// What there is, in words.
    pub found: String,
    /// Whether it is as claimed.
    pub holds: bool,
    /// Each change of the host's level, for messages.
    levels: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:?}: {}\n    levels {}", self.claim, self.found, self.levels)
    }
}

impl Claim {
    pub(super) fn judge(self, scenario: &Scenario, outcome: &Outcome) -> Finding {
        let index = self.host();
        let host = &outcome.hosts[index];
        let time_at = |span, levels| {
            let (from, until) = times(span);
            host.record.share_of_time(from, until, |level| within(level, levels))
        };
        let (found, holds) = match self {
            Claim::Holds { span, levels, share, .. } => {
                let found = time_at(span, levels);
                (format!("{found:.3} of the time"), found >= share)
            }
            Claim::Reaches { span, levels, .. } => {
                let found = time_at(span, levels);
                (format!("{found:.3} of the time"), found > 0.0)
            }
            Claim::Rate { span, kbps, .. } => {
                let (from, until) = times(span);
                let found = host.record.mean_bps(from, until) / 1e3;
                (format!("{found:.0} kbit/s"), within(found, (kbps.0 as f64, kbps.1 as f64)))
            }
            Claim::Loss { span, share, .. } => {
                let (lost, all) = losses(host, span);
                (format!("{lost} of {all} packets"), all > 0 && within(lost as f64 / all as f64, share))
            }
            Claim::Queue { span, at_least_ms, .. } => {
                let found = longest_queue(host, span);
                (format!("{} ms", found.as_millis()), found >= Duration::from_millis(at_least_ms))
            }
            Claim::FirstPacket { ms, .. } => {
                let start = Time::from_secs(scenario.hosts[index].joins);
                let found = host.record.delivered.first().map(|(at, _)| at.since(start).as_millis() as u64);
                (some(found, "ms"), found.is_some_and(|found| within(found, ms)))
            }
            Claim::Ends { at_most, .. } => {
                let found = host.after_leave.map(Bytes::count);
                (some(found, "bytes"), found.is_some_and(|found| found <= at_most.count()))
            }
        };
        let level = |(at, level): (Time, usize)| format!("{:.1}:{level}", at.as_secs_f64());
        let levels = host.record.levels().map(level).collect::<Vec<_>>().join(" ");
        Finding { claim: self, found, holds, levels }
    }

    fn host(self) -> usize {
        match self {
            Claim::Holds { host, .. }
            | Claim::Reaches { host, .. }
            | Claim::Rate { host, .. }
            | Claim::Loss { host, .. }
            | Claim::Queue { host, .. }
            | Claim::FirstPacket { host, .. }
            | Claim::Ends { host, .. } => host,
        }
    }
}

fn some(value: Option<u64>, unit: &str) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| format!("{value} {unit}"))
}

fn times((from, until): Span) -> (Time, Time) {
    (Time::from_secs(from), Time::from_secs(until))
}

fn within<T: PartialOrd + Copy>(value: T, (low, high): (T, T)) -> bool {
    low <= value && value <= high
}

/// Packets that the network lost, and all that it should have brought.
fn losses(host: &HostOutcome, span: Span) -> (u64, u64) {
    let (from, until) = times(span);
    let lost = host.record.lost_packets(from, until);
    (lost, lost + host.record.delivered_packets(from, until))
}

fn longest_queue(host: &HostOutcome, span: Span) -> Duration {
    let (from, until) = times(span);
    host.record.slots(from, until).map(|slot| slot.queuing_delay[0]).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use weir_core::Observation;
    use weir_core::observation::{LevelCause, SlotReport};
    use weir_units::Rate;

    use super::*;
    use crate::conformance::{Host, Traffic};

    const SCENARIO: Scenario = Scenario {
        name: "test",
        traffic: Traffic::Layered { ladder_kbps: (256, 1_000) },
        hosts: &[Host::at(&[(0, 1_000)])],
        seconds: 10,
        claims: &[],
        own_claims: &[],
    };

    fn level(at: u64, level: usize) -> (Time, Observation) {
        let rate = Rate::from_kbps(256);
        (Time::from_secs(at), Observation::Level { level, rate, cause: LevelCause::Add })
    }

    fn slot(at: u64, lost_packets: u64, queue_ms: u64) -> (Time, Observation) {
        let report = SlotReport {
            level: 1,
            received_rate: Rate::ZERO,
            received_packets: 0,
            lost_packets,
            host_dropped_packets: 0,
            queuing_delay: [Duration::from_millis(queue_ms), Duration::ZERO],
            loss_event_rate: None,
            target_rate: None,
            vegas_beta_packets: None,
        };
        (Time::from_secs(at), Observation::Slot(report))
    }

    /// Level 1 from second 0 on, 2 from 4 on, 3 from 8 on; slots at 1, 5 and 9; two packets of 1000 bytes at 3 and 7.
    fn outcome() -> Outcome {
        let mut host = HostOutcome { after_leave: Some(Bytes::new(100)), ..HostOutcome::default() };
        host.record.observations =
            vec![level(0, 1), slot(1, 3, 5), level(4, 2), slot(5, 0, 50), level(8, 3), slot(9, 50, 7)];
        host.record.delivered = vec![(Time::from_secs(3), 1_000), (Time::from_secs(7), 1_000)];
        Outcome { hosts: vec![host] }
    }

    fn holds(claim: Claim) -> bool {
        claim.judge(&SCENARIO, &outcome()).holds
    }

    #[test]
    fn a_claim_about_levels_counts_the_time_at_them_within_its_span() {
        let claim = |span, levels, share| Claim::Holds { host: 0, span, levels, share };
        assert!(holds(claim((2, 8), (2, 3), 0.66)) && !holds(claim((2, 8), (2, 3), 0.67)));
        assert!(holds(claim((0, 10), (1, 3), 1.0)) && !holds(claim((0, 10), (4, 9), 0.01)));
        let claim = |span, levels| Claim::Reaches { host: 0, span, levels };
        assert!(holds(claim((7, 10), (3, 3))) && !holds(claim((0, 8), (3, 3))));
    }

    #[test]
    fn a_claim_about_loss_rate_or_queue_sees_its_span_only() {
        let loss = |span, share| Claim::Loss { host: 0, span, share };
        assert!(holds(loss((0, 6), (0.74, 0.76))) && !holds(loss((0, 10), (0.74, 0.76))));
        assert!(holds(loss((2, 6), (0.0, 0.0))), "none is claimed and none came");
        assert!(!holds(loss((4, 6), (0.0, 1.0))), "without packets nothing can be said");
        let queue = |span| Claim::Queue { host: 0, span, at_least_ms: 50 };
        assert!(holds(queue((0, 10))) && !holds(queue((6, 10))));
        let rate = |span| Claim::Rate { host: 0, span, kbps: (4, 4) };
        assert!(holds(rate((2, 4))) && !holds(rate((2, 8))));
    }

    #[test]
    fn a_claim_about_the_first_packet_or_the_end_needs_one() {
        assert!(holds(Claim::FirstPacket { host: 0, ms: (3_000, 3_000) }));
        assert!(!holds(Claim::FirstPacket { host: 0, ms: (0, 2_999) }));
        assert!(holds(Claim::Ends { host: 0, at_most: Bytes::new(100) }));
        assert!(!holds(Claim::Ends { host: 0, at_most: Bytes::new(99) }));
        let nothing = Outcome { hosts: vec![HostOutcome::default()] };
        for claim in [Claim::FirstPacket { host: 0, ms: (0, 9) }, Claim::Ends { host: 0, at_most: Bytes::new(9) }] {
            assert!(!claim.judge(&SCENARIO, &nothing).holds, "{claim:?}");
        }
    }
}
