//! Puts FDT instances together from the packets of TOI 0.
//!
//! Not here: what is in them. Everything is bounded: the memory of all together, which is a share of its own, instances at a
//! time, their size, what is remembered of old ones. Packets of different senders never meet in one instance, and one that takes more
//! memory than others loses it first, so that an attacker that sends others under the sender's numbers keeps nobody from putting the right
//! ones together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;

use weir_wire::alc::Content;
use weir_wire::fec::Oti;

use super::budget::Budget;
use super::instance::{self, Fingerprints, Hopeless, Instance, Look};
use super::senders::Origin;
use crate::partition::Layout;

/// The instances that are being received and those that were.
#[derive(Debug)]
pub(crate) struct FdtAssembler {
    max_bytes: usize,
    /// Whether only tables as Weir's senders sign them are looked at: without a code, not compressed.
    only_plain: bool,
    /// Memory for all of them.
    memory: Budget,
    pending: BTreeMap<Id, Instance>,
    finished: BTreeMap<Id, Finished>,
    /// Counts packets.
    clock: u64,
}

/// An instance: who sent it, under which number, how it is cut, and how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    origin: Origin,
    number: u32,
    encoding_id: u8,
    cut: [u8; 14],
    pub(crate) content_encoding: u8,
}

/// An instance that was received, so that a sender that starts again with the same number and other content is noticed.
#[derive(Debug)]
struct Finished {
    fingerprints: Fingerprints,
    at: u64,
}

/// What became of a packet of TOI 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// An instance is complete: its bytes as they were sent. Whoever reads them says what they are worth, by
    /// [`FdtAssembler::finish`], [`FdtAssembler::forget`] or [`FdtAssembler::reject`].
    Instance(Id, Vec<u8>),
    /// Nothing yet, or nothing new.
    Nothing,
    /// The packet makes no sense.
    Unusable,
}

impl FdtAssembler {
    /// An assembler for instances of up to `max_bytes` that takes `memory` bytes; with `only_plain`, for instances that need neither a
    /// decoder nor to be unpacked.
    pub(crate) fn new(max_bytes: usize, only_plain: bool, memory: u64) -> FdtAssembler {
        let (pending, finished) = (BTreeMap::new(), BTreeMap::new());
        FdtAssembler { max_bytes, only_plain, memory: Budget::new(memory), pending, finished, clock: 0 }
    }

    /// Bytes of memory that are taken.
    pub(crate) fn used(&self) -> u64 {
        self.memory.used()
    }

    pub(crate) fn add(&mut self, content: &Content, symbol: &[u8], origin: Origin) -> Assembled {
        let Some((id, layout)) = self.identify(content, origin) else { return Assembled::Unusable };
        let Some(symbol) = instance::fitting(&layout, content.payload_id, symbol) else { return Assembled::Unusable };
        let fingerprint = instance::fingerprint(symbol);
        self.clock += 1;
        if let Some(finished) = self.finished.get(&id) {
            match finished.fingerprints.get(&content.payload_id) {
                Some(known) if *known != fingerprint => self.forget(id),
                _ => return Assembled::Nothing,
            }
        }
        self.add_new(id, layout, content, fingerprint, symbol)
    }

    /// Which instance a packet is of, and how that is cut, if it is one that is looked at.
    fn identify(&self, content: &Content, origin: Origin) -> Option<(Id, Layout)> {
        let (fdt, oti) = (content.fdt?, content.oti?);
        let is_plain = matches!(oti, Oti::NoCode { .. }) && fdt.content_encoding == 0;
        if oti.encoding_id() != content.encoding_id || (self.only_plain && !is_plain) {
            return None;
        }
        let layout = Layout::new(oti).ok().filter(|_| oti.transfer_length() <= self.max_bytes as u64)?;
        let (encoding_id, cut, content_encoding) = (oti.encoding_id(), oti.encode(), fdt.content_encoding);
        let id = Id { origin, number: fdt.id, encoding_id, cut, content_encoding };
        instance::is_sensible(&layout).then_some((id, layout))
    }

    /// Adds a symbol to an instance that is not finished. What is known already takes no memory again.
    fn add_new(&mut self, id: Id, layout: Layout, content: &Content, fingerprint: u64, symbol: &[u8]) -> Assembled {
        let look = |pending: &Instance| pending.look(content.payload_id, fingerprint, symbol.len());
        let mut found = self.pending.get(&id).map(look);
        if matches!(found, None | Some(Look::Contradiction)) {
            self.drop_pending(id);
            found = self.begin(id, layout).map(look);
        }
        let Some(Look::Takes(bytes)) = found else { return Assembled::Nothing };
        let has_room = self.make_room(bytes, id.origin, Some(id)) && self.memory.take(bytes);
        let Some(pending) = self.pending.get_mut(&id).filter(|_| has_room) else { return Assembled::Nothing };
        pending.cost += bytes;
        pending.touched = self.clock;
        match pending.add(content.payload_id, fingerprint, symbol) {
            Ok(whole) => whole.map_or(Assembled::Nothing, |bytes| Assembled::Instance(id, bytes)),
            Err(Hopeless) => {
                self.drop_pending(id);
                Assembled::Unusable
            }
        }
    }

    /// Begins an instance, if there is room.
    fn begin(&mut self, id: Id, layout: Layout) -> Option<&Instance> {
        let cost = Instance::first_cost(&layout);
        if !self.make_room(cost, id.origin, None) || !self.memory.take(cost) {
            return None;
        }
        Some(self.pending.entry(id).or_insert(Instance::new(layout, cost)))
    }

    /// Makes room for so many bytes of an instance of `origin`: of `keep`, or else of a new one. Whether there is.
    fn make_room(&mut self, bytes: u64, origin: Origin, keep: Option<Id>) -> bool {
        while self.memory.could_have(bytes) {
            let is_crowded = keep.is_none() && self.pending.len() >= MAX_PENDING;
            if !is_crowded && self.memory.has(bytes) {
                return true;
            }
            // What is finished only saves work.
            if !is_crowded && self.drop_oldest_finished() {
                continue;
            }
            let Some(id) = self.to_drop(bytes, origin, keep, is_crowded) else { return false };
            self.drop_pending(id);
        }
        false
    }

    /// The instance that is given up for so many bytes of one of `origin`: of the sender that has most of them, or most bytes in them,
    /// the one that was left alone longest. Nobody loses one that something comes of to a sender that would then have as much.
    fn to_drop(&self, bytes: u64, origin: Origin, keep: Option<Id>, is_crowded: bool) -> Option<Id> {
        let mut held = [0u64; 1 << u8::BITS];
        for (id, pending) in &self.pending {
            held[usize::from(id.origin.0)] += if is_crowded { 1 } else { pending.cost };
        }
        let of = |id: &Id| held[usize::from(id.origin.0)];
        let wanted = held[usize::from(origin.0)] + if is_crowded { 1 } else { bytes };
        let is_stale = |pending: &Instance| self.clock - pending.touched > STALE;
        let can_go = |id: &Id, pending: &Instance| id.origin == origin || of(id) > wanted || is_stale(pending);
        let others = self.pending.iter().filter(|(id, pending)| Some(**id) != keep && can_go(id, pending));
        others.max_by_key(|(id, pending)| (of(id), Reverse(pending.touched))).map(|(id, _)| *id)
    }

    fn drop_pending(&mut self, id: Id) {
        if let Some(pending) = self.pending.remove(&id) {
            self.memory.give(pending.cost);
        }
    }

    fn drop_oldest_finished(&mut self) -> bool {
        let oldest = self.finished.iter().min_by_key(|(_, finished)| finished.at).map(|(id, _)| *id);
        oldest.into_iter().for_each(|id| self.forget(id));
        oldest.is_some()
    }

    /// An instance that was complete counts: it is not put together again.
    pub(crate) fn finish(&mut self, id: Id) {
        let Some(pending) = self.pending.remove(&id) else { return };
        self.memory.give(pending.cost);
        let fingerprints = pending.into_fingerprints();
        let cost = instance::fingerprints_cost(&fingerprints);
        while self.finished.len() >= MAX_FINISHED || !self.memory.has(cost) {
            if !self.drop_oldest_finished() {
                return;
            }
        }
        if self.memory.take(cost) {
            self.finished.insert(id, Finished { fingerprints, at: self.clock });
        }
    }

    /// Forgets an instance, which may come again.
    pub(crate) fn forget(&mut self, id: Id) {
        self.drop_pending(id);
        if let Some(finished) = self.finished.remove(&id) {
            self.memory.give(instance::fingerprints_cost(&finished.fingerprints));
        }
    }

    /// Forgets what was complete, which is of another start of the sender: its numbers come again.
    pub(crate) fn forget_finished(&mut self) {
        while self.drop_oldest_finished() {}
    }

    /// An instance that was complete is not the sender's: others of its symbols may be.
    pub(crate) fn reject(&mut self, id: Id) {
        if !self.pending.get(&id).is_some_and(Instance::can_change) {
            self.forget(id);
        }
    }
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

/// Instances that are received at the same time: as many as a table of 10 000 files has, twice.
const MAX_PENDING: usize = 256;
const MAX_FINISHED: usize = 1024;
/// Packets of tables after which one of which nothing has come is nobody's loss.
const STALE: u64 = 1024;
/// An XML table shrinks to a tenth or so; one that grows by more than this is no table.
const MAX_RATIO: usize = 64;
/// A small table may grow to this all the same.
const FREE_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use weir_wire::alc::FdtInstance;
    use weir_wire::fec::PayloadId;

    const A: Origin = Origin(1);
    const B: Origin = Origin(2);

    /// An assembler whose instances are believed as they come.
    struct Bench(FdtAssembler);

    impl Bench {
        fn new() -> Bench {
            Bench(FdtAssembler::new(1000, false, 100_000))
        }

        fn add(&mut self, content: &Content, symbol: &[u8]) -> Assembled {
            self.add_from(A, content, symbol)
        }

        fn add_from(&mut self, origin: Origin, content: &Content, symbol: &[u8]) -> Assembled {
            let assembled = self.0.add(content, symbol, origin);
            if let Assembled::Instance(id, _) = assembled {
                self.0.finish(id);
            }
            assembled
        }
    }

    fn content(id: u32, symbol: u32, length: usize, content_encoding: u8) -> Content {
        Content {
            toi: 0,
            encoding_id: 0,
            payload_id: PayloadId { block: 0, symbol },
            fdt: Some(FdtInstance { version: 2, id, content_encoding }),
            oti: Some(Oti::NoCode { transfer_length: length as u64, symbol_size: 40, max_block_len: 64 }),
            ask: None,
        }
    }

    fn bytes(assembled: Assembled) -> Option<Vec<u8>> {
        match assembled {
            Assembled::Instance(_, bytes) => Some(bytes),
            Assembled::Nothing | Assembled::Unusable => None,
        }
    }

    #[test]
    fn an_instance_is_put_together_in_any_order_and_told_once() {
        let mut fdt = Bench::new();
        let whole: Vec<u8> = (0..70).collect();
        assert_eq!(fdt.add(&content(1, 1, 70, 0), &whole[40..]), Assembled::Nothing);
        assert_eq!(bytes(fdt.add(&content(1, 0, 70, 0), &whole[..40])), Some(whole.clone()));
        assert_eq!(fdt.add(&content(1, 0, 70, 0), &whole[..40]), Assembled::Nothing);
    }

    #[test]
    fn a_restarted_sender_with_the_same_id_is_noticed() {
        let mut fdt = Bench::new();
        assert_eq!(bytes(fdt.add(&content(1, 0, 4, 0), b"abcd")), Some(b"abcd".to_vec()));
        assert_eq!(bytes(fdt.add(&content(1, 0, 4, 0), b"ABCD")), Some(b"ABCD".to_vec()));
    }

    #[test]
    fn nobody_s_packets_come_between_those_of_another() {
        let mut fdt = Bench::new();
        let whole: Vec<u8> = (0..70).collect();
        assert_eq!(fdt.add(&content(1, 0, 70, 0), &whole[..40]), Assembled::Nothing);
        for length in [70, 50] {
            assert_eq!(fdt.add_from(B, &content(1, 0, length, 0), &[7; 40]), Assembled::Nothing);
        }
        assert_eq!(bytes(fdt.add(&content(1, 1, 70, 0), &whole[40..])), Some(whole));
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
        let mut fdt = FdtAssembler::new(1000, true, 100_000);
        let coded = Oti::RaptorQ { transfer_length: 900, symbol_size: 40, blocks: 1, sub_blocks: 1, alignment: 8 };
        let coded = Content { encoding_id: 6, oti: Some(coded), ..content(1, 0, 900, 0) };
        assert_eq!(fdt.add(&coded, &[0; 40], A), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 0, 4, 3), b"abcd", A), Assembled::Unusable);
        assert_eq!(bytes(fdt.add(&content(1, 0, 4, 0), b"abcd", A)), Some(b"abcd".to_vec()));
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
        assert_eq!(bytes(last), Some(whole));
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
        assert_eq!(bytes(last), Some(vec![7; 800]));
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

    /// The packets of an instance of so many bytes, in symbols of 1400.
    fn packets(number: u32, whole: &[u8]) -> Vec<(Content, &[u8])> {
        let oti = Oti::NoCode { transfer_length: whole.len() as u64, symbol_size: 1400, max_block_len: 8000 };
        let symbols = whole.chunks(1400).zip(0..);
        symbols.map(|(symbol, at)| (Content { oti: Some(oti), ..content(number, at, 0, 0) }, symbol)).collect()
    }

    #[test]
    fn what_others_claim_does_not_push_out_what_has_come() {
        let mut fdt = FdtAssembler::new(8 << 20, true, 512 << 10);
        let whole: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        let mut last = Assembled::Nothing;
        for (number, (real, symbol)) in packets(1, &whole).into_iter().enumerate() {
            last = fdt.add(&real, symbol, A);
            let oti = Oti::NoCode { transfer_length: 8 << 20, symbol_size: 1400, max_block_len: 8000 };
            let claim = Content { oti: Some(oti), ..content(100 + number as u32, 0, 0, 0) };
            assert_eq!(fdt.add(&claim, &[7; 1400], B), Assembled::Nothing);
        }
        assert_eq!(bytes(last), Some(whole));
    }

    #[test]
    fn a_packet_that_comes_again_takes_no_memory_again() {
        let mut fdt = FdtAssembler::new(8 << 20, true, 1 << 20);
        let whole = vec![1; 10_000];
        let packets = packets(1, &whole);
        fdt.add(&packets[0].0, packets[0].1, A);
        let used = fdt.used();
        for _ in 0..2_000 {
            assert_eq!(fdt.add(&packets[0].0, packets[0].1, A), Assembled::Nothing);
        }
        assert_eq!(fdt.used(), used);
    }

    #[test]
    fn who_takes_most_makes_room_for_others_and_not_they_for_him() {
        let small: Vec<u8> = (0..60_000u32).map(|i| (i / 3) as u8).collect();
        let large = vec![7; 4 << 20];
        // Many instances of a stranger, and one that grows without end.
        for is_many in [true, false] {
            let mut fdt = FdtAssembler::new(8 << 20, true, 1 << 20);
            let mut flood = packets(5, &large);
            if is_many {
                flood.iter_mut().zip(100..).for_each(|((content, _), number)| {
                    content.fdt = Some(FdtInstance { version: 2, id: number, content_encoding: 0 });
                });
            }
            let mut flood = flood.iter();
            let mut last = Assembled::Nothing;
            for (real, symbol) in packets(1, &small) {
                last = fdt.add(&real, symbol, A);
                for (content, symbol) in flood.by_ref().take(60) {
                    assert_eq!(fdt.add(content, symbol, B), Assembled::Nothing);
                }
            }
            assert!(flood.len() < 500, "the stranger sent more than there is room for");
            assert_eq!(bytes(last), Some(small.clone()));
        }
    }

    #[test]
    fn what_nothing_comes_of_any_more_makes_room_in_the_end() {
        // Forty strangers have all the memory between them, and are silent.
        let mut fdt = FdtAssembler::new(8 << 20, true, 1 << 20);
        let part = vec![7; 4 << 20];
        for stranger in 10..50 {
            for (content, symbol) in packets(1, &part).into_iter().take(17) {
                assert_eq!(fdt.add(&content, symbol, Origin(stranger)), Assembled::Nothing);
            }
        }
        let whole: Vec<u8> = (0..200_000u32).map(|i| (i / 3) as u8).collect();
        let mut round = || packets(1, &whole).iter().any(|(real, symbol)| bytes(fdt.add(real, symbol, A)).is_some());
        assert!(!round(), "there is no room");
        assert!((0..12).any(|_| round()));
    }

    #[test]
    fn what_cannot_fit_at_all_pushes_nothing_out() {
        let mut fdt = Bench(FdtAssembler::new(8 << 20, false, 1 << 20));
        let [known, whole] = [1, 2].map(|byte| vec![byte; 7_000]);
        let all = |number, whole| packets(number, whole).into_iter();
        assert!(all(1, &known).any(|(real, symbol)| bytes(fdt.add(&real, symbol)).is_some()));
        let mut last = Assembled::Nothing;
        for (real, symbol) in all(2, &whole) {
            let coded =
                Oti::RaptorQ { transfer_length: 1 << 20, symbol_size: 1400, blocks: 1, sub_blocks: 1, alignment: 8 };
            let claim = Content { encoding_id: 6, oti: Some(coded), ..content(7, 0, 0, 0) };
            assert_eq!(fdt.add_from(B, &claim, &[7; 1400]), Assembled::Nothing);
            last = fdt.add(&real, symbol);
        }
        assert_eq!(bytes(last), Some(whole.clone()));
        assert!(all(1, &known).all(|(real, symbol)| fdt.add(&real, symbol) == Assembled::Nothing), "it is remembered");
    }

    #[test]
    fn a_forged_symbol_under_the_sender_s_address_gives_way_to_the_one_that_comes_more_often() {
        let mut fdt = FdtAssembler::new(8 << 20, true, 1 << 20);
        let whole: Vec<u8> = (0..7_000u32).map(|i| (i / 5) as u8).collect();
        let packets = packets(1, &whole);
        let mut tried = 0;
        for round in 0..20 {
            for (at, (content, symbol)) in packets.iter().enumerate() {
                // One in each round, another each time, right after the sender's.
                let forged = vec![round as u8; 1400];
                let both = [Some(*symbol), (at == round % packets.len()).then_some(&forged[..])];
                for symbol in both.into_iter().flatten() {
                    let Assembled::Instance(id, bytes) = fdt.add(content, symbol, A) else { continue };
                    if bytes == whole {
                        assert!(tried <= 2, "{tried} in vain");
                        return;
                    }
                    tried += 1;
                    fdt.reject(id);
                }
            }
        }
        panic!("the instance was never put together, {tried} in vain");
    }

    #[test]
    fn the_oldest_of_what_is_finished_is_forgotten_first() {
        let mut fdt = Bench(FdtAssembler::new(1000, false, 1 << 20));
        let first = MAX_FINISHED as u32 * 2;
        for number in std::iter::once(first).chain(0..MAX_FINISHED as u32) {
            assert!(bytes(fdt.add(&content(number, 0, 4, 0), b"abcd")).is_some());
        }
        assert_eq!(fdt.0.finished.len(), MAX_FINISHED);
        assert_eq!(fdt.add(&content(0, 0, 4, 0), b"abcd"), Assembled::Nothing, "it is remembered");
        assert!(bytes(fdt.add(&content(first, 0, 4, 0), b"abcd")).is_some(), "it was forgotten");
    }

    #[test]
    fn whatever_comes_memory_stays_within_the_budget() {
        let mut fdt = FdtAssembler::new(1 << 20, false, 3 << 20);
        for number in 0..20_000u32 {
            let length = u64::from(1 + number % 7) * 100_000;
            let (symbol_size, blocks) = ([1, 32, 1400, 60_000][number as usize % 4], (number % 200 + 1) as u8);
            let coded = Oti::RaptorQ { transfer_length: length, symbol_size, blocks, sub_blocks: 1, alignment: 1 };
            let plain = Oti::NoCode { transfer_length: length, symbol_size, max_block_len: 1 << 16 };
            let (encoding_id, oti) = if number % 3 == 0 { (6, coded) } else { (0, plain) };
            let content = Content { encoding_id, oti: Some(oti), ..content(number, 0, 0, 0) };
            fdt.add(&content, &vec![number as u8; usize::from(symbol_size)], Origin((number % 5) as u8));
            assert!(fdt.used() <= 3 << 20 && fdt.pending.len() <= MAX_PENDING);
            assert_eq!(fdt.used(), fdt.pending.values().map(|pending| pending.cost).sum::<u64>());
        }
        assert!(!fdt.pending.is_empty(), "some of them are looked at");
    }
}
