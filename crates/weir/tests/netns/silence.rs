//! What a receiver tells that waits, between hosts of their own. Needs root; see `weir_testkit::netns::require_root`.
//!
//! Claims are in seconds. A busy machine has fewer turns a second, so turns are counted; what was measured is printed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Network, Process, Scratch, Session, generated_file, require_root, same_content, unsigned};
use weir_units::Rate;

use super::WEIR;

/// One network, one sender, and a receiver for each way to wait for nothing.
#[test]
fn a_waiting_receiver_says_what_it_saw_and_what_to_check() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(6).build();
    // A bridge that snoops would keep packets of other sources away from the interface.
    network.set_snooping(false);
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 4_000_000, 1);
    let session = Session::new(Path::new(WEIR), &file, scratch.path()).words(["--rates", "1M..2M", "--for", "60s"]);
    session.describe(network.sender());
    let text = unsigned(&std::fs::read_to_string(session.description()).expect("it was described"));
    let described = |name: &str, from: &str, to: &str| -> PathBuf {
        assert!(text.contains(from), "{from}: {text}");
        let path = scratch.join(name);
        std::fs::write(&path, text.replace(from, to)).expect("room for a description");
        path
    };
    let key = text.lines().find(|line| line.starts_with("a=weir-key:")).expect("a key");
    let other_key = "a=weir-key:ed25519 ".to_owned() + OTHER_KEY;
    let descriptions = [
        described("old", "a=flute-tsi:7", "a=flute-tsi:6"),
        described("key", key, &other_key),
        described("source", "a=flute-tsi:7", "a=source-filter: incl IN IP4 * 10.77.0.99\r\na=flute-tsi:7"),
        session.description(),
        described("elsewhere", "239.255.0.", "239.255.9."),
        described("fec", "a=flute-tsi:7", "a=flute-tsi:8"),
    ];
    // Receiver 3 has a route to the sender that leads elsewhere, and looks at routes.
    let host = network.receiver(3);
    let strict =
        "for i in all e0; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done; ip route add 10.77.0.1/32 dev lo";
    let done = host.command("sh").args(["-c", strict]).start().wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());

    let sender = session.send(network.sender()).start();
    sender.event("progress", LIMIT, |progress| progress["sent_packets"].as_u64() > Some(0));
    let forger = network.sender().command("bash").args(["-c", &reed_solomon()]).start();
    let takers: Vec<Process> = descriptions
        .iter()
        .enumerate()
        .map(|(index, description)| {
            let host = network.receiver(index);
            let command = host.command(WEIR).arg("recv").arg(description).args(["--iface", host.interface(), "--json"]);
            command.arg("--out").arg(scratch.folder(format!("out{index}"))).start()
        })
        .collect();
    let told: Vec<Value> = takers.iter().map(|taker| taker.event("waiting", LIMIT, |_| true)).collect();
    drop(forger);
    let expected = ["other_session", "unsigned_table", "other_source", "blocked"];
    for (told, expected) in told.iter().zip(expected) {
        let seen = &told["seen"][0];
        assert!(seen["what"] == expected && seen["packets"].as_u64() > Some(0), "{expected}: {told}");
        assert!(told["check"].as_array().is_some_and(Vec::is_empty), "{told}");
    }
    assert_eq!((&told[0]["seen"][0]["tsi"], &told[0]["seen"][0]["from"]), (&7.into(), &"10.77.0.1".into()));
    assert!(message(&told[2]).contains("10.77.0.99") && message(&told[3]).contains("rp_filter"), "{told:?}");
    for word in ["239.255.9.1:5004", "querier", "firewall", "TTL", "weir doctor"] {
        assert!(message(&told[4]).contains(word), "{word}: {}", told[4]);
    }
    let codes: Vec<&Value> = told[5]["seen"].as_array().into_iter().flatten().map(|seen| &seen["fec"]).collect();
    assert!(codes.contains(&&Value::from(129)), "{}", told[5]);
    let seconds: Vec<f64> = told.iter().filter_map(|told| told["t_s"].as_f64()).collect();
    eprintln!("told after {seconds:.1?} s, of five claimed");
    // Progress is told four times a second.
    let turns: Vec<usize> = takers.iter().map(|taker| events_before(taker, "progress", "waiting")).collect();
    assert!(turns.iter().all(|turns| *turns <= 5 * 4), "{turns:?}");
}

/// How many events of one kind came before the first of another.
fn events_before(process: &Process, kind: &str, other: &str) -> usize {
    let is_of = |line: &str, kind: &str| line.starts_with(&format!("{{\"event\":\"{kind}\""));
    let before = process.lines().into_iter().take_while(|line| !is_of(&line.text, other)).collect::<Vec<_>>();
    before.iter().filter(|line| is_of(&line.text, kind)).count()
}

/// A shell command that sends packets of session 8 with Reed–Solomon's FEC encoding id to the session's first group.
fn reed_solomon() -> String {
    // LCT 1, H=1; 4 words; codepoint 129; CCI; TSI 8, TOI 1; FEC payload id; a symbol.
    let packet = r"\x10\x10\x04\x81\x00\x00\x00\x00\x00\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00abcd";
    format!("while sleep 0.1; do printf '{packet}' > /dev/udp/239.255.0.1/5004; done")
}

#[test]
fn a_doctor_tells_two_hosts_of_each_other_and_a_host_without_the_group_what_is_wrong() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let doctor = |host: &weir_testkit::netns::Host| {
        host.command(WEIR).args(["doctor", "--iface", host.interface(), "--for", "3s", "--json"])
    };
    let both = [network.sender(), network.receiver(0)].map(|host| doctor(host).start());
    let deaf = network.receiver(1);
    let down = doctor(deaf).args(["--to", "[ff15::7]:5004"]).start();
    let missing = deaf.command(WEIR).args(["doctor", "--iface", "eth9"]).start().wait(LIMIT);
    assert_eq!(missing.code(), Some(NETWORK), "{}", missing.told());
    assert!(missing.told().contains("FAILED   interface"), "{}", missing.told());
    for (doctor, other) in both.iter().zip(["10.77.0.10", "10.77.0.1"]) {
        let done = doctor.wait(LIMIT);
        assert_eq!(done.code(), Some(0), "{}", done.told());
        let outcome = |name: &str| {
            let checks = done.events("check");
            let found = checks.into_iter().find(|check| check["name"] == name);
            found.unwrap_or_else(|| panic!("{name}: {}", done.told()))
        };
        for name in ["interface", "route", "group", "others", "igmp", "rp_filter", "memberships"] {
            assert_eq!(outcome(name)["outcome"], "ok", "{}", done.told());
        }
        assert!(outcome("others")["found"].as_str().is_some_and(|found| found.ends_with(other)), "{}", done.told());
        assert_eq!(done.last_event("end")["failed"], 0);
    }
    assert_eq!(down.wait(LIMIT).code(), Some(0), "IPv6 groups work, too");
}

#[test]
fn a_sender_killed_half_way_and_started_again_with_its_key_goes_on_with_fresh_symbols() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let scratch = Scratch::new();
    let (file, key, description) = (scratch.join("input"), scratch.join("sender.key"), scratch.join("weir.sdp"));
    let bytes = 4_000_000;
    generated_file(&file, bytes, 3);
    let host = network.sender();
    let made = host.command(WEIR).args(["key", "new"]).arg(&key).start().wait(LIMIT);
    assert!(made.is_success(), "{}", made.told());
    let public = std::fs::read_to_string(scratch.join("sender.key.pub")).expect("the public key");
    let send = || {
        let command = host.command(WEIR).args(["send", "file"]).arg(&file).args(["--to", "239.255.0.1:5004", "--json"]);
        let command = command.args(["--iface", host.interface(), "--rates", "8M", "--for", "60s"]);
        command.arg("--key").arg(&key).arg("--session").arg(&description).start()
    };
    let first = send();
    first.event("start", LIMIT, |_| true);
    let taker = network.receiver(0).command(WEIR).arg("recv").arg(&description).args(["--iface", "e0", "--json"]);
    let taker = taker.args(["--sender-key", public.trim()]).arg("--out").arg(scratch.folder("out")).start();
    let half = |progress: &Value| progress["useful_bytes"].as_u64() > Some(bytes / 2);
    taker.event("progress", LIMIT, half);
    first.kill();
    let second = send();
    let done = taker.wait(LIMIT);
    let end = done.last_event("end");
    assert!(done.is_success() && end["verified"] == true, "{}", done.told());
    assert!(same_content(&file, &scratch.join("out").join("input")));
    let received = end["received_bytes"].as_u64().expect("the end has its bytes");
    eprintln!("{received} bytes received for a file of {bytes}");
    assert!(received * 100 <= bytes * 115, "{received} bytes received for a file of {bytes}");
    // Another key is refused before the first packet.
    let other = network.receiver(0).command(WEIR).arg("recv").arg(&description).args(["--iface", "e0", "--json"]);
    let refused = other.args(["--sender-key", OTHER_KEY]).arg("--out").arg(scratch.folder("out2")).start().wait(LIMIT);
    assert_eq!(refused.code(), Some(UNVERIFIED), "{}", refused.told());
    drop(second);
}

#[test]
fn a_sender_that_expects_hosts_ends_with_what_became_of_each() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([50_000, 500].map(Rate::from_kbps)).receivers(1).build();
    let scratch = Scratch::new();
    let (file, hosts) = (scratch.join("input"), scratch.join("hosts.txt"));
    generated_file(&file, 2_000_000, 4);
    std::fs::write(&hosts, "alpha\nbeta  # behind a slow link\ngamma\n").expect("room for a list");
    let expecting = |words: &[&str]| {
        let expected = hosts.to_str().expect("a path in UTF-8");
        let session =
            Session::new(Path::new(WEIR), &file, scratch.path()).words(["--rates", "256k..8M", "--expect", expected]);
        session.words(words.iter().copied())
    };
    // Three reports of the slow one, each within seven and a half seconds of the one before.
    let session = expecting(&["--for", "20s"]);
    session.describe(network.sender());
    let recv = |index: usize, name: &str, out: &str, words: &[&str]| {
        let host = network.receiver(index);
        let command = host.command("env").arg(format!("XDG_STATE_HOME={}", scratch.join("state").display())).arg(WEIR);
        let command =
            command.arg("recv").arg(session.description()).args(["--iface", host.interface(), "--name", name]);
        command.arg("--out").arg(scratch.join(out)).args(words).start()
    };
    let sender = session.send(network.sender()).start();
    let slow = recv(1, "beta", "beta", &["--json"]);
    // Twice the same, and one whom nobody expects, all at once, so that each has the sender's whole time.
    let takers = [("alpha", "alpha"), ("alpha", "again"), ("omega", "omega")];
    let takers = takers.map(|(name, out)| recv(0, name, out, &["--json"]));
    let taken = recv(0, "alpha", "unsigned", &["--any-sender"]);
    for taker in takers {
        let done = taker.wait(LIMIT);
        assert!(done.is_success() && done.last_event("receipt")["acknowledged"] == true, "{}", done.told());
    }
    let taken = taken.wait(LIMIT);
    assert!(taken.is_success(), "{}", taken.told());
    assert!(taken.told().contains("complete, not signed") && !taken.told().contains("verified"), "{}", taken.told());
    let done = sender.wait(LIMIT);
    drop(slow);
    assert_eq!(done.code(), Some(RECEIPTS), "{}", done.told());
    assert_eq!(done.last_event("end")["receipts"], 1, "{}", done.told());
    let results = done.events("result");
    let outcomes: Vec<_> =
        results.iter().map(|it| (&it["host"], &it["expected"], &it["outcome"], &it["claimants"])).collect();
    let [alpha, beta, gamma, omega] = ["alpha", "beta", "gamma", "omega"].map(Value::from);
    let (yes, no, one, none) = (true.into(), false.into(), 1.into(), 0.into());
    let [complete, partial, never] = ["complete", "partial", "never_heard"].map(Value::from);
    let expected = [
        (&alpha, &yes, &complete, &one),
        (&beta, &yes, &partial, &one),
        (&gamma, &yes, &never, &none),
        (&omega, &no, &complete, &one),
    ];
    assert_eq!(outcomes, expected, "{}", done.told());
    let percent = results[1]["percent"].as_f64().expect("a number");
    assert!(percent > 0.0 && percent < 100.0, "{}", results[1]);

    // Once all have everything it is over, and that is a success.
    std::fs::write(&hosts, "alpha\n").expect("room for a list");
    let sender = expecting(&["--for", "60s"]).send(network.sender()).start();
    let done = recv(0, "alpha", "alpha", &["--overwrite", "--json"]).wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());
    let done = sender.wait(LIMIT);
    assert!(done.is_success() && done.events("result").len() == 1, "{}", done.told());
}

/// Its reports go to a host that is not there, as they end at a firewall elsewhere.
#[test]
fn a_receiver_that_the_sender_cannot_hear_has_the_file_slowly_and_says_why() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 4_000_000, 1);
    let session = Session::new(Path::new(WEIR), &file, scratch.path()).words(["--rates", "256k..1G", "--for", "60s"]);
    session.describe(network.sender());
    let host = network.receiver(0);
    let to = format!("ip neigh replace {} lladdr 02:00:00:00:00:99 dev e0 nud permanent", network.sender().ipv4());
    let done = host.command("sh").args(["-c", &to]).start().wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());
    let sender = session.send(network.sender()).start();
    sender.event("progress", LIMIT, |progress| progress["t_s"].as_f64() > Some(1.0));
    let received = session.recv(host, &scratch.folder("out")).start().wait(LIMIT);
    assert!(received.is_success() && same_content(&file, &scratch.join("out/input")), "{}", received.told());
    let troubles = received.events("error");
    let is_told = |trouble: &Value| message(trouble).contains("it may not hear this host, and then sends little");
    assert!(troubles.iter().any(is_told), "{}", received.told());
    let told = sender.event("progress", LIMIT, |progress| progress["t_s"].as_f64() > Some(3.0));
    assert_eq!(told["receivers"], 0, "{told}");
    let mbps = received.last_event("end")["seconds"].as_f64().map(|seconds| 32.0 / seconds);
    assert!(mbps < Some(5.0), "{mbps:?} Mbit/s from a sender that hears nobody");
}

fn message(told: &Value) -> &str {
    told["message"].as_str().unwrap_or_default()
}

const LIMIT: Duration = Duration::from_secs(30);
const NETWORK: i32 = 4;
const UNVERIFIED: i32 = 6;
const RECEIPTS: i32 = 8;
/// A point of the curve that is nobody's key here: RFC 8032 §7.1, test 1.
const OTHER_KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
