//! Any packets and events at any time never panic, never spin, and leave the subscription consistent: what a receiver of
//! STAIR or FGLM is a member of is what its rate and its stairs ask for.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::layers::{Hybrid, Ladder};
use weir_core::registry::{self, Habitat, Session, Setting};
use weir_core::{Action, ChannelId, Endpoint, Event, Header, Observation, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::probe::{Kind, Probe};
use weir_wire::{CciForm, Layered};

/// Bytes of one operation.
const OPERATION: usize = 20;
const STAIRS: usize = 4;

fn session(habitat: Habitat) -> Session {
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(256 * 64), 2.0).expect("valid");
    Session { ladder, packet_size: Bytes::new(512), form: CciForm::Short, habitat }
}

/// An endpoint under test, and what it is a member of.
struct Tested {
    endpoint: Box<dyn Endpoint>,
    /// The static layers; `None` for a sender.
    layers: Option<Hybrid>,
    joined: BTreeSet<usize>,
    units: usize,
    now: Time,
}

impl Tested {
    fn new(kind: u8) -> Tested {
        let (scheme, habitat) = (["stair", "fglm"][usize::from(kind & 1)], [Habitat::Lab, Habitat::Sockets]);
        let session = session(habitat[usize::from(kind >> 1 & 1)]);
        let decrease = ["period-end", "at-once", "at-once-each-rtt"][usize::from(kind >> 2) % 3];
        let mut settings = vec![("decrease", decrease)];
        if kind & 0x20 != 0 {
            settings.extend([("join_latency", "30ms"), ("leave_latency", "2s")]);
        }
        if kind & 0x41 == 0x40 {
            settings.push(("option", "2"));
        }
        let settings: Vec<Setting> =
            settings.into_iter().map(|(key, value)| Setting { key: key.into(), value: value.into() }).collect();
        let found = registry::find(scheme).expect("registered");
        let (endpoint, layers) = match kind & 0x80 {
            0 => {
                let ladder = &session.ladder;
                let layers =
                    if scheme == "stair" { Hybrid::from_ladder(ladder) } else { Hybrid::non_cumulative(ladder) };
                (found.receiver(&session, &settings, Random::new(1, "receiver")), Some(layers))
            }
            _ => (found.sender(&session, &settings, Random::new(1, "sender")), None),
        };
        let endpoint = endpoint.expect("valid settings");
        Tested { endpoint, layers, joined: BTreeSet::new(), units: 0, now: Time::ZERO }
    }

    fn does(&mut self, event: Event<'_>) {
        self.endpoint.handle(self.now, event);
        for _ in 0..10_000 {
            match self.endpoint.poll(self.now) {
                None => return self.is_consistent(),
                Some(Action::Join(ChannelId(channel))) => assert!(self.joined.insert(usize::from(channel))),
                Some(Action::Leave(ChannelId(channel))) => assert!(self.joined.remove(&usize::from(channel))),
                Some(Action::Observe(Observation::Level { level, .. })) => self.units = level,
                Some(_) => {}
            }
        }
        panic!("it never stops wanting things");
    }

    fn is_consistent(&self) {
        let Some(layers) = &self.layers else { return assert!(self.joined.is_empty()) };
        let fixed = layers.rates().len();
        let stairs = self.joined.iter().filter(|channel| **channel >= fixed).count();
        assert!(stairs <= STAIRS && self.joined.iter().all(|channel| *channel < fixed + STAIRS));
        let (now, next) = (layers.set(self.units as u64), layers.set(self.units as u64 + 1));
        for channel in 0..fixed {
            let is_member = self.joined.contains(&channel);
            // Between two rates of which the second is being prepared a layer may be there already, or no more.
            if now.contains(channel) == next.contains(channel) {
                assert_eq!(is_member, now.contains(channel), "channel {channel} at {} units", self.units);
            }
        }
    }

    /// A packet or an event made of these bytes; the first says which, the second how much time has passed.
    fn operate(&mut self, bytes: &[u8; OPERATION]) {
        let be16 = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let be64 = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        self.now += Duration::from_micros(1 << (bytes[1] % 26));
        let layered = Layered {
            signal: bytes[0] & 0x80 != 0,
            slot: be16(2) >> (8 + bytes[0] % 8),
            channel: be16(4) >> (8 + bytes[4] % 8),
            sequence: u32::from_be_bytes(bytes[6..10].try_into().expect("four bytes")) >> (16 + bytes[5] % 16),
            clock_micros: match bytes[10] % 3 {
                0 => be64(10),
                _ => self.now.as_micros().wrapping_sub(u64::from(be16(12))),
            },
        };
        let probe = Probe {
            kind: if bytes[2] & 1 == 0 { Kind::Probe } else { Kind::Echo },
            clock_micros: (self.now.as_micros() as u32).wrapping_sub(u32::from(be16(3))),
        };
        let header = if bytes[0] % 64 == 12 { Header::Probe(probe) } else { Header::Layered(layered) };
        let packet = Packet { header, size: Bytes::new(be64(12) >> (bytes[11] % 64)), ecn: Ecn::from_bits(bytes[11]) };
        let event = match bytes[0] % 64 {
            0 => Event::Start,
            2..8 => Event::Deadline,
            8 => Event::HostDropped { packets: be64(2) },
            9 | 12 => Event::Packet { from: Origin::Peer(PeerId(u32::from(bytes[3] % 2))), packet: &packet },
            10 => Event::Packet { from: Origin::Channel(ChannelId(be16(14))), packet: &packet },
            _ => Event::Packet { from: Origin::Channel(ChannelId(layered.channel)), packet: &packet },
        };
        self.does(event);
    }
}

#[test]
fn any_packets_at_any_time_never_panic() {
    bolero::check!().for_each(|input: &[u8]| {
        let Some((kind, operations)) = input.split_first() else { return };
        let mut tested = Tested::new(*kind);
        tested.does(Event::Start);
        for operation in operations.chunks(OPERATION) {
            let mut bytes = [0; OPERATION];
            bytes[..operation.len()].copy_from_slice(operation);
            tested.operate(&bytes);
        }
        tested.does(Event::Finish);
        assert!(tested.joined.is_empty(), "the end leaves everything");
    });
}

/// The same operations, many more of them, from a seeded stream: deep states that short inputs do not reach.
#[test]
fn long_random_histories_never_panic() {
    let mut rates = BTreeSet::new();
    for kind in 0..=255 {
        let mut random = Random::new(u64::from(kind), "history");
        let mut tested = Tested::new(kind);
        tested.does(Event::Start);
        for _ in 0..1_000 {
            let bytes = core::array::from_fn(|_| random.bits() as u8);
            tested.operate(&bytes);
            rates.insert(tested.units);
        }
    }
    assert!(rates.len() > 10, "the rates went up and down: {rates:?}");
}
