//! The list. The links carry 500 packets of 1000 bytes a second: 1500 payloads take three seconds where nothing happens.

use super::{Impairment, Member, Scenario};

/// All scenarios.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "a stream that nothing happens to comes to its end", ..BASE },
    Scenario {
        name: "a stream over links that lose packets both ways is whole",
        impairments: &[Impairment::Loss("5%")],
        ..BASE
    },
    Scenario {
        name: "a stream through two agents, one above the other, survives bursts of loss",
        members: CHAIN,
        impairments: &[Impairment::Loss("gilbert(enter=1%,leave=25%)")],
        ..BASE
    },
    Scenario { name: "packets that come twice are delivered once", impairments: &[Impairment::Doubling(0.2)], ..BASE },
    Scenario {
        name: "packets that overtake others are delivered behind these",
        impairments: &[Impairment::Overtaking("uniform(15ms,reorder)")],
        ..BASE
    },
    Scenario {
        name: "everyone waits for a receiver whose application reads slowly",
        impairments: &[Impairment::SlowReader { member: 3, gap_ms: 10 }],
        ..BASE
    },
    Scenario {
        name: "clocks that are a thousand seconds apart change nothing",
        impairments: &[Impairment::Loss("2%")],
        clocks_ahead: &[1_000, -1_000, -1_000, 1_000],
        ..BASE
    },
    Scenario {
        name: "a stream survives everything at once",
        impairments: &[
            Impairment::Loss("3%"),
            Impairment::Doubling(0.1),
            Impairment::Overtaking("uniform(15ms,reorder)"),
            Impairment::SlowReader { member: 4, gap_ms: 40 },
        ],
        clocks_ahead: &[-1_000, 1_000, 1_000, -1_000],
        ..BASE
    },
];

const BASE: Scenario = Scenario {
    name: "",
    members: TREE,
    impairments: &[],
    clocks_ahead: &[],
    payloads: 1_500,
    // A hundred times as long as it would take without impairments.
    seconds: 300,
};

/// A receiver below the sender, and two below an agent.
const TREE: &[Member] = &[agent(0), receiver(0), receiver(1), receiver(1)];

/// Two agents between the sender and two receivers.
const CHAIN: &[Member] = &[agent(0), agent(1), receiver(2), receiver(2)];

const fn agent(above: usize) -> Member {
    Member { above, is_agent: true, link: LINK }
}

const fn receiver(above: usize) -> Member {
    Member { above, is_agent: false, link: LINK }
}

const LINK: &str = "rate=4M,delay=20ms,buffer=40p";
