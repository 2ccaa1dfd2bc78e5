//! Layered media to one viewer over unicast, between hosts of their own: RAP's layer manager next to a TCP that comes and goes, and over
//! paths that are too slow or lose packets.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_link::LinkConfig;
use weir_testkit::netns::{
    Finished, Network, Process, Rival, Scratch, TokenBucket, decoded, generated_clip, require_root,
};
use weir_units::Rate;

use super::WEIR;

/// 1.5 Mbit/s in three layers over 2 Mbit/s and 40 ms; a TCP takes its part for half of each period.
#[test]
fn the_base_layer_never_starves_while_a_tcp_comes_and_goes() {
    a_tcp_comes_and_goes(30, Duration::from_secs(12), "2mbit");
}

/// The same for ten minutes, with a TCP for half of each minute.
#[test]
#[ignore = "takes ten minutes and more"]
fn for_ten_minutes_the_base_layer_never_starves_while_a_tcp_comes_and_goes() {
    a_tcp_comes_and_goes(600, Duration::from_secs(60), "2mbit");
}

fn a_tcp_comes_and_goes(seconds: u32, period: Duration, rate: &str) {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, "320x180", seconds);
    let network = Network::new().receivers(1).modelled(ways(&format!("rate={rate},delay=20ms,buffer=100ms"))).build();
    let view = View::start(&network, &clip, &out, &[]);
    let mut tcp_bytes = 0;
    // It comes after the picture has begun, so that it meets a full set of layers.
    let mut turns = (1..).map(|turn| turn * period / 2);
    while view.is_sending_at(turns.next().expect("there is no end")) {
        let rival = Rival::start(&network, 0, "cubic");
        view.is_sending_at(turns.next().expect("there is no end"));
        tcp_bytes += rival.received_bytes();
    }
    let seen = view.end(&clip, &out);
    assert!(tcp_bytes > 500_000, "the TCP got {tcp_bytes} bytes");
    assert!(seen.backoffs > 10, "{seen:?}");
    assert_eq!(seen.underflows, 0, "{seen:?}");
    assert!(seen.longest_pause_ms < 1.5 * BASE_MS, "{seen:?}");
    // The first two are the start's.
    assert!(4 * seen.layer_changes.saturating_sub(2) <= seen.backoffs, "{seen:?}");
}

/// 1.5 Mbit/s in three layers, of which the base and the next take 1, over 1.2 Mbit/s.
#[test]
fn over_a_path_that_is_too_slow_for_all_layers_the_lower_ones_play_without_a_pause() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, "320x180", 16);
    let network = Network::new().receivers(1).modelled(ways("rate=1200kbit,delay=20ms,buffer=100ms")).build();
    let seen = View::start(&network, &clip, &out, &[]).end(&clip, &out);
    assert!(seen.backoffs > 5, "{seen:?}");
    assert!(seen.longest_pause_ms < 1.5 * BASE_MS && seen.underflows == 0, "{seen:?}");
    assert!(seen.pictures > 120 && seen.pictures < 480, "{seen:?}");
}

/// 2 % of the packets are lost on a path that is fast enough.
#[test]
fn what_a_lossy_path_loses_goes_again_before_it_plays() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, "320x180", 15);
    let network = Network::new().receivers(1).modelled(ways("rate=10mbit,delay=5ms,buffer=100ms,loss=2%")).build();
    let view = View::start(&network, &clip, &out, &["--encrypt"]);
    let seen = view.end(&clip, &out);
    let (lost, delivered) = network.lost_and_delivered(0);
    assert!(lost > 25, "the path lost {lost} of {delivered}");
    // Upper layers begin a little later.
    assert!(seen.pictures >= 440 && seen.dropped == 0, "{seen:?}");
    assert!(seen.resent >= lost - 20, "{lost} lost, {seen:?}");
}

/// A live programme of 1.5 Mbit/s, of which the base takes 0.6, over 3 Mbit/s; for eight seconds the link carries 0.8.
#[test]
fn when_the_path_of_a_live_programme_narrows_its_upper_layers_go_first() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, "320x180", 26);
    let network = Network::new().links([Rate::from_mbps(3)]).build();
    let view = View::start_live(&network, &clip, &out, &["--latency", "500ms"]);
    let from = view.viewer.event("progress", Duration::from_secs(60), |event| event["pictures"].as_u64() > Some(100));
    network.change_link(0, TokenBucket::new(Rate::from_kbps(800)));
    let until = from["t_s"].as_f64().map(|from| from + 8.0);
    view.viewer.event("progress", Duration::from_secs(60), |event| event["t_s"].as_f64() > until);
    network.change_link(0, TokenBucket::new(Rate::from_mbps(3)));
    let seen = view.end(&clip, &out);
    assert!(network.link_counters(0).dropped_packets > 0, "{seen:?}");
    assert!(seen.backoffs > 0 && seen.pictures < 660, "{seen:?}");
    assert!(seen.longest_pause_ms < 1_000.0, "{seen:?}");
}

/// A sender and its viewer.
struct View {
    sender: Process,
    viewer: Process,
}

/// What came of it.
#[derive(Debug)]
#[expect(dead_code, reason = "all of it is printed")]
struct Seen {
    pictures: u64,
    by_layer: Value,
    longest_pause_ms: f64,
    backoffs: u64,
    layer_changes: u64,
    underflows: u64,
    resent: u64,
    dropped: u64,
}

impl View {
    fn start(network: &Network, clip: &Path, out: &Path, options: &[&str]) -> View {
        let sender = network.sender().command(Path::new(WEIR));
        let sender = sender.args(["send", "media", "--json", "--unicast", "5004"]).args(options).arg("--in").arg(clip);
        View::with(network, sender.start(), out)
    }

    /// The same with what comes from a program in real time.
    fn start_live(network: &Network, clip: &Path, out: &Path, options: &[&str]) -> View {
        let sender = network.sender().command(Path::new(WEIR));
        let sender = sender.args(["send", "media", "--json", "--unicast", "5004", "--in", "-"]).args(options);
        let script = format!("ffmpeg -v error -re -i '{}' -c copy -f ivf - | \"$@\"", clip.display());
        let sender = sender.in_shell(&script).start();
        View::with(network, sender, out)
    }

    fn with(network: &Network, sender: Process, out: &Path) -> View {
        // The sender seen at the address before had another key.
        let start = sender.event("start", Duration::from_secs(30), |_| true);
        let key = start["key"].as_str().map(|key| ["--sender-key".to_owned(), key.to_owned()]);
        let address = format!("{}:5004", network.sender().ipv4());
        let viewer = network.receiver(0).command(Path::new(WEIR)).args(["recv", &address, "--json"]);
        View { sender, viewer: viewer.args(key.into_iter().flatten()).arg("--out").arg(out).start() }
    }

    /// Waits until the viewer has run for so long, or for the end; says whether the sender still sends.
    fn is_sending_at(&self, after: Duration) -> bool {
        let is_time = |event: &Value| event["t_s"].as_f64() >= Some(after.as_secs_f64());
        self.viewer.event("progress", Duration::from_secs(120), |event| is_time(event) || self.sender.has_ended());
        !self.sender.has_ended()
    }

    /// Waits for the end, and has a decoder look at what came.
    fn end(self, clip: &Path, out: &Path) -> Seen {
        let [sent, seen] = [&self.sender, &self.viewer].map(|process| process.wait(Duration::from_secs(900)));
        assert!(sent.is_success() && seen.is_success(), "{}\n{}", sent.told(), seen.told());
        let ((frames, complaints), (originals, _)) = (decoded(out), decoded(clip));
        assert_eq!(complaints, "", "the decoder has nothing to complain of");
        let mut rest = originals.iter();
        let foreign = frames.iter().filter(|frame| !rest.any(|original| original == *frame)).count();
        assert_eq!(foreign, 0, "every frame is one of the clip, in its order");
        let seen = Seen::of(&sent, &seen);
        assert_eq!(frames.len() as u64, seen.pictures);
        eprintln!("{seen:?}");
        seen
    }
}

impl Seen {
    fn of(sent: &Finished, seen: &Finished) -> Seen {
        let (from, to) = (sent.last_event("end"), seen.last_event("end"));
        Seen {
            pictures: count(&to["pictures"]),
            by_layer: to["layer_pictures"].clone(),
            longest_pause_ms: to["longest_pause_ms"].as_f64().expect("there were two pictures"),
            backoffs: count(&from["backoffs"]),
            layer_changes: count(&from["layer_changes"]),
            underflows: count(&from["base_underflows"]),
            resent: count(&from["resent_packets"]),
            dropped: count(&from["dropped"]),
        }
    }
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

/// This way to the viewer, and the same without loss back.
fn ways(there: &str) -> [LinkConfig; 2] {
    let back = there.split(",loss").next().expect("a first part");
    [there, back].map(|way| way.parse().expect("a link"))
}

/// Between two pictures of the base layer: four of thirty a second.
const BASE_MS: f64 = 4e3 / 30.0;
