//! A switch that sends every channel to every port, between hosts of their own. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Delivery, Network, pause, require_root};
use weir_units::{Bytes, Rate};

/// What floods is what the other receiver takes, and no longer than it does. It had its 10 MB after 1.5 s, and the receiver on the slow port after 1.4 times its
/// ideal. Where all is sent (below) it took 3.6 times its ideal.
#[test]
fn a_receiver_on_a_slow_port_of_a_switch_that_floods_has_its_rate_once_the_others_are_done() {
    let Some((_turn, network, delivery)) = to_a_slow_and_a_fast_port("wanted", BYTES) else { return };
    let of_fast = delivery.verified(1, START).last_event("end")["seconds"].as_f64().expect("the end has its seconds");
    let flooded = network.link_counters(0).dropped_packets;
    let ideal = (BYTES / SLOW).as_secs_f64();
    let end = delivery.verified(0, Duration::from_secs_f64(ideal * 4.0)).last_event("end");
    let times = end["seconds"].as_f64().expect("the end has its seconds") / ideal;
    eprintln!(
        "{of_fast:.1} s on the fast port, {flooded} packets dropped on the slow one; there {times:.2} times the ideal"
    );
    assert!(flooded > 500, "the slow port was never flooded: {flooded} packets dropped");
    assert!(times <= 2.5, "{times:.2} times the ideal on the slow port");
    assert!(delivery.sender.wait(START).is_success());
}

/// The sender offers the whole ladder, as it does to large groups. The session's top is eleven times what the slow port carries. The
/// search for what it carries takes seconds for each factor of two, so the file takes 3.5 to 4.8 times its ideal in four runs, and both ends say so
/// after 4.8 s. On a machine that does three other things at once packets are read late: the limits are twice what a quiet machine takes and more.
#[test]
fn on_a_switch_that_floods_both_ends_say_so_and_the_flood_ends() {
    let Some((_turn, network, delivery)) = to_a_slow_and_a_fast_port("all", HALF) else { return };
    let begun = seconds(&delivery.receivers[0].event("level", START, |_| true));
    let told = delivery.receivers[0].event("error", START, |error| text(error).contains("IGMP snooping"));
    let after = seconds(&told) - begun;
    assert!(told["exit_code"].is_null() && after <= 12.0, "after {after:.1} s: {told}");
    delivery.sender.event("error", START, |error| text(error).contains("every channel to every port"));
    let flooding = network.link_counters(0).dropped_packets;
    pause(Duration::from_secs(2));
    let after_cut = network.link_counters(0).dropped_packets;
    pause(Duration::from_secs(3));
    let later = network.link_counters(0).dropped_packets;
    assert!(flooding > 1_000, "the slow port was never flooded: {flooding} packets dropped");
    let still = later - after_cut;
    assert!(still * 10 < flooding, "the slow port is still flooded: {still} packets dropped in 3 s, {flooding} before");
    eprintln!("{flooding} packets dropped until it was told, {still} in 3 s afterwards");
    let ideal = (HALF / SLOW).as_secs_f64();
    let end = delivery.verified(0, Duration::from_secs_f64(ideal * 12.0)).last_event("end");
    let times = end["seconds"].as_f64().expect("the end has its seconds") / ideal;
    eprintln!("told after {after:.1} s; {times:.2} times the ideal, {} packets lost", end["lost_packets"]);
    delivery.verified(1, START);
    assert!(delivery.sender.wait(START).is_success());
}

/// A file on its way through a switch that floods; the first receiver is behind the slow port, and the other's carries all that is sent, so
/// that the first alone has a flood to tell of. None where namespaces are left out. One at a time, as each runs
/// three programs.
fn to_a_slow_and_a_fast_port(offer: &str, bytes: Bytes) -> Option<(MutexGuard<'static, ()>, Network, Delivery)> {
    if !require_root() {
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let network = Network::new().links([SLOW, Rate::from_mbps(200)]).build();
    network.set_snooping(false);
    let offer = format!("offer={offer}");
    let words = ["--cc", "sluice", "--cc-set", &offer, "--receipts", "2"];
    let delivery = Delivery::start(&network, Path::new(WEIR), bytes, words);
    Some((turn, network, delivery))
}

fn text(event: &Value) -> &str {
    event["message"].as_str().unwrap_or_default()
}

fn seconds(event: &Value) -> f64 {
    event["t_s"].as_f64().expect("an event has its time")
}

static TURN: Mutex<()> = Mutex::new(());
const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const SLOW: Rate = Rate::from_mbps(8);
const BYTES: Bytes = Bytes::new(10_000_000);
/// Enough to last until the flood has ended.
const HALF: Bytes = Bytes::new(5_000_000);
const START: Duration = Duration::from_secs(30);
