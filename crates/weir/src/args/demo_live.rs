//! `weir demo-live`: its options.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_core::registry::{Scheme, Setting};
use weir_units::Rate;

use super::{link_rate, schemes, values};

/// `weir demo-live`.
#[derive(Debug, Args)]
pub(crate) struct DemoLive {
    /// Clip to send, with temporal layers, as `weir send media` takes it [default: one made by ffmpeg, of --length].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Length of the clip that is made: 640x360 at 30 pictures a second, VP9 in three temporal layers.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::span, conflicts_with = "file")]
    pub(crate) length: Duration,

    /// Rates of the receivers' links, in bits a second; one receiver each.
    #[arg(long, value_name = "RATE,…", value_delimiter = ',', default_value = "1M,3M,8M", value_parser = link_rate)]
    pub(crate) links: Vec<Rate>,

    /// One-way delay of every link.
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = values::span)]
    pub(crate) delay: Duration,

    /// Buffer of every link, as the time that it takes to drain.
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = values::span)]
    pub(crate) buffer: Duration,

    /// Share of packets that every link loses at random, such as 2%.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = values::loss)]
    pub(crate) loss: f64,

    /// Rates of the layers, each with all below it and all headers [default: 0.9M,1.9M,3.8M for the clip that is made, what the pictures need for one of yours].
    #[arg(long, value_name = "RATE,…", value_delimiter = ',')]
    pub(crate) layer_rates: Vec<Rate>,

    /// Congestion control scheme; `weir schemes` tells them apart.
    #[arg(long, value_name = "SCHEME", default_value = schemes::LAYERED_DEFAULT, value_parser = schemes::layered())]
    pub(crate) cc: &'static Scheme,

    /// Change a setting of the scheme; may be given several times. `weir schemes` lists them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) cc_set: Vec<Setting>,

    /// The longest pause of the base layer at a receiver with which the demonstration still succeeds.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = values::span)]
    pub(crate) pause: Duration,

    /// Folder for everything that the demonstration writes; its report is report.html in it.
    #[arg(long, value_name = "DIR", default_value = "target/demo-live")]
    pub(crate) out: PathBuf,
}
