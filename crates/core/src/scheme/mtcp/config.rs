//! MTCP's constants and choices. `docs/papers/mtcp.md` says where each is from.

use core::time::Duration;

use weir_units::Rate;

use crate::definition::Habitat;

/// What the parties of a tree do where the paper leaves a choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How long an acknowledgement waits for more packets (§3.1: a few tens of milliseconds).
    pub ack_delay: Duration,
    /// An acknowledgement goes at once with this many new packets; `None` waits for the delay.
    pub ack_every: Option<u64>,
    /// Between two acknowledgements that go at once: on a fast path they would take more of the hosts' time than the data
    /// (decision 21).
    pub ack_spacing: Duration,
    /// An acknowledgement's delay is longer by up to this much, at random.
    pub ack_jitter: Duration,
    /// How long after its summary has changed a member says so; `None` waits for the next acknowledgement.
    pub report_within: Option<Duration>,
    /// An acknowledgement says how long the packet that it echoes has waited for it, and the delay is measured without that.
    pub subtracts_held: bool,
    /// The sender spreads packets by the rate at which they are delivered.
    pub paces: bool,
    /// The least that a time-out has above the average delay: the floor under 4D.
    pub floor: Duration,
    /// The congestion window never falls below this many packets.
    pub least_window: f64,
    /// Congestion finds the window no higher than twice the most that was in transit of late (RFC 7661).
    pub validates: bool,
    /// Queuing delays below this are not told from what the hosts' scheduling adds (decision 15).
    pub slack: Duration,
    /// The queuing delay is the least of this long, so that a host that runs late now and then is not taken for a queue; `None`
    /// takes each sample as it is (decision 15).
    pub queue_of: Option<Duration>,
    /// The base delay is the least of this long; `None` is of the whole session.
    pub base_of: Option<Duration>,
    /// How windows grow, and what they answer to (decision 16).
    pub control: Control,
    /// The sender counts what is on its way to a node below, and what leaves that node meanwhile (decision 17).
    pub predicts: bool,
    /// What losses do besides those that time out.
    pub nacks: NackRule,
    /// Backlog below which the window grows, packets.
    pub alpha: f64,
    /// Backlog above which it shrinks, packets.
    pub beta: f64,
    /// Backlog that ends slow start, packets.
    pub gamma: f64,
    /// The slow start threshold before the first congestion, bytes (§3.6: 64 Kbytes; decision 23).
    pub threshold: u64,
    /// A packet is released once everyone below has it, and not as soon as the children have (decision 9).
    pub low_mark: bool,
    /// How many packets a member has room for.
    pub buffer: u64,
    /// How many more packets a node keeps that everyone below has, for members that come late.
    pub history: u64,
    /// Children without which a node lets nothing go: a sender waits for one at least.
    pub children: u64,
    /// Receivers for which the sender waits before it sends.
    pub receivers: u64,
    /// Where a member finds the node above it.
    pub tree: Shape,
    /// A node takes no more children than this.
    pub fan_out: u64,
    /// A newcomer wants nothing from before it came.
    pub from_now: bool,
    /// The stream waits for no member that takes less than this while it could have more.
    pub min_rate: Option<Rate>,
    /// How long it waits for a member that is slower, or silent.
    pub evict_after: Duration,
    /// An agent to which no multicast leads sends on to the channel what the node above sends it (decision 24).
    pub forwards: bool,
    /// Nodes above a member that it knows from its configuration, the nearest first: when one is lost it turns to the next.
    pub uplinks: u64,
}

/// Where a tree comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The configuration names the parent of each member.
    Given,
    /// Members look for the node above them (decision 18).
    Found,
}

/// When missing packets are taken as congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackRule {
    /// The same packet is missing in three acknowledgements in a row: the threshold is halved, the window stays (§3.7).
    SamePacket,
    /// Three packets in a row are missing: window and threshold are halved.
    ThreeInARow,
    /// A packet that came the way of all is missing and three later ones are there (RFC 6675 §2).
    Each,
}

/// How windows grow, and what they answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The backlog, as TCP Vegas (§3.7).
    Vegas,
    /// Losses, as TCP Reno: RFC 5681.
    Reno,
    /// Losses, as TCP CUBIC: RFC 9438.
    Cubic,
}

impl Config {
    /// The paper's text with what it needs to work (decision 1).
    pub fn refined(habitat: Habitat) -> Config {
        Config {
            ack_delay: Duration::from_millis(20),
            ack_every: Some(4),
            ack_spacing: match habitat {
                Habitat::Lab => Duration::ZERO,
                Habitat::Sockets => Duration::from_millis(2),
            },
            ack_jitter: Duration::from_millis(5),
            report_within: Some(Duration::from_millis(10)),
            subtracts_held: true,
            paces: true,
            floor: Duration::from_millis(200),
            least_window: 2.0,
            validates: true,
            slack: match habitat {
                Habitat::Lab => Duration::ZERO,
                Habitat::Sockets => Duration::from_millis(1),
            },
            queue_of: match habitat {
                Habitat::Lab => None,
                Habitat::Sockets => Some(Duration::from_millis(20)),
            },
            base_of: Some(Duration::from_secs(30)),
            control: Control::Vegas,
            predicts: false,
            nacks: NackRule::ThreeInARow,
            alpha: 2.0,
            beta: 4.0,
            gamma: 2.0,
            threshold: match habitat {
                Habitat::Lab => 64 * 1024,
                Habitat::Sockets => 1 << 20,
            },
            low_mark: true,
            buffer: 4096,
            history: 0,
            children: 0,
            receivers: 1,
            tree: match habitat {
                Habitat::Lab => Shape::Given,
                Habitat::Sockets => Shape::Found,
            },
            fan_out: 16,
            from_now: false,
            min_rate: None,
            evict_after: match habitat {
                Habitat::Lab => Duration::from_secs(14),
                Habitat::Sockets => Duration::from_secs(60),
            },
            forwards: true,
            uplinks: 1,
        }
    }

    /// What parties do unless they are told otherwise: in the laboratory as the paper has it, on sockets as today's network wants it.
    pub fn defaults(habitat: Habitat) -> Config {
        match habitat {
            Habitat::Lab => Config::refined(habitat),
            Habitat::Sockets => Config::refined(habitat).as_today(),
        }
    }

    /// With the paper's own control.
    #[must_use]
    pub fn as_refined(self) -> Config {
        Config { control: Control::Vegas, nacks: NackRule::ThreeInARow, predicts: false, ..self }
    }

    /// For networks whose other users answer to losses alone (decision 16).
    #[must_use]
    pub fn as_today(self) -> Config {
        Config { control: Control::Cubic, nacks: NackRule::Each, predicts: true, ..self }
    }

    /// The paper's text, and only its accidents guarded.
    #[must_use]
    pub fn as_literal(self) -> Config {
        Config {
            ack_every: None,
            ack_spacing: Duration::ZERO,
            ack_jitter: Duration::ZERO,
            report_within: None,
            subtracts_held: false,
            paces: false,
            floor: Duration::from_millis(100),
            least_window: 1.0,
            validates: false,
            queue_of: None,
            base_of: None,
            nacks: NackRule::SamePacket,
            low_mark: false,
            ..self
        }
    }
}
