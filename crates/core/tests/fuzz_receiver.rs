//! Any packets and events at any time never panic, never spin, and leave the subscription consistent.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_core::{Action, ChannelId, Endpoint, Event, Header, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::{CciForm, Layered};

/// Bytes of one operation.
const OPERATION: usize = 20;

fn receiver(scheme: &str, form: CciForm, habitat: Habitat) -> Box<dyn Endpoint> {
    let session = Session {
        ladder: Ladder::geometric(Rate::from_kbps(64), Rate::from_mbps(50), 1.4).expect("valid"),
        packet_size: Bytes::new(1428),
        form,
        habitat,
    };
    let scheme = registry::find(scheme).expect("registered");
    scheme.receiver(&session, &[], Random::new(1, "receiver")).expect("defaults are valid")
}

fn does(receiver: &mut dyn Endpoint, now: Time, event: Event<'_>, joined: &mut BTreeSet<u16>) {
    receiver.handle(now, event);
    for _ in 0..10_000 {
        match receiver.poll(now) {
            None => {
                let level = joined.len() as u16;
                return assert!(joined.iter().copied().eq(0..level), "a hole in the subscription: {joined:?}");
            }
            Some(Action::Join(ChannelId(channel))) => assert!(joined.insert(channel)),
            Some(Action::Leave(ChannelId(channel))) => assert!(joined.remove(&channel)),
            Some(_) => {}
        }
    }
    panic!("the receiver never stops wanting things");
}

/// A packet or an event made of these bytes; the first says which, the second how much time has passed.
fn operate(receiver: &mut dyn Endpoint, now: &mut Time, bytes: &[u8; OPERATION], joined: &mut BTreeSet<u16>) {
    let be16 = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let be64 = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    *now += Duration::from_micros(1 << (bytes[1] % 28));
    let layered = Layered {
        signal: bytes[0] & 0x80 != 0,
        slot: be16(2) >> (bytes[0] & 15),
        channel: be16(4) >> (bytes[4] % 16),
        sequence: u32::from_be_bytes(bytes[6..10].try_into().expect("four bytes")) >> (bytes[5] % 32),
        clock_micros: match bytes[10] % 3 {
            0 => be64(10),
            _ => now.as_micros().wrapping_sub(u64::from(be16(12))),
        },
    };
    let size = Bytes::new(be64(12) >> (bytes[11] % 64));
    let packet = Packet { header: Header::Layered(layered), size, ecn: Ecn::from_bits(bytes[11]) };
    let event = match bytes[0] % 64 {
        0 => Event::Start,
        1 => Event::Finish,
        2..8 => Event::Deadline,
        8 => Event::HostDropped { packets: be64(2) },
        9 => Event::Packet { from: Origin::Peer(PeerId(0)), packet: &packet },
        10 => Event::Packet { from: Origin::Channel(ChannelId(be16(14))), packet: &packet },
        _ => Event::Packet { from: Origin::Channel(ChannelId(layered.channel)), packet: &packet },
    };
    does(receiver, *now, event, joined);
}

#[test]
fn any_packets_at_any_time_never_panic() {
    bolero::check!().for_each(|input: &[u8]| {
        let Some((kind, operations)) = input.split_first() else { return };
        let scheme = ["avmrc", "rmrc", "vmrc"][usize::from(kind % 3)];
        let form = [CciForm::Short, CciForm::Long, CciForm::Clocked][usize::from(kind / 3 % 3)];
        let habitat = if kind & 0x80 == 0 { Habitat::Lab } else { Habitat::Sockets };
        let mut receiver = receiver(scheme, form, habitat);
        let (mut now, mut joined) = (Time::ZERO, BTreeSet::new());
        does(receiver.as_mut(), now, Event::Start, &mut joined);
        for operation in operations.chunks(OPERATION) {
            let mut bytes = [0; OPERATION];
            bytes[..operation.len()].copy_from_slice(operation);
            operate(receiver.as_mut(), &mut now, &bytes, &mut joined);
        }
        does(receiver.as_mut(), now, Event::Finish, &mut joined);
        assert!(joined.is_empty(), "the end leaves everything");
    });
}

/// The same operations, many more of them, from a seeded stream: deep states that short inputs do not reach.
#[test]
fn long_random_histories_never_panic() {
    for seed in 0..60 {
        let mut random = weir_units::Random::new(seed, "history");
        let scheme = ["avmrc", "rmrc", "vmrc"][seed as usize % 3];
        let habitat = if seed % 2 == 0 { Habitat::Lab } else { Habitat::Sockets };
        let mut receiver = receiver(scheme, CciForm::Short, habitat);
        let (mut now, mut joined) = (Time::ZERO, BTreeSet::new());
        does(receiver.as_mut(), now, Event::Start, &mut joined);
        for _ in 0..3_000 {
            let mut bytes = [0; OPERATION];
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            if bytes[0] % 64 == 1 {
                continue;
            }
            operate(receiver.as_mut(), &mut now, &bytes, &mut joined);
        }
    }
}
