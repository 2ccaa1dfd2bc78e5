//! Weir as a library: sends files to any number of receivers over layered multicast, each at the rate that its own path can
//! fairly carry, receives them, and sends and receives live streams and reliable ones.
//!
//! It is what the command line is made of. A run is described by the options of its command ([`SendFile`], [`Recv`],
//! [`SendLive`]), whose defaults are those of the command line; it reports what happens as typed events ([`events`] and [`live_events`], the same that
//! `--json` prints) to an [`Observer`], which can end it; and it ends with an [`Exit`] or a [`Failure`] that says what to do.
//! `examples/embed.rs` sends and receives in one process. A reliable stream has ends to write to and to read from
//! ([`StreamWriter`], [`StreamReader`]); `examples/pipe.rs` has both.

mod announce;
mod args;
mod asks;
mod ceilings;
mod changes;
pub mod cli;
mod collector;
mod console;
mod demo;
mod describe;
mod doctor;
mod epoch;
pub mod events;
mod exit;
mod fetch;
mod folders;
mod hook;
mod hosts;
mod identity;
mod interrupt;
mod key;
mod lab;
mod left_out;
mod live;
mod man;
mod media;
mod metrics;
mod observer;
mod openings;
mod progress;
mod proof;
mod recv;
mod remainder;
mod report;
mod schemes;
mod sealing;
mod send;
mod sent;
mod session;
mod several;
mod silence;
mod standard;
mod stream;
mod top;
mod trust;
mod unsent;

pub use args::{Agent, CciChoice, Output, Rates, Recv, SendFile, SendLive, SendMedia, SendStream, SessionSource};
pub use doctor::events as doctor_events;
pub use exit::{Exit, Failure};
pub use live::events as live_events;
pub use live::{Input, recv as receive_live, send as send_live};
pub use media::events as media_events;
pub use media::{Input as MediaInput, send as send_media, serve as serve_media};
pub use observer::Observer;
pub use recv::files as receive_files;
pub use send::files as send_files;
pub use stream::events as stream_events;
pub use stream::{
    StreamAddress, StreamAddressError, StreamReader, StreamWriter, receive as receive_stream, send as send_stream,
    serve as serve_stream,
};
