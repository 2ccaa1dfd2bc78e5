//! The tables of STAIR on sockets: next to one TCP of the kernel under each reading of when its rate falls, over unequal links,
//! and its group membership messages next to FGLM's.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{Delivery, Memberships, Network, Shares, pause};
use weir_units::Rate;

use crate::{Options, unequal};

/// Measures all three.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let words = ["--cc", "stair"].map(str::to_owned);
    Ok(json!({
        "unequal": unequal::session(options, weir, "stair", &words, Some(TIMES_IDEAL))?,
        "beside": beside(options, weir),
        "memberships": memberships(weir),
    }))
}

fn beside(options: &Options, weir: &Path) -> Vec<Value> {
    let span = Duration::from_secs(options.beside_seconds);
    println!("\nSTAIR and one TCP over 20 Mbit/s with 100 ms of buffer, {} s", span.as_secs());
    println!(
        "{:<18}{:<8}{:>14}{:>14}{:>8}  {:<8}{:>10}",
        "decrease", "tcp", "stair", "tcp", "ratio", "limit", "dropped"
    );
    let pairs = DECREASES.iter().flat_map(|decrease| CONTROLS.iter().map(move |(tcp, limit)| (decrease, tcp, *limit)));
    pairs.map(|(decrease, tcp, limit)| share(options, weir, decrease, tcp, limit)).collect()
}

fn share(options: &Options, weir: &Path, decrease: &str, control: &str, limit: Option<[f64; 2]>) -> Value {
    let span = Duration::from_secs(options.beside_seconds);
    eprintln!("STAIR, decrease={decrease}, beside {control}");
    let network = Network::new().links([LINK]).build();
    let reading = format!("decrease={decrease}");
    let words = ["--cc", "stair", "--cc-set", &reading].into_iter().chain(options.send_args.split_whitespace());
    // More than the link carries meanwhile.
    let delivery = Delivery::start(&network, weir, LINK * (WARM_UP + span), words);
    let shares = Shares::measure(&network, control, WARM_UP, span, || delivery.received_bytes(0));
    let (ratio, dropped) = (shares.ratio(), shares.dropped);
    let holds = limit.map(|[low, high]| (low..=high).contains(&ratio));
    let verdict = match (limit, holds) {
        (Some([low, high]), Some(holds)) => format!("{low}–{high} {}", if holds { "✓" } else { "✗" }),
        _ => "none".to_owned(),
    };
    let [stair, tcp] = [shares.weir, shares.tcp].map(|rate| rate.to_string());
    println!("{decrease:<18}{control:<8}{stair:>14}{tcp:>14}{ratio:>8.2}  {verdict:<8}{dropped:>10}");
    json!({
        "decrease": decrease,
        "tcp": control,
        "stair_bps": shares.weir.bps(),
        "tcp_bps": shares.tcp.bps(),
        "ratio": ratio,
        "limit": limit,
        "holds": holds,
        "link_dropped_packets": dropped,
    })
}

/// The set-up of the paper's comparison (§4.4): round trips of 128 ms, packets of 1000 bytes, c0 1 Mbit/s and B0 62.5 kbit/s.
fn memberships(weir: &Path) -> Vec<Value> {
    println!("\nIGMP messages a second on the bridge, and groups that they speak of, link of 8 Mbit/s");
    println!(
        "{:<8}{:>10}{:>10}{:>14}{:>10}{:>10}{:>14}{:>8}",
        "IGMP", "stair", "groups", "at", "fglm", "groups", "at", "ratio"
    );
    [2, 3].map(|version| membership(version, weir)).into()
}

fn membership(version: u8, weir: &Path) -> Value {
    let [stair, fglm] = [("stair", "1M..20M"), ("fglm", "62.5k..20M")].map(|(scheme, rates)| {
        eprintln!("{scheme}'s messages, IGMPv{version}");
        let network = Network::new().links([SLOW_LINK]).build();
        network.set_igmp_version(version);
        let words = [
            "--cc",
            scheme,
            "--rates",
            rates,
            "--packet-size",
            "1000",
            "--cc-set",
            "rtt=fixed",
            "--cc-set",
            "initial_rtt=128ms",
        ];
        let delivery = Delivery::start(&network, weir, SLOW_LINK * (WARM_UP + MEMBERSHIP_SPAN), words);
        pause(WARM_UP);
        delivery.memberships(&network, MEMBERSHIP_SPAN)
    });
    let ratio = fglm.messages_per_sec / stair.messages_per_sec;
    let [one, other] = [stair, fglm].map(|Memberships { rate, .. }| rate.to_string());
    let [few, many] = [stair, fglm].map(|it| format!("{:>10.2}{:>10.2}", it.messages_per_sec, it.groups_per_sec));
    println!("{version:<8}{few}{one:>14}{many}{other:>14}{ratio:>8.1}");
    json!({ "igmp_version": version, "stair": figures(&stair), "fglm": figures(&fglm), "ratio": ratio })
}

fn figures(of: &Memberships) -> Value {
    json!({ "messages_per_sec": of.messages_per_sec, "groups_per_sec": of.groups_per_sec, "bps": of.rate.bps() })
}

/// How many times its ideal a receiver may take.
const TIMES_IDEAL: f64 = 1.5;
const DECREASES: [&str; 3] = ["period-end", "at-once", "at-once-each-rtt"];
/// The kernel's congestion controls, and between what STAIR's rate over theirs is claimed to lie.
const CONTROLS: [(&str, Option<[f64; 2]>); 3] =
    [("reno", Some([0.5, 2.0])), ("cubic", Some([0.5, 2.0])), ("bbr", None)];
/// Start-ups are not what is measured.
const WARM_UP: Duration = Duration::from_secs(15);
const MEMBERSHIP_SPAN: Duration = Duration::from_secs(60);
const LINK: Rate = Rate::from_mbps(20);
const SLOW_LINK: Rate = Rate::from_mbps(8);
