//! PLM (Legout and Biersack, SIGMETRICS 2000): receivers read their fair share of a fair-queued path from packet pairs, and take
//! as many layers as fit in.
//!
//! The paper that we follow (Li, Munro and Kaleshi, 2005) does not specify PLM; ns-2.35's is the reference, and
//! `docs/papers/pslm.md` has the rules and the decisions to which "decision n" in these files refers. PSLM is PLM under the
//! managers of [`crate::manager`], which take any scheme. Not here: how a share is read from a burst, which is
//! [`crate::estimate`]'s.

mod config;
mod premise;
mod receiver;
mod rules;
mod sender;
mod settings;

pub use config::{Config, Estimator};
pub use receiver::Receiver;
pub use sender::Sender;

use alloc::boxed::Box;

use weir_units::Rate;

use crate::definition::{Layered, OfferedRates, Parties, Scheme};

/// PLM.
pub const PLM: Scheme = Scheme {
    name: "plm",
    summary: "Receivers read their share of fair-queued paths from packet pairs or trains; priorities with several sessions",
    suits: "Paths that queue each session apart, and several sessions with priorities",
    paper: "Legout, Biersack 2000; with managers (PSLM) Li, Munro, Kaleshi 2005",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: false,
        each_arrival: true,
        rates: OfferedRates { low: Rate::from_kbps(256), high: Rate::from_mbps(100), ratio: 1.5 },
        sender: |session, settings, random| {
            Ok(Box::new(Sender::new(session, settings::read(session, settings)?, random)))
        },
        receiver: |session, settings, _| Ok(Box::new(Receiver::new(session, settings::read(session, settings)?))),
    }),
    settings: settings::help,
};
