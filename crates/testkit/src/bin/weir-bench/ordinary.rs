//! The tables of ordinary networks (the yardstick's Y9; times count from the start of the sender): a bridge as bridges are by default, which keeps sending for about two
//! seconds after a leave, a ladder up to 1 Gbit/s, and one TCP of the kernel that was there first.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use weir_testkit::netns::{Delivery, Network, Rival, Scratch, Shares, generated_file, pause};
use weir_units::{Bytes, Rate};

use crate::speed::Job;
use crate::summary::Spread;
use crate::weir::Weir;
use crate::{Options, stream::mark};

/// What can be chosen for the tables of ordinary networks.
#[derive(Debug, Args)]
pub(crate) struct OrdinaryOptions {
    /// Schemes of the tables of ordinary networks.
    #[arg(long, value_delimiter = ',', default_value = "sluice")]
    ordinary_schemes: Vec<String>,

    /// What they offer; the ratio is the scheme's own.
    #[arg(long, default_value = "256k..1G")]
    ordinary_rates: String,

    /// Leaves out the tables next to a TCP, which take four minutes a scheme.
    #[arg(long)]
    ordinary_files_only: bool,
}

/// Measures each scheme in turn.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let mut files = Vec::new();
    for fast_leave in [false, true] {
        println!(
            "\n{}, alone, {} leave: times the ideal",
            options.unequal_size,
            if fast_leave { "fast" } else { "slow" }
        );
        println!("{:<10}{:<14}{:<28}limit", "scheme", "link", "median [least–greatest]");
        for scheme in &options.ordinary.ordinary_schemes {
            for link in &options.links {
                files.push(file(options, weir, scheme, *link, fast_leave)?);
            }
        }
    }
    let mut shares = Vec::new();
    if !options.ordinary.ordinary_files_only {
        println!(
            "\nnext to one TCP over 10 Mbit/s with 100 ms of buffer, slow leave, over a CUBIC in the session's place"
        );
        println!("{:<10}{:<8}{:>14}{:>14}{:>14}{:>8}  limit", "scheme", "tcp", "session", "tcp", "in place", "ratio");
        for control in CONTROLS {
            let in_place = in_place(options, control);
            let share = |scheme: &String| share(options, weir, scheme, control, in_place);
            shares.extend(options.ordinary.ordinary_schemes.iter().map(share));
        }
    }
    Ok(json!({ "rates": options.ordinary.ordinary_rates, "files": files, "beside": shares }))
}

fn words(options: &Options, scheme: &str) -> Vec<String> {
    ["--cc", scheme, "--rates", &options.ordinary.ordinary_rates].map(str::to_owned).into()
}

/// One file over one link.
fn file(options: &Options, weir: &Path, scheme: &str, link: Rate, fast_leave: bool) -> Result<Value, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, options.unequal_size.count(), 2);
    let ideal = (options.unequal_size / link).as_secs_f64();
    let mut times = Vec::new();
    for repetition in 1..=options.repeat {
        eprintln!("{scheme} over {link}, {repetition} of {}", options.repeat);
        let run = Scratch::new();
        let folders = [run.folder("0")];
        let limit = Duration::from_secs_f64(10.0 * ideal + 60.0);
        let job = Job { file: &file, folders: &folders, scratch: run.path(), limit };
        let network = Network::new().links([link]).fast_leave(fast_leave).build();
        let done = Weir { program: weir, send_words: words(options, scheme) }.transfer(&network, &job)?;
        job.verify()?;
        times.extend(done.seconds.iter().map(|seconds| seconds / ideal));
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

/// What a CUBIC gets in the session's place.
fn in_place(options: &Options, control: &str) -> Rate {
    eprintln!("a CUBIC beside {control}");
    let network = Network::new().links([LINK]).fast_leave(false).build();
    let cubic = Rival::start(&network, 0, "cubic");
    pause(JOINED_BEFORE);
    let span = Duration::from_secs(options.beside_seconds);
    Shares::measure(&network, control, WARM_UP, span, || cubic.received_bytes()).weir
}

fn share(options: &Options, weir: &Path, scheme: &str, control: &str, in_place: Rate) -> Value {
    eprintln!("{scheme} beside {control}");
    let span = Duration::from_secs(options.beside_seconds);
    let network = Network::new().links([LINK]).fast_leave(false).build();
    let words = words(options, scheme);
    // More than the link carries meanwhile.
    let size: Bytes = LINK * (JOINED_BEFORE + WARM_UP + span);
    let delivery = Delivery::start(&network, weir, size, words.iter().map(String::as_str));
    pause(JOINED_BEFORE);
    let shares = Shares::measure(&network, control, WARM_UP, span, || delivery.received_bytes(0));
    let ratio = shares.weir.bps() as f64 / in_place.bps().max(1) as f64;
    let holds = (0.5..=2.0).contains(&ratio);
    let [session, tcp, place] = [shares.weir, shares.tcp, in_place].map(|rate| rate.to_string());
    println!("{scheme:<10}{control:<8}{session:>14}{tcp:>14}{place:>14}{ratio:>8.2}  0.5–2 {}", mark(holds));
    json!({
        "scheme": scheme,
        "tcp": control,
        "session_bps": shares.weir.bps(),
        "tcp_bps": shares.tcp.bps(),
        "in_place_bps": in_place.bps(),
        "ratio": ratio,
        "holds": holds,
        "link_dropped_packets": shares.dropped,
    })
}

const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
const LINK: Rate = Rate::from_mbps(10);
/// For so long the flow has the link to itself.
const JOINED_BEFORE: Duration = Duration::from_secs(8);
const WARM_UP: Duration = Duration::from_secs(15);
const SLOW_LIMIT: f64 = 1.3;
const FAST_LIMIT: f64 = 1.2;
