//! One FDT instance that is being put together: its symbols as they come, or a decoder for them.
//!
//! Source symbols that contradict each other are kept side by side, a few of each number. The instance is then made of those
//! that came most often: a sender repeats its own, and a forger of others under its address has to send them as often. Not here:
//! how much memory all instances may take.

use std::collections::{BTreeMap, HashMap};

use raptorq::{EncodingPacket, SourceBlockDecoder};
use weir_wire::fec::{Oti, PayloadId};

use crate::partition::Layout;

/// A fingerprint of each symbol of an instance.
pub(crate) type Fingerprints = HashMap<PayloadId, u64>;

/// An instance of which something has come.
#[derive(Debug)]
pub(crate) struct Instance {
    layout: Layout,
    body: Body,
    /// When something of it came last, by the count of packets.
    pub(crate) touched: u64,
    /// Bytes of memory that it takes.
    pub(crate) cost: u64,
}

#[derive(Debug)]
enum Body {
    /// Source symbols as they are, as far as they have come: what a packet only claims takes no memory.
    Plain {
        symbols: BTreeMap<PayloadId, Vec<Version>>,
        /// Packets until an instance that was wrong is tried again.
        wait: u64,
    },
    Coded {
        blocks: Vec<CodedBlock>,
        seen: Fingerprints,
    },
}

/// A block that is decoded.
#[derive(Debug)]
enum CodedBlock {
    /// Its decoder, and how many symbols that was given.
    Open(Box<SourceBlockDecoder>, u32),
    Done(Vec<u8>),
}

/// More than enough symbols of an instance do not decode it: some of them are forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hopeless;

/// One of the symbols that came under the same number.
#[derive(Debug)]
struct Version {
    fingerprint: u64,
    bytes: Box<[u8]>,
    times: u32,
    /// When it came last.
    last: u64,
}

/// What an instance has to do with a symbol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It takes so many bytes of memory more; none for what is known, which is counted.
    Takes(u64),
    /// It is known and of no use.
    Known,
    /// The instance is not the one that the symbol is of.
    Contradiction,
}

impl Instance {
    /// An instance of this cut, of which nothing has come; `cost` as [`Instance::first_cost`] has it.
    pub(crate) fn new(layout: Layout, cost: u64) -> Instance {
        let body = match layout.oti() {
            Oti::NoCode { .. } => Body::Plain { symbols: BTreeMap::new(), wait: 0 },
            Oti::RaptorQ { .. } => {
                let blocks = (0..layout.blocks()).filter_map(|block| open(&layout, block)).collect();
                Body::Coded { blocks, seen: HashMap::new() }
            }
        };
        Instance { layout, body, touched: 0, cost }
    }

    /// Bytes of memory that an instance of this cut takes before anything of it has come.
    pub(crate) fn first_cost(layout: &Layout) -> u64 {
        match layout.oti() {
            Oti::NoCode { .. } => PER_INSTANCE,
            // A decoder makes room for all of its symbols at once.
            Oti::RaptorQ { .. } => {
                layout.padded_length() * DECODER_TIMES + symbols(layout) * PER_FINGERPRINT + PER_INSTANCE
            }
        }
    }

    /// What adding a symbol of this fingerprint comes to.
    pub(crate) fn look(&self, id: PayloadId, fingerprint: u64, length: usize) -> Look {
        match &self.body {
            Body::Plain { symbols, .. } => {
                let versions = symbols.get(&id).map_or(&[][..], Vec::as_slice);
                let is_known = versions.iter().any(|version| version.fingerprint == fingerprint);
                // Another of as many bytes leaves.
                let is_exchange = versions.len() >= MAX_VERSIONS;
                Look::Takes(if is_known || is_exchange { 0 } else { length as u64 + PER_VERSION })
            }
            Body::Coded { seen, .. } => match seen.get(&id) {
                Some(known) if *known != fingerprint => Look::Contradiction,
                None if seen.len() < MAX_SYMBOLS as usize => Look::Takes(0),
                _ => Look::Known,
            },
        }
    }

    /// Takes a symbol that is [`fitting`]; gives the instance's bytes, if it is complete and has not been tried like this just now.
    pub(crate) fn add(&mut self, id: PayloadId, fingerprint: u64, symbol: &[u8]) -> Result<Option<Vec<u8>>, Hopeless> {
        let now = self.touched;
        match &mut self.body {
            Body::Plain { symbols: known, wait } => {
                take_version(known.entry(id).or_default(), fingerprint, symbol, now);
                let count = symbols(&self.layout);
                if (known.len() as u64) < count {
                    return Ok(None);
                }
                if *wait > 0 {
                    *wait -= 1;
                    return Ok(None);
                }
                // So that each packet costs no more than its part of a look at the whole.
                *wait = count - 1;
                let best = known.values().filter_map(|versions| best(versions));
                Ok(Some(best.flat_map(|version| version.bytes.iter().copied()).collect()))
            }
            Body::Coded { blocks, seen } => {
                seen.insert(id, fingerprint);
                let Some(block) = blocks.get_mut(id.block as usize) else { return Ok(None) };
                block.add(id.symbol, symbol, self.layout.symbols(id.block))?;
                Ok(whole(blocks, self.layout.transfer_length()))
            }
        }
    }

    /// Whether it can be another than it was found to be, once more of its symbols have come.
    pub(crate) fn can_change(&self) -> bool {
        matches!(self.body, Body::Plain { .. }) && symbols(&self.layout) > 1
    }

    /// The fingerprints of what it consisted of.
    pub(crate) fn into_fingerprints(self) -> Fingerprints {
        match self.body {
            Body::Plain { symbols, .. } => {
                let best = symbols.iter().filter_map(|(id, versions)| Some((*id, best(versions)?.fingerprint)));
                best.collect()
            }
            Body::Coded { seen, .. } => seen,
        }
    }
}

impl CodedBlock {
    /// Takes a symbol of a block of `count`, and decodes it if it can be.
    fn add(&mut self, number: u32, symbol: &[u8], count: u32) -> Result<(), Hopeless> {
        let CodedBlock::Open(decoder, given) = self else { return Ok(()) };
        *given += 1;
        let packet = EncodingPacket::new(raptorq::PayloadId::new(0, number), symbol.to_vec());
        match decoder.decode([packet]) {
            Some(decoded) => *self = CodedBlock::Done(decoded),
            None if *given >= count + MAX_EXTRA => return Err(Hopeless),
            None => {}
        }
        Ok(())
    }
}

/// A block of which nothing has come.
fn open(layout: &Layout, block: u32) -> Option<CodedBlock> {
    let length = u64::from(layout.symbols(block)) * layout.symbol_size() as u64;
    let decoder = SourceBlockDecoder::new(0, &layout.codec()?, length);
    Some(CodedBlock::Open(Box::new(decoder), 0))
}

/// The instance, if all of its blocks are decoded.
fn whole(blocks: &[CodedBlock], length: u64) -> Option<Vec<u8>> {
    let decoded = blocks.iter().map(|block| match block {
        CodedBlock::Done(decoded) => Some(&decoded[..]),
        CodedBlock::Open(..) => None,
    });
    let mut bytes = decoded.collect::<Option<Vec<&[u8]>>>()?.concat();
    bytes.truncate(length as usize);
    Some(bytes)
}

/// Counts a symbol that is known, or keeps it, in the place of the one that came least often where there are many.
fn take_version(versions: &mut Vec<Version>, fingerprint: u64, symbol: &[u8], now: u64) {
    if let Some(version) = versions.iter_mut().find(|version| version.fingerprint == fingerprint) {
        version.times = version.times.saturating_add(1);
        version.last = now;
        return;
    }
    if versions.len() >= MAX_VERSIONS
        && let Some((worst, _)) = versions.iter().enumerate().min_by_key(|(_, version)| (version.times, version.last))
    {
        versions.swap_remove(worst);
    }
    versions.push(Version { fingerprint, bytes: symbol.into(), times: 1, last: now });
}

/// The symbol that came most often, and of several the last.
fn best(versions: &[Version]) -> Option<&Version> {
    versions.iter().max_by_key(|version| (version.times, version.last))
}

/// The part of `symbol` that belongs to an instance of this cut under this number; none for what cannot be of it.
pub(crate) fn fitting<'s>(layout: &Layout, id: PayloadId, symbol: &'s [u8]) -> Option<&'s [u8]> {
    if id.block >= layout.blocks() || id.symbol >= layout.esi_limit(id.block) || symbol.len() > layout.symbol_size() {
        return None;
    }
    match layout.oti() {
        // The last source symbol may be sent without its filling.
        Oti::NoCode { .. } => {
            let start = layout.offset(id.block) + u64::from(id.symbol) * layout.symbol_size() as u64;
            let left = layout.transfer_length().checked_sub(start)?;
            symbol.get(..left.min(layout.symbol_size() as u64) as usize)
        }
        Oti::RaptorQ { .. } => Some(symbol).filter(|symbol| symbol.len() == layout.symbol_size()),
    }
}

/// Whether an instance of this cut is looked at.
pub(crate) fn is_sensible(layout: &Layout) -> bool {
    let most = if matches!(layout.oti(), Oti::RaptorQ { .. }) { MAX_CODED } else { MAX_SYMBOLS };
    let symbols = symbols(layout);
    symbols <= most && (symbols <= 1 || layout.symbol_size() >= SMALLEST_SYMBOL)
}

/// What tells symbols apart.
pub(crate) fn fingerprint(symbol: &[u8]) -> u64 {
    let hash = blake3::hash(symbol);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("8 of 32 bytes"))
}

/// Bytes of memory that these fingerprints take.
pub(crate) fn fingerprints_cost(fingerprints: &Fingerprints) -> u64 {
    fingerprints.len() as u64 * PER_FINGERPRINT + PER_INSTANCE
}

fn symbols(layout: &Layout) -> u64 {
    layout.symbols_before(layout.blocks())
}

/// Symbols of one instance that are looked at; repair symbols of a hostile sender would never end.
const MAX_SYMBOLS: u64 = 8192;
/// Source symbols of an instance that has to be decoded: more would take a decoder seconds.
const MAX_CODED: u64 = 1024;
/// Symbols beyond those of a block with which it is tried: with honest ones the chance that it takes more is below 10^-10. Each
/// try takes milliseconds, and symbols can be chosen of which no number is enough.
const MAX_EXTRA: u32 = 4;
/// Bytes of a symbol of an instance that has several: fewer make accounts larger than what they are of.
const SMALLEST_SYMBOL: usize = 32;
/// Symbols that are kept under one number.
const MAX_VERSIONS: usize = 4;
/// Bytes of a decoder for each byte that it decodes: the symbols, its copies of them, and the result.
const DECODER_TIMES: u64 = 6;
/// Bytes that the account of one symbol takes: as a fingerprint, in a map that has grown last, and in a decoder; and with its bytes.
const PER_FINGERPRINT: u64 = 64;
const PER_VERSION: u64 = 128;
const PER_INSTANCE: u64 = 512;
