//! Systematic FEC over the RTP packets of one layer's stream (RaptorQ, RFC 6330).

/// The most packets of a block.
pub const MAX_BLOCK_PACKETS: usize = 512;

/// The most bytes of a symbol: a packet and two bytes for its length.
pub const MAX_SYMBOL_BYTES: usize = 1500;

/// Collects the RTP packets of a window and makes a block of them. They are sent at once, as they are.
#[derive(Debug, Default)]
pub struct Protector {
    packets: Vec<Vec<u8>>,
    base: u16,
}

/// A block of packets, of which repair payloads can be made.
#[derive(Debug)]
pub struct Block {}

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
    /// Blocks that were given up with packets missing.
    pub unrecoverable: u64,
    /// Repair payloads that made no sense.
    pub malformed: u64,
}

/// Gets lost packets back from source packets and repair payloads of one layer's stream.
#[derive(Debug, Default)]
pub struct Recovery {
    counts: RecoveryCounts,
}

impl Protector {
    /// The next packet that is sent. False if it does not fit into the block: then close that and push again. Packets fit whose
    /// sequence numbers follow each other, up to [`MAX_BLOCK_PACKETS`] of at most [`MAX_SYMBOL_BYTES`] - 2 bytes.
    pub fn push(&mut self, sequence: u16, packet: &[u8]) -> bool {
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
        None
    }
}

impl Block {
    /// The repair payload number `n`, from 0. Any number of different ones can be made, up to 2^16.
    pub fn repair(&self, _n: u16) -> Vec<u8> {
        Vec::new()
    }
}

impl Recovery {
    /// A source packet arrived, or was recovered elsewhere: the packets that come back by it.
    pub fn source(&mut self, _sequence: u16, _packet: &[u8]) -> Vec<Recovered> {
        Vec::new()
    }

    /// A repair payload arrived: the packets that come back by it.
    pub fn repair(&mut self, _payload: &[u8]) -> Vec<Recovered> {
        Vec::new()
    }

    /// What was done so far.
    pub fn counts(&self) -> RecoveryCounts {
        self.counts
    }
}
