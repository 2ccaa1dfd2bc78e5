//! What PLM's estimators say of a link whose rate is known: packet pairs, and trains of two lengths, through token buckets of the
//! kernel with bursts of several sizes, with and without generic receive offload.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Command, Delivery, Network, TokenBucket, pause};
use weir_units::{Bytes, Rate};

/// Measures every link with every estimator.
pub(crate) fn measure(weir: &Path) -> Vec<Value> {
    println!("\nwhat bursts say of a token bucket's rate: the median in % of it, of how many; \"-\" says nothing");
    println!("{:<10}{:>10}{:>6}{}", "link", "burst", "GRO", ESTIMATORS.map(|one| format!("{:>22}", one.name)).concat());
    let links = RATES.iter().flat_map(|rate| BURSTS.iter().map(move |burst| (*rate, *burst)));
    let cases = links.flat_map(|(rate, burst)| [true, false].map(|gro| (rate, burst, gro)));
    cases.map(|(rate, burst, gro)| case(weir, rate, burst, gro)).collect()
}

fn case(weir: &Path, rate: Rate, burst: u64, gro: bool) -> Value {
    let told = thread::scope(|scope| {
        let started = ESTIMATORS.each_ref().map(|one| scope.spawn(move || watch(weir, one, rate, burst, gro)));
        started.map(|thread| thread.join().expect("an estimator is watched"))
    });
    let told = told.map(|shares| median(shares).map(|(bps, count)| (bps as f64 / rate.bps() as f64 * 100.0, count)));
    let shown = told.map(|told| match told {
        Some((percent, count)) => format!("{:>22}", format!("{percent:.1} of {count}")),
        None => format!("{:>22}", "-"),
    });
    println!("{:<10}{:>10}{:>6}{}", rate.to_string(), burst, if gro { "on" } else { "off" }, shown.concat());
    let told: Vec<Value> = told
        .iter()
        .zip(&ESTIMATORS)
        .map(|(told, one)| json!({ "estimator": one.name, "percent": told.map(|(percent, _)| percent) }))
        .collect();
    json!({ "rate_bps": rate.bps(), "burst_bytes": burst, "gro": gro, "told": told })
}

/// What one estimator says while it is on its base layer, which the link carries easily.
fn watch(weir: &Path, estimator: &Estimator, rate: Rate, burst: u64, gro: bool) -> Vec<u64> {
    let network = Network::new().receivers(1).build();
    network.set_link(0, Some(TokenBucket { burst: Bytes::new(burst), ..TokenBucket::new(rate) }));
    let (host, state) = (network.receiver(0), if gro { "on" } else { "off" });
    let ethtool = host.command("ethtool").args(["-K", host.interface(), "gro", state]);
    let _as_it_is = started(ethtool);
    let words = ["--cc", "plm", "--rates", "2M..2.2M", "--ratio", "1.05"].into_iter();
    let words = words.chain(estimator.settings.iter().flat_map(|setting| ["--cc-set", setting]));
    let delivery = Delivery::start(&network, weir, rate * SPAN, words);
    pause(SPAN);
    let lines = delivery.receivers[0].lines();
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let mut told: Vec<u64> = events.filter_map(|event| event["target_bps"].as_u64()).collect();
    told.dedup();
    told
}

fn started(command: Command) -> Option<i32> {
    command.start().wait(Duration::from_secs(5)).code()
}

fn median(mut told: Vec<u64>) -> Option<(u64, usize)> {
    told.sort_unstable();
    told.get(told.len() / 2).map(|middle| (*middle, told.len()))
}

/// An estimator, as settings of PLM.
struct Estimator {
    name: &'static str,
    settings: &'static [&'static str],
}

const ESTIMATORS: [Estimator; 4] = [
    Estimator { name: "pairs", settings: &["estimator=pairs", "burst=2", "burst_every=0ms", "resolution=0ms"] },
    Estimator { name: "trains of 16, any", settings: &["burst=16", "resolution=0ms"] },
    Estimator { name: "trains of 16", settings: &["burst=16"] },
    Estimator { name: "trains of 220", settings: &["burst=220"] },
];

const RATES: [Rate; 2] = [Rate::from_mbps(10), Rate::from_mbps(100)];
/// Bytes; the smallest that the kernel's bucket takes is a packet.
const BURSTS: [u64; 4] = [2_000, 16_000, 64_000, 128_000];
const SPAN: Duration = Duration::from_secs(14);
