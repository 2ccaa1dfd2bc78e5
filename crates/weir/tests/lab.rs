//! The laboratory, as a user runs it: small scenarios of the user's own, and those that came with weir.

use std::path::Path;
use std::process::{Command, Output, Stdio};
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
fn without_red_the_exit_code_is_0() {
    let place = place();
    let file = place.path().join("scenarios/mine/one.toml");
    std::fs::write(&file, SCENARIO.replace("above = 2000", "below = 2000")).expect("room");
    let output = lab(place.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
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
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let text = told(&output);
    assert!(text.contains("of 200000 runs of mine/one are done; they are kept"), "{text}");
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

fn command(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(place).env("XDG_CACHE_HOME", place).arg("lab").args(words);
    if words[0] != "list" {
        command.arg("--cache").arg(place.join("cache"));
    }
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
