//! The Rate Adaptation Protocol (Rejaie, Handley, Estrin: "RAP: An End-to-end Rate-based Congestion Control Mechanism for
//! Realtime Streams in the Internet").
//!
//! A source paces packets by the gap between them, additively faster once a smoothed round-trip time and twice as slow after
//! a loss; a sink answers every packet. What the paper leaves open is decided in `docs/papers/rap.md`, to which "decision n"
//! in these files refers. Not here: what is in the packets.

mod arrivals;
mod config;
mod history;
mod pace;
pub mod quality;
mod repair;
mod round_trip;
mod settings;
mod sink;
mod source;
mod standing;
mod usage;

pub use config::{Config, FineGrain, Growth, LossRule, Losses, Timing};
pub use sink::Sink;
pub use source::Source;

use alloc::boxed::Box;

use crate::definition::{Paced, Parties, Scheme, Stream};
use crate::error::ConfigError;
use crate::settings::Setting;

/// The configuration that these settings make.
///
/// # Errors
/// If one of them cannot be.
pub fn configure(stream: &Stream, settings: &[Setting]) -> Result<Config, ConfigError> {
    settings::read(stream, settings)
}

/// RAP.
pub const RAP: Scheme = Scheme {
    name: "rap",
    summary: "A source paces a unicast stream by additive increase and multiplicative decrease of its rate",
    suits: "A live stream to one viewer",
    paper: "Rejaie, Handley, Estrin, INFOCOM 1999",
    parties: Parties::Paced(Paced {
        source: |stream, settings, _| Ok(Box::new(Source::new(stream, settings::read(stream, settings)?))),
        sink: |stream, settings, _| {
            settings::read(stream, settings)?;
            Ok(Box::new(Sink::new(stream)))
        },
    }),
    settings: settings::help,
};
