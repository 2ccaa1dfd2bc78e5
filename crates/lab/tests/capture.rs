//! Captures of simulated sessions, read back.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use pcap_file::pcapng::{Block, PcapNgReader};
use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_lab::capture::PacketCapture;
use weir_lab::recording::Recording;
use weir_lab::scenario::Scenario;
use weir_link::LinkConfig;
use weir_sim::{EndpointConfig, Membership, Network, SessionConfig, topology};
use weir_units::{Bytes, Rate, Time};
use weir_wire::alc::Alc;
use weir_wire::probe::Kind;
use weir_wire::rtcp::{self, congestion};
use weir_wire::rtp::Rtp;
use weir_wire::{CciForm, Probe, mtcp};

#[test]
fn the_probes_and_echoes_of_a_stair_session_are_captured_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let [forward, backward] = ["forward.pcapng", "backward.pcapng"].map(|name| folder.path().join(name));
    capture_stair(&forward, &backward);
    let echoes = probes(&forward, Kind::Echo);
    let probes = probes(&backward, Kind::Probe);
    assert!(probes.len() > 5, "{} probes", probes.len());
    assert!(!echoes.is_empty() && echoes.is_subset(&probes), "{echoes:?} answer {probes:?}");
}

/// Two nodes, and room for who is on them. The captured direction is the bottleneck's.
const PAIR: &str = r#"id = "test/pair"
title = "Two nodes"
settings = "paper"
host = 2000
duration = "10s"
[topology.graph]
bottleneck = ["{from}", "{to}"]
links = [{ between = ["a", "b"], link = "rate=2M,delay=20ms,buffer=40p" }]
[parameters]
from = "a"
to = "b"
[metrics]
used = { measure = "link_use" }
"#;

#[test]
fn packets_of_every_family_have_their_real_headers_in_both_directions() {
    let layered = |scheme: &str| {
        format!(
            "[session.main]\nscheme = \"{scheme}\"\nat = [\"a\"]\nreceivers = {{ at = [\"b\"] }}\n\
             ladder = {{ low = \"128k\", high = \"1M\", ratio = 2 }}\n"
        )
    };
    let rap = "[flow.rap]\nfrom = [\"a\"]\nto = [\"b\"]\ntraffic.stream = { scheme = \"rap\" }\n".to_owned();
    let tree =
        "[tree.main]\nscheme = \"mtcp\"\nat = [\"a\"]\ndegree = 2\nmembers = { count = 2, at = [\"b\"] }\n".to_owned();
    for (who, there, back) in [
        (layered("avmrc"), &["layered"][..], &[][..]),
        (layered("plm"), &["layered"], &[]),
        (layered("fglm"), &["echo", "layered"], &["probe"]),
        (layered("stair"), &["echo", "layered"], &["probe"]),
        (rap, &["paced"], &["feedback"]),
        (tree, &["probe", "tree-data"], &["echo", "tree-ack"]),
    ] {
        let text = format!("{PAIR}{who}");
        assert_eq!((families(&text, ["a", "b"]), families(&text, ["b", "a"])), (set(there), set(back)), "{who}");
    }
}

fn set(words: &[&'static str]) -> BTreeSet<&'static str> {
    words.iter().copied().collect()
}

/// What a capture of one direction has, told by the decoders that read packets from sockets.
fn families(text: &str, [from, to]: [&str; 2]) -> BTreeSet<&'static str> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    let overrides = [format!("from={from}"), format!("to={to}")].map(|set| set.parse().expect("key=value"));
    let points = Scenario::parse("pair.toml", text, &overrides).expect("sound").points().expect("sound");
    let recording = Recording { trace: None, pcap: Some(path.clone()) };
    recording.write(&points[0].setup, 1).expect("it can be written");
    let mut reader = PcapNgReader::new(File::open(&path).expect("a capture")).expect("pcapng");
    let mut found = BTreeSet::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        let (message, rest) = (&packet.data[IP_AND_UDP..], packet.original_len as usize - packet.data.len());
        let has_payload = rest > 0;
        let family = family(message);
        // MTCP's probes are as large as its acknowledgements.
        let is_padded = text.contains("mtcp") && ["probe", "echo"].contains(&family);
        let carries = is_padded || ["layered", "paced", "tree-data"].contains(&family);
        assert_eq!(has_payload, carries, "{family}: {packet:?}");
        found.insert(family);
    }
    found
}

/// The family of a packet of which the payload is left out.
fn family(message: &[u8]) -> &'static str {
    if let Ok((probe, _)) = Probe::decode(message) {
        return if probe.kind == Kind::Echo { "echo" } else { "probe" };
    }
    match mtcp::Message::decode(message) {
        Ok((mtcp::Message::Data(..), _)) => return "tree-data",
        Ok((mtcp::Message::Ack(_), _)) => return "tree-ack",
        Ok((mtcp::Message::Join(_), _)) => return "tree-join",
        Err(_) => {}
    }
    // A packet with an object has a symbol, if only of one byte.
    if let Ok(alc) = Alc::decode(&[message, &[0]].concat())
        && alc.layered(CciForm::Short).is_ok()
    {
        return "layered";
    }
    match rtcp::packets(message).next() {
        Some(Ok(packet)) if congestion::Report::decode(&packet).is_ok() => "feedback",
        _ => Rtp::decode(message).map(|_| "paced").expect("a packet of RTP"),
    }
}

/// Twenty seconds of a STAIR session with one receiver, captured at the bottleneck in both directions.
fn capture_stair(forward: &Path, backward: &Path) {
    let ladder = Ladder::geometric(Rate::from_kbps(64), Rate::from_kbps(128), 2.0).expect("two levels");
    let session = Session { ladder, packet_size: Bytes::new(1000), form: CciForm::Short, habitat: Habitat::Sockets };
    let scheme = registry::find("stair").expect("registered");
    let channels = scheme.channels(&session, &[]).expect("defaults are valid").len();
    let mut net = Network::new(1);
    let link = |text: &str| text.parse::<LinkConfig>().expect("a valid link");
    let bottleneck = link("rate=1M,delay=10ms,buffer=20p");
    let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
    let from = topology::add_host(&mut net, bell.left, &link("delay=1ms"));
    let to = topology::add_host(&mut net, bell.right, &link("delay=1ms"));
    let config = SessionConfig { channels, form: session.form, membership: Membership::default() };
    let id = net.add_session(from, config).expect("a few channels");
    let sender = scheme.sender(&session, &[], net.random_for("sender")).expect("defaults are valid");
    net.add_sender(id, sender, EndpointConfig::default());
    let receiver = scheme.receiver(&session, &[], net.random_for("receiver")).expect("defaults are valid");
    net.add_receiver(id, to, receiver, EndpointConfig::default()).expect("the host has a link");
    let create = |path, link| PacketCapture::create(path, link, session.form).expect("a file");
    let mut captures = (create(forward, bell.forward), create(backward, bell.backward));
    net.run_until(Time::from_secs(20), &mut captures);
    captures.0.finish().expect("written");
    captures.1.finish().expect("written");
}

/// The clocks in the packets to one agent, which are all whole and of this kind.
fn probes(capture: &Path, kind: Kind) -> BTreeSet<u32> {
    let mut reader = PcapNgReader::new(File::open(capture).expect("a capture")).expect("pcapng");
    let mut clocks = BTreeSet::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        if packet.data[IP_DESTINATION] != FIRST_BYTE_OF_AGENTS {
            continue;
        }
        assert_eq!(packet.data.len() as u32, packet.original_len, "nothing is left out of {packet:?}");
        let (probe, _) = Probe::decode(&packet.data[IP_AND_UDP..]).expect("a probe or an echo");
        assert_eq!(probe.kind, kind);
        clocks.insert(probe.clock_micros);
    }
    clocks
}

const IP_DESTINATION: usize = 16;
const IP_AND_UDP: usize = 28;
const FIRST_BYTE_OF_AGENTS: u8 = 10;
