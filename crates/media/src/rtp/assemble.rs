//! The pictures of one layer's stream from its packets.

use std::collections::{BTreeMap, VecDeque};

use weir_units::Seq;

use super::depacketize;
use crate::{Codec, MAX_PICTURE_BYTES, Picture, PictureInfo};

/// An RTP packet of one layer's stream as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// RTP's sequence number. The packets of a layer's stream are numbered without gaps.
    pub sequence: u16,
    /// RTP's timestamp.
    pub timestamp: u32,
    /// RTP's marker bit.
    pub marker: bool,
    /// Whether the packet is the first of its picture ([`crate::Payload::starts`]).
    pub starts: bool,
    /// What the header extension says of the picture.
    pub info: PictureInfo,
    /// The payload.
    pub payload: &'a [u8],
}

/// What an assembler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssemblerCounts {
    /// Pictures that were put together.
    pub pictures: u64,
    /// Pictures of which something was missing when they were given up.
    pub incomplete: u64,
    /// Pictures whose packets contradicted each other or the payload format, or that were too long.
    pub malformed: u64,
    /// Packets that came twice, or after their picture was done with.
    pub late: u64,
}

/// Puts the pictures of one layer's stream together from its packets, which may arrive in any order and several times.
///
/// Pictures of which packets are missing wait until 64 later ones have begun, or more than 32 MiB wait.
#[derive(Debug)]
pub struct Assembler {
    codec: Codec,
    /// The highest sequence number so far.
    highest: Option<Seq>,
    /// Pictures that are not whole yet, in the order in which they began.
    open: VecDeque<Partial>,
    /// Those that are done with, the last ones.
    done: VecDeque<(u16, u32)>,
    /// What `open` holds, with an allowance for each packet.
    held_bytes: usize,
    counts: AssemblerCounts,
}

/// A picture of which packets came.
#[derive(Debug)]
struct Partial {
    info: PictureInfo,
    timestamp: u32,
    first: Option<Seq>,
    last: Option<Seq>,
    packets: BTreeMap<Seq, Vec<u8>>,
    bytes: usize,
}

impl Assembler {
    /// One that has seen nothing. A stream that begins again (another SSRC) wants another one.
    pub fn new(codec: Codec) -> Assembler {
        Assembler {
            codec,
            highest: None,
            open: VecDeque::new(),
            done: VecDeque::new(),
            held_bytes: 0,
            counts: AssemblerCounts::default(),
        }
    }

    /// A packet arrived: the picture that it completes, if it does. Pictures come out as they are complete, so perhaps not in
    /// decode order.
    pub fn push(&mut self, arrival: Arrival<'_>) -> Option<Picture> {
        let (number, timestamp) = (arrival.info.number, arrival.timestamp);
        if self.done.contains(&(number, timestamp)) {
            self.counts.late += 1;
            return None;
        }
        let sequence = self.extend(arrival.sequence);
        let at = self.place(&arrival);
        let partial = &mut self.open[at];
        let held = partial.held();
        let added = partial.add(sequence, &arrival);
        self.held_bytes += partial.held() - held;
        match added {
            Added::Twice => {
                self.counts.late += 1;
                return None;
            }
            Added::Wrong => {
                self.counts.malformed += 1;
                self.close(at);
                return None;
            }
            Added::Fine => {}
        }
        if !partial.is_whole() {
            self.make_room();
            return None;
        }
        let partial = self.close(at)?;
        let data = depacketize(self.codec, partial.packets.values().map(Vec::as_slice));
        let picture = data.map(|data| Picture { info: partial.info, timestamp, data });
        match picture {
            Some(_) => self.counts.pictures += 1,
            None => self.counts.malformed += 1,
        }
        picture
    }

    /// What was done so far.
    pub fn counts(&self) -> AssemblerCounts {
        self.counts
    }

    fn extend(&mut self, sequence: u16) -> Seq {
        // Away from 0, so that a packet before the first is not below it.
        let start = Seq::new(1 << 16 | u64::from(sequence));
        let sequence = self.highest.map_or(start, |highest| highest.extend(sequence.into(), 16));
        self.highest = self.highest.max(Some(sequence));
        sequence
    }

    /// Where the picture of a packet is in `open`.
    fn place(&mut self, arrival: &Arrival<'_>) -> usize {
        let is_same = |partial: &Partial| partial.info == arrival.info && partial.timestamp == arrival.timestamp;
        self.open.iter().position(is_same).unwrap_or_else(|| {
            self.open.push_back(Partial {
                info: arrival.info,
                timestamp: arrival.timestamp,
                first: None,
                last: None,
                packets: BTreeMap::new(),
                bytes: 0,
            });
            self.open.len() - 1
        })
    }

    fn close(&mut self, at: usize) -> Option<Partial> {
        let partial = self.open.remove(at)?;
        self.held_bytes -= partial.held();
        self.done.push_back((partial.info.number, partial.timestamp));
        if self.done.len() > MAX_OPEN {
            self.done.pop_front();
        }
        Some(partial)
    }

    /// Gives up the pictures that began first while there are too many.
    fn make_room(&mut self) {
        while self.open.len() > MAX_OPEN || self.held_bytes > MAX_HELD {
            self.counts.incomplete += 1;
            self.close(0);
        }
    }
}

enum Added {
    Fine,
    Twice,
    Wrong,
}

impl Partial {
    fn add(&mut self, sequence: Seq, arrival: &Arrival<'_>) -> Added {
        if self.packets.contains_key(&sequence) {
            return Added::Twice;
        }
        let is_other = |known: Option<Seq>| known.is_some_and(|known| known != sequence);
        if (arrival.starts && is_other(self.first)) || (arrival.marker && is_other(self.last)) {
            return Added::Wrong;
        }
        self.first = if arrival.starts { Some(sequence) } else { self.first };
        self.last = if arrival.marker { Some(sequence) } else { self.last };
        self.bytes += arrival.payload.len();
        self.packets.insert(sequence, arrival.payload.to_vec());
        let is_before =
            self.first.is_some_and(|first| self.packets.keys().next().is_some_and(|lowest| *lowest < first));
        let is_behind =
            self.last.is_some_and(|last| self.packets.keys().next_back().is_some_and(|highest| *highest > last));
        if is_before || is_behind || self.bytes > MAX_PICTURE_BYTES { Added::Wrong } else { Added::Fine }
    }

    fn is_whole(&self) -> bool {
        let (Some(first), Some(last)) = (self.first, self.last) else { return false };
        last.since(first) + 1 == self.packets.len() as u64
    }

    /// What it takes, with an allowance for each packet.
    fn held(&self) -> usize {
        self.bytes + PACKET_ALLOWANCE * self.packets.len()
    }
}

/// Pictures that may be open at once: two seconds of thirty a second, in which repair may still come.
const MAX_OPEN: usize = 64;

/// Bytes that open pictures may take at once.
const MAX_HELD: usize = 2 * MAX_PICTURE_BYTES;

/// What keeping a packet takes besides its bytes, about.
const PACKET_ALLOWANCE: usize = 64;
