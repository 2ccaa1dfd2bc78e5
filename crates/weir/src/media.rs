//! Layered media: `weir send media` sends a programme whose layers are channels, and `weir recv` takes as many as its path carries.

pub mod events;
mod goodbye;
mod merge;
mod output;
mod programme;
mod protected;
mod queue;
mod recv;
mod rtp_input;
mod send;
mod session;
mod spread;
mod starts;
mod unicast;
mod viewing;
mod watch;
pub(crate) mod words;

pub(crate) use events::{MediaReceiverEvent, MediaSenderEvent, PicturesShown};
pub use programme::Input;
pub(crate) use programme::{parse_codec, parse_frame_rate};
pub(crate) use recv::run as recv;
pub use send::run as send;
pub use unicast::run as serve;
pub(crate) use viewing::Viewing;

#[cfg(test)]
pub(crate) use events::{receiver_samples, sender_samples};
