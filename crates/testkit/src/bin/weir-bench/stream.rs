//! The tables of streams over a tree (MTCP): their speed next to other tools, their share next to one TCP of the kernel, and
//! delivery through losses, a killed agent and a stopped receiver.

mod beside;
mod churn;
mod speed;

use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use weir_units::{Bytes, Rate};

use crate::Options;
pub(crate) use speed::transfer;

/// What can be chosen for the tables of streams.
#[derive(Debug, Args)]
pub(crate) struct StreamOptions {
    /// Which tables of streams over a tree to fill [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    stream_table: Vec<Table>,

    /// How many receivers are directly below the sender, in turn, in the table of streams' speed.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16")]
    stream_receivers: Vec<usize>,

    /// Bytes of these streams: to the first number of receivers, the next, and so on; the last for all that follow.
    #[arg(long, value_delimiter = ',', default_value = "256MiB,256MiB,128MiB,64MiB,64MiB")]
    stream_sizes: Vec<Bytes>,

    /// The link of each receiver in the table of streams' speed, with a buffer of 100 ms [default: as fast as the machine].
    #[arg(long)]
    stream_link: Option<Rate>,

    /// Bytes of the stream to 16 receivers below 4 agents.
    #[arg(long, default_value = "1GB")]
    tree_size: Bytes,

    /// The modelled link of these 16 receivers, as `weir recv --link` takes it.
    #[arg(long, default_value = "loss=1%")]
    tree_link: String,
}

/// A table of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// An unshaped bridge: stream, uftp, NORM and one TCP.
    Speed,
    /// Next to one TCP, reno and cubic in turn, over 20 Mbit/s with a buffer of 100 ms.
    Share,
    /// 16 receivers below 4 agents: losses, an agent killed, a receiver stopped for 30 s.
    Churn,
}

/// Measures what was asked for.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let wanted = |table| options.stream.stream_table.is_empty() || options.stream.stream_table.contains(&table);
    let mut tables = json!({});
    if wanted(Table::Speed) {
        tables["speed"] = speed::measure(options, weir)?;
    }
    if wanted(Table::Share) {
        tables["beside"] = beside::measure(options, weir).into();
    }
    if wanted(Table::Churn) {
        tables["churn"] = churn::measure(options, weir);
    }
    Ok(tables)
}

/// The words that the caller has for the sender.
fn send_words(options: &Options) -> Vec<String> {
    options.send_args.split_whitespace().map(str::to_owned).collect()
}

/// How a claim is shown.
pub(crate) fn mark(holds: bool) -> &'static str {
    if holds { "✓" } else { "✗" }
}
