//! Measures of any link and any flow, against what arithmetic says.

use weir_lab::run::run;
use weir_lab::scenario::Scenario;

/// Three links in a row. Datagrams overload the second; a file goes over the first, two endless TCPs over the third.
const ROW: &str = r#"id = "test/row"
title = "Three links in a row"
duration = "40s"
seeds = 1

[topology.chain]
links = ["rate=10M,delay=5ms,buffer=100p", "rate=1M,delay=20ms,buffer=20p", "rate=4M,delay=5ms,buffer=50p"]

[flow.overload]
from = ["n1"]
to = ["n2"]
traffic.udp = { rate = "1.25M", packet_size = "1000B" }

[flow.file]
from = ["n0"]
to = ["n1"]
start = "5s"
traffic.ftp = { size = "2MB" }

[flow.near]
from = ["n2"]
to = ["n3"]
traffic.ftp = { flavour = "reno" }

[flow.late]
from = ["n2"]
to = ["n3"]
traffic.ftp = { flavour = "reno" }

[metrics]
loss = { measure = "steady_loss", flow = "overload", link = ["n1", "n2"], from = "5s" }
link_loss = { measure = "link_loss", link = ["n1", "n2"], from = "5s" }
sent = { measure = "throughput", flow = "overload", link = ["n1", "n2"], from = "5s" }
goodput = { measure = "goodput", flow = "overload", from = "5s" }
queue = { measure = "queue_length", link = ["n1", "n2"], from = "5s" }
queue_90 = { measure = "queue_length", link = ["n1", "n2"], from = "5s", percentile = 90 }
delay = { measure = "queuing_delay", flow = "overload", link = ["n1", "n2"], from = "5s" }
delay_99 = { measure = "queuing_delay", link = ["n1", "n2"], from = "5s", percentile = 99 }
idle_queue = { measure = "queue_length", link = ["n1", "n0"] }
file_takes = { measure = "completion_time", flow = "file" }
file_ratio = { measure = "completion_ratio", flow = "file", size = "2MB", link = ["n0", "n1"] }
second_rate = { measure = "link_rate", link = ["n1", "n2"] }
half_takes = { measure = "completion_time", flow = "file", size = "1MB" }
used = { measure = "link_use", link = ["n2", "n3"], from = "10s" }
both = { measure = "goodput", flow = ["near", "late"], over = "sum", from = "10s" }
fairness = { measure = "goodput", flow = ["near", "late"], over = "jain", from = "10s" }
ratio = { measure = "goodput", flow = "near", per = "late", from = "10s" }
near = { measure = "goodput", flow = "near", from = "10s" }
late = { measure = "goodput", flow = "late", from = "10s" }
window = { measure = "congestion_window", flow = "near", from = "10s" }
round_trip = { measure = "round_trip", flow = "near", from = "10s" }
round_trip_95 = { measure = "round_trip", flow = "near", from = "10s", percentile = 95 }
standing = { measure = "queuing_delay", flow = "near", link = ["n2", "n3"], from = "10s" }

[series]
queue = { trace = "queue_length", link = ["n1", "n2"], window = "1s", step = "1s" }
delay = { trace = "queuing_delay", link = ["n1", "n2"], flow = "overload", window = "1s", step = "1s" }
window = { trace = "congestion_window", flow = "near" }
goodput = { trace = "goodput", flow = "overload", window = "1s", step = "1s" }
"#;

fn outcome(text: &str) -> Result<weir_lab::cache::Outcome, String> {
    let scenario = Scenario::parse("row.toml", text, &[]).map_err(|error| error.to_string())?;
    let points = scenario.points().map_err(|error| error.to_string())?;
    run(&points[0].setup, 1).map_err(|error| error.to_string())
}

#[test]
fn every_link_and_every_flow_of_a_row_is_measured_as_arithmetic_has_it() {
    let outcome = outcome(ROW).expect("it runs");
    let near = |name: &str, expected: f64, share: f64| {
        let value = outcome.metrics[name];
        assert!((value - expected).abs() <= share * expected, "{name}: {value}, expected {expected}");
    };
    near("loss", 20.0, 0.01);
    near("link_loss", 20.0, 0.01);
    near("sent", 1000.0, 0.01);
    near("goodput", 972.0, 0.01);
    // A packet of 8 ms comes each 6.4 ms, and each fifth one finds the queue full.
    near("queue", 19.5, 0.03);
    near("queue_90", 20.0, 0.0);
    near("delay", 19.6 * 8.0, 0.03);
    assert!((150.0..=160.0).contains(&outcome.metrics["delay_99"]), "{}", outcome.metrics["delay_99"]);
    assert!(outcome.metrics["idle_queue"] < 0.01, "nothing but acknowledgements goes that way");
    near("second_rate", 1000.0, 0.0);
    // 16 Mbit take 1.6 s at 10 Mbit/s.
    near("file_ratio", outcome.metrics["file_takes"] / 1.6, 1e-9);
    // 2 MB of payload are 2.07 MB on 10 Mbit/s, after slow start from ten segments.
    assert!((1.66..2.2).contains(&outcome.metrics["file_takes"]), "{:?}", outcome.metrics);
    assert!(outcome.metrics["half_takes"] < 0.6 * outcome.metrics["file_takes"]);
    near("used", 100.0, 0.02);
    near("both", 4000.0 * 1448.0 / 1500.0, 0.02);
    let (one, other) = (outcome.metrics["near"], outcome.metrics["late"]);
    near("fairness", (one + other).powi(2) / (2.0 * (one * one + other * other)), 1e-9);
    near("ratio", one / other, 1e-9);
    // The round trip is 10 ms, the segment's own 3 ms and its acknowledgement's, and what it waits.
    near("round_trip", 13.1 + outcome.metrics["standing"], 0.1);
    assert!(outcome.metrics["round_trip_95"] > outcome.metrics["round_trip"]);
    // What is on its way is window over round trip.
    near("window", one / 8.0 / 1448.0 * 1000.0 * outcome.metrics["round_trip"] / 1e3, 0.15);
    for (name, value) in [("queue", 19.5), ("delay", 157.0), ("goodput", 972.0)] {
        let (at, last) = outcome.series[name].last().expect("it has values");
        assert!(*at > 38.0 && (last - value).abs() < 0.05 * value, "{name}: {last}");
    }
    assert!(outcome.series["window"].len() > 300);
}

#[test]
fn a_flow_measured_on_a_link_that_it_never_crosses_is_an_error_that_says_so() {
    let unnamed = ROW.replace(
        "flow = \"overload\", link = [\"n1\", \"n2\"], from = \"5s\" }\nlink_loss",
        "flow = \"overload\", from = \"5s\" }\nlink_loss",
    );
    let error = outcome(&unnamed).expect_err("it does not cross the bottleneck, which is the first link");
    assert!(error.contains("loss: nothing of \"overload\" comes to the bottleneck"), "{error}");
    let elsewhere = ROW.replace(
        "delay = { measure = \"queuing_delay\", flow = \"overload\"",
        "delay = { measure = \"queuing_delay\", flow = \"near\"",
    );
    let error = outcome(&elsewhere).expect_err("it begins behind it");
    assert!(error.contains("delay: nothing of \"near\" comes to the link from n1 to n2"), "{error}");
}

#[test]
fn links_that_are_not_there_and_completions_without_an_end_are_refused() {
    let error = |from: &str, to: &str| outcome(&ROW.replace(from, to)).expect_err(to);
    assert!(
        error(
            "idle_queue = { measure = \"queue_length\", link = [\"n1\", \"n0\"]",
            "idle_queue = { measure = \"queue_length\", link = [\"n1\", \"n9\"]"
        )
        .contains("metrics.idle_queue: link: there is no node \"n9\"")
    );
    assert!(
        error("link = [\"n1\", \"n0\"]", "link = [\"n3\", \"n0\"]").contains("no link leads from \"n3\" to \"n0\"")
    );
    assert!(
        error("completion_time\", flow = \"file\" }", "completion_time\", flow = \"near\" }")
            .contains("flow \"near\" has no end")
    );
}
