//! What a network is built from: sessions, endpoints and streams as their users describe them, and what they get for it.

use std::time::Duration;

use weir_units::Time;
use weir_wire::CciForm;

use crate::multicast::{Membership, Tree};
use crate::traffic::{ReaderConfig, Supply};
use crate::{AgentId, FlowId, NodeId};

/// What cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No chain of links leads from one node to the other.
    #[error("no link leads from node {} to node {}, not even over others", from.index(), to.index())]
    NoWay {
        /// Where from.
        from: NodeId,
        /// Where to.
        to: NodeId,
    },
    /// A session has more channels than a simulated tree can tell apart.
    #[error("a session of {channels} channels cannot be simulated; there can be 1 to {}", Tree::MAX_CHANNELS)]
    Channels {
        /// Channels asked for.
        channels: usize,
    },
}

/// How a multicast session is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// Channels, 1 to 256.
    pub channels: usize,
    /// The form of the congestion control information, for [`send_through_the_wire`](crate::Network::send_through_the_wire).
    pub form: CciForm,
    /// How joins and leaves take effect.
    pub membership: Membership,
}

/// When an agent starts and stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// When it starts.
    pub start: Time,
    /// When it stops, if ever.
    pub stop: Option<Time>,
}

impl Times {
    /// From `start` on, without end.
    pub const fn from(start: Time) -> Times {
        Times { start, stop: None }
    }
}

/// When and on what kind of host an endpoint runs, and what its applications are like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EndpointConfig {
    /// When it starts, and when it is told to finish.
    pub times: Times,
    /// How far its clock is ahead of the network's.
    pub clock_ahead: Duration,
    /// By how many millionths its clock is faster than the network's, from the beginning on.
    pub clock_drift_ppm: i32,
    /// The grain of its clock: it shows whole multiples of this. Zero is as fine as the network's.
    pub clock_grain: Duration,
    /// Its host wakes it after its deadlines, by a random time between nothing and this.
    pub lateness: Duration,
    /// Whether agents that it does not know become its peers with their first packet. To others they are of unverified
    /// origin. In the simulator an address needs no proof.
    pub accepts_peers: bool,
    /// What its sending application offers. Without, it always has something to send, and says nothing of it.
    pub supply: Option<Supply>,
    /// How its receiving application reads. Without, it has room for everything, and says nothing of it.
    pub reader: Option<ReaderConfig>,
}

/// A stream of datagrams: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramStream {
    /// The datagrams' flow.
    pub flow: FlowId,
    /// Who sends.
    pub source: AgentId,
    /// Who counts: [`Network::received`](crate::Network::received) says what.
    pub counter: AgentId,
}

/// When a paced stream runs, and what it has to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamConfig {
    /// When its source starts, and when it is told to finish. The sink is there all the time.
    pub times: Times,
    /// The source's host wakes it after its deadlines, by a random time between nothing and this.
    pub lateness: Duration,
    /// What the application hands over.
    pub supply: Supply,
}

/// A paced stream: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedStream {
    /// Data and feedback alike.
    pub flow: FlowId,
    /// Who sends.
    pub source: AgentId,
    /// Who answers.
    pub sink: AgentId,
}

/// A TCP connection: its flow, and the agents at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConnection {
    /// Data and acknowledgements alike.
    pub flow: FlowId,
    /// The sending end.
    pub sender: AgentId,
    /// The receiving end.
    pub sink: AgentId,
}
