//! FEC object transmission information and payload ids (RFC 5445 for Compact No-Code, RFC 6330 for RaptorQ).

use crate::DecodeError;

/// FEC encoding id of Compact No-Code: source symbols only.
pub const NO_CODE: u8 = 0;
/// FEC encoding id of RaptorQ.
pub const RAPTORQ: u8 = 6;

/// Where an encoding symbol belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PayloadId {
    /// Source block number.
    pub block: u32,
    /// Encoding symbol id within the block; below the block's size a source symbol, from there on repair.
    pub symbol: u32,
}

impl PayloadId {
    /// The four bytes of a FEC payload ID under `encoding_id`: 16 + 16 bits for Compact No-Code, 8 + 24 for RaptorQ.
    pub fn encode(self, encoding_id: u8) -> [u8; 4] {
        let bits = symbol_bits(encoding_id);
        (self.block << bits | (self.symbol & ((1 << bits) - 1))).to_be_bytes()
    }

    /// Reads the four bytes of a FEC payload ID.
    pub fn decode(bytes: [u8; 4], encoding_id: u8) -> PayloadId {
        let bits = symbol_bits(encoding_id);
        let word = u32::from_be_bytes(bytes);
        PayloadId { block: word >> bits, symbol: word & ((1 << bits) - 1) }
    }
}

fn symbol_bits(encoding_id: u8) -> u32 {
    if encoding_id == RAPTORQ { 24 } else { 16 }
}

/// How an object is cut into blocks and symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oti {
    /// Compact No-Code (RFC 5445 §3).
    NoCode {
        /// Bytes of the object.
        transfer_length: u64,
        /// Bytes of a symbol.
        symbol_size: u16,
        /// Most source symbols in a block.
        max_block_len: u32,
    },
    /// RaptorQ (RFC 6330 §3.3.2, 3.3.3).
    RaptorQ {
        /// Bytes of the object, 40 bits.
        transfer_length: u64,
        /// Bytes of a symbol, a multiple of `alignment`.
        symbol_size: u16,
        /// Source blocks.
        blocks: u8,
        /// Sub-blocks in a block.
        sub_blocks: u16,
        /// Symbol alignment in bytes.
        alignment: u8,
    },
}

impl Oti {
    /// The FEC encoding id.
    pub const fn encoding_id(&self) -> u8 {
        match self {
            Oti::NoCode { .. } => NO_CODE,
            Oti::RaptorQ { .. } => RAPTORQ,
        }
    }

    /// Bytes of the object.
    pub const fn transfer_length(&self) -> u64 {
        match self {
            Oti::NoCode { transfer_length, .. } | Oti::RaptorQ { transfer_length, .. } => *transfer_length,
        }
    }

    /// Bytes of a symbol.
    pub const fn symbol_size(&self) -> u16 {
        match self {
            Oti::NoCode { symbol_size, .. } | Oti::RaptorQ { symbol_size, .. } => *symbol_size,
        }
    }

    /// The 14 bytes that follow type and length in EXT_FTI.
    pub fn encode(&self) -> [u8; 14] {
        let mut out = [0; 14];
        match *self {
            Oti::NoCode { transfer_length, symbol_size, max_block_len } => {
                out[..6].copy_from_slice(&transfer_length.to_be_bytes()[2..]);
                out[8..10].copy_from_slice(&symbol_size.to_be_bytes());
                out[10..14].copy_from_slice(&max_block_len.to_be_bytes());
            }
            Oti::RaptorQ { transfer_length, symbol_size, blocks, sub_blocks, alignment } => {
                out[..5].copy_from_slice(&transfer_length.to_be_bytes()[3..]);
                out[6..8].copy_from_slice(&symbol_size.to_be_bytes());
                out[8] = blocks;
                out[9..11].copy_from_slice(&sub_blocks.to_be_bytes());
                out[11] = alignment;
            }
        }
        out
    }

    /// Reads the body of EXT_FTI. The values are as the packet claims; nothing is checked but their presence.
    pub fn decode(body: &[u8], encoding_id: u8) -> Result<Oti, DecodeError> {
        let body: &[u8; 14] =
            body.try_into().map_err(|_| DecodeError::Value { field: "EXT_FTI length", value: body.len() as u64 })?;
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        match encoding_id {
            NO_CODE => Ok(Oti::NoCode {
                transfer_length: number(&body[..6]),
                symbol_size: number(&body[8..10]) as u16,
                max_block_len: number(&body[10..14]) as u32,
            }),
            RAPTORQ => Ok(Oti::RaptorQ {
                transfer_length: number(&body[..5]),
                symbol_size: number(&body[6..8]) as u16,
                blocks: body[8],
                sub_blocks: number(&body[9..11]) as u16,
                alignment: body[11],
            }),
            _ => Err(DecodeError::Value { field: "FEC encoding id", value: u64::from(encoding_id) }),
        }
    }
}
