//! Any packets and events at any time never panic RAP's source or sink, never make them spin, and never make the source send
//! what was not offered or faster than its ceiling.

use std::time::Duration;

use weir_core::registry::{self, Habitat, Setting, Stream};
use weir_core::{Action, Endpoint, Event, Header, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Random, Time};
use weir_wire::{Feedback, Paced};

/// Bytes of one operation.
const OPERATION: usize = 16;

/// What was wanted of the driver.
#[derive(Debug, Default)]
struct Wanted {
    sent: u64,
    delivered: u64,
}

fn does(endpoint: &mut dyn Endpoint, now: Time, event: Event<'_>) -> Wanted {
    endpoint.handle(now, event);
    let mut wanted = Wanted::default();
    for _ in 0..100_000 {
        match endpoint.poll(now) {
            None => return wanted,
            Some(Action::Send { .. }) => wanted.sent += 1,
            Some(Action::Deliver) => wanted.delivered += 1,
            Some(_) => {}
        }
    }
    panic!("the endpoint never stops wanting things");
}

/// A source and a sink, each of which gets whatever the bytes say.
#[derive(Debug)]
struct Pair {
    source: Box<dyn Endpoint>,
    sink: Box<dyn Endpoint>,
    now: Time,
    offered: u64,
    sent: u64,
}

impl Pair {
    /// 1000 packets a second at most.
    fn new(kind: u8) -> Pair {
        let habitat = if kind & 1 == 0 { Habitat::Lab } else { Habitat::Sockets };
        let quirks = if kind & 2 == 0 { "none" } else { "ns2" };
        let settings = [("quirks", quirks), ("max_rate", "9600k")]
            .map(|(key, value)| Setting { key: key.into(), value: value.into() });
        let stream = Stream { packet_size: Bytes::new(1_200), feedback_size: Bytes::new(80), habitat };
        let scheme = registry::find("rap").expect("registered");
        let mut source = scheme.source(&stream, &settings, Random::new(1, "source")).expect("valid");
        let mut sink = scheme.sink(&stream, &settings, Random::new(1, "sink")).expect("valid");
        does(source.as_mut(), Time::ZERO, Event::Start);
        does(sink.as_mut(), Time::ZERO, Event::Start);
        Pair { source, sink, now: Time::ZERO, offered: 0, sent: 0 }
    }

    /// An event made of these bytes; the first says which, the second how much time has passed.
    fn operate(&mut self, bytes: &[u8; OPERATION]) {
        self.now += Duration::from_micros(1 << (bytes[1] % 25));
        let packet = Packet { header: header(bytes), size: Bytes::new(100), ecn: Ecn::from_bits(bytes[11]) };
        let event = match bytes[0] >> 3 {
            0..8 => Event::Deadline,
            8..10 => {
                self.offered += u64::from(bytes[2]);
                Event::Offer { packets: u64::from(bytes[2]) }
            }
            10 if bytes[2] == 0 => Event::Finish,
            _ => Event::Packet { from: Origin::Peer(PeerId(0)), packet: &packet },
        };
        if matches!(event, Event::Packet { .. }) {
            let wanted = does(self.sink.as_mut(), self.now, event);
            assert!(wanted.delivered <= 1 && wanted.sent <= 1, "{wanted:?}");
        }
        let wanted = does(self.source.as_mut(), self.now, event);
        // On sockets 5 ms may be caught up with.
        assert!(wanted.sent <= 6 && wanted.delivered == 0, "{wanted:?}");
        self.sent += wanted.sent;
        assert!(self.sent <= self.offered, "{self:?}");
    }
}

fn header(bytes: &[u8; OPERATION]) -> Header {
    let be16 = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let be32 = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    // Numbers near the beginning are likely to have been sent.
    let number = be16(2) >> (bytes[4] % 16);
    match bytes[0] & 1 {
        0 => Header::Paced(Paced { sequence: number }),
        _ => Header::Feedback(Feedback {
            newest: number,
            reports: bytes[5],
            arrived: be32(6),
            marked: be32(10),
            held: be16(14) >> (bytes[1] % 16),
        }),
    }
}

#[test]
fn any_packets_at_any_time_never_panic() {
    bolero::check!().for_each(|input: &[u8]| {
        let Some((kind, operations)) = input.split_first() else { return };
        let mut pair = Pair::new(*kind);
        for bytes in operations.chunks_exact(OPERATION) {
            pair.operate(bytes.try_into().expect("chunks are exact"));
        }
    });
}

/// The same operations, many more of them, from a seeded stream: deep states that short inputs do not reach.
#[test]
fn long_random_histories_never_panic() {
    let mut sent = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed, "history");
        let mut pair = Pair::new(seed as u8);
        for _ in 0..3_000 {
            let bytes = std::array::from_fn(|_| random.bits() as u8);
            if bytes[0] >> 3 != 10 {
                pair.operate(&bytes);
            }
        }
        sent += pair.sent;
    }
    assert!(sent > 10_000, "{sent} packets: the sources hardly got going");
}
