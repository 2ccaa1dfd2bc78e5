//! Puts FDT instances together from the packets of TOI 0.
//!
//! Not here: what is in them. Everything is bounded: instances at a time, their size, what is remembered of old ones.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use raptorq::{Decoder, EncodingPacket, ObjectTransmissionInformation};
use weir_wire::alc::Content;
use weir_wire::fec::{Oti, PayloadId};

use crate::partition::Layout;

/// The instances that are being received and those that were.
#[derive(Debug)]
pub(crate) struct FdtAssembler {
    max_bytes: usize,
    pending: BTreeMap<u32, Pending>,
    /// Which symbols a finished instance consisted of, so that a sender that starts again with the same id and other
    /// content is noticed.
    finished: BTreeMap<u32, HashMap<PayloadId, u64>>,
    clock: u64,
}

#[derive(Debug)]
struct Pending {
    layout: Layout,
    content_encoding: u8,
    body: Body,
    seen: HashMap<PayloadId, u64>,
    touched: u64,
}

#[derive(Debug)]
enum Body {
    /// Source symbols as they are.
    Plain {
        bytes: Vec<u8>,
        missing: u64,
    },
    Coded(Box<Decoder>),
}

/// What became of a packet of TOI 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// An instance is complete.
    Instance(Vec<u8>),
    /// Nothing yet, or nothing new.
    Nothing,
    /// The packet makes no sense.
    Unusable,
}

impl FdtAssembler {
    /// An assembler for instances of up to `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> FdtAssembler {
        FdtAssembler { max_bytes, pending: BTreeMap::new(), finished: BTreeMap::new(), clock: 0 }
    }

    pub(crate) fn add(&mut self, content: &Content, symbol: &[u8]) -> Assembled {
        let (Some(fdt), Some(oti)) = (content.fdt, content.oti) else { return Assembled::Unusable };
        if oti.encoding_id() != content.encoding_id || oti.transfer_length() > self.max_bytes as u64 {
            return Assembled::Unusable;
        }
        let Ok(layout) = Layout::new(oti) else { return Assembled::Unusable };
        if layout.padded_length() > self.max_bytes as u64 + 65_536 {
            return Assembled::Unusable;
        }
        let print = fingerprint(symbol);
        if let Some(symbols) = self.finished.get(&fdt.id) {
            match symbols.get(&content.payload_id) {
                Some(known) if *known != print => drop(self.finished.remove(&fdt.id)),
                _ => return Assembled::Nothing,
            }
        }
        let fits = |pending: &Pending| {
            pending.layout == layout
                && pending.content_encoding == fdt.content_encoding
                && pending.seen.get(&content.payload_id).is_none_or(|known| *known == print)
        };
        if !self.pending.get(&fdt.id).is_some_and(fits) {
            if self.pending.len() >= MAX_PENDING && !self.pending.contains_key(&fdt.id) {
                let oldest = self.pending.iter().min_by_key(|(_, pending)| pending.touched).map(|(id, _)| *id);
                oldest.map(|id| self.pending.remove(&id));
            }
            self.pending.insert(fdt.id, Pending::new(layout, fdt.content_encoding));
        }
        self.clock += 1;
        let pending = self.pending.get_mut(&fdt.id).expect("was there or was just inserted");
        pending.touched = self.clock;
        if pending.seen.len() >= MAX_SYMBOLS || pending.seen.insert(content.payload_id, print).is_some() {
            return Assembled::Nothing;
        }
        match pending.add(content.payload_id, symbol) {
            Ok(None) => Assembled::Nothing,
            Ok(Some(bytes)) => {
                let pending = self.pending.remove(&fdt.id).expect("is there");
                if self.finished.len() >= MAX_FINISHED {
                    self.finished.pop_first();
                }
                self.finished.insert(fdt.id, pending.seen);
                match unpack(bytes, pending.content_encoding, self.max_bytes) {
                    Some(bytes) => Assembled::Instance(bytes),
                    None => Assembled::Unusable,
                }
            }
            Err(()) => Assembled::Unusable,
        }
    }

    /// Forgets that instance `id` was received: it could not be used, and may come again.
    pub(crate) fn forget(&mut self, id: u32) {
        self.finished.remove(&id);
    }
}

impl Pending {
    fn new(layout: Layout, content_encoding: u8) -> Pending {
        let body = match layout.oti() {
            Oti::NoCode { transfer_length, .. } => {
                let missing = (0..layout.blocks()).map(|block| u64::from(layout.symbols(block))).sum();
                Body::Plain { bytes: vec![0; transfer_length as usize], missing }
            }
            Oti::RaptorQ { transfer_length, symbol_size, sub_blocks, alignment, .. } => {
                let blocks = layout.blocks().max(1) as u8;
                let config =
                    ObjectTransmissionInformation::new(transfer_length, symbol_size, blocks, sub_blocks, alignment);
                Body::Coded(Box::new(Decoder::new(config)))
            }
        };
        Pending { layout, content_encoding, body, seen: HashMap::new(), touched: 0 }
    }

    fn add(&mut self, id: PayloadId, symbol: &[u8]) -> Result<Option<Vec<u8>>, ()> {
        let symbol_size = self.layout.symbol_size();
        if id.symbol >= self.layout.esi_limit(id.block) || id.block >= self.layout.blocks() {
            return Err(());
        }
        match &mut self.body {
            Body::Plain { bytes, missing } => {
                let start = self.layout.offset(id.block) as usize + id.symbol as usize * symbol_size;
                let end = (start + symbol_size).min(bytes.len());
                let part = symbol.get(..end - start).filter(|_| symbol.len() <= symbol_size).ok_or(())?;
                bytes[start..end].copy_from_slice(part);
                *missing -= 1;
                Ok((*missing == 0).then(|| std::mem::take(bytes)))
            }
            Body::Coded(decoder) => {
                if symbol.len() != symbol_size {
                    return Err(());
                }
                let id = raptorq::PayloadId::new(id.block as u8, id.symbol);
                decoder.add_new_packet(EncodingPacket::new(id, symbol.to_vec()));
                Ok(decoder.get_result())
            }
        }
    }
}

/// Undoes the content encoding of an instance (RFC 6726 §3.4.3).
fn unpack(bytes: Vec<u8>, content_encoding: u8, max_bytes: usize) -> Option<Vec<u8>> {
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

fn fingerprint(symbol: &[u8]) -> u64 {
    let hash = blake3::hash(symbol);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("8 of 32 bytes"))
}

/// Instances that are received at the same time: as many as a table of 10 000 files has, twice.
const MAX_PENDING: usize = 256;
const MAX_FINISHED: usize = 1024;
/// Symbols of one instance that are looked at; repair symbols of a hostile sender would never end.
const MAX_SYMBOLS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use weir_wire::alc::FdtInstance;

    fn content(id: u32, symbol: u32, length: usize, content_encoding: u8) -> Content {
        Content {
            toi: 0,
            encoding_id: 0,
            payload_id: PayloadId { block: 0, symbol },
            fdt: Some(FdtInstance { version: 2, id, content_encoding }),
            oti: Some(Oti::NoCode { transfer_length: length as u64, symbol_size: 4, max_block_len: 64 }),
        }
    }

    #[test]
    fn an_instance_is_put_together_in_any_order_and_told_once() {
        let mut fdt = FdtAssembler::new(1000);
        assert_eq!(fdt.add(&content(1, 1, 7, 0), b"efg"), Assembled::Nothing);
        assert_eq!(fdt.add(&content(1, 0, 7, 0), b"abcd"), Assembled::Instance(b"abcdefg".to_vec()));
        assert_eq!(fdt.add(&content(1, 0, 7, 0), b"abcd"), Assembled::Nothing);
    }

    #[test]
    fn a_restarted_sender_with_the_same_id_is_noticed() {
        let mut fdt = FdtAssembler::new(1000);
        assert_eq!(fdt.add(&content(1, 0, 4, 0), b"abcd"), Assembled::Instance(b"abcd".to_vec()));
        assert_eq!(fdt.add(&content(1, 0, 4, 0), b"ABCD"), Assembled::Instance(b"ABCD".to_vec()));
    }

    #[test]
    fn compressed_instances_are_unpacked_up_to_the_limit() {
        let mut fdt = FdtAssembler::new(1000);
        for (length, expected) in [(900, true), (1100, false)] {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            packer.write_all(&vec![b'x'; length]).expect("in memory");
            let packed = packer.finish().expect("in memory");
            let mut last = Assembled::Nothing;
            for (i, symbol) in packed.chunks(4).enumerate() {
                last = fdt.add(&content(length as u32, i as u32, packed.len(), 3), symbol);
            }
            assert_eq!(last == Assembled::Instance(vec![b'x'; length]), expected);
        }
    }

    #[test]
    fn lying_packets_are_unusable() {
        let mut fdt = FdtAssembler::new(1000);
        let no_oti = Content { oti: None, ..content(1, 0, 7, 0) };
        assert_eq!(fdt.add(&no_oti, b"abcd"), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 0, 1001, 0), b"abcd"), Assembled::Unusable);
        assert_eq!(fdt.add(&content(1, 2, 7, 0), b"abcd"), Assembled::Unusable);
        assert_eq!(fdt.add(&content(2, 0, 7, 0), b"abc"), Assembled::Unusable);
        for id in 0..10_000 {
            fdt.add(&content(id, 0, 7, 0), b"abcd");
        }
        assert!(fdt.pending.len() <= MAX_PENDING);
    }
}
