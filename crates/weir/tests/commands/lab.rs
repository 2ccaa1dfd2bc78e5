//! The laboratory, as a user runs it: small scenarios of the user's own, and those that came with weir.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// Two points, two seeds, ten simulated seconds; one claim that holds, one that does not, one that is reported.
const SCENARIO: &str = r#"
id = "mine/one"
title = "One client"
seeds = 2
duration = "10s"
[sweep]
capacity = [1, 2]
[topology.dumbbell]
bottleneck = "rate={capacity}M,buffer=80p"
[session.main]
scheme = "avmrc"
ladder = { low = "256k", high = "1M", ratio = 1.5 }
startup = "1s"
receivers = { rtt = "100ms" }
[metrics]
rate = { measure = "throughput", session = "main" }
[[claim]]
id = "something"
says = "something arrives"
metric = "rate"
holds = { above = 0 }
[[claim]]
id = "miracle"
says = "more arrives than the link carries"
metric = "rate"
holds = { above = 2000 }
[[claim]]
id = "rate"
says = "so much arrives"
metric = "rate"
points = "mean"
[[figure.panel]]
x = { of = "capacity", label = "capacity", unit = "Mbit/s" }
y = { of = "rate", label = "throughput", unit = "kbit/s" }
"#;

#[test]
fn a_claim_that_does_not_hold_is_red_in_words_in_json_and_in_the_exit_code() {
    let place = place();
    let output = lab(place.path(), &["verify", "mine", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let verdicts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let verdicts = verdicts.as_array().expect("a list");
    let holds: Vec<&Value> = verdicts.iter().map(|verdict| &verdict["holds"]).collect();
    assert_eq!(holds, [&Value::Bool(true), &Value::Bool(false), &Value::Null]);
    assert_eq!(verdicts[1]["id"], "mine/one/miracle");
    assert_eq!(verdicts[1]["band"], serde_json::json!({ "above": 2000.0 }));
    assert!(verdicts.iter().all(|verdict| verdict["measured"].as_f64() > Some(0.0) && verdict["claim"].is_string()));

    let output = lab(place.path(), &["verify", "mine/one"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("✓ mine/one/something") && text.contains("✗ mine/one/miracle"), "{text}");
    assert!(text.contains("1 of 2 claims hold, 1 do not; 1 more reported without a band"), "{text}");
}

#[test]
fn claims_about_points_that_were_not_asked_for_are_not_judged_and_not_red() {
    let place = place();
    let file = place.path().join("scenarios/mine/one.toml");
    let text = SCENARIO.replace("holds = { above = 2000 }", "where = { capacity = 2 }\nholds = { above = 2000 }");
    std::fs::write(&file, text).expect("room");
    let words = ["verify", "mine", "--set", "capacity=1"];
    let output = lab(place.path(), &words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", told(&output));
    assert!(text.contains("– mine/one/miracle    not judged"), "{text}");
    assert!(
        text.contains("(no run has capacity = 2)") && text.contains("something arrives (by 1 of 2 points)"),
        "{text}"
    );
    let summary =
        "1 of 1 claims hold, 0 do not; 1 more reported without a band; 1 not judged, as their points were not run";
    assert!(text.contains(summary), "{text}");
    let json = lab(place.path(), &[&words[..], &["--json"]].concat());
    let verdicts: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let list = verdicts.as_array().expect("a list");
    let words_of: Vec<&str> = list.iter().filter_map(|verdict| verdict["verdict"].as_str()).collect();
    assert_eq!((words_of, &verdicts[1]["holds"]), (vec!["holds", "not_judged", "reported"], &Value::Null));
    let markdown = lab(place.path(), &[&words[..], &["--markdown"]].concat());
    assert!(String::from_utf8_lossy(&markdown.stdout).contains("| – not judged |"), "{}", told(&markdown));
}

#[test]
fn without_red_the_exit_code_is_0() {
    let place = place();
    let file = place.path().join("scenarios/mine/one.toml");
    std::fs::write(&file, SCENARIO.replace("above = 2000", "below = 2000")).expect("room");
    let output = lab(place.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn without_ids_those_of_papers_are_verified_and_others_by_name() {
    let place = place();
    let of_paper = SCENARIO.replace("mine/one", "mine/two").replace("title", "paper = \"avmrc\"\ntitle");
    std::fs::write(place.path().join("scenarios/mine/two.toml"), of_paper).expect("room");
    let claims = |words: &[&str]| {
        let output = lab(place.path(), &[words, &["--json"]].concat());
        let verdicts: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
        let ids = verdicts.as_array().expect("a list").iter().map(|verdict| verdict["id"].as_str().map(str::to_owned));
        ids.map(|id| id.expect("an id")).collect::<Vec<String>>()
    };
    let [unnamed, named] = [claims(&["verify"]), claims(&["verify", "mine"])];
    assert!(unnamed.len() == 3 && unnamed.iter().all(|id| id.starts_with("mine/two/")), "{unnamed:?}");
    assert_eq!(named.len(), 6, "{named:?}");
}

#[test]
fn results_are_the_same_from_the_cache_and_made_again() {
    let place = place();
    let again = lab(place.path(), &["run", "mine/one", "--json"]);
    assert!(again.status.success(), "{}", told(&again));
    let kept = std::fs::read_dir(place.path().join("cache")).expect("a cache").count();
    assert!(kept > 0, "results are kept");
    let cached = lab(place.path(), &["run", "mine/one", "--json"]);
    let without = lab(place.path(), &["run", "scenarios/mine/one.toml", "--json", "--jobs", "1"]);
    assert_eq!((&again.stdout, &again.stdout), (&cached.stdout, &without.stdout));
    let rows: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(4));
}

#[test]
fn seeds_and_parameters_can_be_set_from_outside() {
    let place = place();
    let output = lab(place.path(), &["run", "mine/one", "--json", "--seeds", "1", "--set", "capacity=2"]);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["point"]["capacity"]), (1, &serde_json::json!(2.0)));
    let wrong = lab(place.path(), &["run", "mine/one", "--set", "capacitiy=2"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(told(&wrong).contains("capacity"), "{}", told(&wrong));
}

#[test]
fn results_come_as_csv_and_as_parquet() {
    let place = place();
    let output = lab(place.path(), &["run", "mine/one", "--csv", "--parquet", "runs.parquet"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("scenario,capacity,seed,rate"), "{text}");
    assert_eq!(text.lines().count(), 5, "a head and four runs: {text}");
    let parquet = std::fs::read(place.path().join("runs.parquet")).expect("a file");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn a_run_can_be_written_down_for_people_and_for_wireshark() {
    let place = place();
    let output = lab(place.path(), &["run", "mine/one", "--trace", "run.tr", "--pcap", "run.pcapng"]);
    assert!(output.status.success(), "{}", told(&output));
    let lines = std::fs::read_to_string(place.path().join("run.tr")).expect("a trace");
    assert!(lines.lines().count() > 1000, "ten seconds have many events");
    let packets = std::fs::read(place.path().join("run.pcapng")).expect("a capture");
    assert!(packets.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    let nowhere = lab(place.path(), &["run", "mine/one", "--trace", "nowhere/run.tr"]);
    assert_eq!(nowhere.status.code(), Some(7), "{}", told(&nowhere));
}

#[test]
fn the_run_that_is_written_down_may_have_any_seed() {
    let place = place();
    let lossy = ["--set", "topology.dumbbell.bottleneck=rate=1M,buffer=80p,loss=2%", "--trace", "run.tr"];
    let trace = |words: &[&str]| {
        let output = lab(place.path(), &[&["run", "mine/one"], &lossy[..], words].concat());
        assert!(output.status.success(), "{}", told(&output));
        std::fs::read_to_string(place.path().join("run.tr")).expect("a trace")
    };
    let first = trace(&[]);
    assert!(trace(&["--record-seed", "1"]) == first && trace(&["--record-seed", "2"]) != first);
    let nothing = lab(place.path(), &["run", "mine/one", "--record-seed", "2"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", told(&nothing));
}

#[test]
fn a_trace_can_be_narrowed_down_and_be_a_table() {
    let place = place();
    let run = |words: &[&str]| lab(place.path(), &[&["run", "mine/one", "--trace"], words].concat());
    let narrow = ["--trace-flow", "main", "--trace-link", "bottleneck", "--trace-kind", "enqueue,drop"];
    let output = run(&[&["run.txt", "--trace-from", "2s", "--trace-to", "3s"], &narrow[..]].concat());
    assert!(output.status.success(), "{}", told(&output));
    let lines = std::fs::read_to_string(place.path().join("run.txt")).expect("a trace");
    let is_wanted = |line: &str| line.starts_with("+ 2.") || line.starts_with("d 2.");
    assert!(lines.lines().count() > 10 && lines.lines().all(|line| is_wanted(line) && line.contains(" bottleneck ")));
    let output = run(&[&["run.parquet"], &narrow[..]].concat());
    assert!(output.status.success(), "{}", told(&output));
    assert!(std::fs::read(place.path().join("run.parquet")).expect("a trace").starts_with(b"PAR1"));
    let output = run(&["run.txt", "--trace-flow", "mian"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("there is no flow \"mian\"; there are session.main.0"), "{}", told(&output));
}

#[test]
fn an_unknown_id_is_refused_with_the_nearest_one() {
    let place = place();
    let output = lab(place.path(), &["verify", "mine/won"]);
    assert_eq!(output.status.code(), Some(2));
    let text = told(&output);
    assert!(text.contains("did you mean \"mine/one\"?") && text.contains("weir lab list"), "{text}");
}

#[test]
fn a_claim_about_nothing_is_refused_before_anything_runs() {
    let place = place();
    let file = place.path().join("scenarios/mine/one.toml");
    std::fs::write(&file, SCENARIO.replacen("metric = \"rate\"", "metric = \"rat\"", 1)).expect("room");
    let output = lab(place.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told(&output).contains("claim \"something\": there is no metric \"rat\"; there are rate"),
        "{}",
        told(&output)
    );
    assert!(!place.path().join("cache").exists());
}

#[test]
fn figures_and_the_report_are_written_where_they_are_wanted() {
    let place = place();
    let plots = lab(place.path(), &["plot", "--out", "plots"]);
    assert!(plots.status.success(), "{}", told(&plots));
    let svg = std::fs::read_to_string(place.path().join("plots/mine/one.svg")).expect("an SVG");
    assert!(svg.starts_with("<svg") && svg.contains("throughput (kbit/s)"));
    let png = std::fs::read(place.path().join("plots/mine/one.png")).expect("a PNG");
    assert_eq!(&png[1..4], b"PNG");
    let report = lab(place.path(), &["report", "--out", "out/report.html"]);
    assert!(report.status.success(), "{}", told(&report));
    let page = std::fs::read_to_string(place.path().join("out/report.html")).expect("a page");
    assert!(page.contains("What does not hold") && page.contains("more arrives than the link carries"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn an_interrupted_sweep_keeps_what_is_done_and_says_so() {
    let place = place();
    let cache = place.path().join("cache");
    let words = ["run", "mine/one", "--seeds", "100000", "--jobs", "1"];
    let child = command(place.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    while !cache.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let text = told(&output);
    let words = "of 200000 runs of mine/one are done; they are kept, and the same command goes on from there";
    assert!(text.contains("a second signal stops at once") && text.contains(words), "{text}");
}

#[test]
fn each_command_that_makes_runs_stops_after_those_under_way_when_it_is_told_to() {
    let place = place();
    let other = SCENARIO.replace("mine/one", "mine/two").replace("[1, 2]", "[1]");
    std::fs::write(place.path().join("scenarios/mine/two.toml"), other).expect("room");
    for words in [&["verify"][..], &["report", "--out", "report.html"], &["plot", "--out", "plots"]] {
        let words = [words, &["--seeds", "100000", "--jobs", "1", "--no-cache"]].concat();
        let mut child = uncached(place.path(), &words).stderr(Stdio::piped()).spawn().expect("it starts");
        wait_for_handler(&child);
        signal(&child, Signal::SIGTERM);
        let mut text = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{words:?}: {text}");
        let of_all = "of 300000 of all 2 scenarios; nothing is kept without a cache, and the same command begins again";
        assert!(text.contains("of 200000 runs of mine/one are done, ") && text.contains(of_all), "{words:?}: {text}");
    }
}

#[test]
fn a_second_signal_stops_a_run_that_does_not_end() {
    let place = place();
    let words = ["run", "mine/one", "--set", "duration=9999999s", "--jobs", "1"];
    let mut child = command(place.path(), &words).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for_run(&child);
    signal(&child, Signal::SIGTERM);
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.contains("a second signal stops at once"), "{first}");
    assert_eq!(child.try_wait().expect("it is ours"), None, "the run goes on");
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), signal).expect("it runs");
}

/// Waits until the process is in a run: before that a signal ends it at once. Nothing that it does before takes a second of its processor.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait_for_run(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    let seconds = || {
        let text = std::fs::read_to_string(&stat).expect("it runs");
        // After the name, which is in parentheses, the twelfth field is the time in user mode, in ticks of 10 ms.
        let (_, fields) = text.rsplit_once(')').expect("a name");
        fields.split_whitespace().nth(11).and_then(|ticks| ticks.parse::<u64>().ok()).expect("a number") / 100
    };
    while seconds() < 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the process handles signals.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait_for_handler(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let blocked = || {
        let text = std::fs::read_to_string(&status).expect("it runs");
        let mask = text.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask").to_owned();
        u64::from_str_radix(&mask, 16).expect("hexadecimal digits") & 1 << (Signal::SIGTERM as u64 - 1) != 0
    };
    while !blocked() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_papers_scenarios_came_with_weir() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let output = lab(place.path(), &["list", "--json"]);
    assert!(output.status.success(), "{}", told(&output));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let fig02 =
        list.as_array().expect("a list").iter().find(|entry| entry["id"] == "avmrc/fig02").expect("it is there");
    assert!(fig02["claims"].as_u64() > Some(0) && fig02["runs"].as_u64() > Some(0));
}

/// A folder with one scenario.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir_all(place.path().join("scenarios/mine")).expect("room");
    std::fs::write(place.path().join("scenarios/mine/one.toml"), SCENARIO).expect("room");
    place
}

fn lab(place: &Path, words: &[&str]) -> Output {
    command(place, words).output().expect("it starts")
}

fn uncached(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(place).env("XDG_CACHE_HOME", place).arg("lab").args(words);
    command
}

fn command(place: &Path, words: &[&str]) -> Command {
    let mut command = uncached(place, words);
    if words[0] != "list" {
        command.arg("--cache").arg(place.join("cache"));
    }
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
