//! Adaptive Vegas Multicast Rate Control (Mahanti, Eager, Vernon: "Improving Multirate Congestion Control Using a TCP
//! Vegas Throughput Model"), and what the paper compares it with.
//!
//! One equation-driven controller; AVMRC, RMRC, VMRC and the variants of the paper's §6 are its configurations. What the
//! paper leaves open is decided in `docs/papers/avmrc.md`, to which "decision n" in these files refers. Not here: TCP,
//! links, sockets.

mod closing;
mod config;
mod controller;
mod giving_up;
mod receiver;
mod schedule;
mod sender;
mod settings;
mod slot_end;
mod slots;
mod slow_start;
mod subscription;

pub use config::{BetaRule, Config, FirstInterval, Model, RttMethod, Startup, Synchronisation};
pub use receiver::Receiver;
pub use sender::Sender;

use alloc::boxed::Box;

use weir_units::Rate;

use crate::definition::{Layered, OfferedRates, Parties, Scheme, Session};
use crate::endpoint::Endpoint;
use crate::error::ConfigError;
use crate::settings::Setting;

/// AVMRC: the Vegas model with adaptive thresholds.
pub const AVMRC: Scheme = Scheme {
    name: "avmrc",
    summary: "Receivers follow a TCP Vegas throughput model whose thresholds adapt to the path (no loss where the link is idle)",
    suits: "Quiet networks: it loses nothing where nobody else is",
    paper: "Mahanti, Eager, Vernon, Computer Networks",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: false,
        each_arrival: false,
        rates: RATES,
        sender: |session, settings, _| sender(AVMRC.name, Model::AdaptiveVegas, session, settings),
        receiver: |session, settings, _| receiver(AVMRC.name, Model::AdaptiveVegas, session, settings),
    }),
    settings: || settings::help(Model::AdaptiveVegas),
};

/// RMRC: the same rules with the Reno model (AVMRC §4.1).
pub const RMRC: Scheme = Scheme {
    name: "rmrc",
    summary: "AVMRC's rules with a TCP Reno throughput model",
    suits: "A comparison with AVMRC",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: false,
        each_arrival: false,
        rates: RATES,
        sender: |session, settings, _| sender(RMRC.name, Model::Reno, session, settings),
        receiver: |session, settings, _| receiver(RMRC.name, Model::Reno, session, settings),
    }),
    settings: || settings::help(Model::Reno),
    ..AVMRC
};

/// VMRC: the Vegas model with fixed thresholds (AVMRC §4).
pub const VMRC: Scheme = Scheme {
    name: "vmrc",
    summary: "AVMRC's rules with fixed thresholds in the TCP Vegas throughput model",
    suits: "A comparison with AVMRC",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: false,
        each_arrival: false,
        rates: RATES,
        sender: |session, settings, _| sender(VMRC.name, Model::FixedVegas, session, settings),
        receiver: |session, settings, _| receiver(VMRC.name, Model::FixedVegas, session, settings),
    }),
    settings: || settings::help(Model::FixedVegas),
    ..AVMRC
};

fn sender(
    scheme: &'static str,
    model: Model,
    session: &Session,
    settings: &[Setting],
) -> Result<Box<dyn Endpoint>, ConfigError> {
    Ok(Box::new(Sender::new(session, &settings::read(scheme, model, session, settings)?)))
}

fn receiver(
    scheme: &'static str,
    model: Model,
    session: &Session,
    settings: &[Setting],
) -> Result<Box<dyn Endpoint>, ConfigError> {
    Ok(Box::new(Receiver::new(session, settings::read(scheme, model, session, settings)?)))
}

const RATES: OfferedRates = OfferedRates { low: Rate::from_kbps(256), high: Rate::from_mbps(100), ratio: 1.5 };
