//! The list. Every scenario has a claim that fails if what is done to its links does not take place.
//!
//! [`LADDER`] gives these levels, in kbit/s: 1: 256, 2: 384, 3: 576, 4: 864, 5: 1296, 6: 1944, 7: 2916, 8: 4374, 9: 6561,
//! 10: 10 000.
//!
//! A link's *level* is the highest that it carries. Three steps of arithmetic are used throughout:
//!
//! - Settled after 8 s: slow start begins with ten packets in R (level 4) and doubles, which takes few slots of 0.1 s; the
//!   start-up phase is 50 slots from there; then come two seconds of the long-term average (gain 0.05 a slot).
//! - From then on a receiver tries the level above at most every n_add = 20 slots, sees the queue grow by a quarter slot a
//!   slot or so, and goes back: it is at the link's level or one beside it.
//! - A trial aims at a queue of τ = 100 ms and the links hold 400 ms: trials lose nothing. A step of 1.5 overloads a link by a
//!   quarter to a third, so that a trial would have to last 12 slots or more to fill it.

use weir_units::Bytes;

use super::{Claim, Host, Scenario};

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a receiver holds the level of its link and loses nothing",
        ladder_kbps: LADDER,
        // Level 7 is 83 % of the link, level 8 is 125 %.
        hosts: &[Host::at(&[(0, 3_500)])],
        seconds: 20,
        claims: &[
            Claim::Holds { host: 0, span: (8, 20), levels: (6, 8), share: 0.95 },
            // From half way between levels 6 and 7 to the link's rate.
            Claim::Rate { host: 0, span: (8, 20), kbps: (2_430, 3_500) },
            Claim::Loss { host: 0, span: (8, 20), share: NONE },
            Claim::Queue { host: 0, span: (0, 20), at_least_ms: 10 },
        ],
    },
    Scenario {
        name: "on a wide link a receiver takes everything at once and stays there",
        // 256, 384, 576, 864, 1296, 2000.
        ladder_kbps: (256, 2_000),
        hosts: &[Host::at(&[(0, 8_000)])],
        seconds: 8,
        claims: &[
            // Two steps of slow start, each judged by a whole slot after the slot in which it took effect.
            Claim::Reaches { host: 0, span: (0, 2), levels: (6, 6) },
            Claim::Holds { host: 0, span: (2, 8), levels: (6, 6), share: 1.0 },
            Claim::Loss { host: 0, span: (0, 8), share: NONE },
            // What is sent is what comes.
            Claim::Rate { host: 0, span: (2, 8), kbps: (1_950, 2_050) },
        ],
    },
    Scenario {
        name: "a receiver follows a cut in capacity and its end",
        ladder_kbps: LADDER,
        // Level 9 is 82 % of the wide link; the narrow one carries level 6 in theory and level 5 in comfort.
        hosts: &[Host::at(&[(0, 8_000), (10, 2_000), (20, 8_000)])],
        seconds: 48,
        claims: &[
            Claim::Holds { host: 0, span: (8, 10), levels: (8, 10), share: 0.9 },
            // 6.6 Mbit/s over 2 fill 400 ms in 180 ms, and lose two packets in three until the receiver gives way.
            Claim::Queue { host: 0, span: (10, 13), at_least_ms: 100 },
            Claim::Loss { host: 0, span: (10, 13), share: (0.02, 0.7) },
            // Both targets must be low before a level is dropped. The long-term delay has come nine tenths of its way in
            // 4.5 s.
            Claim::Reaches { host: 0, span: (10, 15), levels: (1, 6) },
            Claim::Holds { host: 0, span: (15, 20), levels: (3, 7), share: 0.9 },
            // Level 7, half as much again as the narrow link carries, needs a target half a step beyond it: 3645 kbit/s or
            // 31 packets in R. Reno gets that at p = 1.5/31², 640 packets between losses. Were all older intervals nothing,
            // the interval that is under way, which counts a sixth, would take 3840 packets: 23 s at 1944 kbit/s.
            Claim::Reaches { host: 0, span: (20, 43), levels: (7, 10) },
            // From half way between levels 6 and 7, more than the narrow link carries, to the link's rate.
            Claim::Rate { host: 0, span: (43, 48), kbps: (2_430, 8_000) },
            Claim::Loss { host: 0, span: (24, 48), share: (0.0, 0.01) },
        ],
    },
    Scenario {
        name: "random loss costs a receiver what it costs a TCP",
        ladder_kbps: LADDER,
        // The link is no limit, so that nothing is lost but by chance.
        hosts: &[Host { loss: 0.02, ..Host::at(&[(0, 20_000)]) }],
        seconds: 25,
        claims: &[
            // At R = 0.1 s and p = 2 % Reno's model gives 0.83 Mbit/s, Vegas's up to half more: levels 4 and 5. Eight
            // intervals are known to about 40 %, their root to 20 %: half a step.
            Claim::Holds { host: 0, span: (10, 25), levels: (3, 6), share: 0.9 },
            Claim::Rate { host: 0, span: (10, 25), kbps: (500, 1_700) },
            // Of 1800 packets or more 36 ± 6 are lost; three deviations either way.
            Claim::Loss { host: 0, span: (2, 25), share: (0.01, 0.03) },
        ],
    },
    Scenario {
        name: "receivers behind unequal links are each at their own level, whoever comes late",
        ladder_kbps: LADDER,
        // Level 5 is 86 % of the first link and level 8 is 87 % of the second.
        hosts: &[Host::at(&[(0, 1_500)]), Host { joins: 10, ..Host::at(&[(0, 5_000)]) }],
        seconds: 25,
        claims: &[
            Claim::Holds { host: 0, span: (8, 25), levels: (4, 6), share: 0.95 },
            Claim::Rate { host: 0, span: (8, 25), kbps: (1_080, 1_500) },
            Claim::Loss { host: 0, span: (8, 25), share: NONE },
            Claim::Holds { host: 1, span: (0, 10), levels: (0, 0), share: 0.99 },
            Claim::Reaches { host: 1, span: (10, 15), levels: (7, 9) },
            Claim::Holds { host: 1, span: (18, 25), levels: (7, 9), share: 0.95 },
            Claim::Rate { host: 1, span: (18, 25), kbps: (3_645, 5_000) },
            Claim::Loss { host: 1, span: (18, 25), share: NONE },
        ],
    },
    Scenario {
        name: "when a receiver finishes its link falls silent and nobody else notices",
        ladder_kbps: LADDER,
        hosts: &[Host { leaves: Some(10), ..Host::at(&[(0, 3_500)]) }, Host::at(&[(0, 3_500)])],
        seconds: 18,
        claims: &[
            Claim::Rate { host: 0, span: (8, 10), kbps: (1_944, 3_500) },
            Claim::Rate { host: 0, span: (11, 18), kbps: (0, 0) },
            // The base layer alone would be 224 kB.
            Claim::Ends { host: 0, at_most: Bytes::new(20_000) },
            Claim::Holds { host: 1, span: (8, 18), levels: (6, 8), share: 0.95 },
            Claim::Loss { host: 1, span: (8, 18), share: NONE },
        ],
    },
    Scenario {
        name: "a long path delays the start and changes nothing else",
        ladder_kbps: LADDER,
        hosts: &[Host { delay_ms: 150, ..Host::at(&[(0, 3_500)]) }],
        seconds: 20,
        claims: &[
            // Level 4 sends a packet on its base layer every 46 ms; half a second is for a host that has other work.
            Claim::FirstPacket { host: 0, ms: (150, 700) },
            Claim::Holds { host: 0, span: (10, 20), levels: (6, 8), share: 0.95 },
            Claim::Rate { host: 0, span: (10, 20), kbps: (2_430, 3_500) },
            Claim::Loss { host: 0, span: (10, 20), share: NONE },
        ],
    },
];

/// Lowest and highest rate, kbit/s.
const LADDER: (u64, u64) = (256, 10_000);

const NONE: (f64, f64) = (0.0, 0.0);
