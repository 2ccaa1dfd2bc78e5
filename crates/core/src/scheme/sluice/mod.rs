//! Sluice: Weir's own scheme for ordinary networks, where leaves take seconds, the TCP on the link is today's, and losses need
//! not mean that anything is full.
//!
//! A receiver decides in the channels that it already has. The sender sends now and then, for a tenth of a second, what the next
//! level would be, and receivers whose queue stays as it was may join it. Where a queue stands, a receiver takes what a TCP
//! would. After a leave it waits until the leave has acted. `docs/papers/sluice.md` has the equations and the terms,
//! `docs/papers/sluice-results.md` the figures.

mod announce;
mod apart;
mod arrivals;
mod bars;
mod burst;
mod ceiling;
mod climb;
mod config;
mod cycle;
mod demand;
mod flood;
mod flows;
mod host;
mod lossy_path;
mod others;
mod own_losses;
mod own_queue;
mod pace;
mod part;
mod pause;
mod place;
mod queue;
mod receiver;
mod reporters;
mod retry;
mod rules;
mod sender;
mod settings;
mod share;
mod starters;
mod starts;

pub use config::{Config, Offer, StartUp};
pub use receiver::Receiver;
pub use sender::Sender;

use alloc::boxed::Box;

use weir_units::Rate;

use crate::definition::{Layered, OfferedRates, Parties, Scheme};

/// Sluice.
pub const SLUICE: Scheme = Scheme {
    name: "sluice",
    summary: "Receivers see in bursts of the channels they have whether the next level fits, and else take what a TCP would",
    suits: "Files to many on networks as they are: slow leaves, TCPs of today, random loss",
    paper: "Weir's own, docs/papers/sluice.md",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: true,
        each_arrival: false,
        rates: OfferedRates { low: Rate::from_kbps(256), high: Rate::from_mbps(100), ratio: 1.15 },
        sender: |session, settings, _| Ok(Box::new(Sender::new(session, &settings::read(settings)?))),
        receiver: |session, settings, random| Ok(Box::new(Receiver::new(session, settings::read(settings)?, random))),
    }),
    settings: settings::help,
};
