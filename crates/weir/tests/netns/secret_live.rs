//! Encrypted live streams between hosts of their own, next to a stranger who sends under the sender's address. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

use weir_testkit::netns::{
    Air, Command, Network, Process, Scratch, Stranger, generated_file, require_root, same_content,
};
use weir_wire::rtcp::Bye;
use weir_wire::rtp::Rtp;

use super::{MINUTE, WEIR};

#[test]
fn forged_packets_touch_no_encrypted_stream_and_nobody_reads_it() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(2).build();
    let scratch = Scratch::new();
    let [input, out, capture] = ["input", "out", "capture.pcapng"].map(|name| scratch.join(name));
    generated_file(&input, BYTES, 21);
    let memory = scratch.join("memory");
    let sender = send(&network, &input, &scratch, "sender.key");
    let viewer = recv(&network, &memory, &out).arg("--pcap").arg(&capture).start();
    let came = sender.event("viewer", MINUTE, |event| event["what"] == "came");
    let to: SocketAddrV4 = came["viewer"].as_str().and_then(|text| text.parse().ok()).expect("an address of IPv4");
    let from = SocketAddrV4::new(network.sender().ipv4(), PORT);
    let stranger = Stranger::start(network.receiver(1), to, move |air| forge(air, from));
    let [sent, seen] = [&sender, &viewer].map(|process| process.wait(MINUTE));
    let forged = stranger.stop();
    assert!(sent.is_success() && seen.is_success(), "{}\n{}", sent.told(), seen.told());
    assert!(same_content(&input, &out), "something else arrived");
    let end = seen.last_event("end");
    let ignored = end["ignored"].as_u64().expect("a count");
    eprintln!("{forged} packets forged, {ignored} ignored");
    assert!(ignored > 0 && ignored <= forged, "no forged packet came: {end}");
    assert_eq!((&end["reason"], &end["payload_bytes"]), (&"bye".into(), &BYTES.into()), "{end}");
    // All that went over the network is in the capture, and none of the content.
    let (seen, content) = (std::fs::read(&capture), std::fs::read(&input));
    let (seen, content) = (seen.expect("a capture"), content.expect("it was sent"));
    assert!(seen.len() > content.len(), "the capture has all packets");
    let shown = content.chunks_exact(1 << 16).filter(|chunk| seen.windows(32).any(|window| window == &chunk[..32]));
    assert_eq!(shown.count(), 0, "content went in the clear");
}

/// Data, goodbyes, and what looks sealed, under the sender's address, a hundred times a second.
fn forge(air: &mut Air, from: SocketAddrV4) {
    let mut number = 0u16;
    while !air.is_over() {
        number = number.wrapping_add(1);
        let data = Rtp { sequence: number, ssrc: u32::from(number), payload_type: 33, ..Rtp::default() };
        let sealed = [&[0x5e, 2, 0, 0, 0, 0, 0, 0, 0, 0][..], &number.to_be_bytes(), &[7; 100]].concat();
        air.say_as(from, &[&data.encode()[..], b"forged"].concat());
        air.say_as(from, &Bye { ssrc: u32::from(number) }.encode());
        air.say_as(from, &sealed);
        air.pause(Duration::from_millis(10));
    }
}

/// A viewer that knows the sender's key takes nothing of another, nor in the clear; one that remembers it does neither.
#[test]
fn a_viewer_holds_a_sender_to_its_key() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).build();
    let scratch = Scratch::new();
    let input = scratch.join("input");
    generated_file(&input, 200_000, 22);
    let memory = scratch.join("memory");
    let first = send(&network, &input, &scratch, "sender.key");
    let start = first.event("start", MINUTE, |_| true);
    let key = start["key"].as_str().expect("an encrypted stream has a key").to_owned();
    let out = scratch.join("first");
    let done = recv(&network, &memory, &out).start().wait(MINUTE);
    assert!(done.is_success() && same_content(&input, &out) && done.told().contains(&key), "{}", done.told());
    assert!(first.wait(MINUTE).is_success());

    // Another sender at the same address, and then one that does not encrypt.
    let other = send(&network, &input, &scratch, "other.key");
    let remembers = recv(&network, &memory, &scratch.join("second")).args(["--for", "3s"]).start().wait(MINUTE);
    let pinned = ["--sender-key", &key, "--for", "3s"];
    let knows = recv(&network, &scratch.join("fresh"), &scratch.join("third")).args(pinned).start().wait(MINUTE);
    other.kill();
    let clear = network.sender().command(WEIR).args(["send", "live", "--json", "--unicast", &PORT.to_string(), "--in"]);
    let clear = clear.arg(&input).start();
    let in_the_clear = recv(&network, &scratch.join("fresher"), &scratch.join("fourth")).args(pinned).start();
    let in_the_clear = in_the_clear.wait(MINUTE);
    clear.kill();
    for (done, words) in [(remembers, "has the key"), (knows, "has the key"), (in_the_clear, "offers no key")] {
        assert!(!done.is_success() && done.told().contains(words), "{words}: {}", done.told());
        assert_eq!(done.last_event("end")["payload_bytes"], 0, "{}", done.told());
    }
}

fn send(network: &Network, input: &Path, scratch: &Scratch, key: &str) -> Process {
    let command =
        network.sender().command(WEIR).args(["send", "live", "--json", "--encrypt", "--cc-set", "max_rate=10M"]);
    let command = command.args(["--unicast", &PORT.to_string(), "--in"]).arg(input);
    command.arg("--key").arg(scratch.join(key)).start()
}

/// A viewer that remembers senders in this folder.
fn recv(network: &Network, memory: &Path, out: &Path) -> Command {
    let host = network.receiver(0);
    let address = format!("{}:{PORT}", network.sender().ipv4());
    let command = host.command("env").arg(format!("XDG_STATE_HOME={}", memory.display())).arg(WEIR);
    command.args(["recv", &address, "--json", "--out"]).arg(out)
}

const PORT: u16 = 5004;
const BYTES: u64 = 4_000_000;
