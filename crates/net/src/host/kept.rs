//! Payloads that an endpoint keeps by number, to send or deliver them again.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Numbered payloads, each with its label.
#[derive(Debug)]
pub(super) struct Kept<L> {
    payloads: BTreeMap<u64, (L, Memory)>,
    /// Memory of payloads that were released, for the next ones.
    spare: Vec<Vec<u8>>,
}

/// Where a payload is.
#[derive(Debug)]
enum Memory {
    Own(Vec<u8>),
    /// In the application's memory, which others may have kept too.
    Shared(Arc<[u8]>),
}

impl<L> Kept<L> {
    pub(super) fn new() -> Kept<L> {
        Kept { payloads: BTreeMap::new(), spare: Vec::new() }
    }

    /// Keeps a payload. One that is kept under the number already stays.
    pub(super) fn keep(&mut self, number: u64, label: L, payload: &[u8]) {
        let spare = &mut self.spare;
        self.payloads.entry(number).or_insert_with(|| {
            let mut bytes = spare.pop().unwrap_or_default();
            bytes.extend_from_slice(payload);
            (label, Memory::Own(bytes))
        });
    }

    /// Keeps a payload of the application. One that is kept under the number already stays.
    pub(super) fn keep_shared(&mut self, number: u64, label: L, payload: Arc<[u8]>) {
        self.payloads.entry(number).or_insert((label, Memory::Shared(payload)));
    }

    pub(super) fn get(&self, number: u64) -> Option<(&L, &[u8])> {
        self.payloads.get(&number).map(|(label, payload)| match payload {
            Memory::Own(bytes) => (label, &bytes[..]),
            Memory::Shared(bytes) => (label, &bytes[..]),
        })
    }

    /// Forgets all with lower numbers.
    pub(super) fn release(&mut self, below: u64) {
        while let Some(first) = self.payloads.first_entry().filter(|first| *first.key() < below) {
            if let (_, Memory::Own(mut bytes)) = first.remove()
                && self.spare.len() < MOST_SPARE
            {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
    }
}

/// A megabyte or two.
const MOST_SPARE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_stays_under_its_number_until_it_is_released() {
        let mut kept = Kept::new();
        kept.keep(7, 'a', b"seven");
        kept.keep(7, 'b', b"other");
        kept.keep_shared(9, 'c', (*b"nine").into());
        kept.keep_shared(7, 'd', (*b"other").into());
        assert_eq!(kept.get(7), Some((&'a', &b"seven"[..])));
        kept.release(8);
        assert_eq!((kept.get(7), kept.get(9)), (None, Some((&'c', &b"nine"[..]))));
    }
}
