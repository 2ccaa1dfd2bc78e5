//! Symbols on their way to the disk's thread.

use weir_object::store::Origin;
use weir_wire::alc::Content;

/// Symbols on their way to the disk, in one allocation.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) runs: Vec<Run>,
}

/// Symbols of one block whose numbers follow each other.
#[derive(Debug)]
pub(super) struct Run {
    /// What is said of the first.
    pub(super) content: Content,
    /// Where they came from.
    pub(super) origin: Origin,
    /// Bytes of each.
    pub(super) size: usize,
    pub(super) count: usize,
}

impl Run {
    /// Whether a symbol of `size` bytes is the next of this run.
    pub(super) fn is_continued_by(&self, content: &Content, size: usize, origin: Origin) -> bool {
        let number = self.content.payload_id.symbol as usize + self.count;
        let mut next = self.content;
        next.payload_id.symbol = content.payload_id.symbol;
        size == self.size && origin == self.origin && number == content.payload_id.symbol as usize && next == *content
    }
}

impl Batch {
    pub(super) fn with_room() -> Batch {
        Batch { bytes: Vec::with_capacity(BATCH_BYTES + LARGEST_SYMBOL), runs: Vec::with_capacity(64) }
    }

    /// Whether it is to go over. Runs count as what they take: a run may be of one symbol of one byte.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() + self.runs.len() * size_of::<Run>() >= BATCH_BYTES
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    pub(super) fn symbols(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }
}

/// A batch goes over when it holds this much, or when the receive path looks up from its work.
pub(super) const BATCH_BYTES: usize = 1 << 20;
pub(super) const LARGEST_SYMBOL: usize = 64 << 10;
