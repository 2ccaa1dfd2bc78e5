//! Live streams: `weir send live` paces what it is given to one viewer, `weir recv HOST:PORT` is one.

pub mod events;
mod input;
mod output;
mod pace;
mod recv;
mod send;
pub(crate) mod words;

pub(crate) use events::{LiveReceiverEvent, LiveSenderEvent};
pub use input::Input;
pub(crate) use input::{LONGEST_WAIT, Pacing, Source, Supply};
pub(crate) use output::{Outlet, Output, sent};
pub use recv::run as recv;
pub use send::run as send;

#[cfg(test)]
pub(crate) use events::{receiver_samples, sender_samples};
