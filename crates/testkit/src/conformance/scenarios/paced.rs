//! What is claimed of every scheme of paced unicast streams.
//!
//! No path is without delay: a stream may begin with a packet a round trip and double from there. Where a round trip is what
//! two hosts take to wake up, 50 µs, that is hundreds of Mbit/s until the first loss has come through a buffer of 400 ms, and
//! tells of nothing but the machine.

use weir_units::Bytes;

use super::{all, at_least_half};
use crate::conformance::{Claim, Host, NO_LIMIT_KBPS, Scenario, Traffic};

/// All scenarios.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a stream fills its link",
        traffic: Traffic::Paced,
        hosts: &[nearby(&[(0, 3_500)])],
        seconds: 20,
        claims: &[
            FIRST_PACKET,
            // The mean of half and all is three quarters.
            Claim::Rate { host: 0, span: (8, 20), kbps: (2_625, all(3_500)) },
            Claim::Loss { host: 0, span: (8, 20), share: (0.0, 0.1) },
        ],
        own_claims: &[],
    },
    Scenario {
        name: "a stream follows a cut in capacity and its end",
        traffic: Traffic::Paced,
        hosts: &[nearby(&[(0, 8_000), (10, 2_000), (20, 8_000)])],
        seconds: 40,
        claims: &[
            FIRST_PACKET,
            Claim::Rate { host: 0, span: (5, 10), kbps: at_least_half(8_000) },
            // Half of 8 Mbit/s over 2 lose half once they have filled the link's buffer.
            Claim::Loss { host: 0, span: (10, 13), share: (0.02, 0.75) },
            Claim::Rate { host: 0, span: (15, 20), kbps: at_least_half(2_000) },
            // Of a rate that did not fall, three packets in four would be lost.
            Claim::Loss { host: 0, span: (15, 20), share: (0.0, 0.1) },
            Claim::Rate { host: 0, span: (35, 40), kbps: at_least_half(8_000) },
        ],
        own_claims: &[],
    },
    Scenario {
        name: "random loss costs a stream what it costs a TCP",
        traffic: Traffic::Paced,
        // The link is no limit, so that nothing is lost but by chance.
        hosts: &[Host { delay_ms: 100, loss: 0.02, ..Host::at(&[(0, NO_LIMIT_KBPS)]) }],
        seconds: 25,
        claims: &[
            Claim::FirstPacket { host: 0, ms: (100, 700) },
            // At a round trip of 0.1 s and p = 2 % additive increase by a packet and halving give 1.0 Mbit/s; half of it and
            // twice as much.
            Claim::Rate { host: 0, span: (10, 25), kbps: (500, 2_000) },
            // Of 1800 packets or more 36 ± 6 are lost; three deviations either way.
            Claim::Loss { host: 0, span: (2, 25), share: (0.01, 0.03) },
        ],
        own_claims: &[],
    },
    Scenario {
        name: "when a stream's source finishes its link falls silent and no other stream notices",
        traffic: Traffic::Paced,
        hosts: &[Host { leaves: Some(10), ..nearby(&[(0, 3_500)]) }, Host { joins: 5, ..nearby(&[(0, 3_500)]) }],
        seconds: 18,
        claims: &[
            FIRST_PACKET,
            Claim::FirstPacket { host: 1, ms: (20, 700) },
            Claim::Rate { host: 0, span: (8, 10), kbps: at_least_half(3_500) },
            Claim::Rate { host: 0, span: (11, 18), kbps: (0, 0) },
            // A farewell or two.
            Claim::Ends { host: 0, at_most: Bytes::new(1_000) },
            Claim::Rate { host: 1, span: (0, 5), kbps: (0, 0) },
            Claim::Rate { host: 1, span: (12, 18), kbps: at_least_half(3_500) },
        ],
        own_claims: &[],
    },
];

/// A host at the end of a short path.
const fn nearby(rates_kbps: &'static [(u64, u64)]) -> Host {
    Host { delay_ms: 20, ..Host::at(rates_kbps) }
}

/// After the path's delay; half a second is for a host that has other work, and for the handshake.
const FIRST_PACKET: Claim = Claim::FirstPacket { host: 0, ms: (20, 700) };
