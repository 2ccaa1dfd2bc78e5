//! The table of a stream next to one TCP of the kernel, as it is by default and with the caller's settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Network, Shares, TreePlan, TreeStream};
use weir_units::Rate;

use super::{mark, send_words};
use crate::Options;

/// Measures each TCP in turn.
pub(super) fn measure(options: &Options, weir: &Path) -> Vec<Value> {
    let span = Duration::from_secs(options.beside_seconds);
    println!("\na stream and one TCP over 20 Mbit/s with 100 ms of buffer, {} s", span.as_secs());
    println!("{:<8}{:>14}{:>14}{:>8}  {:<8}{:>10}  settings", "tcp", "stream", "tcp", "ratio", "wanted", "dropped");
    let given = send_words(options);
    let settings: Vec<Vec<String>> = if given.is_empty() { vec![given] } else { vec![Vec::new(), given] };
    let mut rows = Vec::new();
    for (words, control) in settings.iter().flat_map(|words| CONTROLS.map(|control| (words, control))) {
        rows.extend((0..options.repeat).map(|_| share(span, weir, words, control)));
    }
    rows
}

fn share(span: Duration, weir: &Path, words: &[String], control: &str) -> Value {
    let settings = if words.is_empty() { "defaults".to_owned() } else { words.join(" ") };
    eprintln!("a stream beside {control}, {settings}");
    let network = Network::new().links([LINK]).build();
    let stream = TreeStream::start(
        &network,
        &TreePlan {
            program: weir,
            input: Path::new("/dev/zero"),
            outs: vec![PathBuf::from("/dev/null")],
            agents: 0,
            send_words: words.to_vec(),
            link: None,
        },
    );
    let shares = Shares::measure(&network, control, WARM_UP, span, || stream.received_bytes(0));
    let (ratio, dropped) = (shares.ratio(), shares.dropped);
    let holds = (WANTED[0]..=WANTED[1]).contains(&ratio);
    let [own, tcp] = [shares.weir, shares.tcp].map(|rate| rate.to_string());
    let verdict = format!("{}–{} {}", WANTED[0], WANTED[1], mark(holds));
    println!("{control:<8}{own:>14}{tcp:>14}{ratio:>8.2}  {verdict:<8}{dropped:>10}  {settings}");
    json!({
        "tcp": control,
        "settings": settings,
        "stream_bps": shares.weir.bps(),
        "tcp_bps": shares.tcp.bps(),
        "ratio": ratio,
        "limit": WANTED,
        "holds": holds,
        "link_dropped_packets": dropped,
    })
}

/// The kernel's congestion controls.
const CONTROLS: [&str; 2] = ["reno", "cubic"];
/// Between what the stream's rate over the TCP's is wanted.
const WANTED: [f64; 2] = [0.5, 2.0];
/// Start-ups are not what is measured.
const WARM_UP: Duration = Duration::from_secs(15);
const LINK: Rate = Rate::from_mbps(20);
