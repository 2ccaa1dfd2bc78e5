//! Live streams: `weir send live` paces what it is given to one viewer, `weir recv HOST:PORT` is one.

mod events;
mod input;
mod output;
mod recv;
mod send;
pub(crate) mod words;

pub(crate) use events::{LiveReceiverEvent, LiveSenderEvent};
pub(crate) use input::Input;
pub(crate) use recv::run as recv;
pub(crate) use send::run as send;

#[cfg(test)]
pub(crate) use events::{receiver_samples, sender_samples};
