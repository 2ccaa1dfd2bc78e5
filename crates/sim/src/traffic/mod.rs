//! Applications that load the network: HTTP users, constant and on/off datagram sources, and those behind endpoints.
//!
//! Shaped as [`tcp`](crate::tcp) is: time comes in, what is to be sent comes out, one deadline. Not here: the network, and
//! who receives (an HTTP user's other end is a [`tcp::Sink`](crate::tcp::Sink), a datagram's is anybody).

mod distribution;
mod http;
mod reader;
mod supply;
mod udp;

pub use distribution::Distribution;
pub use http::{HttpConfig, HttpServer};
pub use reader::{Pauses, ReaderConfig, WhenFull};
pub use supply::Supply;
pub use udp::{Pattern, UdpConfig, UdpSource};

pub(crate) use reader::{Delivered, Reader};
pub(crate) use supply::{Offered, Supplier};
