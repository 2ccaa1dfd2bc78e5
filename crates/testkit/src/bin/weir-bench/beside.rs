//! The table of a live stream next to one TCP of the kernel.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{LiveStream, Network, Shares};
use weir_units::Rate;

/// Measures each TCP in turn.
pub(crate) fn measure(span: Duration, weir: &Path) -> Value {
    println!("\na live stream and one TCP over 10 Mbit/s with 100 ms of buffer, {} s", span.as_secs());
    println!("{:<8}{:>14}{:>14}{:>8}  {:<8}{:>10}", "tcp", "stream", "tcp", "ratio", "limit", "dropped");
    let rows: Vec<Value> = CONTROLS.iter().map(|(control, limit)| row(span, weir, control, *limit)).collect();
    json!({ "link_bps": 10_000_000, "buffer_ms": 100, "seconds": span.as_secs(), "tcps": rows })
}

fn row(span: Duration, weir: &Path, control: &str, limit: Option<[f64; 2]>) -> Value {
    eprintln!("a live stream beside {control}");
    let network = Network::new().links([Rate::from_mbps(10)]).build();
    let stream = LiveStream::start(&network, weir, 0, "/dev/zero", "/dev/null");
    let shares = Shares::measure(&network, control, WARM_UP, span, || stream.received_bytes());
    let (ratio, dropped) = (shares.ratio(), shares.dropped);
    let holds = limit.map(|[low, high]| (low..=high).contains(&ratio));
    let verdict = match (limit, holds) {
        (Some([low, high]), Some(holds)) => format!("{low}–{high} {}", if holds { "✓" } else { "✗" }),
        _ => "none".to_owned(),
    };
    let [stream, tcp] = [shares.weir, shares.tcp].map(|rate| rate.to_string());
    println!("{control:<8}{stream:>14}{tcp:>14}{ratio:>8.2}  {verdict:<8}{dropped:>10}");
    json!({
        "tcp": control,
        "stream_bps": shares.weir.bps(),
        "tcp_bps": shares.tcp.bps(),
        "ratio": ratio,
        "limit": limit,
        "holds": holds,
        "link_dropped_packets": dropped,
    })
}

/// The kernel's congestion controls, and between what the stream's rate over theirs is claimed to lie.
const CONTROLS: [(&str, Option<[f64; 2]>); 3] =
    [("reno", Some([0.5, 2.0])), ("cubic", Some([0.5, 2.0])), ("bbr", None)];
/// Start-ups are not what is measured.
const WARM_UP: Duration = Duration::from_secs(15);
