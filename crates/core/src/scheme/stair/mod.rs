//! STAIR (Byers, Kwon: "STAIR: Practical AIMD Multirate Multicast Congestion Control"), and FGLM (Byers, Luby, Mitzenmacher:
//! "Fine-Grained Layered Multicast"), on which it builds.
//!
//! A receiver's rate climbs and falls as TCP's does. Its static layers are in `crate::layers`; FGLM has the non-cumulative ones
//! alone, and a receiver's own clock instead of stairs. What the paper leaves open is decided in `docs/papers/stair.md`,
//! to which "decision n" in these files refers. Not here: what is in the packets.

mod account;
mod ahead;
mod choice;
mod config;
mod following;
mod layout;
mod receiver;
mod sawtooth;
mod sender;
mod settings;

pub use choice::{StairRule, stairs_for};
pub use config::{Config, Decrease, Latency, RttMethod, StartUp};
pub use receiver::Receiver;
pub use sender::Sender;

use alloc::boxed::Box;
use alloc::vec::Vec;

use weir_units::{Random, Rate};

use crate::definition::{Layered, OfferedRates, Parties, Scheme, Session};
use crate::endpoint::Endpoint;
use crate::error::ConfigError;
use crate::settings::Setting;
use layout::{Kind, Layout};

/// STAIR.
pub const STAIR: Scheme = Scheme {
    name: "stair",
    summary: "Receivers' rates climb and fall as TCP's do, on layers whose own rates climb",
    suits: "Networks whose leaves act at once, next to Reno",
    paper: "Byers, Kwon, NGC 2001",
    parties: Parties::Layered(Layered {
        channels: |session, settings| channels(Kind::Stair, session, settings),
        levels: |session, settings| levels(Kind::Stair, session, settings),
        base_channel: true,
        probes: true,
        each_arrival: false,
        rates: RATES,
        sender: |session, settings, _| sender(Kind::Stair, session, settings),
        receiver: |session, settings, random| receiver(Kind::Stair, session, settings, random),
    }),
    settings: || settings::help(Kind::Stair),
};

/// FGLM: STAIR's additive increase and multiplicative decrease by joins and leaves alone.
pub const FGLM: Scheme = Scheme {
    name: "fglm",
    summary: "Receivers' rates climb and fall as TCP's do, by a join and up to two leaves at every step",
    suits: "A comparison with STAIR",
    paper: "Byers, Luby, Mitzenmacher, INFOCOM 2001, as STAIR describes it",
    parties: Parties::Layered(Layered {
        channels: |session, settings| channels(Kind::Fglm, session, settings),
        levels: |session, settings| levels(Kind::Fglm, session, settings),
        base_channel: false,
        probes: true,
        each_arrival: false,
        rates: RATES,
        sender: |session, settings, _| sender(Kind::Fglm, session, settings),
        receiver: |session, settings, random| receiver(Kind::Fglm, session, settings, random),
    }),
    settings: || settings::help(Kind::Fglm),
};

fn channels(kind: Kind, session: &Session, settings: &[Setting]) -> Result<Vec<Rate>, ConfigError> {
    let config = settings::read(kind, session, settings)?;
    Ok(Layout::new(kind, session, &config)?.rates())
}

fn levels(kind: Kind, session: &Session, settings: &[Setting]) -> Result<Vec<Rate>, ConfigError> {
    let config = settings::read(kind, session, settings)?;
    Ok(Layout::new(kind, session, &config)?.levels())
}

fn sender(kind: Kind, session: &Session, settings: &[Setting]) -> Result<Box<dyn Endpoint>, ConfigError> {
    let config = settings::read(kind, session, settings)?;
    Ok(Box::new(Sender::new(session, &Layout::new(kind, session, &config)?, &config)))
}

fn receiver(
    kind: Kind,
    session: &Session,
    settings: &[Setting],
    random: Random,
) -> Result<Box<dyn Endpoint>, ConfigError> {
    let config = settings::read(kind, session, settings)?;
    Ok(Box::new(Receiver::new(session, Layout::new(kind, session, &config)?, config, random)))
}

/// What they are chosen by: decision 11.
const RATES: OfferedRates = OfferedRates { low: Rate::from_mbps(1), high: Rate::from_mbps(100), ratio: 1.2 };
