//! PLM's estimates on real links between network namespaces, whose rate the kernel's token bucket sets. Needs root.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Delivery, Network, TokenBucket, pause, require_root};
use weir_units::{Bytes, Rate};

#[test]
fn a_train_that_is_longer_than_the_bucket_tells_the_rate_and_a_shorter_one_says_nothing_of_it() {
    if !require_root() {
        return;
    }
    // 220 packets of 1456 bytes are 320 kB; 16 are 23 kB.
    for (train, burst, tells) in [("burst=16", 2_000, true), ("burst=16", 64_000, false), ("burst=220", 64_000, true)] {
        let (told, has_waited) = told(train, burst);
        assert_eq!(has_waited, tells, "{train} empties a bucket of {burst} bytes only if it is longer");
        if !tells {
            // What hosts take for a train that nothing delays is no rate of the link.
            assert!(
                told.iter().all(|bps| *bps > RATE.bps() * 10),
                "{train} through a bucket of {burst} bytes: {told:?}"
            );
            continue;
        }
        assert!(!told.is_empty(), "{train} through a bucket of {burst} bytes says nothing");
        let (low, high) = (RATE.bps() * 9 / 10, RATE.bps() * 11 / 10);
        let is_near = |bps: &u64| (low..=high).contains(bps);
        let near = told.iter().filter(|bps| is_near(bps)).count();
        assert!(near * 10 >= told.len() * 9, "{train} through a bucket of {burst} bytes: {told:?}");
    }
}

/// What the receiver takes for its share of the link, in the order of its progress events; and whether a packet had to wait.
fn told(train: &str, burst: u64) -> (Vec<u64>, bool) {
    let network = Network::new().receivers(1).build();
    network.set_link(0, Some(TokenBucket { burst: Bytes::new(burst), ..TokenBucket::new(RATE) }));
    let words = ["--cc", "plm", "--rates", "2M..2.2M", "--ratio", "1.05", "--cc-set", train];
    let delivery = Delivery::start(&network, Path::new(env!("CARGO_BIN_EXE_weir")), RATE * SPAN, words);
    pause(SPAN);
    let lines = delivery.receivers[0].lines();
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let told = events.filter_map(|event| event["target_bps"].as_u64()).collect();
    (told, network.link_counters(0).delays > 0)
}

const RATE: Rate = Rate::from_mbps(10);
const SPAN: Duration = Duration::from_secs(8);
