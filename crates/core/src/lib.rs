//! What the papers define, as pure state machines: models, estimators, layers, and the schemes made of them.
//!
//! Not here: clocks, sockets, disks, threads. Everything a protocol needs comes in through [`endpoint::Endpoint`], and
//! everything it wants goes out through it, so the simulator and the sockets run the same code.

#![no_std]

extern crate alloc;

mod definition;
pub mod endpoint;
mod error;
pub mod estimate;
pub mod layers;
pub mod manager;
mod membership;
pub mod model;
pub mod observation;
mod outbox;
mod probing;
pub mod registry;
pub mod scheme;
mod settings;

pub use endpoint::{
    Action, Allotment, Backlog, ChannelId, Destination, Endpoint, Event, Header, Locator, Origin, Packet, Payload,
    PeerId,
};
pub use observation::Observation;
