//! The sender's side: blocks of packets, and repair payloads.

use raptorq::SourceBlockEncoder;

use super::{HEADER, LENGTH, MAX_BLOCK_PACKETS, MAX_SYMBOL_BYTES, codec};

/// Collects the RTP packets of a window and makes a block of them. They are sent at once, as they are.
#[derive(Debug, Default)]
pub struct Protector {
    /// The sequence number of the first packet.
    base: u16,
    packets: Vec<Vec<u8>>,
}

/// A block of packets, of which repair payloads can be made.
#[derive(Debug)]
pub struct Block {
    base: u16,
    packets: u16,
    encoder: SourceBlockEncoder,
}

impl Protector {
    /// The next packet that is sent. False if it does not fit into the block: then close that and push again. Packets fit whose
    /// sequence numbers follow each other, up to [`MAX_BLOCK_PACKETS`]. One of more than [`MAX_SYMBOL_BYTES`] - 2 bytes fits into
    /// no block.
    pub fn push(&mut self, sequence: u16, packet: &[u8]) -> bool {
        let fits = self.packets.len() < MAX_BLOCK_PACKETS && packet.len() + LENGTH <= MAX_SYMBOL_BYTES;
        let follows = self.packets.is_empty() || sequence == self.base.wrapping_add(self.packets.len() as u16);
        if !fits || !follows {
            return false;
        }
        if self.packets.is_empty() {
            self.base = sequence;
        }
        self.packets.push(packet.to_vec());
        true
    }

    /// How many packets are in the block that is open.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether the block that is open has no packet.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Ends the block; `None` if it is empty.
    pub fn close(&mut self) -> Option<Block> {
        let packets = std::mem::take(&mut self.packets);
        let symbol_bytes = LENGTH + packets.iter().map(Vec::len).max()?;
        let mut source = vec![0; packets.len() * symbol_bytes];
        source.chunks_exact_mut(symbol_bytes).zip(&packets).for_each(|(symbol, packet)| write_symbol(symbol, packet));
        let encoder = SourceBlockEncoder::new(0, &codec(packets.len(), symbol_bytes), &source);
        Some(Block { base: self.base, packets: packets.len() as u16, encoder })
    }
}

impl Block {
    /// The repair payload number `n`, from 0. Any number of different ones can be made, up to 2^16.
    pub fn repair(&self, n: u16) -> Vec<u8> {
        let symbols = self.encoder.repair_packets(n.into(), 1);
        let id = u32::from(self.packets) + u32::from(n);
        let header = [&self.base.to_be_bytes()[..], &self.packets.to_be_bytes(), &id.to_be_bytes()].concat();
        debug_assert_eq!(header.len(), HEADER);
        symbols.into_iter().fold(header, |payload, symbol| [&payload[..], symbol.data()].concat())
    }
}

/// Fills a symbol of zeros with a packet that fits, its length in front.
pub(super) fn write_symbol(symbol: &mut [u8], packet: &[u8]) {
    symbol[..LENGTH].copy_from_slice(&(packet.len() as u16).to_be_bytes());
    symbol[LENGTH..LENGTH + packet.len()].copy_from_slice(packet);
}
