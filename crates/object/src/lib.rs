//! Files and folders as ALC/FLUTE objects, and back: RaptorQ (RFC 6330), file delivery tables (RFC 6726), digests,
//! signatures, partial files that survive a restart.
//!
//! Not here: sockets, clocks, or when a packet is due. [`Carousel`] says what the next packet of a channel carries,
//! [`Store`] takes what arrived; whoever drives them brings the time and the network.

pub mod attributes;
pub mod bundle;
pub mod carousel;
mod device;
pub mod exclude;
pub mod keys;
mod limits;
pub mod links;
pub mod manifest;
pub mod name;
pub mod partition;
pub mod pieces;
pub mod signed;
pub mod source;
mod sparse;
pub mod store;

pub use carousel::{Carousel, CarouselError, CarouselOptions};
pub use keys::{PublicKey, SecretKey};
pub use source::{SourceError, SourceSet};
pub use store::{Event, Origin, Progress, Store, StoreError, StoreOptions};

/// What a receiver lacks of a source block: what its store tells, and what a carousel sends again for it.
pub type Lack = weir_wire::lack::Lack<Vec<(u16, u16)>>;
