//! Traces of small runs: what a filter leaves, and what things are called.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::recording::{Recording, TraceFile};
use crate::scenario::Scenario;

const BELL: &str = r#"
id = "mine/bell"
title = "A session and TCPs"
settings = "paper"
host = 2000
duration = "4s"
[topology.dumbbell]
bottleneck = "rate=1M,delay=5ms,buffer=20p"
[session.main]
scheme = "avmrc"
ladder = { low = "256k", high = "1M", ratio = 1.5 }
receivers = { count = 2, rtt = "100ms" }
[flow.tcp]
rtt = "50ms"
count = 2
traffic.ftp = { flavour = "sack" }
[metrics]
rate = { measure = "throughput", session = "main" }
"#;

const GRAPH: &str = r#"
id = "mine/graph"
title = "A tree and datagrams on a graph"
settings = "paper"
host = 2000
duration = "3s"
[topology.graph]
bottleneck = ["b", "c"]
links = [
  { between = ["a", "b"], link = "rate=2M,delay=5ms,buffer=20p" },
  { between = ["b", "c"], link = "rate=1M,delay=5ms,buffer=20p" },
]
[tree.stream]
scheme = "mtcp"
at = ["a"]
members = { count = 2, at = ["c"] }
degree = 1
[flow.datagrams]
from = ["a"]
to = ["b"]
traffic.udp = { rate = "100k" }
[metrics]
rate = { measure = "throughput", tree = "stream" }
"#;

/// The lines of a trace, or why there is none.
fn lines(scenario: &str, filter: Filter) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.txt");
    write(scenario, TraceFile { filter, ..TraceFile::new(&path) })?;
    Ok(std::fs::read_to_string(&path).expect("a trace").lines().map(str::to_owned).collect())
}

fn write(scenario: &str, trace: TraceFile) -> Result<(), String> {
    let points = Scenario::parse("mine.toml", scenario, &[]).expect("sound").points().expect("sound");
    let recording = Recording { trace: Some(trace), pcap: None };
    recording.write(&points[0].setup, 1).map_err(|error| error.to_string())
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// The values of a column, each once.
fn column(lines: &[String], index: usize) -> Vec<&str> {
    let mut values: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').nth(index)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[test]
fn all_events_have_the_scenario_s_names() {
    let all = lines(BELL, Filter::default()).expect("it can be run");
    assert_eq!(column(&all, 0), ["+", "-", "d", "j", "l", "o", "r", "u"]);
    assert_eq!(column(&all, 3), ["flow.tcp.0", "flow.tcp.1", "session.main.0"]);
    let links = lines(BELL, Filter { kinds: vec![Kind::Enqueue], ..Filter::default() }).expect("it can be run");
    assert_eq!(
        column(&links, 2),
        [
            "bottleneck",
            "flow.tcp.0.receiver-right",
            "flow.tcp.0.sender-left",
            "flow.tcp.1.receiver-right",
            "flow.tcp.1.sender-left",
            "left-flow.tcp.0.sender",
            "left-flow.tcp.1.sender",
            "right-flow.tcp.0.receiver",
            "right-flow.tcp.1.receiver",
            "right-left",
            "right-session.main.0.receiver.0",
            "right-session.main.0.receiver.1",
            "session.main.0.sender-left",
        ]
    );
    let data = links.iter().find(|line| line.contains(" data ")).expect("TCP sends");
    let expected =
        "flow.tcp.0.sender-left flow.tcp.0 flow.tcp.0.sender flow.tcp.0.receiver 1000 not-ect data seq=0 sent=";
    assert!(data.starts_with("+ 0.000000000 ") && data.contains(expected), "{data}");
    let layered = links.iter().find(|line| line.contains(" layered ")).expect("the session sends");
    assert!(layered.contains(" session.main.0.sender session.main.0/0 1000 not-ect layered seq="), "{layered}");
}

#[test]
fn a_filter_leaves_what_all_of_its_parts_take() {
    let filter = Filter {
        flows: words(&["tcp"]),
        links: words(&["bottleneck"]),
        kinds: vec![Kind::Drop, Kind::Enqueue],
        from: Some(Duration::from_secs(1)),
        to: Some(Duration::from_secs(2)),
    };
    let all = lines(BELL, Filter::default()).expect("it can be run");
    let is_wanted = |line: &&String| {
        let columns: Vec<&str> = line.split(' ').collect();
        let at: f64 = columns[1].parse().expect("seconds");
        ["+", "d"].contains(&columns[0])
            && (1.0..2.0).contains(&at)
            && columns[2] == "bottleneck"
            && columns[3].starts_with("flow.tcp.")
    };
    let wanted: Vec<&String> = all.iter().filter(is_wanted).collect();
    let left = lines(BELL, filter).expect("it can be run");
    assert!(left.iter().eq(wanted.iter().copied()), "{} and {}", left.len(), wanted.len());
    assert_eq!((column(&left, 0), column(&left, 3)), (vec!["+", "d"], vec!["flow.tcp.0", "flow.tcp.1"]));
}

#[test]
fn flows_and_links_are_meant_by_their_names_and_by_parts_of_them() {
    let flows = |word: &str| {
        let filter = Filter { flows: words(&[word]), kinds: vec![Kind::Enqueue], ..Filter::default() };
        let lines = lines(BELL, filter).expect(word);
        column(&lines, 3).join(" ")
    };
    for word in ["tcp.1", "flow.tcp.1", "tcp 1"] {
        assert_eq!(flows(word), "flow.tcp.1", "{word}");
    }
    assert_eq!((flows("flow"), flows("session")), ("flow.tcp.0 flow.tcp.1".to_owned(), "session.main.0".to_owned()));
    let links = |list: &[&str]| {
        let lines = lines(GRAPH, Filter { links: words(list), ..Filter::default() }).expect("they are there");
        column(&lines, 2).join(" ")
    };
    assert_eq!(
        (links(&["b-c"]), links(&["bottleneck", "a-b"])),
        ("bottleneck".to_owned(), "a-b bottleneck".to_owned())
    );
    assert_eq!(links(&["c-b"]), "c-b");
}

#[test]
fn trees_and_datagrams_are_told_by_their_headers() {
    let all = lines(GRAPH, Filter { kinds: vec![Kind::Arrive], ..Filter::default() }).expect("it can be run");
    assert_eq!(column(&all, 8), ["datagram", "echo", "probe", "tree-ack", "tree-data"]);
    let agents =
        ["flow.datagrams.0.receiver", "tree.stream.0.member.0", "tree.stream.0.member.1", "tree.stream.0.sender"];
    assert_eq!(column(&all, 2), agents);
}

#[test]
fn a_word_that_matches_nothing_is_refused_with_what_there_is() {
    let error = lines(BELL, Filter { flows: words(&["tcq"]), ..Filter::default() }).expect_err("there is none");
    assert_eq!(error, "cannot trace: there is no flow \"tcq\"; there are session.main.0, flow.tcp.0, flow.tcp.1");
    let error = lines(GRAPH, Filter { links: words(&["a-c"]), ..Filter::default() }).expect_err("there is none");
    assert!(error.contains("there is no link \"a-c\"; there are a-b, b-a, bottleneck, c-b"), "{error}");
    let error = lines(BELL, Filter { links: words(&["botleneck"]), ..Filter::default() }).expect_err("there is none");
    assert!(error.ends_with("did you mean \"bottleneck\"?"), "{error}");
    assert!("dropp".parse::<Kind>().expect_err("there is none").contains("drop, arrive"));
}

#[test]
fn a_file_that_ends_in_parquet_is_one_unless_another_form_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let begins = |path: &Path| std::fs::read(path).expect("a file")[..4].to_vec();
    let path = folder.path().join("run.parquet");
    write(BELL, TraceFile::new(&path)).expect("it can be run");
    assert_eq!(begins(&path), b"PAR1");
    write(BELL, TraceFile { format: Some(Format::Text), ..TraceFile::new(&path) }).expect("it can be run");
    let text = std::fs::read_to_string(&path).expect("a trace");
    assert!(text.lines().any(|line| line.starts_with("+ 0.000000000 ")));
}
