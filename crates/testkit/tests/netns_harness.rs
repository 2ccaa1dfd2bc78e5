//! The namespaces are what tests and benchmarks take them for: groups reach members only, links have their rate.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_testkit::netns::{Finished, Host, Network, Process, TokenBucket, eventually, pause, require_root};
use weir_units::Rate;

#[test]
fn a_group_reaches_its_members_only_and_a_leave_stops_it() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(3).build();
    let group = "239.255.7.1";
    let to = format!("{group}:5004");
    let counting: Vec<Process> = network.receivers()[..2].iter().map(|host| count(host, &to, "2.5")).collect();
    assert!(eventually(SHORT, || network.members(group) == [0, 1]), "members: {:?}", network.members(group));
    assert!(network.snooping().reports >= 2, "{:?}", network.snooping());

    // 1 Mbit/s for five seconds: 625 packets; each counts for two and a half seconds at most.
    let sending = probe(network.sender()).args(["send", &to, "10.77.0.1", "1000000", "5"]).start();
    for process in &counting {
        let (packets, _) = numbers(&process.wait(SHORT));
        assert!((100.0..=320.0).contains(&packets), "{packets} packets");
    }
    let outsider = network.traffic(network.receiver(2)).received_bytes;
    assert!(outsider < 10_000, "a host that did not join got {outsider} bytes");

    // Both have left by ending: with fast leave nothing comes any more, though the sender goes on.
    assert!(eventually(SHORT, || network.members(group).is_empty()), "members: {:?}", network.members(group));
    let before = network.traffic(network.receiver(0));
    let sent_before = network.traffic(network.sender()).sent_packets;
    pause(Duration::from_millis(800));
    assert!(network.traffic(network.sender()).sent_packets > sent_before + 50, "the sender goes on");
    let strays = network.traffic(network.receiver(0)).received_packets - before.received_packets;
    assert!(strays < 20, "{strays} packets after the leave");
    assert!(sending.wait(SHORT).is_success());
}

#[test]
fn a_link_passes_its_rate_of_tcp_and_of_segmented_udp_and_drops_the_rest() {
    if !require_root() {
        return;
    }
    let rate = Rate::from_mbps(8);
    let network = Network::new().links([rate, rate]).build();
    // The machine's own default may be one that leaves a link unused now and then.
    network.set_tcp_congestion_control("reno");

    let at = format!("{}:7000", network.receiver(0).ipv4());
    let sink = probe(network.receiver(0)).args(["tcp-count", &at]).start();
    sink.line(SHORT, |line| line == "listening");
    let source = probe(network.sender()).args(["tcp-send", &at, "4"]).start();
    assert!(source.wait(SHORT).is_success());
    let (bytes, secs) = numbers(&sink.wait(SHORT));
    // Of 1514 bytes of a frame, 1448 are payload.
    let tcp_bps = bytes * 8.0 / secs * (1514.0 / 1448.0);
    // A TCP that has lost a packet leaves a little unused.
    assert!((0.85..=1.05).contains(&(tcp_bps / rate.bps() as f64)), "TCP: {:.2} Mbit/s of {rate}", tcp_bps / 1e6);

    // Twice what the link takes, in segmented batches of 40 packets: larger than the bucket.
    let to = "239.255.7.2:5004";
    let counting = count(network.receiver(1), to, "4");
    assert!(eventually(SHORT, || network.members("239.255.7.2") == [1]));
    let sending = probe(network.sender()).args(["send", to, "10.77.0.1", "16000000", "6", "segmented"]).start();
    pause(Duration::from_millis(500));
    network.set_link(1, Some(TokenBucket::new(rate)));
    let udp_rate = network.measured_rate(1, Duration::from_secs(2));
    let link = network.link_counters(1);
    assert!(sending.wait(SHORT).is_success());
    assert_near("UDP", udp_rate.bps() as f64, rate);
    let (packets, bytes) = numbers(&counting.wait(SHORT));
    assert_eq!(bytes, packets * 1000.0, "packets come in the size in which they were sent");
    assert!(link.dropped_packets > 500 && link.delays > 500, "{link:?}");
}

#[test]
fn groups_pass_a_modelled_link_late_by_its_delay_and_fewer_by_its_loss() {
    if !require_root() {
        return;
    }
    let ways = ["delay=20ms,loss=10%", "delay=20ms"].map(|way| way.parse().expect("a link"));
    let network = Network::new().receivers(2).fast_leave(false).modelled(ways).build();
    let sender = network.sender().ipv4();
    let listener = network.sender().spawn(move || TcpListener::bind((sender, 7000)).expect("a free port"));
    let listener = listener.join().expect("it binds");
    let at = listener.local_addr().expect("it is bound");
    // A tenth of the answers are lost, and come a second later.
    let round_trip = network.receiver(0).spawn(move || (0..6).map(|_| time_to_connect(at)).min());
    let round_trip = round_trip.join().expect("it connects").expect("six times");
    assert!((40..60).contains(&round_trip.as_millis()), "{round_trip:?}");

    let to = "239.255.7.3:5004";
    let counting = count(network.receiver(0), to, "3");
    assert!(eventually(SHORT, || network.members("239.255.7.3") == [0]));
    let before = network.lost_and_delivered(0);
    // 4000 packets, of which 3600 ± 19 are expected to pass.
    let sending = probe(network.sender()).args(["send", to, "10.77.0.1", "16000000", "2", "segmented"]).start();
    assert!(sending.wait(SHORT).is_success());
    let (packets, _) = numbers(&counting.wait(SHORT));
    let after = network.lost_and_delivered(0);
    // It has left by ending; the bridge asks for others before it believes that.
    assert_eq!(network.members("239.255.7.3"), [0]);
    assert!(eventually(SHORT, || network.members("239.255.7.3").is_empty()), "the leave has passed the link");
    assert!((3520.0..=3680.0).contains(&packets), "{packets} of 4000 packets");
    assert!((320..=480).contains(&(after.0 - before.0)), "{before:?} {after:?}");
    assert!(network.lost_and_delivered(1).1 < 200, "a host that did not join: {:?}", network.lost_and_delivered(1));
}

#[test]
fn what_a_test_leaves_behind_goes_away_with_the_network() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let orphan = network.receiver(0).command("sh").args(["-c", "sleep 1000 & echo $!"]).start();
    let pid = orphan.line(SHORT, |_| true).text;
    assert!(std::path::Path::new("/proc").join(&pid).exists());
    drop(network);
    assert!(eventually(SHORT, || !std::path::Path::new("/proc").join(&pid).exists()), "process {pid} goes on");
}

#[test]
fn a_program_is_killed_at_its_limit_and_its_output_is_told() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let slow = network.receiver(0).command("sh").args(["-c", "echo here; exec sleep 1000"]).start();
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slow.wait(Duration::from_millis(300))));
    let told = told.expect_err("it does not end by itself");
    assert!(told.downcast_ref::<String>().is_some_and(|text| text.contains("here")));
    assert!(eventually(SHORT, || slow.has_ended()));
    assert_eq!(slow.wait(SHORT).code(), None, "a signal ended it");

    let busy =
        network.receiver(0).command("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]).start();
    let usage = busy.wait(SHORT).usage;
    assert!(usage.cpu() > Duration::from_millis(20) && usage.peak_memory_bytes > 100_000, "{usage:?}");
}

#[test]
fn a_small_disk_is_full_when_it_is_and_nobody_else_sees_it() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let scratch = weir_testkit::netns::Scratch::new();
    let disk = scratch.folder("disk");
    let file = disk.join("file");
    let fill = network.receiver(0).command("dd").args(["if=/dev/zero", "bs=1M", "count=4"]);
    let full = fill.arg(format!("of={}", file.display())).with_small_disk(&disk, 2 << 20).start().wait(SHORT);
    assert!(full.told().contains("No space left"), "{}", full.told());
    assert!(!file.exists());
}

#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn time_to_connect(to: SocketAddr) -> Duration {
    let start = Instant::now();
    TcpStream::connect(to).expect("somebody listens");
    start.elapsed()
}

fn probe(host: &Host) -> weir_testkit::netns::Command {
    host.command(env!("CARGO_BIN_EXE_weir-netns-probe"))
}

fn count(host: &Host, group: &str, secs: &str) -> Process {
    probe(host).args(["count", group, &host.ipv4().to_string(), secs]).start()
}

/// The two numbers of the last line.
fn numbers(done: &Finished) -> (f64, f64) {
    assert!(done.is_success(), "{}", done.told());
    let line = &done.out.last().expect("a probe prints what it counted").text;
    let (one, other) = line.split_once(' ').expect("two numbers");
    (one.parse().expect("a number"), other.parse().expect("a number"))
}

fn assert_near(what: &str, measured_bps: f64, rate: Rate) {
    let share = measured_bps / rate.bps() as f64;
    assert!((0.95..=1.05).contains(&share), "{what}: {:.2} Mbit/s of {rate}", measured_bps / 1e6);
}

const SHORT: Duration = Duration::from_secs(10);
