//! Puts FDT instances together from the packets of TOI 0.
//!
//! Not here: what is in them. Everything is bounded: the memory of all together, instances at a time, their size, what is
//! remembered of old ones. Packets of different senders never meet in one instance, so that who sends others under the sender's
//! numbers keeps nobody from putting the right ones together.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use raptorq::{EncodingPacket, SourceBlockDecoder};
use weir_wire::alc::Content;
use weir_wire::fec::{Oti, PayloadId};

use super::budget::Budget;
use super::senders::Origin;
use crate::partition::Layout;

/// The instances that are being received and those that were.
#[derive(Debug)]
pub(crate) struct FdtAssembler {
    max_bytes: usize,
    /// Whether only tables as Weir's senders sign them are looked at: without a code, not compressed.
    only_plain: bool,
    pending: BTreeMap<Id, Pending>,
    /// A print of each symbol that a finished instance consisted of, so that a sender that starts again with the same id and
    /// other content is noticed.
    finished: BTreeMap<Id, Prints>,
    clock: u64,
}

/// An instance: who sent it, under which id.
type Id = (Origin, u32);

type Prints = HashMap<PayloadId, u32>;

#[derive(Debug)]
struct Pending {
    layout: Layout,
    content_encoding: u8,
    body: Body,
    seen: Prints,
    touched: u64,
    /// What it takes of the budget.
    cost: u64,
}

#[derive(Debug)]
enum Body {
    /// Source symbols as they are, as far as they have come: what a packet only claims takes no memory.
    Plain {
        symbols: Vec<(PayloadId, Box<[u8]>)>,
        missing: u64,
    },
    Coded(Vec<CodedBlock>),
}

/// A block that is decoded.
#[derive(Debug)]
enum CodedBlock {
    /// Its decoder, and how many symbols that was given.
    Open(Box<SourceBlockDecoder>, u32),
    Done(Vec<u8>),
}

/// What a symbol shows not to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Useless {
    /// The symbol.
    Symbol,
    /// Its instance, which cannot be decoded from more than enough symbols: some of them are forged.
    Instance,
}

/// What became of a packet of TOI 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// An instance is complete: its bytes as they were sent, and how they are encoded.
    Instance(Vec<u8>, u8),
    /// Nothing yet, or nothing new.
    Nothing,
    /// The packet makes no sense.
    Unusable,
}

impl FdtAssembler {
    /// An assembler for instances of up to `max_bytes`; with `only_plain`, for those that need neither a decoder nor to be
    /// unpacked.
    pub(crate) fn new(max_bytes: usize, only_plain: bool) -> FdtAssembler {
        FdtAssembler { max_bytes, only_plain, pending: BTreeMap::new(), finished: BTreeMap::new(), clock: 0 }
    }

    pub(crate) fn add(&mut self, content: &Content, symbol: &[u8], origin: Origin, budget: &mut Budget) -> Assembled {
        let (Some(fdt), Some(oti)) = (content.fdt, content.oti) else { return Assembled::Unusable };
        let is_plain = matches!(oti, Oti::NoCode { .. }) && fdt.content_encoding == 0;
        if oti.encoding_id() != content.encoding_id || (self.only_plain && !is_plain) {
            return Assembled::Unusable;
        }
        let Some(layout) = self.layout(oti) else { return Assembled::Unusable };
        let (id, print) = ((origin, fdt.id), fingerprint(symbol));
        if let Some(symbols) = self.finished.get(&id) {
            match symbols.get(&content.payload_id) {
                Some(known) if *known != print => self.forget(fdt.id, origin, budget),
                _ => return Assembled::Nothing,
            }
        }
        let fits = |pending: &Pending| {
            pending.layout == layout
                && pending.content_encoding == fdt.content_encoding
                && pending.seen.get(&content.payload_id).is_none_or(|known| *known == print)
        };
        if !self.pending.get(&id).is_some_and(fits) && !self.begin(id, layout, fdt.content_encoding, budget) {
            return Assembled::Unusable;
        }
        self.clock += 1;
        let pending = self.pending.get_mut(&id).expect("was there or was just inserted");
        pending.touched = self.clock;
        let growth = pending.growth(symbol);
        if !self.make_room(growth, Some(id), budget) || !budget.take(growth) {
            return Assembled::Nothing;
        }
        let pending = self.pending.get_mut(&id).expect("room is not made of it");
        pending.cost += growth;
        if pending.seen.len() >= MAX_SEEN || pending.seen.insert(content.payload_id, print).is_some() {
            return Assembled::Nothing;
        }
        match pending.add(content.payload_id, symbol) {
            Ok(None) => Assembled::Nothing,
            Ok(Some(bytes)) => self.finish(id, bytes, budget),
            Err(useless) => {
                if useless == Useless::Instance {
                    self.drop_pending(id, budget);
                }
                Assembled::Unusable
            }
        }
    }

    /// The cut of an instance, if it is one that is looked at.
    fn layout(&self, oti: Oti) -> Option<Layout> {
        let layout = Layout::new(oti).ok().filter(|_| oti.transfer_length() <= self.max_bytes as u64)?;
        let symbols = layout.symbols_before(layout.blocks());
        let is_coded = matches!(oti, Oti::RaptorQ { .. });
        let most = if is_coded { MAX_CODED } else { MAX_SEEN as u64 };
        (symbols <= most && (symbols <= 1 || layout.symbol_size() >= SMALLEST_SYMBOL)).then_some(layout)
    }

    /// Makes room for an instance, and begins it; whether there was room.
    fn begin(&mut self, id: Id, layout: Layout, content_encoding: u8, budget: &mut Budget) -> bool {
        self.drop_pending(id, budget);
        let cost = cost(&layout);
        let has_room = self.make_room(cost, None, budget) && budget.take(cost);
        if has_room {
            self.pending.insert(id, Pending::new(layout, content_encoding, cost));
        }
        has_room
    }

    /// Drops the instances that were left alone longest until there is room for so many bytes, or for another instance than `keep`;
    /// whether there is.
    fn make_room(&mut self, bytes: u64, keep: Option<Id>, budget: &mut Budget) -> bool {
        while (keep.is_none() && self.pending.len() >= MAX_PENDING) || !budget.has(bytes) {
            let others = self.pending.iter().filter(|(id, _)| Some(**id) != keep);
            let oldest = others.min_by_key(|(_, pending)| pending.touched).map(|(id, _)| *id);
            match oldest {
                Some(oldest) => self.drop_pending(oldest, budget),
                None => return false,
            }
        }
        true
    }

    fn drop_pending(&mut self, id: Id, budget: &mut Budget) {
        if let Some(pending) = self.pending.remove(&id) {
            budget.give(pending.cost);
        }
    }

    fn finish(&mut self, id: Id, bytes: Vec<u8>, budget: &mut Budget) -> Assembled {
        let pending = self.pending.remove(&id).expect("is there");
        budget.give(pending.cost);
        let cost = prints_cost(&pending.seen);
        while self.finished.len() >= MAX_FINISHED || (!budget.has(cost) && !self.finished.is_empty()) {
            if let Some((_, oldest)) = self.finished.pop_first() {
                budget.give(prints_cost(&oldest));
            }
        }
        if budget.take(cost) {
            self.finished.insert(id, pending.seen);
        }
        Assembled::Instance(bytes, pending.content_encoding)
    }

    /// Forgets that instance `id` was received: it could not be used, and may come again.
    pub(crate) fn forget(&mut self, id: u32, origin: Origin, budget: &mut Budget) {
        if let Some(prints) = self.finished.remove(&(origin, id)) {
            budget.give(prints_cost(&prints));
        }
    }
}

/// Bytes of memory that an instance of this cut takes before anything of it has come.
fn cost(layout: &Layout) -> u64 {
    match layout.oti() {
        Oti::NoCode { .. } => PER_INSTANCE,
        // A decoder makes room for all of its symbols at once.
        Oti::RaptorQ { .. } => {
            layout.padded_length() * DECODER_TIMES + layout.symbols_before(layout.blocks()) * PER_SYMBOL + PER_INSTANCE
        }
    }
}

fn prints_cost(prints: &Prints) -> u64 {
    prints.len() as u64 * PER_SYMBOL + PER_INSTANCE
}

impl Pending {
    fn new(layout: Layout, content_encoding: u8, cost: u64) -> Pending {
        let body = match layout.oti() {
            Oti::NoCode { .. } => Body::Plain { symbols: Vec::new(), missing: layout.symbols_before(layout.blocks()) },
            Oti::RaptorQ { .. } => Body::Coded((0..layout.blocks()).filter_map(|block| open(&layout, block)).collect()),
        };
        Pending { layout, content_encoding, body, seen: HashMap::new(), touched: 0, cost }
    }

    /// Bytes of memory that another symbol takes.
    fn growth(&self, symbol: &[u8]) -> u64 {
        match self.body {
            Body::Plain { .. } => symbol.len() as u64 + PER_SYMBOL,
            Body::Coded(_) => 0,
        }
    }

    fn add(&mut self, id: PayloadId, symbol: &[u8]) -> Result<Option<Vec<u8>>, Useless> {
        let symbol_size = self.layout.symbol_size();
        if id.symbol >= self.layout.esi_limit(id.block) || id.block >= self.layout.blocks() {
            return Err(Useless::Symbol);
        }
        match &mut self.body {
            Body::Plain { symbols, missing } => {
                let length = self.layout.transfer_length() as usize;
                let start = self.layout.offset(id.block) as usize + id.symbol as usize * symbol_size;
                let size = symbol_size.min(length - start);
                let part = symbol.get(..size).filter(|_| symbol.len() <= symbol_size);
                let part = part.ok_or(Useless::Symbol)?;
                symbols.push((id, part.into()));
                *missing -= 1;
                if *missing > 0 {
                    return Ok(None);
                }
                symbols.sort_unstable_by_key(|(id, _)| (id.block, id.symbol));
                Ok(Some(symbols.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()))
            }
            Body::Coded(blocks) => {
                let block = blocks.get_mut(id.block as usize).filter(|_| symbol.len() == symbol_size);
                block.ok_or(Useless::Symbol)?.add(id.symbol, symbol, self.layout.symbols(id.block))?;
                Ok(whole(blocks, self.layout.transfer_length()))
            }
        }
    }
}

impl CodedBlock {
    /// Takes a symbol of a block of `count`, and decodes it if it can be.
    fn add(&mut self, number: u32, symbol: &[u8], count: u32) -> Result<(), Useless> {
        let CodedBlock::Open(decoder, given) = self else { return Ok(()) };
        *given += 1;
        let packet = EncodingPacket::new(raptorq::PayloadId::new(0, number), symbol.to_vec());
        match decoder.decode([packet]) {
            Some(decoded) => *self = CodedBlock::Done(decoded),
            None if *given >= count + MAX_EXTRA => return Err(Useless::Instance),
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

/// Undoes the content encoding of an instance (RFC 6726 §3.4.3), if that gives at most `max_bytes`, and not very much more than
/// there are.
pub(crate) fn unpack(bytes: Vec<u8>, content_encoding: u8, max_bytes: usize) -> Option<Vec<u8>> {
    let max_bytes = max_bytes.min(bytes.len().saturating_mul(MAX_RATIO).saturating_add(FREE_BYTES));
    let limit = max_bytes as u64 + 1;
    let mut out = Vec::new();
    let read = match content_encoding {
        0 => return Some(bytes),
        1 => flate2::read::ZlibDecoder::new(&bytes[..]).take(limit).read_to_end(&mut out),
        2 => flate2::read::DeflateDecoder::new(&bytes[..]).take(limit).read_to_end(&mut out),
        3 => flate2::read::GzDecoder::new(&bytes[..]).take(limit).read_to_end(&mut out),
        _ => return None,
    };
    (read.is_ok() && out.len() <= max_bytes).then_some(out)
}

fn fingerprint(symbol: &[u8]) -> u32 {
    let hash = blake3::hash(symbol);
    u32::from_le_bytes(hash.as_bytes()[..4].try_into().expect("4 of 32 bytes"))
}

/// Instances that are received at the same time: as many as a table of 10 000 files has, twice.
const MAX_PENDING: usize = 256;
const MAX_FINISHED: usize = 1024;
/// Symbols of one instance that are looked at; repair symbols of a hostile sender would never end.
const MAX_SEEN: usize = 8192;
/// Source symbols of an instance that has to be decoded: more would take a decoder seconds.
const MAX_CODED: u64 = 1024;
/// Symbols beyond those of a block with which it is tried: with honest ones the chance that it takes more is below 10^-10. Each
/// try takes milliseconds, and symbols can be chosen of which no number is enough.
const MAX_EXTRA: u32 = 4;
/// Bytes of a symbol of an instance that has several: fewer make accounts larger than what they are of.
const SMALLEST_SYMBOL: usize = 32;
/// Bytes of a decoder for each byte that it decodes: the symbols, its copies of them, and the result.
const DECODER_TIMES: u64 = 6;
/// Bytes that the accounts of one symbol take: in a map that has grown last, and in a decoder.
const PER_SYMBOL: u64 = 64;
const PER_INSTANCE: u64 = 512;
/// An XML table shrinks to a tenth or so; one that grows by more than this is no table.
const MAX_RATIO: usize = 64;
/// A small table may grow to this all the same.
const FREE_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use weir_wire::alc::FdtInstance;

    const A: Origin = Origin(1);
    const B: Origin = Origin(2);

    /// An assembler, and memory for it.
    struct Bench(FdtAssembler, Budget);

    impl Bench {
        fn new() -> Bench {
            Bench(FdtAssembler::new(1000, false), Budget::new(100_000))
        }

        fn add(&mut self, content: &Content, symbol: &[u8]) -> Assembled {
            self.add_from(A, content, symbol)
        }

        fn add_from(&mut self, origin: Origin, content: &Content, symbol: &[u8]) -> Assembled {
            self.0.add(content, symbol, origin, &mut self.1)
        }
    }

    fn content(id: u32, symbol: u32, length: usize, content_encoding: u8) -> Content {
        Content {
            toi: 0,
            encoding_id: 0,
            payload_id: PayloadId { block: 0, symbol },
            fdt: Some(FdtInstance { version: 2, id, content_encoding }),
            oti: Some(Oti::NoCode { transfer_length: length as u64, symbol_size: 40, max_block_len: 64 }),
        }
    }

    fn instance(bytes: &[u8]) -> Assembled {
        Assembled::Instance(bytes.to_vec(), 0)
    }

    #[test]
    fn an_instance_is_put_together_in_any_order_and_told_once() {
        let mut fdt = Bench::new();
        let whole: Vec<u8> = (0..70).collect();
        assert_eq!(fdt.add(&content(1, 1, 70, 0), &whole[40..]), Assembled::Nothing);
        assert_eq!(fdt.add(&content(1, 0, 70, 0), &whole[..40]), instance(&whole));
        assert_eq!(fdt.add(&content(1, 0, 70, 0), &whole[..40]), Assembled::Nothing);
    }

    #[test]
    fn a_restarted_sender_with_the_same_id_is_noticed() {
        let mut fdt = Bench::new();
        assert_eq!(fdt.add(&content(1, 0, 4, 0), b"abcd"), instance(b"abcd"));
        assert_eq!(fdt.add(&content(1, 0, 4, 0), b"ABCD"), instance(b"ABCD"));
    }

    #[test]
    fn nobody_s_packets_come_between_those_of_another() {
        let mut fdt = Bench::new();
        let whole: Vec<u8> = (0..70).collect();
        assert_eq!(fdt.add(&content(1, 0, 70, 0), &whole[..40]), Assembled::Nothing);
        for length in [70, 50] {
            assert_eq!(fdt.add_from(B, &content(1, 0, length, 0), &[7; 40]), Assembled::Nothing);
        }
        assert_eq!(fdt.add(&content(1, 1, 70, 0), &whole[40..]), instance(&whole));
    }

    #[test]
    fn compressed_instances_are_unpacked_up_to_the_limit() {
        for (length, expected) in [(900, true), (1100, false)] {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            packer.write_all(&vec![b'x'; length]).expect("in memory");
            let packed = packer.finish().expect("in memory");
            assert_eq!(unpack(packed, 3, 1000) == Some(vec![b'x'; length]), expected);
        }
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b'x'; 500_000]).expect("in memory");
        assert_eq!(unpack(packer.finish().expect("in memory"), 3, 1 << 20), None, "a thousand times what was sent");
    }

    #[test]
    fn where_tables_are_signed_nothing_is_decoded_or_unpacked() {
        let (mut fdt, mut budget) = (FdtAssembler::new(1000, true), Budget::new(100_000));
        let coded = Oti::RaptorQ { transfer_length: 900, symbol_size: 40, blocks: 1, sub_blocks: 1, alignment: 8 };
        let coded = Content { encoding_id: 6, oti: Some(coded), ..content(1, 0, 900, 0) };
        assert_eq!(fdt.add(&coded, &[0; 40], A, &mut budget), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 0, 4, 3), b"abcd", A, &mut budget), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 0, 4, 0), b"abcd", A, &mut budget), instance(b"abcd"));
    }

    /// What a packet of a coded instance says.
    fn coded(id: u32, block: u32, symbol: u32, length: u64, blocks: u8) -> Content {
        let oti = Oti::RaptorQ { transfer_length: length, symbol_size: 40, blocks, sub_blocks: 1, alignment: 8 };
        let payload_id = PayloadId { block, symbol };
        Content { encoding_id: 6, payload_id, oti: Some(oti), ..content(id, 0, 0, 0) }
    }

    #[test]
    fn a_coded_instance_of_several_blocks_is_decoded_from_any_of_its_symbols() {
        let mut fdt = Bench::new();
        let whole: Vec<u8> = (0..810u32).map(|i| i as u8).collect();
        let config = raptorq::ObjectTransmissionInformation::new(810, 40, 2, 1, 8);
        let packets = raptorq::Encoder::new(&whole, config).get_encoded_packets(6);
        let mut last = Assembled::Nothing;
        for packet in packets.iter().filter(|packet| packet.payload_id().encoding_symbol_id() >= 4) {
            let id = packet.payload_id();
            assert_eq!(last, Assembled::Nothing);
            last = fdt.add(&coded(1, id.source_block_number().into(), id.encoding_symbol_id(), 810, 2), packet.data());
            if last != Assembled::Nothing {
                break;
            }
        }
        assert_eq!(last, instance(&whole));
    }

    #[test]
    fn symbols_that_say_nothing_of_a_part_are_given_up_soon() {
        let (mut fdt, count) = (Bench::new(), 20);
        let mut data = vec![0; count as usize * 40];
        data[0] = 1;
        // Repair symbols in which the first source symbol is not: however many come, nobody can decode that one.
        let config = raptorq::ObjectTransmissionInformation::new(data.len() as u64, 40, 1, 1, 8);
        let encoder = raptorq::Encoder::new(&data, config);
        let packets = encoder.get_block_encoders()[0].repair_packets(0, 60_000);
        let useless = packets.iter().filter(|packet| packet.data().iter().all(|byte| *byte == 0));
        let useless: Vec<u32> = useless.map(|packet| packet.payload_id().encoding_symbol_id()).take(100).collect();
        assert_eq!(useless.len(), 100, "there are enough of them");
        let results = useless.iter().map(|symbol| fdt.add(&coded(1, 0, *symbol, 800, 1), &[0; 40]));
        let given_up = results.filter(|result| *result == Assembled::Unusable).count();
        assert!(given_up >= 4, "a hundred symbols of a block of {count}: given up {given_up} times");
        // What is true is decoded all the same.
        let mut last = Assembled::Nothing;
        for symbol in 0..count {
            last = fdt.add(&coded(2, 0, symbol, 800, 1), &[7; 40]);
        }
        assert_eq!(last, instance(&[7; 800]));
    }

    #[test]
    fn lying_packets_are_unusable() {
        let mut fdt = Bench::new();
        let no_oti = Content { oti: None, ..content(1, 0, 70, 0) };
        assert_eq!(fdt.add(&no_oti, &[0; 40]), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 0, 1001, 0), &[0; 40]), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 2, 70, 0), &[0; 40]), Assembled::Unusable);
        assert_eq!(fdt.add(&content(2, 0, 70, 0), &[0; 39]), Assembled::Unusable);
    }

    #[test]
    fn what_others_claim_does_not_push_out_what_has_come() {
        let (mut fdt, mut budget) = (FdtAssembler::new(8 << 20, true), Budget::new(1 << 20));
        let whole: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        let cut =
            |length: usize| Oti::NoCode { transfer_length: length as u64, symbol_size: 1400, max_block_len: 8000 };
        let mut last = Assembled::Nothing;
        for (number, symbol) in whole.chunks(1400).enumerate() {
            let real = Content { oti: Some(cut(whole.len())), ..content(1, number as u32, 0, 0) };
            last = fdt.add(&real, symbol, A, &mut budget);
            let claim = Content { oti: Some(cut(8 << 20)), ..content(100 + number as u32, 0, 0, 0) };
            assert_eq!(fdt.add(&claim, &[7; 1400], B, &mut budget), Assembled::Nothing);
        }
        assert_eq!(last, instance(&whole));
    }

    #[test]
    fn whatever_comes_memory_stays_within_the_budget() {
        let (mut fdt, mut budget) = (FdtAssembler::new(1 << 20, false), Budget::new(3 << 20));
        for id in 0..20_000u32 {
            let length = u64::from(1 + id % 7) * 100_000;
            let (symbol_size, blocks) = ([1, 32, 1400, 60_000][id as usize % 4], (id % 200 + 1) as u8);
            let coded = Oti::RaptorQ { transfer_length: length, symbol_size, blocks, sub_blocks: 1, alignment: 1 };
            let plain = Oti::NoCode { transfer_length: length, symbol_size, max_block_len: 1 << 16 };
            let (encoding_id, oti) = if id % 3 == 0 { (6, coded) } else { (0, plain) };
            let content = Content { encoding_id, oti: Some(oti), ..content(id, 0, 0, 0) };
            fdt.add(&content, &vec![id as u8; usize::from(symbol_size)], Origin((id % 5) as u8), &mut budget);
            assert!(budget.used() <= 3 << 20 && fdt.pending.len() <= MAX_PENDING);
            assert_eq!(budget.used(), fdt.pending.values().map(|pending| pending.cost).sum::<u64>());
        }
        assert!(!fdt.pending.is_empty(), "some of them are looked at");
    }
}
