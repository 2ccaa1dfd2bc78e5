//! One file, alone on a link: its time over the ideal.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Network, Scratch, generated_file};
use weir_units::Rate;

use super::words;
use crate::Options;
use crate::speed::Job;
use crate::stream::mark;
use crate::summary::Spread;
use crate::weir::Weir;

/// Measures each scheme over each link, with slow leaves and with fast ones.
pub(super) fn measure(options: &Options, weir: &Path) -> Result<Vec<Value>, String> {
    let mut rows = Vec::new();
    for fast_leave in [false, true] {
        println!(
            "\n{}, alone, {} leave: times the ideal",
            options.unequal_size,
            if fast_leave { "fast" } else { "slow" }
        );
        println!("{:<10}{:<14}{:<28}limit", "scheme", "link", "median [least–greatest]");
        for scheme in &options.ordinary.ordinary_schemes {
            for link in &options.links {
                rows.push(row(options, weir, scheme, *link, fast_leave)?);
            }
        }
    }
    Ok(rows)
}

fn row(options: &Options, weir: &Path, scheme: &str, link: Rate, fast_leave: bool) -> Result<Value, String> {
    let mut times = Vec::new();
    for repetition in 1..=options.repeat {
        eprintln!("{scheme} over {link}, {repetition} of {}", options.repeat);
        let network = Network::new().links([link]).fast_leave(fast_leave).build();
        times.push(times_ideal(options, weir, scheme, link, &network)?);
    }
    let times = Spread::of(times);
    let limit = if fast_leave { FAST_LIMIT } else { SLOW_LIMIT };
    let holds = times.median <= limit;
    println!("{scheme:<10}{:<14}{:<28}{limit} {}", link.to_string(), times.to_string(), mark(holds));
    let (link, times) = (link.bps(), times.json());
    Ok(
        json!({ "scheme": scheme, "link_bps": link, "fast_leave": fast_leave, "times_ideal": times, "limit": limit, "holds": holds }),
    )
}

/// How long a file takes to the only receiver, over what its bytes alone take at the rate of the link.
pub(super) fn times_ideal(
    options: &Options,
    weir: &Path,
    scheme: &str,
    link: Rate,
    network: &Network,
) -> Result<f64, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, options.unequal_size.count(), 2);
    let ideal = (options.unequal_size / link).as_secs_f64();
    let folders = [scratch.folder("0")];
    let limit = Duration::from_secs_f64(10.0 * ideal + 60.0);
    let job = Job { file: &file, folders: &folders, scratch: scratch.path(), limit };
    let done = Weir { program: weir, send_words: words(options, scheme) }.transfer(network, &job)?;
    job.verify()?;
    Ok(done.seconds[0] / ideal)
}

const SLOW_LIMIT: f64 = 1.3;
const FAST_LIMIT: f64 = 1.2;
