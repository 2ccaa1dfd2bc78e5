//! How an object is cut into source blocks and symbols (RFC 6330 §4.4.1.2, RFC 5052 §9.1), and how Weir chooses the cut.
//!
//! Not here: the symbols themselves. A [`Layout`] exists only for parameters that were checked, so whoever holds one may
//! size things by it.

use weir_wire::fec::Oti;

/// Largest file, and largest transfer length that is looked at: 2^40 bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 40;

/// A checked partition of an object into source blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    oti: Oti,
    blocks: u32,
    large_blocks: u32,
    /// Source symbols of each of the first `large_blocks` blocks; the others have `small`.
    large: u32,
    small: u32,
}

impl Layout {
    /// Checks object transmission information as it came from the network or from a user.
    ///
    /// # Errors
    /// [`LayoutError`] for parameters that contradict each other, the standards, or [`MAX_FILE_BYTES`].
    pub fn new(oti: Oti) -> Result<Layout, LayoutError> {
        let transfer_length = oti.transfer_length();
        if transfer_length > MAX_FILE_BYTES {
            return Err(LayoutError::TooLong { transfer_length });
        }
        let symbol_size = u64::from(oti.symbol_size());
        if symbol_size == 0 {
            return Err(LayoutError::Zero { field: "the symbol size" });
        }
        let symbols = transfer_length.div_ceil(symbol_size);
        let blocks = match oti {
            Oti::NoCode { max_block_len, .. } => {
                if max_block_len == 0 {
                    return Err(LayoutError::Zero { field: "the largest source block" });
                }
                symbols.div_ceil(u64::from(max_block_len))
            }
            Oti::RaptorQ { blocks, sub_blocks, alignment, symbol_size, .. } => {
                if blocks == 0 {
                    return Err(LayoutError::Zero { field: "the number of source blocks" });
                }
                if alignment == 0 || symbol_size % u16::from(alignment) != 0 {
                    return Err(LayoutError::Alignment { symbol_size, alignment });
                }
                if sub_blocks == 0 || sub_blocks > symbol_size / u16::from(alignment) {
                    return Err(LayoutError::SubBlocks { sub_blocks });
                }
                if transfer_length > RAPTORQ_MAX_TRANSFER {
                    return Err(LayoutError::TooLong { transfer_length });
                }
                u64::from(blocks).min(symbols)
            }
        };
        let (max_blocks, max_symbols) = match oti {
            Oti::NoCode { .. } => (1 << 16, 1 << 16),
            Oti::RaptorQ { .. } => (255, RAPTORQ_MAX_SYMBOLS),
        };
        let large = if blocks == 0 { 0 } else { symbols.div_ceil(blocks) };
        if blocks > max_blocks || large > max_symbols {
            return Err(LayoutError::Blocks { blocks, symbols: large });
        }
        let small = symbols.checked_div(blocks).unwrap_or(0);
        Ok(Layout {
            oti,
            blocks: blocks as u32,
            large_blocks: (symbols - small * blocks) as u32,
            large: large as u32,
            small: small as u32,
        })
    }

    /// Weir's cut of `transfer_length` bytes: blocks of about `block_symbols`, at most `max_blocks` of them; where that
    /// is too few, larger blocks.
    ///
    /// # Errors
    /// As [`Layout::new`], in particular where even the largest blocks are too few.
    pub fn choose(
        transfer_length: u64,
        symbol_size: u16,
        block_symbols: u32,
        max_blocks: u8,
    ) -> Result<Layout, LayoutError> {
        let symbols = transfer_length.div_ceil(u64::from(symbol_size.max(1)));
        let blocks = symbols.div_ceil(u64::from(block_symbols.max(1))).clamp(1, u64::from(max_blocks.max(1)));
        let blocks = u8::try_from(blocks).expect("clamped to a u8");
        Layout::new(Oti::RaptorQ { transfer_length, symbol_size, blocks, sub_blocks: 1, alignment: ALIGNMENT })
    }

    /// What the layout was made from.
    pub const fn oti(&self) -> Oti {
        self.oti
    }

    /// Bytes of the object.
    pub const fn transfer_length(&self) -> u64 {
        self.oti.transfer_length()
    }

    /// Bytes of a symbol.
    pub const fn symbol_size(&self) -> usize {
        self.oti.symbol_size() as usize
    }

    /// Source blocks that have symbols.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Source symbols of `block`; zero where there is no such block.
    pub const fn symbols(&self, block: u32) -> u32 {
        if block < self.large_blocks {
            self.large
        } else if block < self.blocks {
            self.small
        } else {
            0
        }
    }

    /// Source symbols of the largest block.
    pub const fn largest_block(&self) -> u32 {
        self.large
    }

    /// Source symbols of all blocks before `block`.
    pub const fn symbols_before(&self, block: u32) -> u64 {
        let large = if block < self.large_blocks { block } else { self.large_blocks };
        large as u64 * self.large as u64 + (block - large) as u64 * self.small as u64
    }

    /// Where `block` starts in the object, bytes.
    pub const fn offset(&self, block: u32) -> u64 {
        self.symbols_before(block) * self.symbol_size() as u64
    }

    /// Bytes that all blocks take when the last symbol is filled up.
    pub const fn padded_length(&self) -> u64 {
        self.offset(self.blocks)
    }

    /// Whether a source symbol lies in the object as it is sent: not so with several sub-blocks.
    pub const fn in_order(&self) -> bool {
        match self.oti {
            Oti::NoCode { .. } => true,
            Oti::RaptorQ { sub_blocks, .. } => sub_blocks == 1,
        }
    }

    /// One past the highest encoding symbol id.
    pub const fn esi_limit(&self, block: u32) -> u32 {
        match self.oti {
            Oti::NoCode { .. } => self.symbols(block),
            Oti::RaptorQ { .. } => ESI_LIMIT,
        }
    }

    /// The parameters as the RaptorQ codec takes them, for one block; `None` for Compact No-Code.
    pub(crate) fn codec(&self) -> Option<raptorq::ObjectTransmissionInformation> {
        match self.oti {
            Oti::NoCode { .. } => None,
            Oti::RaptorQ { symbol_size, sub_blocks, alignment, .. } => {
                let block_bytes = u64::from(self.large) * u64::from(symbol_size);
                Some(raptorq::ObjectTransmissionInformation::new(block_bytes, symbol_size, 1, sub_blocks, alignment))
            }
        }
    }
}

/// Object transmission information that cannot be true, or that Weir does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Longer than any object may be.
    #[error("an object of {transfer_length} bytes is too long; the limit is 2^40 (RaptorQ: 942574504275)")]
    TooLong {
        /// The claimed length.
        transfer_length: u64,
    },
    /// A field that must not be zero is.
    #[error("{field} must not be zero")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// The symbol size is no multiple of the alignment.
    #[error("a symbol size of {symbol_size} bytes is not a multiple of the alignment {alignment}")]
    Alignment {
        /// Bytes of a symbol.
        symbol_size: u16,
        /// The alignment.
        alignment: u8,
    },
    /// The number of sub-blocks does not fit the symbol size.
    #[error("{sub_blocks} sub-blocks do not fit into a symbol")]
    SubBlocks {
        /// Sub-blocks in a block.
        sub_blocks: u16,
    },
    /// More blocks, or larger ones, than the code can number.
    #[error("{blocks} blocks of up to {symbols} symbols are more than the code allows")]
    Blocks {
        /// Source blocks.
        blocks: u64,
        /// Source symbols of the largest.
        symbols: u64,
    },
}

/// Symbol alignment of Weir's own objects, bytes.
pub const ALIGNMENT: u8 = 8;
/// One past the highest encoding symbol id of RaptorQ, 24 bits.
pub const ESI_LIMIT: u32 = 1 << 24;
/// K'_max of RFC 6330 §5.1.2.
const RAPTORQ_MAX_SYMBOLS: u64 = 56_403;
/// RFC 6330 §3.3.2 as corrected by its erratum 5548; less than 2^40.
const RAPTORQ_MAX_TRANSFER: u64 = 942_574_504_275;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raptorq(transfer_length: u64, symbol_size: u16, blocks: u8, sub_blocks: u16, alignment: u8) -> Oti {
        Oti::RaptorQ { transfer_length, symbol_size, blocks, sub_blocks, alignment }
    }

    #[test]
    fn lying_parameters_are_refused() {
        for oti in [
            raptorq(1 << 41, 1400, 255, 1, 8),
            raptorq(1000, 0, 1, 1, 8),
            raptorq(1000, 1400, 0, 1, 8),
            raptorq(1000, 1400, 1, 1, 0),
            raptorq(1000, 1401, 1, 1, 8),
            raptorq(1000, 1400, 1, 0, 8),
            raptorq(1000, 1400, 1, 176, 8),
            raptorq(56_404 * 8, 8, 1, 1, 8),
            Oti::NoCode { transfer_length: 1, symbol_size: 0, max_block_len: 1 },
            Oti::NoCode { transfer_length: 1, symbol_size: 1, max_block_len: 0 },
            Oti::NoCode { transfer_length: 1 << 40, symbol_size: 1, max_block_len: u32::MAX },
        ] {
            assert!(Layout::new(oti).is_err(), "{oti:?}");
        }
    }

    #[test]
    fn an_empty_object_has_no_blocks() {
        let layout = Layout::new(raptorq(0, 1400, 1, 1, 8)).expect("valid");
        assert_eq!((layout.blocks(), layout.symbols(0), layout.padded_length()), (0, 0, 0));
    }

    #[test]
    fn more_blocks_than_symbols_leave_the_empty_ones_out() {
        let layout = Layout::new(raptorq(3000, 1000, 200, 1, 8)).expect("valid");
        assert_eq!((layout.blocks(), layout.symbols(0), layout.symbols(3)), (3, 1, 0));
    }

    #[test]
    fn the_cut_grows_its_blocks_when_255_small_ones_are_too_few() {
        let small = Layout::choose(8_000_000, 1400, 2048, 255).expect("valid");
        assert_eq!((small.blocks(), small.largest_block()), (3, 1905));
        let large = Layout::choose(1_400_000_000, 1400, 2048, 255).expect("valid");
        assert_eq!((large.blocks(), large.largest_block()), (255, 3922));
    }

    proptest! {
        #[test]
        fn the_cut_is_the_one_of_the_codec(length in 1u64..50_000_000, words in 1u16..200, blocks in 1u8..=255) {
            let layout = Layout::new(raptorq(length, words * 8, blocks, 1, 8));
            prop_assume!(layout.is_ok());
            let layout = layout.expect("checked");
            let symbols = length.div_ceil(u64::from(words) * 8);
            let (large, small, large_blocks, small_blocks) = raptorq::partition(symbols as u32, blocks);
            let expected = (0..large_blocks).map(|_| large).chain((0..small_blocks).map(|_| small));
            let expected: Vec<u32> = expected.filter(|symbols| *symbols > 0).collect();
            let actual: Vec<u32> = (0..layout.blocks()).map(|block| layout.symbols(block)).collect();
            prop_assert_eq!(actual, expected);
            prop_assert!(layout.padded_length() >= length && layout.padded_length() - length < u64::from(words) * 8);
        }
    }
}
