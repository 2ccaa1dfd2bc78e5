//! Two sessions over one link, the second later: how evenly they share it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Delivery, Session, pause};
use weir_units::{Bytes, Rate};

use super::{JOINED_BEFORE, WARM_UP, endless, shared_link, words};
use crate::Options;
use crate::stream::mark;

/// Measures two sessions of each scheme at each round trip.
pub(super) fn measure(options: &Options, weir: &Path) -> Vec<Value> {
    println!("\ntwo sessions over 10 Mbit/s with 100 ms of buffer, slow leave, {} s", options.beside_seconds);
    println!("{:<10}{:<8}{:>14}{:>14}{:>14}  limit", "scheme", "rtt", "first", "second", "Jain's index");
    let rtts = options.ordinary.ordinary_rtts.iter();
    let pairs = rtts.flat_map(|rtt| options.ordinary.ordinary_schemes.iter().map(move |scheme| (scheme, *rtt)));
    pairs.map(|(scheme, round_trip)| row(options, weir, scheme, round_trip)).collect()
}

fn row(options: &Options, weir: &Path, scheme: &str, round_trip: Duration) -> Value {
    eprintln!("two sessions of {scheme}, round trip {round_trip:?}");
    let span = Duration::from_secs(options.beside_seconds);
    let network = shared_link(round_trip, options.ordinary.ordinary_queue.as_ref());
    let start = |to| Delivery::start_to(&network, weir, endless(span), to, words(options, scheme));
    let first = start(Session::DEFAULT);
    pause(JOINED_BEFORE);
    let second = start(SECOND);
    let counts = || [first.received_bytes(0), second.received_bytes(0)];
    pause(WARM_UP);
    let (before, dropped_before) = (counts(), network.link_counters(0).dropped_packets);
    pause(span);
    let (after, dropped) = (counts(), network.link_counters(0).dropped_packets - dropped_before);
    let rates = [0, 1].map(|one| Bytes::new(after[one] - before[one]).per(span));
    let index = jains_index(rates);
    let holds = index >= LIMIT;
    let [told_first, told_second] = rates.map(|rate| rate.to_string());
    let rtt = format!("{} ms", round_trip.as_millis());
    println!("{scheme:<10}{rtt:<8}{told_first:>14}{told_second:>14}{index:>14.3}  {LIMIT} {}", mark(holds));
    json!({
        "scheme": scheme,
        "rtt_ms": round_trip.as_secs_f64() * 1e3,
        "sessions_bps": rates.map(Rate::bps),
        "jains_index": index,
        "limit": LIMIT,
        "holds": holds,
        "link_dropped_packets": dropped,
    })
}

/// (a + b)² / 2(a² + b²): 1 where both have the same, 0.5 where one has all. Example: 2 and 1 give 0.9.
fn jains_index(rates: [Rate; 2]) -> f64 {
    let [one, other] = rates.map(|rate| rate.bps() as f64);
    (one + other).powi(2) / (2.0 * (one * one + other * other)).max(1.0)
}

/// Group, port and number of the second session; from its group on it has one for each channel.
const SECOND: (&str, u16) = ("239.255.4.1:5006", 8);
const LIMIT: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_much_as_the_other_is_an_index_of_nine_tenths() {
        let index = |one, other| jains_index([one, other].map(Rate::from_mbps));
        assert!((index(2, 1) - 0.9).abs() < 1e-9);
        assert!((index(5, 5) - 1.0).abs() < 1e-9 && (index(5, 0) - 0.5).abs() < 1e-9);
    }
}
