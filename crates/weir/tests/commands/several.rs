//! Several sessions that one host receives, on this machine's loopback, behind a modelled link with a fair queue.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Command, Finished, Process, Scratch, free_port, generated_file, pause, same_content};

use super::WEIR;

#[test]
fn the_session_with_the_higher_priority_has_more_layers_and_a_swap_turns_that_round() {
    let scratch = Scratch::new();
    let senders = Senders::start(&scratch, 20_000_000, &["--for", "90s"]);
    let priorities = scratch.join("priorities");
    write(&priorities, "1\n3\n");
    let receiver = senders.recv(&scratch).arg("--priorities").arg(&priorities).arg("--link").arg(LINK).start();
    pause(SETTLED);
    write(&priorities, "3\n1\n");
    pause(SETTLED);
    let ended = receiver.terminate();
    let [video, audio] = ["video", "audio"].map(|session| levels(&ended, session));
    let half = SETTLED.as_secs_f64();
    let mean = |levels: &[(f64, u64)], from: f64, to: f64| mean_level(levels, from, to);
    let before = [mean(&video, half / 2.0, half), mean(&audio, half / 2.0, half)];
    let after = [mean(&video, half + half / 4.0, 2.0 * half), mean(&audio, half + half / 4.0, 2.0 * half)];
    eprintln!("video, audio: {before:?}, then {after:?}\nvideo {video:?}\naudio {audio:?}");
    assert!(
        before[1] > before[0] + 0.5 && after[0] > after[1] + 0.5,
        "video, audio: {before:?}, then {after:?}\n{}",
        ended.told()
    );
    // The manager keeps base layers, whatever the estimates say.
    let ended_at = 2.0 * half - 1.0;
    let is_there = |levels: &[(f64, u64)]| levels.iter().all(|(at, level)| *level > 0 || *at > ended_at);
    assert!(is_there(&video) && is_there(&audio), "a base layer was left:\n{}", ended.told());
    // The lower session does not shift: changes after the swap has settled.
    let changes = audio.iter().filter(|(at, _)| *at > half + half / 4.0 && *at < ended_at).count();
    assert!(changes <= 4, "the lower session changed {changes} times:\n{}", ended.told());
}

#[test]
fn every_session_s_files_arrive_verified_in_a_folder_of_its_own() {
    let scratch = Scratch::new();
    let senders = Senders::start(&scratch, 300_000, &["--receipts", "1"]);
    let ended = senders.recv(&scratch).args(["--priority", "1,2"]).start().wait(LIMIT);
    assert!(ended.is_success(), "{}", ended.told());
    for name in NAMES {
        let (sent, arrived) = (scratch.join(name), scratch.join("got").join(name).join(name));
        assert!(same_content(&sent, &arrived), "{name} differs");
    }
    // Each sender has heard that its file is there.
    for sender in &senders.processes {
        let ended = sender.wait(LIMIT);
        assert!(ended.is_success(), "{}", ended.told());
    }
}

#[test]
fn what_cannot_be_with_several_sessions_is_said() {
    let scratch = Scratch::new();
    let senders = Senders::start(&scratch, 1_000, &["--for", "20s"]);
    let told = |command: Command| {
        let ended = command.start().wait(LIMIT);
        assert_eq!(ended.code(), Some(USAGE), "{}", ended.told());
        ended.told()
    };
    assert!(told(senders.recv(&scratch).args(["--priority", "1"])).contains("1 were given for 2"));
    assert!(told(senders.recv(&scratch).args(["--manager-set", "sharing=all"])).contains("sharing"));
    assert!(told(senders.recv(&scratch).arg("stream://1.2.3.4:5/239.0.0.1:5/1/1400")).contains("received alone"));
    assert!(told(senders.recv(&scratch).arg(scratch.join("video.sdp"))).contains("is given twice"));
    assert!(told(senders.recv(&scratch).arg("--leaf")).contains("received alone"));
    let alone = Command::here(WEIR).arg("recv").arg(scratch.join("video.sdp")).args(["--priority", "2", "--json"]);
    assert!(told(alone).contains("one was given"));
    let priorities = scratch.join("priorities");
    write(&priorities, "high\nlow\n");
    assert!(told(senders.recv(&scratch).arg("--priorities").arg(&priorities)).contains("expected 2 priorities"));
}

/// `weir send file` of two sessions.
struct Senders {
    processes: Vec<Process>,
}

impl Senders {
    fn start(scratch: &Scratch, bytes: u64, words: &[&str]) -> Senders {
        let start = |name: &&str| {
            let file = scratch.join(name);
            generated_file(&file, bytes, name.len() as u64 + u64::from(name.as_bytes()[0]));
            let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--name", name, "--cc", "plm"]);
            let group = Ipv4Addr::new(239, 77, free_port().to_be_bytes()[1], name.as_bytes()[0]);
            let command = command.args(["--to", &format!("{group}:{}", free_port())]).args(["--rates", "150k..600k"]);
            let command = command.args(["--ratio", "1.25", "--packet-size", "1024", "--iface", "lo", "--json"]);
            let sender = command.arg("--session").arg(scratch.join(format!("{name}.sdp"))).args(words).start();
            sender.event("start", LIMIT, |_| true);
            sender
        };
        Senders { processes: NAMES.iter().map(start).collect() }
    }

    fn recv(&self, scratch: &Scratch) -> Command {
        let descriptions = NAMES.map(|name| scratch.join(format!("{name}.sdp")));
        let command = Command::here(WEIR).arg("recv").args(descriptions).args(["--iface", "lo", "--json"]);
        command.arg("--out").arg(scratch.join("got"))
    }
}

/// Writes a file as a user would who does not want it to be read by half.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).expect("the folder can be written");
}

/// When a session's level changed, in seconds, and to what.
fn levels(ended: &Finished, session: &str) -> Vec<(f64, u64)> {
    let events = ended.out.iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let own = events.filter(|event| event["event"] == "level" && event["session"] == session);
    own.filter_map(|event| Some((event["t_s"].as_f64()?, event["level"].as_u64()?))).collect()
}

fn mean_level(levels: &[(f64, u64)], from: f64, to: f64) -> f64 {
    let ends = levels.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
    let spans = levels.iter().zip(ends).map(|((at, level), end)| (end.min(to) - at.max(from)).max(0.0) * *level as f64);
    spans.sum::<f64>() / (to - from)
}

const NAMES: [&str; 2] = ["video", "audio"];
/// The link of the paper's experiments.
const LINK: &str = "rate=450k,delay=20ms,buffer=30p,queue=fq(drop=own)";
const SETTLED: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(60);
const USAGE: i32 = 2;
