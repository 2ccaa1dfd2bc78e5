//! A file goes from one host to others over real multicast: namespaces on a snooping bridge, links of given rates.
//!
//! Limits on completion times are there to catch what is broken: a machine that does other things at the same time costs a fast
//! receiver tenths of its ideal. `weir-bench --part unequal` judges the claims, on one file for all links. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{
    Finished, Network, Process, Scratch, Session, eventually, generated_file, pause, require_root, same_content,
    unsigned,
};
use weir_units::{Bytes, Rate};

use super::{MINUTE, WEIR, number};

#[test]
fn over_unequal_links_each_receiver_takes_at_most_2_2_times_its_ideal_at_ratio_1_5() {
    assert_times("1.5");
}

#[test]
fn over_unequal_links_each_receiver_takes_at_most_2_2_times_its_ideal_at_ratio_1_15() {
    assert_times("1.15");
}

/// Slow start takes up to three seconds to 100 Mbit/s. A file that is to show a rate must take several times as long, and one
/// file cannot do so on links that differ by 50× within minutes. So there are two sessions: all four receivers take the
/// small file, which is timed on the slow links, then the receivers on the fast links take a larger one, while the slow
/// ones are still at the first.
///
/// A receiver's time is its own, from its first join to its verified file; the senders are there already.
fn assert_times(ratio: &str) {
    if !require_root() {
        return;
    }
    let links = [2, 8, 32, 100].map(Rate::from_mbps);
    let network = Network::new().links(links).build();
    let rates = ["--rates", "256k..100M", "--ratio", ratio, "--receipts"];
    let small = Transfer::new(&network, SMALL, 1, |session| session.words(rates).words(["4"]));
    let large =
        Transfer::new(&network, LARGE, 2, |session| session.to("239.255.100.1:5006", 8).words(rates).words(["2"]));

    let senders = [&small, &large].map(|transfer| transfer.send(&[]));
    for sender in &senders {
        sender.event("progress", SHORT, |progress| number(progress, "sent_packets") > 0);
    }
    let takers: Vec<Process> = (0..4).map(|index| small.recv(index)).collect();
    let patience = |bytes: Bytes, link: Rate| (bytes / link) * 4 + SHORT;
    let wait = |taker: &Process, bytes: Bytes, link: Rate| {
        let done = taker.wait(patience(bytes, link));
        assert_verified(&done);
        done
    };
    for index in [2, 3] {
        wait(&takers[index], SMALL, links[index]);
    }
    let fast_takers = [2, 3].map(|index| large.recv(index));
    let timed = [(&takers[0], SMALL), (&takers[1], SMALL)].into_iter();
    let timed = timed.chain(fast_takers.iter().map(|taker| (taker, LARGE)));
    let mut report = Vec::new();
    for (index, (taker, bytes)) in timed.enumerate() {
        let end = wait(taker, bytes, links[index]).last_event("end");
        let seconds = end["seconds"].as_f64().expect("the end has its seconds");
        report.push((links[index], seconds / (bytes / links[index]).as_secs_f64()));
        let of = |field: &str| number(&end, field);
        let (lost, host) = (of("lost_packets"), of("host_dropped_packets"));
        eprintln!("ratio {}, {}: {seconds:.1} s, {lost} lost, {host} dropped by the host", ratio, links[index]);
    }
    for sender in &senders {
        let sent = sender.wait(SHORT);
        assert!(sent.is_success(), "{}", sent.told());
    }
    small.assert_same(0..4);
    large.assert_same(2..4);
    for (index, rate) in links.iter().enumerate() {
        let link = network.link_counters(index);
        assert!(link.delays > 0, "the link of {rate} never made a packet wait: {link:?}");
    }
    for (link, times) in &report {
        assert!(*times <= 2.2, "{link}: {times:.2} times the ideal; all: {report:.2?}");
    }
    // No session at the pace of its slowest receiver can do this.
    for pair in report.windows(2) {
        let (slower, (link, times)) = (pair[0].0, &pair[1]);
        let others_best = link.bps() as f64 / slower.bps() as f64;
        assert!(
            *times < others_best,
            "{link} took as long as {slower} would: {times:.2} times its ideal; all: {report:.2?}"
        );
    }
}

const SMALL: Bytes = Bytes::new(8_000_000);
const LARGE: Bytes = Bytes::new(64_000_000);

#[test]
fn a_receiver_killed_half_way_and_started_again_wastes_at_most_a_twentieth() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([Rate::from_mbps(16); 2]).build();
    let transfer = Transfer::new(&network, Bytes::new(16_000_000), 3, |session| {
        session.words(["--rates", "1M..12M", "--receipts", "2"])
    });
    let control = transfer.recv(0);
    let victim = transfer.recv(1);
    pause(HEAD_START);
    let sender = transfer.send(&[]);
    let half = victim.event("progress", MINUTE, |progress| {
        progress["needed_bytes"].as_u64().is_some_and(|needed| number(progress, "useful_bytes") * 2 >= needed)
    });
    let first_life = victim.kill();
    assert_eq!(first_life.code(), None, "it was killed: {}", first_life.told());
    assert!(!transfer.arrival(1).exists(), "nothing has its final name yet");

    let second_life = transfer.recv(1).wait(MINUTE);
    assert_verified(&second_life);
    let control = control.wait(MINUTE);
    assert_verified(&control);
    assert!(sender.wait(SHORT).is_success());
    transfer.assert_same(0..2);

    let whole = number(&control.last_event("end"), "received_bytes");
    let again = number(&second_life.last_event("end"), "received_bytes");
    let before = number(&first_life.last_event("progress"), "received_bytes").max(number(&half, "received_bytes"));
    eprintln!("without a kill {whole} bytes; with one {before} + {again}");
    assert!(before * 10 > whole * 4, "it was killed half way: {before} of {whole} bytes");
    assert!((before + again) * 100 <= whole * 105, "{before} and {again} bytes in two lives, {whole} in one");
    // The same from outside: what passed each cable, for the file and everything else.
    let [plain, killed] = [0, 1].map(|index| network.traffic(network.receiver(index)).received_bytes);
    assert!(killed * 100 <= plain * 105, "{killed} bytes to the host of the killed receiver, {plain} to the other");
    assert!(whole * 100 <= transfer.bytes.count() * 110, "{whole} bytes received for a file of {}", transfer.bytes);
}

#[test]
fn a_receiver_that_comes_when_the_others_are_done_gets_everything() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([8, 32].map(Rate::from_mbps)).build();
    let transfer = Transfer::new(&network, Bytes::new(4_000_000), 4, |session| session.words(["--rates", "1M..16M"]));
    let early = transfer.recv(1);
    pause(HEAD_START);
    let sender = transfer.send(&["--for", "60s"]);
    assert_verified(&early.wait(MINUTE));
    assert!(eventually(SHORT, || network.members("239.255.0.1").is_empty()), "a receiver that is done has left");
    let idle = network.traffic(network.receiver(1)).received_bytes;
    let late = transfer.recv(0);
    assert_verified(&late.wait(MINUTE));
    assert!(!sender.has_ended(), "the sender goes on for as long as it was told");
    transfer.assert_same(0..2);
    let strays = network.traffic(network.receiver(1)).received_bytes - idle;
    assert!(strays < 100_000, "{strays} bytes to a host that is done");
}

/// The ladder goes to 1 Gbit/s, a hundred times what the link carries. What is not wanted is sent for a second at most: until the receiver is heard.
#[test]
fn a_sender_sends_what_its_receiver_takes_and_little_more() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, SMALL.count(), 1);
    let network = Network::new().links([Rate::from_mbps(10)]).fast_leave(false).build();
    let session =
        Session::new(Path::new(WEIR), &file, scratch.path()).words(["--rates", "256k..1G", "--receipts", "1"]);
    session.describe(network.sender());
    let receiver = session.recv(network.receiver(0), &scratch.folder("out")).start();
    let sender = session.send(network.sender()).start();
    let (taken, sent) = (receiver.wait(MINUTE), sender.wait(MINUTE));
    assert_verified(&taken);
    let [taken, sent] = [(&taken, "received_bytes"), (&sent, "sent_bytes")].map(|(end, field)| end.count(field));
    eprintln!("{sent} bytes were sent, {taken} received");
    assert!(sent * 2 < taken * 3, "{sent} bytes were sent, {taken} received");
}

#[test]
fn two_percent_of_random_loss_cost_at_most_15_percent_of_time_at_the_same_level() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let transfer = Transfer::new(&network, Bytes::new(8_000_000), 5, |session| {
        session.words(["--rates", "8M", "--receipts", "2"])
    });
    let clean = transfer.recv_with(0, &["--link", "rate=50mbit"]);
    let lossy = transfer.recv_with(1, &["--link", "rate=50mbit,loss=2%"]);
    pause(HEAD_START);
    let sender = transfer.send(&[]);
    let [clean_secs, lossy_secs] = [&clean, &lossy].map(|taker| taker.seconds_to_verified_file(&sender, MINUTE));
    let [clean, lossy] = [clean, lossy].map(|taker| taker.wait(SHORT));
    assert_verified(&clean);
    assert_verified(&lossy);
    transfer.assert_same(0..2);
    let share = |end: &Value| number(end, "lost_packets") as f64 / number(end, "received_packets") as f64;
    let [clean_loss, lossy_loss] = [&clean, &lossy].map(|done| share(&done.last_event("end")));
    eprintln!(
        "2 % of loss: {lossy_secs:.2} s (lost {lossy_loss:.4}), without {clean_secs:.2} s (lost {clean_loss:.4})"
    );
    assert!((0.01..0.035).contains(&lossy_loss) && clean_loss < 0.002, "lost {lossy_loss} and {clean_loss}");
    assert!(lossy_secs <= clean_secs * 1.15, "{lossy_secs:.2} s with loss, {clean_secs:.2} s without");
}

#[test]
fn sessions_go_over_ipv6_and_to_groups_of_one_source() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let six = Transfer::new(&network, Bytes::new(1_000_000), 6, |session| {
        session.to("[ff15::77]:5008", 9).words(["--rates", "1M..8M", "--receipts", "1"])
    });
    let one_source = Transfer::new(&network, Bytes::new(1_000_000), 7, |session| {
        session.to("232.1.1.1:5010", 10).words(["--rates", "1M..8M", "--source-specific", "--receipts", "1"])
    });
    let takers = [(six.recv(0), "ff15::77"), (one_source.recv(1), "232.1.1.1")];
    for (index, (_, group)) in takers.iter().enumerate() {
        assert!(eventually(SHORT, || network.members(group) == [index]), "{group}: {:?}", network.members(group));
    }
    let senders = [&six, &one_source].map(|transfer| transfer.send(&[]));
    for (taker, _) in &takers {
        assert_verified(&taker.wait(MINUTE));
    }
    for sender in &senders {
        let sent = sender.wait(SHORT);
        assert!(sent.is_success(), "{}", sent.told());
    }
    six.assert_same(0..1);
    one_source.assert_same(1..2);
}

#[test]
fn a_full_disk_is_said_and_ends_the_receiver_with_its_code() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let transfer = Transfer::new(&network, Bytes::new(8_000_000), 8, |session| session.words(["--rates", "20M"]));
    let out = &transfer.folders[0];
    let taker = transfer.session.recv(network.receiver(0), out).with_small_disk(out, 2 << 20).start();
    pause(HEAD_START);
    let _sender = transfer.send(&["--for", "60s"]);
    assert_failed(&taker.wait(MINUTE), FILES, &["room", "8000000 bytes"]);
}

#[test]
fn an_existing_file_is_left_alone_and_a_missing_interface_is_named() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let transfer = Transfer::new(&network, Bytes::new(100_000), 9, |session| session.words(["--rates", "4M"]));
    std::fs::write(transfer.arrival(0), "mine").expect("a folder to write in");
    let taker = transfer.recv(0);
    pause(HEAD_START);
    let _sender = transfer.send(&["--for", "60s"]);
    assert_failed(&taker.wait(MINUTE), FILES, &["input", "of this name", "overwrit"]);
    assert_eq!(std::fs::read_to_string(transfer.arrival(0)).expect("still there"), "mine");
    assert_verified(&transfer.recv_with(0, &["--overwrite"]).wait(MINUTE));
    transfer.assert_same(0..1);

    let receiver = network.receiver(1).command(WEIR).arg("recv").arg(transfer.session.description());
    let nowhere = receiver.arg("--out").arg(&transfer.folders[1]).args(["--iface", "eth9", "--json"]).start();
    assert_failed(&nowhere.wait(SHORT), NETWORK, &["eth9", "e0"]);
    let sender = network.sender().command(WEIR).args(["send", "file"]).arg(&transfer.file);
    let sender = sender.args(["--to", "239.255.0.9:5004", "--iface", "eth9", "--for", "5s", "--json", "--session"]);
    assert_failed(&sender.arg(transfer.scratch.join("none.sdp")).start().wait(SHORT), NETWORK, &["eth9"]);
}

#[test]
fn on_a_virtual_interface_the_highest_rate_is_100_mbit_s_and_as_it_was_described() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let transfer = Transfer::new(&network, Bytes::new(1_000_000), 10, |session| session.words(["--receipts", "1"]));
    // Each start has an epoch of its own, and signs it.
    let description = || {
        let text = std::fs::read_to_string(transfer.session.description()).expect("it was described");
        unsigned(&text).lines().filter(|line| !line.starts_with("a=weir-epoch:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let described = description();
    let taker = transfer.recv(0);
    pause(HEAD_START);
    let sender = transfer.send(&[]);
    let start = sender.event("start", SHORT, |_| true);
    assert_eq!((&start["top"], &start["interface_speed_bps"]), (&Value::from("virtual"), &Value::Null), "{start}");
    assert_eq!(start["rates_bps"].as_array().and_then(|rates| rates.last()), Some(&Value::from(100_000_000)));
    assert_verified(&taker.wait(MINUTE));
    let done = sender.wait(SHORT);
    assert!(done.is_success() && done.events("error").is_empty(), "{}", done.told());
    assert_eq!(description(), described);
}

/// A file on its way to every receiver of a network.
struct Transfer<'a> {
    network: &'a Network,
    scratch: Scratch,
    bytes: Bytes,
    file: PathBuf,
    session: Session,
    folders: Vec<PathBuf>,
}

impl<'a> Transfer<'a> {
    /// Makes the file and describes the session, after `change`. The description says where receipts go, so that
    /// `--receipts` belongs to the words of the session.
    fn new(network: &'a Network, bytes: Bytes, seed: u64, change: impl FnOnce(Session) -> Session) -> Transfer<'a> {
        let scratch = Scratch::new();
        let file = scratch.join("input");
        generated_file(&file, bytes.count(), seed);
        let session = change(Session::new(Path::new(WEIR), &file, scratch.path()));
        session.describe(network.sender());
        let folders = (0..network.receivers().len()).map(|index| scratch.folder(format!("out{index}"))).collect();
        Transfer { network, scratch, bytes, file, session, folders }
    }

    fn recv(&self, index: usize) -> Process {
        self.recv_with(index, &[])
    }

    fn recv_with(&self, index: usize, words: &[&str]) -> Process {
        self.session.recv(self.network.receiver(index), &self.folders[index]).args(words).start()
    }

    fn send(&self, words: &[&str]) -> Process {
        self.session.send(self.network.sender()).args(words).start()
    }

    /// Where the file is to appear at this receiver.
    fn arrival(&self, index: usize) -> PathBuf {
        self.folders[index].join("input")
    }

    fn assert_same(&self, receivers: std::ops::Range<usize>) {
        for index in receivers {
            assert!(same_content(&self.file, &self.arrival(index)), "receiver {index} has something else");
        }
    }
}

fn assert_verified(done: &Finished) {
    let end = done.last_event("end");
    assert!(done.is_success() && end["verified"] == true && end["exit_code"] == 0, "{}", done.told());
}

/// The exit code, and an error event that has these words.
fn assert_failed(done: &Finished, code: i32, words: &[&str]) {
    assert_eq!(done.code(), Some(code), "{}", done.told());
    let errors = done.events("error");
    let messages: Vec<&str> = errors.iter().filter_map(|error| error["message"].as_str()).collect();
    for word in words {
        assert!(messages.iter().any(|message| message.contains(word)), "no “{word}” in {messages:?}\n{}", done.told());
    }
}

/// Receivers are there before the sender, as in every figure that is published.
const HEAD_START: Duration = Duration::from_secs(1);

const SHORT: Duration = Duration::from_secs(15);

/// Exit codes, as `weir recv --help` lists them.
const NETWORK: i32 = 4;
const FILES: i32 = 7;
