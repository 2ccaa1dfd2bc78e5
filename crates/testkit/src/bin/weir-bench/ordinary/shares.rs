//! A session next to one TCP of the kernel, which joins later: its rate over that of a CUBIC in its place.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Delivery, Rival, Shares, pause};
use weir_units::Rate;

use super::{JOINED_BEFORE, WARM_UP, endless, shared_link, words};
use crate::Options;
use crate::stream::mark;

/// Measures each scheme at each round trip next to each TCP.
pub(super) fn measure(options: &Options, weir: &Path) -> Vec<Value> {
    println!(
        "\nnext to one TCP over 10 Mbit/s with 100 ms of buffer, slow leave, over a CUBIC in the session's place, {} s",
        options.beside_seconds
    );
    println!(
        "{:<10}{:<8}{:<8}{:>14}{:>14}{:>14}{:>8}  limit",
        "scheme", "rtt", "tcp", "session", "tcp", "in place", "ratio"
    );
    let mut rows = Vec::new();
    for round_trip in &options.ordinary.ordinary_rtts {
        for control in CONTROLS {
            let in_place = in_place(options, *round_trip, control);
            let share = |scheme: &String| share(options, weir, scheme, (*round_trip, control), in_place);
            rows.extend(options.ordinary.ordinary_schemes.iter().map(share));
        }
    }
    rows
}

/// What a CUBIC gets in the session's place.
fn in_place(options: &Options, round_trip: Duration, control: &str) -> Rate {
    eprintln!("a CUBIC next to {control}, round trip {round_trip:?}");
    let network = shared_link(round_trip, options.ordinary.ordinary_queue.as_ref());
    let cubic = Rival::start(&network, 0, "cubic");
    pause(JOINED_BEFORE);
    let span = Duration::from_secs(options.beside_seconds);
    Shares::measure(&network, control, WARM_UP, span, || cubic.received_bytes()).weir
}

fn share(
    options: &Options,
    weir: &Path,
    scheme: &str,
    (round_trip, control): (Duration, &str),
    in_place: Rate,
) -> Value {
    eprintln!("{scheme} next to {control}, round trip {round_trip:?}");
    let span = Duration::from_secs(options.beside_seconds);
    let network = shared_link(round_trip, options.ordinary.ordinary_queue.as_ref());
    let words = words(options, scheme);
    let delivery = Delivery::start(&network, weir, endless(span), words.iter().map(String::as_str));
    pause(JOINED_BEFORE);
    let shares = Shares::measure(&network, control, WARM_UP, span, || delivery.received_bytes(0));
    let ratio = shares.weir.bps() as f64 / in_place.bps().max(1) as f64;
    let holds = (0.5..=2.0).contains(&ratio);
    let [session, tcp, place] = [shares.weir, shares.tcp, in_place].map(|rate| rate.to_string());
    let rtt = format!("{} ms", round_trip.as_millis());
    println!("{scheme:<10}{rtt:<8}{control:<8}{session:>14}{tcp:>14}{place:>14}{ratio:>8.2}  0.5–2 {}", mark(holds));
    json!({
        "scheme": scheme,
        "rtt_ms": round_trip.as_secs_f64() * 1e3,
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
