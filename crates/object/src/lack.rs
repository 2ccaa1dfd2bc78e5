//! What a receiver lacks of a block: what its store tells, and what a carousel sends again for it.

/// What is lacking of one source block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Transport object identifier.
    pub toi: u32,
    /// The block's number in its object.
    pub block: u8,
    /// How many symbols make it whole.
    pub needed: u16,
    /// Which source symbols those are: first and length of each run. None if any symbols do.
    pub runs: Vec<(u16, u16)>,
}
