//! The tables of ordinary networks (the yardstick's Y9; times count from the start of the sender): a bridge as bridges are by default, which keeps sending for about two
//! seconds after a leave, a ladder up to 1 Gbit/s, random loss, and one TCP of the kernel or another session that was or is there.

mod files;
mod loss;
mod sessions;
mod shares;

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use weir_link::{LinkConfig, LinkConfigError};
use weir_testkit::netns::{Builder, Network};
use weir_units::{Bytes, Rate, parse_span};

use crate::Options;

/// What can be chosen for the tables of ordinary networks.
#[derive(Debug, Args)]
pub(crate) struct OrdinaryOptions {
    /// Which tables of ordinary networks to fill [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    ordinary_table: Vec<Table>,

    /// Schemes of the tables of ordinary networks.
    #[arg(long, value_delimiter = ',', default_value = "sluice")]
    ordinary_schemes: Vec<String>,

    /// What they offer; the ratio is the scheme's own.
    #[arg(long, default_value = "256k..1G")]
    ordinary_rates: String,

    /// Round trips of the tables next to a TCP and of two sessions, without the queue. Above 0, a modelled link delays.
    #[arg(long, value_delimiter = ',', default_value = "0ms,40ms", value_parser = parse_span)]
    ordinary_rtts: Vec<Duration>,

    /// The queue of the link next to a TCP and of two sessions, as scenarios have it, such as fq_codel: a modelled link then takes the place
    /// of the kernel's bucket, and its fair queues tell flows apart by addresses and ports.
    #[arg(long, value_name = "QUEUE", value_parser = shared_way)]
    ordinary_queue: Option<LinkConfig>,
}

/// A table of ordinary networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// One file over each link, with slow leaves and with fast ones.
    Files,
    /// One file over each link, with slow leaves, without and with 2 % random loss. A minute more than two files for each.
    Loss,
    /// Next to one TCP over 10 Mbit/s. Twice two minutes for each TCP and round trip.
    Shares,
    /// Two sessions over 10 Mbit/s. Two minutes for each round trip.
    Sessions,
}

/// Measures each scheme in turn.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let chosen = &options.ordinary.ordinary_table;
    let wanted = |table| chosen.is_empty() || chosen.contains(&table);
    let mut tables = json!({ "rates": options.ordinary.ordinary_rates });
    if wanted(Table::Files) {
        tables["files"] = files::measure(options, weir)?.into();
    }
    if wanted(Table::Loss) {
        tables["loss"] = loss::measure(options, weir)?.into();
    }
    if wanted(Table::Shares) {
        tables["shares"] = shares::measure(options, weir).into();
    }
    if wanted(Table::Sessions) {
        tables["sessions"] = sessions::measure(options, weir).into();
    }
    Ok(tables)
}

/// The words that a scheme's sender gets.
fn words(options: &Options, scheme: &str) -> Vec<String> {
    ["--cc", scheme, "--rates", &options.ordinary.ordinary_rates].map(str::to_owned).into()
}

/// One link of [`SHARED_LINK`] on a bridge with slow leaves, with this round trip, and this queue if one is given.
fn shared_link(round_trip: Duration, modelled: Option<&LinkConfig>) -> Network {
    let Some(way) = modelled else {
        let network = Network::new().links([SHARED_LINK]).fast_leave(false);
        return if round_trip.is_zero() { network.build() } else { delayed(network, round_trip).build() };
    };
    let delay = round_trip / 2;
    let ways = [LinkConfig { delay, ..way.clone() }, LinkConfig { delay, ..LinkConfig::default() }];
    // The bucket is far from full.
    Network::new().links([SHARED_LINK.scale(100.0)]).fast_leave(false).modelled(ways).build()
}

/// A modelled link of [`SHARED_LINK`] with this queue.
fn shared_way(queue: &str) -> Result<LinkConfig, String> {
    let way = format!("rate={}bps,buffer=10000p,queue={queue}", SHARED_LINK.bps());
    way.parse().map_err(|error: LinkConfigError| error.to_string())
}

fn delayed(network: Builder, round_trip: Duration) -> Builder {
    let way = LinkConfig { delay: round_trip / 2, ..LinkConfig::default() };
    network.modelled([way.clone(), way])
}

/// More than [`SHARED_LINK`] carries while a session is watched for `span`.
fn endless(span: Duration) -> Bytes {
    SHARED_LINK * (JOINED_BEFORE + WARM_UP + span)
}

const SHARED_LINK: Rate = Rate::from_mbps(10);
/// For so long the first flow has the link to itself.
const JOINED_BEFORE: Duration = Duration::from_secs(8);
/// Start-ups are not what is measured.
const WARM_UP: Duration = Duration::from_secs(15);
