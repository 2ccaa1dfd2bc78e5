//! What is claimed of every scheme of layered sessions, and of some by their own arithmetic.
//!
//! The schemes of [`LEVELS`] choose between the levels of [`LADDER`], in kbit/s: 1: 256, 2: 384, 3: 576, 4: 864, 5: 1296,
//! 6: 1944, 7: 2916, 8: 4374, 9: 6561, 10: 10 000. A link's *level* is the highest that it carries. Three steps of arithmetic
//! are used throughout:
//!
//! - Settled after 8 s: slow start begins with ten packets in R (level 4) and doubles, which takes few slots of 0.1 s; the
//!   start-up phase is 50 slots from there; then come two seconds of the long-term average (gain 0.05 a slot).
//! - From then on a receiver tries the level above at most every n_add = 20 slots, sees the queue grow by a quarter slot a
//!   slot or so, and goes back: it is at the link's level or one next to it.
//! - A trial aims at a queue of τ = 100 ms and the links hold 400 ms: with [`VEGAS`], trials lose nothing. A step of 1.5
//!   overloads a link by a quarter to a third, so that a trial would have to last 12 slots or more to fill it.

use weir_units::Bytes;

use super::{all, at_least_a_quarter, at_least_half};
use crate::conformance::{Claim, Host, NO_LIMIT_KBPS, OwnClaims, Scenario, Traffic};

/// All scenarios.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a receiver settles near its link",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        // Level 7 is 83 % of the link, level 8 is 125 %.
        hosts: &[Host::at(&[(0, 3_500)])],
        seconds: 20,
        claims: &[
            Claim::Rate { host: 0, span: (8, 20), kbps: at_least_a_quarter(3_500) },
            // A packet takes 3.4 ms: one waits for another, and on a wide link none does.
            Claim::Queue { host: 0, span: (0, 20), at_least_ms: 3 },
        ],
        own_claims: &[
            OwnClaims { schemes: BY_OVERLOAD, claims: &[Claim::Queue { host: 0, span: (0, 20), at_least_ms: 10 }] },
            OwnClaims {
                schemes: LEVELS,
                claims: &[
                    Claim::Holds { host: 0, span: (8, 20), levels: (6, 8), share: 0.95 },
                    // From half way between levels 6 and 7 to the link's rate.
                    Claim::Rate { host: 0, span: (8, 20), kbps: (2_430, 3_500) },
                ],
            },
            OwnClaims { schemes: VEGAS, claims: &[Claim::Loss { host: 0, span: (8, 20), share: NONE }] },
            OwnClaims {
                schemes: &["stair", "plm"],
                claims: &[Claim::Rate { host: 0, span: (8, 20), kbps: at_least_half(3_500) }],
            },
        ],
    },
    Scenario {
        name: "on a wide link a receiver takes everything and loses nothing",
        // 256, 384, 576, 864, 1296, 2000.
        traffic: Traffic::Layered { ladder_kbps: (256, 2_000) },
        hosts: &[Host::at(&[(0, 8_000)])],
        seconds: 8,
        claims: &[
            // The schemes whose rates are whole multiples of the lowest come to 7 times 256.
            Claim::Rate { host: 0, span: (4, 8), kbps: (1_750, 2_050) },
            Claim::Loss { host: 0, span: (0, 8), share: NONE },
        ],
        own_claims: &[OwnClaims {
            schemes: VEGAS,
            claims: &[
                // Two steps of slow start, each judged by a whole slot after the slot in which it took effect.
                Claim::Reaches { host: 0, span: (0, 2), levels: (6, 6) },
                Claim::Holds { host: 0, span: (2, 8), levels: (6, 6), share: 1.0 },
                // What is sent is what comes.
                Claim::Rate { host: 0, span: (2, 8), kbps: (1_950, 2_050) },
            ],
        }],
    },
    Scenario {
        name: "a receiver follows a cut in capacity and its end",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        // Level 9 is 82 % of the wide link; the narrow one carries level 6 in theory and level 5 in comfort.
        hosts: &[Host::at(&[(0, 8_000), (10, 2_000), (20, 8_000)])],
        seconds: 48,
        claims: &[
            // More than the narrow link carries: half way from level 6 to level 7, as below.
            Claim::Rate { host: 0, span: (6, 10), kbps: (2_430, all(8_000)) },
            // Half of 8 Mbit/s over 2 fill 400 ms in 400 ms, and lose half until the receiver gives way.
            Claim::Queue { host: 0, span: (10, 13), at_least_ms: 100 },
            Claim::Loss { host: 0, span: (10, 13), share: (0.02, 0.75) },
            // An eighth of the link is what a rate of all of it would be after three halvings too many. Without the receiver's
            // giving way three packets in four would be lost.
            Claim::Rate { host: 0, span: (15, 20), kbps: (250, all(2_000)) },
            Claim::Loss { host: 0, span: (15, 20), share: (0.0, 0.25) },
            // From half way between levels 6 and 7, more than the narrow link carries.
            Claim::Rate { host: 0, span: (43, 48), kbps: (2_430, all(8_000)) },
            Claim::Loss { host: 0, span: (24, 48), share: (0.0, 0.05) },
        ],
        own_claims: &[OwnClaims {
            schemes: LEVELS,
            claims: &[
                Claim::Holds { host: 0, span: (8, 10), levels: (8, 10), share: 0.9 },
                // Both targets must be low before a level is dropped. The long-term delay has come nine tenths of its way in
                // 4.5 s.
                Claim::Reaches { host: 0, span: (10, 15), levels: (1, 6) },
                Claim::Holds { host: 0, span: (15, 20), levels: (3, 7), share: 0.9 },
                // Level 7, half as much again as the narrow link carries, needs a target half a step beyond it: 3645 kbit/s or
                // 31 packets in R. Reno gets that at p = 1.5/31², 640 packets between losses. Were all older intervals nothing,
                // the interval that is under way, which counts a sixth, would take 3840 packets: 23 s at 1944 kbit/s.
                Claim::Reaches { host: 0, span: (20, 43), levels: (7, 10) },
                Claim::Loss { host: 0, span: (24, 48), share: (0.0, 0.01) },
            ],
        }],
    },
    Scenario {
        name: "random loss costs a receiver what it costs a TCP",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        // The link is no limit, so that nothing is lost but by chance. The round trip is the R of the schemes that do not
        // measure it.
        hosts: &[Host { delay_ms: 100, loss: 0.02, ..Host::at(&[(0, NO_LIMIT_KBPS)]) }],
        seconds: 25,
        claims: &[
            Claim::FirstPacket { host: 0, ms: (100, 700) },
            Claim::Rate { host: 0, span: (10, 25), kbps: (280, 10_200) },
            // Of 900 packets or more 18 ± 4.2 are lost; three deviations either way.
            Claim::Loss { host: 0, span: (2, 25), share: (0.006, 0.034) },
        ],
        own_claims: &[
            OwnClaims {
                // All but PLM, for which loss is no measure of the share that the path gives.
                schemes: &["avmrc", "rmrc", "vmrc", "stair", "fglm"],
                claims: &[
                    // At a round trip of 0.1 s and p = 2 % Reno's model gives 0.83 Mbit/s, and 1.0 without its time-outs: from
                    // a third of the one, which is more than the lowest level, to twice the other. The fastest stair of
                    // 256 kbit/s is for a round trip of 256 ms: 0.4 Mbit/s.
                    Claim::Rate { host: 0, span: (10, 25), kbps: (280, 2_000) },
                ],
            },
            OwnClaims {
                schemes: LEVELS,
                claims: &[
                    // Levels 4 and 5: Vegas's model gives up to half more than Reno's. Eight intervals are known to about 40 %,
                    // their root to 20 %: half a step.
                    Claim::Holds { host: 0, span: (10, 25), levels: (3, 6), share: 0.9 },
                    Claim::Rate { host: 0, span: (10, 25), kbps: (500, 1_700) },
                ],
            },
        ],
    },
    Scenario {
        name: "receivers behind unequal links each have a rate of their own, whoever comes late",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        // Level 5 is 86 % of the first link and level 8 is 87 % of the second.
        hosts: &[Host::at(&[(0, 1_500)]), Host { joins: 10, ..Host::at(&[(0, 5_000)]) }],
        seconds: 25,
        claims: &[
            Claim::Rate { host: 0, span: (8, 25), kbps: at_least_a_quarter(1_500) },
            Claim::Holds { host: 1, span: (0, 10), levels: (0, 0), share: 0.99 },
            Claim::Rate { host: 1, span: (18, 25), kbps: at_least_a_quarter(5_000) },
        ],
        own_claims: &[
            OwnClaims {
                schemes: LEVELS,
                claims: &[
                    Claim::Holds { host: 0, span: (8, 25), levels: (4, 6), share: 0.95 },
                    Claim::Rate { host: 0, span: (8, 25), kbps: (1_080, 1_500) },
                    Claim::Reaches { host: 1, span: (10, 15), levels: (7, 9) },
                    Claim::Holds { host: 1, span: (18, 25), levels: (7, 9), share: 0.95 },
                    Claim::Rate { host: 1, span: (18, 25), kbps: (3_645, 5_000) },
                ],
            },
            OwnClaims {
                schemes: VEGAS,
                claims: &[
                    Claim::Loss { host: 0, span: (8, 25), share: NONE },
                    Claim::Loss { host: 1, span: (18, 25), share: NONE },
                ],
            },
            OwnClaims {
                schemes: &["stair"],
                claims: &[
                    Claim::Rate { host: 0, span: (8, 25), kbps: at_least_half(1_500) },
                    Claim::Rate { host: 1, span: (18, 25), kbps: at_least_half(5_000) },
                ],
            },
        ],
    },
    Scenario {
        name: "when a receiver finishes its link falls silent and nobody else notices",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        hosts: &[Host { leaves: Some(10), ..Host::at(&[(0, 3_500)]) }, Host::at(&[(0, 3_500)])],
        seconds: 18,
        claims: &[
            // Two seconds may be the lowest of a climb: something is there.
            Claim::Rate { host: 0, span: (8, 10), kbps: (256, all(3_500)) },
            Claim::Rate { host: 0, span: (11, 18), kbps: (0, 0) },
            // The base layer alone would be 224 kB.
            Claim::Ends { host: 0, at_most: Bytes::new(20_000) },
            Claim::Rate { host: 1, span: (8, 18), kbps: at_least_a_quarter(3_500) },
        ],
        own_claims: &[
            OwnClaims {
                schemes: LEVELS,
                claims: &[Claim::Holds { host: 1, span: (8, 18), levels: (6, 8), share: 0.95 }],
            },
            OwnClaims { schemes: VEGAS, claims: &[Claim::Loss { host: 1, span: (8, 18), share: NONE }] },
            OwnClaims {
                schemes: &["stair"],
                claims: &[Claim::Rate { host: 1, span: (8, 18), kbps: at_least_half(3_500) }],
            },
        ],
    },
    Scenario {
        name: "a long path delays the start and changes little else",
        traffic: Traffic::Layered { ladder_kbps: LADDER },
        hosts: &[Host { delay_ms: 150, ..Host::at(&[(0, 3_500)]) }],
        seconds: 20,
        claims: &[
            // The base layer has a packet every 46 ms; half a second is for a host that has other work.
            Claim::FirstPacket { host: 0, ms: (150, 700) },
            Claim::Rate { host: 0, span: (10, 20), kbps: at_least_a_quarter(3_500) },
        ],
        own_claims: &[
            OwnClaims {
                schemes: LEVELS,
                claims: &[
                    Claim::Holds { host: 0, span: (10, 20), levels: (6, 8), share: 0.95 },
                    Claim::Rate { host: 0, span: (10, 20), kbps: (2_430, 3_500) },
                ],
            },
            OwnClaims { schemes: VEGAS, claims: &[Claim::Loss { host: 0, span: (10, 20), share: NONE }] },
            OwnClaims {
                schemes: &["stair"],
                claims: &[Claim::Rate { host: 0, span: (10, 20), kbps: at_least_half(3_500) }],
            },
        ],
    },
];

/// The schemes that find a link's limit by going beyond it; bursts tell sluice before it does.
const BY_OVERLOAD: &[&str] = &["avmrc", "rmrc", "vmrc", "stair", "fglm", "plm"];

/// The schemes that choose between the ladder's levels by a model of TCP's throughput.
const LEVELS: &[&str] = &["avmrc", "rmrc", "vmrc"];

/// Those whose model is Vegas's, so that they give way to a queue before it is full.
const VEGAS: &[&str] = &["avmrc", "vmrc"];

/// Lowest and highest rate, kbit/s.
const LADDER: (u64, u64) = (256, 10_000);

const NONE: (f64, f64) = (0.0, 0.0);
