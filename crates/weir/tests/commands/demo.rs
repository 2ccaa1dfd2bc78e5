//! The demonstration, as a user runs it: processes, loopback multicast, a report at the end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

#[test]
fn a_demonstration_delivers_to_each_receiver_and_leaves_its_report() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let output = demo(out.path(), &["--size", "500kB", "--links", "4M,20M"]).output().expect("it starts");
    let (told, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{told}");
    assert!(printed.contains("report.html") && printed.matches("yes").count() == 2, "{printed}");
    let summary = std::fs::read_to_string(out.path().join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    for (receiver, link_bps) in summary.as_array().expect("a list").iter().zip([4_000_000, 20_000_000]) {
        assert_eq!((&receiver["link_bps"], &receiver["bytes"]), (&Value::from(link_bps), &Value::from(500_000)));
        assert_eq!(receiver["verified"], true);
        assert!(receiver["seconds"].as_f64() > receiver["ideal_seconds"].as_f64(), "nothing is faster than its link");
    }
    for name in ["report.html", "overview.svg"] {
        let text = std::fs::read_to_string(out.path().join(name)).expect("written");
        assert!(text.contains("class=\"received\"") && text.contains("✓"), "{name}");
    }
}

#[test]
fn a_demonstration_of_the_user_s_own_file_leaves_it_alone() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let file = out.path().join("own <file> & name.bin");
    std::fs::write(&file, vec![7; 200_000]).expect("room");
    let file_argument = file.to_str().expect("a plain name");
    let output = demo(out.path(), &[file_argument, "--links", "10M", "--loss", "1%"]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(&file).expect("still there"), vec![7; 200_000]);
    let report = std::fs::read_to_string(out.path().join("report.html")).expect("written");
    assert!(report.contains("own &lt;file&gt; &amp; name.bin") && !report.contains("<file>"));
}

#[test]
fn an_interrupted_demonstration_stops_all_that_it_started() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut child = demo(out.path(), &["--links", "100k,200k"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    // The second line comes from the running sender.
    assert!(lines.by_ref().take(2).all(|line| line.is_ok()));
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), Signal::SIGTERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let told: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(told.iter().any(|line| line.contains("interrupted")), "{told:?}");
    assert_eq!(processes_that_name(out.path()), 0);
}

#[test]
fn a_demonstration_of_layers_decodes_at_each_receiver_and_shows_its_pictures() {
    let out = tempfile::tempdir().expect("a temporary folder");
    // How many layers a busy machine carries is not asked here, nor how evenly.
    let output = demo_live(out.path(), &["--length", "10s", "--pause", "30s"]).output().expect("it starts");
    let (told, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let all_well = output.status.success();
    assert!(all_well || (output.status.code() == Some(1) && told.contains("carries more layers")), "{told}");
    assert!(printed.contains("report.html") && printed.matches("no error").count() == 3, "{printed}");
    assert_eq!(printed.contains("every output decodes without an error"), all_well, "{printed}");
    let summary = std::fs::read_to_string(out.path().join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    for (receiver, link_bps) in summary.as_array().expect("a list").iter().zip([1_000_000, 3_000_000, 8_000_000]) {
        assert_eq!((&receiver["link_bps"], &receiver["is_part_of_clip"]), (&Value::from(link_bps), &Value::from(true)));
        assert_eq!(receiver["complaints"], Value::Array(vec![]));
        let put_out = receiver["layer_pictures"].as_array().expect("a list").iter().filter_map(Value::as_u64);
        assert_eq!(receiver["decoded_pictures"].as_u64(), Some(put_out.sum()), "{receiver}");
        assert!(receiver["decoded_pictures"].as_u64() > Some(1), "{receiver}");
    }
    let report = std::fs::read_to_string(out.path().join("report.html")).expect("written");
    for part in
        ["1 Mbit/s link", "8 Mbit/s link", "class=\"received\"", "layer layer-2", "class=\"delay\"", "data:image/jpeg"]
    {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("http:") && !report.contains("NaN"));
}

#[test]
fn a_demonstration_of_layers_without_ffmpeg_says_how_to_get_it_before_anything_else() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let output = demo_live(out.path(), &[]).env("PATH", out.path()).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{told}");
    assert!(told.contains("apt-get install ffmpeg") && !out.path().join("run").exists(), "{told}");
}

#[test]
fn an_interrupted_demonstration_of_layers_stops_all_that_it_started() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut child = demo_live(out.path(), &["--length", "20s"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    // The second line comes from the running sender.
    assert!(lines.by_ref().take(2).all(|line| line.is_ok()));
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), Signal::SIGTERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(processes_that_name(out.path()), 0);
}

fn demo(out: &Path, words: &[&str]) -> Command {
    command("demo", out, words)
}

fn demo_live(out: &Path, words: &[&str]) -> Command {
    command("demo-live", out, words)
}

fn command(name: &str, out: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args([name, "--out"]).arg(out).args(words).stdout(Stdio::piped());
    command
}

/// How many processes of this machine have `path` on their command line.
fn processes_that_name(path: &Path) -> usize {
    let path = path.to_str().expect("a plain name");
    let names = |process: &Path| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(path)
    };
    std::fs::read_dir("/proc").expect("Linux").flatten().filter(|process| names(&process.path())).count()
}
