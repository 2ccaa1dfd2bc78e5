//! The simulated network: it drives the endpoints that the sockets drive, in virtual time, and repeats a run bit for bit
//! from its seed.
//!
//! A [`Network`] is nodes, links ([`weir_link`]) and agents. Packets are values in a pool and links carry handles to them,
//! so that a multicast packet is one packet however many links it is on. The event queue holds one event a link direction
//! and one an agent: a link is first in, first out, so only its next arrival is of interest, and a timer that is pushed
//! back stays where it is until it comes up.
//!
//! Not here: what is measured ([`Monitor`]s are told everything and belong to their users), scenario files, real time.

mod agent;
mod clock;
mod config;
mod connection;
mod datagrams;
mod endpoints;
mod events;
mod fabric;
mod graph;
mod host;
mod ids;
mod kept;
mod monitor;
mod multicast;
mod network;
mod packet;
mod party;
mod peers;
mod ranges;
mod run;
mod sessions;
pub mod tcp;
mod together;
pub mod topology;
pub mod trace;
pub mod traffic;

pub use agent::Received;
pub use config::{
    DatagramStream, EndpointConfig, NetworkError, PacedStream, SessionConfig, StreamConfig, TcpConnection, Times,
};
pub use ids::{AgentId, FlowId, LinkId, NodeId, SessionId};
pub use monitor::Monitor;
pub use multicast::Membership;
pub use network::Network;
pub use packet::{Address, Body, Packet};
