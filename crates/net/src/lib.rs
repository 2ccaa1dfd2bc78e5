//! One host for real sockets: it runs the endpoints of senders, receivers, agents and streams over UDP multicast and unicast on
//! Linux.
//!
//! Not here: protocol decisions. No rate, no window, no level is chosen in this crate; it reads the clock, moves packets,
//! keeps memberships, and tells endpoints what happened and when. It is the only crate with clocks and sockets.

mod all_channels;
pub mod announce;
pub mod clock;
pub mod description;
pub mod diagnosis;
mod error;
pub mod groups;
pub mod handshake;
pub mod host;
pub mod interface;
pub mod live;
pub mod profile;
pub mod receipts;
pub mod seal;
pub mod session;
pub mod socket;
pub mod tree;

pub use description::Description;
pub use error::{Impossible, NetError};
pub use host::{Application, Host, Tenant};
pub use interface::{Interface, InterfaceChoice, LinkSpeed};
