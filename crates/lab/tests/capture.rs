//! Captures of simulated sessions, read back.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use pcap_file::pcapng::{Block, PcapNgReader};
use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_lab::capture::PacketCapture;
use weir_link::LinkConfig;
use weir_sim::{EndpointConfig, Membership, Network, SessionConfig, topology};
use weir_units::{Bytes, Rate, Time};
use weir_wire::probe::Kind;
use weir_wire::{CciForm, Probe};

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
