//! Live streams: `weir send live` paces what it is given to each of its viewers, `weir recv HOST:PORT` is one.

mod content;
pub mod events;
mod feed;
mod input;
mod output;
mod pace;
mod pictures;
mod recv;
mod resume;
mod ring;
mod send;
mod viewers;
pub(crate) mod words;

pub(crate) use content::{Content, Next};
pub(crate) use events::{LayersProgress, LiveReceiverEvent, LiveSenderEvent};
pub use input::Input;
pub(crate) use input::{LONGEST_WAIT, Pacing, Source, Supply, is_url};
pub(crate) use output::{Outlet, Output, open_outlet, sent};
pub use recv::run as recv;
pub use send::run as send;
pub(crate) use send::{QUEUED_LOSSES, Service, check, sealed, serve, stream, with_wanted};

#[cfg(test)]
pub(crate) use events::{receiver_samples, sender_samples};
