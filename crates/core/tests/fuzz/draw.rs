//! From bytes to events and packets.

use std::time::Duration;

use weir_core::{Allotment, Backlog, ChannelId, Event, Header, Locator, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::mtcp::join::{Ask, Join, Node, Offer, Standing};
use weir_wire::mtcp::{Ack, Data};
use weir_wire::probe::{Kind, Probe};
use weir_wire::{Experimental, Feedback, Layered, Paced};

/// Bytes of one operation.
pub(crate) const OPERATION: usize = 32;

/// One of each variant. A variant that is missing in [`Draw::header`] does not compile; it belongs in this list, too.
pub(crate) const HEADERS: [Header; 8] = [
    Header::Layered(Layered { signal: false, slot: 0, channel: 0, sequence: 0, clock_micros: 0 }),
    Header::Paced(Paced { sequence: 0, payload: None }),
    Header::Feedback(Feedback { newest: 0, reports: 0, arrived: 0, marked: 0, held: 0 }),
    Header::Probe(Probe { kind: Kind::Probe, clock_micros: 0 }),
    Header::TreeData(Data { number: 0, sent_micros: 0, is_repair: false, is_end: false }),
    Header::TreeAck(NO_ACK),
    Header::TreeJoin(Join::Node(Node { at: Locator([0; 18]), level: 0, is_above: false })),
    Header::Experimental(Experimental([0; 16])),
];

const NO_ACK: Ack = Ack {
    is_cut_off: false,
    received: 0,
    start: 0,
    echo_micros: 0,
    min_cwnd: 0,
    max_twnd: 0,
    limit: 0,
    low_mark: 0,
    held: 0,
    receivers: 0,
    reported: 0,
    has_echo: false,
    is_update: false,
    is_complete: false,
};

/// What is done to the parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Finish,
    HostDropped,
    Offer,
    /// A peer comes or goes, or the application has no more to send or other room.
    Other,
    /// An early or late deadline for one of them.
    Deadline,
    /// All are called at their deadlines, as by a driver, and until none is in the past.
    Run,
    /// What another party sent arrives.
    Deliver,
    /// What another party sent is lost.
    Lose,
    /// An arbitrary packet arrives.
    Packet,
}

impl Operation {
    /// The operation that a byte says.
    pub(crate) fn of(byte: u8) -> Operation {
        match byte {
            0 => Operation::Start,
            1 => Operation::Finish,
            2..8 => Operation::HostDropped,
            8..16 => Operation::Offer,
            16..20 => Operation::Other,
            20..32 => Operation::Deadline,
            32..112 => Operation::Run,
            112..208 => Operation::Deliver,
            208..216 => Operation::Lose,
            216.. => Operation::Packet,
        }
    }
}

/// Reads numbers from bytes; zeros when they are used up.
#[derive(Debug)]
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Draw<'a> {
        Draw(bytes)
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_at(N.min(self.0.len()));
        self.0 = tail;
        std::array::from_fn(|index| head.get(index).copied().unwrap_or(0))
    }

    /// How much time passes: mostly less than a quarter of a second, at times minutes.
    pub(crate) fn span(&mut self) -> Duration {
        let byte = self.u8();
        Duration::from_micros(1 << if byte < 250 { byte % 18 } else { byte % 28 })
    }

    /// The event of an operation that is one event without a packet.
    pub(crate) fn event(&mut self, operation: Operation) -> Option<Event<'static>> {
        match operation {
            Operation::Start => Some(Event::Start),
            Operation::Finish => Some(Event::Finish),
            Operation::Deadline => Some(Event::Deadline),
            Operation::HostDropped => Some(Event::HostDropped { packets: self.small_or_huge() }),
            Operation::Offer => Some(Event::Offer { packets: self.small_or_huge() }),
            Operation::Other => Some(match self.u8() % 15 {
                14 => Event::Backlog(Backlog { waiting: self.small_or_huge(), most: self.small_or_huge() }),
                13 => Event::FinishSession(u16::from(self.u8() % 4)),
                10 => Event::Priority {
                    session: u16::from(self.u8() % 4),
                    priority: u32::from(self.u8()),
                    more: self.u8() < 32,
                },
                11 | 12 => Event::Allot(Allotment {
                    level: usize::from(self.u8() % 16),
                    thousandths: u32::from(self.u8()) * 10,
                }),
                8 => Event::Reachable { at: self.locator() },
                9 => Event::Reached { at: self.locator(), peer: PeerId(u32::from(self.u8() % 8)) },
                0 => Event::End,
                1 => Event::PeerDown(PeerId(u32::from(self.u8() % 8))),
                2..5 => Event::PeerUp(PeerId(u32::from(self.u8() % 8))),
                _ => Event::Room { payloads: self.small_or_huge() },
            }),
            Operation::Run | Operation::Deliver | Operation::Lose | Operation::Packet => None,
        }
    }

    /// One of a few.
    fn locator(&mut self) -> Locator {
        let mut at = Locator::default();
        at.0[0] = self.u8() % 8;
        at
    }

    fn small_or_huge(&mut self) -> u64 {
        match self.u8() {
            255 => u64::MAX,
            small => u64::from(small),
        }
    }

    /// A packet, and where it came from: mostly over the channel that it names.
    pub(crate) fn packet(&mut self, now: Time) -> (Origin, Packet) {
        let header = self.header(now);
        let from = match (header, self.u8() % 8) {
            (_, 0) => Origin::Channel(ChannelId(self.u16())),
            (Header::Layered(layered), 1..7) => Origin::Channel(ChannelId(layered.channel)),
            (Header::TreeData(_), 1..5) => Origin::Channel(ChannelId(0)),
            (Header::TreeAck(_), 1..7) => Origin::Peer(PeerId(u32::from(self.u8() % 4))),
            (_, 7) => Origin::Unverified,
            _ => Origin::Peer(PeerId(0)),
        };
        let ecn = Ecn::from_bits(self.u8());
        let size = Bytes::new(self.u64() >> (self.u8() % 64));
        (from, Packet { header, size, ecn })
    }

    /// The packet with another value in one place, near to the one that was there.
    pub(crate) fn corrupted(&mut self, packet: Packet) -> Packet {
        let (place, by) = (self.u8() % 9, u32::from(self.number()));
        let other = |value: u32| if place & 1 == 1 { value.wrapping_add(by) } else { value.wrapping_sub(by) };
        let header = match packet.header {
            Header::TreeData(data) => Header::TreeData(match place {
                0..4 => Data { number: other(data.number), ..data },
                4..6 => Data { sent_micros: other(data.sent_micros), ..data },
                6 => Data { is_end: !data.is_end, ..data },
                _ => Data { is_repair: !data.is_repair, ..data },
            }),
            Header::TreeAck(ack) => Header::TreeAck(match place {
                0..2 => Ack { start: other(ack.start), ..ack },
                2 => Ack { received: self.u64(), reported: 64, ..ack },
                3 => Ack { received: self.u64(), ..ack },
                4 => Ack { limit: other(ack.limit), ..ack },
                5 => Ack { low_mark: other(ack.low_mark), ..ack },
                6 => Ack { echo_micros: other(ack.echo_micros), has_echo: true, ..ack },
                7 => Ack { min_cwnd: self.tree_number(), max_twnd: self.tree_number(), ..ack },
                _ => Ack { is_complete: !ack.is_complete, ..ack },
            }),
            header => header,
        };
        Packet { header, ..packet }
    }

    fn header(&mut self, now: Time) -> Header {
        match HEADERS[usize::from(self.u8()) % HEADERS.len()] {
            Header::Layered(_) => Header::Layered(self.layered(now)),
            Header::Paced(_) => Header::Paced(Paced {
                sequence: self.number(),
                payload: self.number().is_multiple_of(2).then(|| self.number()),
            }),
            Header::Feedback(_) => Header::Feedback(Feedback {
                newest: self.number(),
                reports: self.u8(),
                arrived: self.u32(),
                marked: self.u32(),
                held: self.number(),
            }),
            Header::Probe(_) => Header::Probe(Probe {
                kind: if self.u8() & 1 == 0 { Kind::Probe } else { Kind::Echo },
                clock_micros: (now.as_micros() as u32).wrapping_sub(u32::from(self.number())),
            }),
            Header::TreeData(_) => Header::TreeData(self.tree_data(now)),
            Header::TreeAck(_) => Header::TreeAck(self.tree_ack(now)),
            Header::TreeJoin(_) => Header::TreeJoin(self.tree_join(now)),
            Header::Experimental(_) => Header::Experimental(Experimental(self.array())),
        }
    }

    fn layered(&mut self, now: Time) -> Layered {
        let bits = self.u8();
        Layered {
            signal: bits & 1 == 1,
            slot: self.number(),
            channel: self.number(),
            sequence: self.u32() >> (self.u8() % 32),
            clock_micros: match bits & 6 {
                0 => self.u64(),
                _ => now.as_micros().wrapping_sub(u64::from(self.u16())),
            },
        }
    }

    fn tree_data(&mut self, now: Time) -> Data {
        let bits = self.u8();
        Data {
            number: self.tree_number(),
            sent_micros: self.stamp(now),
            is_repair: bits & 1 == 1,
            // Seldom: nothing is behind the end.
            is_end: bits >= 240,
        }
    }

    fn tree_ack(&mut self, now: Time) -> Ack {
        let bits = self.u8();
        Ack {
            received: self.u64() >> (self.u8() % 64),
            start: self.tree_number(),
            echo_micros: self.stamp(now),
            min_cwnd: self.tree_number(),
            max_twnd: self.tree_number(),
            limit: self.tree_number(),
            low_mark: self.tree_number(),
            held: self.number(),
            receivers: self.u16() % 8,
            reported: self.u8() % 80,
            has_echo: bits & 1 == 1,
            is_update: bits & 2 == 2,
            is_complete: bits & 12 == 12,
            is_cut_off: bits & 48 == 48,
        }
    }

    fn tree_join(&mut self, now: Time) -> Join {
        let bits = self.u8();
        match bits % 3 {
            0 => Join::Ask(Ask {
                need: self.tree_number(),
                clock_micros: self.stamp(now),
                joins: bits & 64 == 64,
                lost: u16::from(bits >> 5),
                is_receiver: bits & 4 == 4,
                from_now: bits & 16 == 16,
                door: (bits & 8 == 8).then(|| self.locator()),
            }),
            1 => Join::Offer(Offer {
                first: u64::from(self.tree_number()),
                next: u64::from(self.tree_number()),
                clock_micros: self.stamp(now),
                places: u16::from(self.u8()),
                level: self.u8() % 20,
                standing: match bits >> 5 {
                    0 => Standing::Stranger,
                    1..5 => Standing::Child,
                    5 => Standing::CatchingUp,
                    6 => Standing::TooSlow,
                    _ => Standing::TooLate,
                },
            }),
            _ => Join::Node(Node { at: self.locator(), level: bits >> 5, is_above: bits & 16 == 16 }),
        }
    }

    /// Up to where a party can be after a while, and at times anywhere.
    fn tree_number(&mut self) -> u32 {
        let bits = self.u8();
        if bits < 224 { u32::from(self.u16()) >> (bits % 16) } else { self.u32() }
    }

    /// The clock of a party some time ago, or any.
    fn stamp(&mut self, now: Time) -> u32 {
        match self.u8() {
            0..192 => (now.as_micros() as u32).wrapping_sub(u32::from(self.u16())),
            192.. => self.u32(),
        }
    }

    /// Small numbers are likely to have a meaning.
    fn number(&mut self) -> u16 {
        self.u16() >> (self.u8() % 16)
    }
}
