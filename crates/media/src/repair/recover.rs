//! The receiver's side: lost packets from source packets and repair payloads.

use std::collections::{BTreeMap, VecDeque};

use raptorq::{EncodingPacket, PayloadId, SourceBlockDecoder};
use weir_units::Seq;

use super::protect::write_symbol;
use super::{HEADER, LENGTH, MAX_BLOCK_PACKETS, MAX_SYMBOL_BYTES, codec};

/// A packet that was lost and is back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Its sequence number.
    pub sequence: u16,
    /// Its bytes, as they were protected.
    pub packet: Vec<u8>,
}

/// What a recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryCounts {
    /// Packets that came back.
    pub recovered: u64,
    /// Blocks that were given up with packets missing, of which repair payloads had come.
    pub unrecoverable: u64,
    /// Repair payloads that made no sense, and blocks whose repair gave no packets.
    pub malformed: u64,
}

/// Gets lost packets back from source packets and repair payloads of one layer's stream.
///
/// The last 4096 source packets are kept, and the repair payloads of eight blocks. A repair payload may come before the packets that it
/// protects, and any of them twice.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The highest sequence number so far.
    highest: Option<Seq>,
    sources: BTreeMap<Seq, Vec<u8>>,
    /// Blocks of which packets are missing, in the order in which they were heard of.
    open: VecDeque<Open>,
    /// Blocks that are done with, the last ones.
    done: VecDeque<Shape>,
    counts: RecoveryCounts,
}

/// Which block it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    base: Seq,
    packets: usize,
    symbol_bytes: usize,
}

/// A block of which repair payloads came.
#[derive(Debug)]
struct Open {
    shape: Shape,
    /// Symbols by identifier.
    repairs: BTreeMap<u32, Vec<u8>>,
    /// How often decoding failed, and of how many symbols the last time.
    failures: usize,
    tried: usize,
}

/// What the symbols of a block come to.
enum Outcome {
    /// There are too few.
    Open,
    /// All its packets are here, with these that were not.
    Whole(Vec<(Seq, Vec<u8>)>),
    /// They are not those of any packets.
    Nonsense,
}

impl Recovery {
    /// A source packet arrived, or was recovered elsewhere: the packets that come back by it.
    pub fn source(&mut self, sequence: u16, packet: &[u8]) -> Vec<Recovered> {
        if packet.len() + LENGTH > MAX_SYMBOL_BYTES {
            return Vec::new();
        }
        let sequence = self.extend(sequence);
        self.keep(sequence, packet);
        // Those that are done go, so from the back.
        let open = (0..self.open.len()).rev();
        let back = open.map(|at| if self.open[at].shape.has(sequence) { self.attempt(at) } else { Vec::new() });
        back.flatten().collect()
    }

    /// A repair payload arrived: the packets that come back by it.
    pub fn repair(&mut self, payload: &[u8]) -> Vec<Recovered> {
        let Some((shape, id, symbol)) = self.read(payload) else {
            self.counts.malformed += 1;
            return Vec::new();
        };
        if self.done.contains(&shape) {
            return Vec::new();
        }
        let at = self.open.iter().position(|open| open.shape == shape).unwrap_or_else(|| self.open_block(shape));
        let repairs = &mut self.open[at].repairs;
        // With as many repair symbols as packets, decoding fails once in a hundred times, and with one more in ten thousand.
        if repairs.len() < shape.packets + SPARE {
            repairs.entry(id).or_insert_with(|| symbol.to_vec());
        }
        self.attempt(at)
    }

    /// What was done so far.
    pub fn counts(&self) -> RecoveryCounts {
        self.counts
    }

    fn extend(&mut self, sequence: u16) -> Seq {
        // Away from 0, so that a packet before the first is not below it.
        let sequence = self.near(sequence);
        self.highest = self.highest.max(Some(sequence));
        sequence
    }

    fn near(&self, sequence: u16) -> Seq {
        let start = Seq::new(1 << 16 | u64::from(sequence));
        self.highest.map_or(start, |highest| highest.extend(sequence.into(), 16))
    }

    fn keep(&mut self, sequence: Seq, packet: &[u8]) {
        self.sources.entry(sequence).or_insert_with(|| packet.to_vec());
        while self.sources.len() > MAX_SOURCES {
            self.sources.pop_first();
        }
    }

    fn read<'a>(&self, payload: &'a [u8]) -> Option<(Shape, u32, &'a [u8])> {
        let (&[base_high, base_low, packets_high, packets_low, id @ ..], symbol) =
            payload.split_first_chunk::<HEADER>()?;
        let packets = usize::from(u16::from_be_bytes([packets_high, packets_low]));
        let id = u32::from_be_bytes(id);
        let is_sound = (1..=MAX_BLOCK_PACKETS).contains(&packets)
            && (LENGTH..=MAX_SYMBOL_BYTES).contains(&symbol.len())
            && (packets as u32..packets as u32 + (1 << 16)).contains(&id);
        let base = self.near(u16::from_be_bytes([base_high, base_low]));
        is_sound.then_some((Shape { base, packets, symbol_bytes: symbol.len() }, id, symbol))
    }

    fn open_block(&mut self, shape: Shape) -> usize {
        self.open.push_back(Open { shape, repairs: BTreeMap::new(), failures: 0, tried: 0 });
        while self.open.len() > MAX_OPEN {
            self.counts.unrecoverable += 1;
            self.close(0);
        }
        self.open.len() - 1
    }

    fn close(&mut self, at: usize) {
        self.done.extend(self.open.remove(at).map(|open| open.shape));
        while self.done.len() > MAX_DONE {
            self.done.pop_front();
        }
    }

    /// Decodes a block if there is enough of it.
    fn attempt(&mut self, at: usize) -> Vec<Recovered> {
        let fresh = match self.open[at].decode(&self.sources) {
            Outcome::Open => return Vec::new(),
            Outcome::Whole(fresh) => fresh,
            Outcome::Nonsense => {
                self.counts.malformed += 1;
                Vec::new()
            }
        };
        self.close(at);
        self.counts.recovered += fresh.len() as u64;
        fresh.iter().for_each(|(sequence, packet)| self.keep(*sequence, packet));
        fresh
            .into_iter()
            .map(|(sequence, packet)| Recovered { sequence: sequence.truncate(16) as u16, packet })
            .collect()
    }
}

impl Shape {
    /// Whether a packet with this sequence number is in the block.
    fn has(&self, sequence: Seq) -> bool {
        (self.base.value()..self.base.value() + self.packets as u64).contains(&sequence.value())
    }
}

impl Open {
    fn decode(&mut self, sources: &BTreeMap<Seq, Vec<u8>>) -> Outcome {
        let Shape { base, packets, symbol_bytes } = self.shape;
        let end = Seq::new(base.value() + packets as u64);
        let present = sources.range(base..end).filter(|(_, packet)| packet.len() + LENGTH <= symbol_bytes);
        let known = present.clone().count();
        if known == packets {
            return Outcome::Whole(Vec::new());
        }
        let symbols = known + self.repairs.len();
        if symbols < packets || symbols <= self.tried {
            return Outcome::Open;
        }
        self.tried = symbols;
        let sources_encoded = present.map(|(sequence, packet)| {
            let mut symbol = vec![0; symbol_bytes];
            write_symbol(&mut symbol, packet);
            ((sequence.value() - base.value()) as u32, symbol)
        });
        let repairs = self.repairs.iter().map(|(id, symbol)| (*id, symbol.clone()));
        let encoded =
            sources_encoded.chain(repairs).map(|(id, symbol)| EncodingPacket::new(PayloadId::new(0, id), symbol));
        let encoded: Vec<_> = encoded.collect();
        let mut decoder = SourceBlockDecoder::new(0, &codec(packets, symbol_bytes), (packets * symbol_bytes) as u64);
        let Some(block) = decoder.decode(encoded) else {
            self.failures += 1;
            return if self.failures < MAX_FAILURES { Outcome::Open } else { Outcome::Nonsense };
        };
        let numbered = block.chunks_exact(symbol_bytes).zip(base.value()..).map(|(symbol, n)| (Seq::new(n), symbol));
        let missing = numbered.filter(|(sequence, _)| !sources.contains_key(sequence));
        let fresh = missing.map(|(sequence, symbol)| Some((sequence, packet_of(symbol)?))).collect::<Option<_>>();
        fresh.map_or(Outcome::Nonsense, Outcome::Whole)
    }
}

/// The packet of a symbol, if it is one.
fn packet_of(symbol: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = symbol.split_first_chunk::<LENGTH>()?;
    let (packet, padding) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    padding.iter().all(|byte| *byte == 0).then(|| packet.to_vec())
}

/// Those of the blocks whose repair symbols are kept: at most 6.2 MB.
const MAX_SOURCES: usize = MAX_OPEN * MAX_BLOCK_PACKETS;

/// Blocks whose repair symbols are kept: at most 6.5 MB.
const MAX_OPEN: usize = 8;

const MAX_DONE: usize = 32;

/// Repair symbols that are kept over the number of packets.
const SPARE: usize = 8;

/// Decodings of a block that fail for want of independent symbols. Honest blocks hardly ever fail twice.
const MAX_FAILURES: usize = 4;
