//! Streams over trees: who is below whom, what is measured of them, and what is refused.

use weir_lab::run::record;
use weir_lab::scenario::Scenario;

/// A stream to seven members in two levels, the last of whom is behind 300 kbit/s, next to a TCP on the first link.
const STREAM: &str = r#"id = "test/tree"
title = "A stream over a tree"
settings = "paper"
host = 2000
duration = "40s"

[topology.graph]
links = [
  { between = ["source", "near"], link = "rate=2M,delay=5ms,buffer=20p" },
  { between = ["near", "far"], link = "rate=300k,delay=5ms,buffer=20p" },
]

[tree.stream]
scheme = "mtcp"
at = ["source"]
start = "1s"
members = { count = 7, at = ["near", "near", "near", "near", "near", "near", "far"] }
degree = 3

[flow.tcp]
from = ["source"]
to = ["near"]
start = "each(0s, 1s)"
stop = "each(30s, 40s)"
count = 2
traffic.ftp = { max_window = 8 }

[metrics]
goodput = { measure = "goodput", tree = "stream", from = "10s" }
slowest = { measure = "slowest_rate", tree = "stream", from = "10s" }
mean = { measure = "client_rate", tree = "stream", from = "10s" }
last = { measure = "client_rate", tree = "stream", client = 6, from = "10s" }
sent = { measure = "throughput", tree = "stream", from = "10s" }
acks_lost = { measure = "acknowledgement_loss", tree = "stream" }
share = { measure = "share", tree = "stream", flow = "tcp", from = "10s", to = "30s" }
tcp = { measure = "throughput", flow = "tcp", from = "31s", over = "present" }
both = { measure = "throughput", flow = "tcp", from = "31s", over = "sum" }
alike = { measure = "throughput", flow = "tcp", from = "10s", to = "29s", over = "jain" }

[series]
slowest = { trace = "slowest_rate", tree = "stream" }
sent = { trace = "throughput", tree = "stream" }
"#;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse("tree.toml", text, &[]).map_err(|error| error.to_string())
}

#[test]
fn a_stream_over_a_tree_is_as_fast_as_its_slowest_member() {
    let points = read(STREAM).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    let metric = |name: &str| outcome.metrics[name];
    assert!((200.0..300.0).contains(&metric("slowest")), "{:?}", outcome.metrics);
    assert!((metric("goodput") / metric("slowest") - 0.958).abs() < 1e-9, "42 of 1000 bytes are headers");
    assert!(metric("last") >= metric("slowest") && metric("mean") >= metric("slowest"), "{:?}", outcome.metrics);
    assert!((metric("sent") / metric("slowest") - 1.0).abs() < 0.1, "the first link carries it once: {outcome:?}");
    assert_eq!(metric("acks_lost"), 0.0);
    assert!((50.0..=100.1).contains(&metric("share")) && metric("alike") > 0.9, "{:?}", outcome.metrics);
    assert!((metric("tcp") / metric("both") - 1.0).abs() < 1e-9, "one of the two has stopped");
    for name in ["slowest", "sent"] {
        assert!(outcome.series[name].iter().any(|(at, kbps)| *at > 10.0 && *kbps > 100.0), "{name}");
    }
}

#[test]
fn members_have_the_nodes_and_those_below_them_that_the_degree_gives() {
    let points = read(STREAM).expect("valid").points().expect("valid");
    let tree = &points[0].setup.tree["stream"];
    let above: Vec<usize> = (0..7).map(|member| tree.above(member)).collect();
    assert_eq!(above, [0, 0, 0, 1, 1, 1, 2]);
    let children = |node| tree.settings(node).last().map(|setting| setting.value.clone()).expect("there is one");
    assert_eq!([0, 1, 2, 3, 7].map(children), ["3", "3", "1", "0", "0"]);
}

#[test]
fn several_trees_each_have_a_record_of_their_own() {
    let three = STREAM.replace("start = \"1s\"\nmembers", "count = 3\nstart = \"each(1s, 1s, 39s)\"\nmembers");
    let points = read(&three).expect("valid").points().expect("valid");
    let record = record(&points[0].setup, 1).expect("it can be run");
    let trees = &record.trees["stream"];
    assert_eq!(trees.iter().map(|tree| tree.members.len()).collect::<Vec<_>>(), [7, 7, 7]);
    let packets: Vec<usize> = trees.iter().map(|tree| tree.packets.at(0).len()).collect();
    assert!(packets[0] > 10 * packets[2] && packets[1] > 10 * packets[2] && packets[2] > 0, "{packets:?}");
}

#[test]
fn trees_are_found_in_a_dumbbell_too() {
    let bell = "[topology.dumbbell]\nbottleneck = \"rate=1M,delay=10ms,buffer=20p\"\n";
    let (start, end) = (STREAM.find("[topology").expect("there"), STREAM.find("[tree").expect("there"));
    let (flow, metrics) = (STREAM.find("[flow").expect("there"), STREAM.find("[metrics").expect("there"));
    let tree = STREAM[end..flow].replace("at = [\"source\"]\n", "");
    let tree = tree.replace(
        "at = [\"near\", \"near\", \"near\", \"near\", \"near\", \"near\", \"far\"]",
        "rtt = \"uniform(40ms, 80ms)\"",
    );
    let metrics = &STREAM[metrics..STREAM.find("share =").expect("there")];
    let text = format!("{}{bell}{tree}{metrics}", &STREAM[..start]);
    let points = read(&text).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    assert!(outcome.metrics["slowest"] > 500.0, "{:?}", outcome.metrics);
}

#[test]
fn members_on_the_sender_s_node_are_served_there_next_to_others() {
    let near = "\"near\", \"near\", \"near\", \"near\", \"near\", \"near\", \"far\"";
    assert!(STREAM.contains(near));
    let points = read(&STREAM.replace(near, "\"source\", \"near\"")).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    assert!(outcome.metrics["slowest"] > 200.0, "{:?}", outcome.metrics);
    let error = read(&STREAM.replace(near, "\"source\"")).expect_err("must be refused");
    assert!(error.contains("tree.stream: all members are on the sender's node"), "{error}");
    let one = STREAM.replace("at = [\"source\"]", "at = [\"source\", \"near\"]").replace(near, "\"source\", \"near\"");
    let points = read(&one.replace("count = 7", "count = 1")).expect("names differ").points().expect("valid");
    let error = weir_lab::run::run(&points[0].setup, 1).expect_err("nodes do not").to_string();
    assert!(error.contains("all members are on the sender's node"), "{error}");
}

#[test]
fn what_a_tree_cannot_be_is_refused_in_words() {
    for (from, to, wanted) in [
        ("scheme = \"mtcp\"", "scheme = \"mtpc\"", "tree.stream: there is no scheme"),
        ("scheme = \"mtcp\"", "scheme = \"rap\"", "streams over a tree"),
        ("degree = 3", "degree = 0", "tree.stream: a tree needs a degree of 1 or more"),
        ("degree = 3", "degre = 3", "did you mean \"degree\"?"),
        ("members =", "receivers =", "unknown key \"receivers\""),
        ("degree = 3", "degree = 3\nsettings = { children = 3 }", "children follows from degree: leave it out"),
        ("degree = 3", "degree = 3\nsettings = { aplha = 3 }", "aplha"),
        ("degree = 3", "degree = 3\npacket_size = 10", "packet_size is 10 bytes, and such a packet has at least 43"),
        (
            "degree = 3",
            "degree = 3\nfeedback_size = 10",
            "feedback_size is 10 bytes, and such a packet has at least 72",
        ),
        ("degree = 3", "degree = 3\nheader_size = 1000", "header_size must be below packet_size"),
        ("at = [\"source\"]", "at = [\"sorce\"]", "did you mean \"source\"?"),
        ("\"far\"] }", "\"fra\"] }", "tree.stream: members: at: there is no node \"fra\""),
        ("count = 7,", "count = 7, rtt = \"40ms\",", "leave rtt out"),
        ("tree = \"stream\", from", "tree = \"steam\", from", "there is no tree \"steam\"; did you mean \"stream\"?"),
        ("measure = \"slowest_rate\", tree = \"stream\"", "measure = \"slowest_rate\", flow = \"tcp\"", "needs a tree"),
        ("[tree.stream]", "[tre.stream]", "did you mean \"tree\"?"),
    ] {
        assert!(STREAM.contains(from), "{from}");
        let error = read(&STREAM.replace(from, to)).expect_err("must be refused");
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn deployed_members_get_the_stream_in_a_tree_that_is_given_and_in_one_that_they_find() {
    let deployed = STREAM.replace("settings = \"paper\"\nhost = 2000\n", "");
    for text in [deployed.clone(), deployed.replace("degree = 3\n", "")] {
        let setup = read(&text).expect("valid").points().expect("valid").remove(0).setup;
        let record = record(&setup, 1).expect("it can be run");
        let slowest = setup.metrics["slowest"].value(&record).expect("it has a value");
        assert!((100.0..=300.0).contains(&slowest), "the last link has 300 kbit/s: {slowest}");
    }
    let error = read(&STREAM.replace("degree = 3\n", "")).expect_err("papers' trees are given");
    assert!(error.contains("missing key \"degree\""), "{error}");
}
