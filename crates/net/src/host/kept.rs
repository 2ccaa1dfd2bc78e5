//! Payloads that an endpoint keeps by number, to send or deliver them again.

use std::collections::BTreeMap;

/// Numbered payloads, each with its label.
#[derive(Debug)]
pub(super) struct Kept<L> {
    payloads: BTreeMap<u64, (L, Vec<u8>)>,
    /// Memory of payloads that were released, for the next ones.
    spare: Vec<Vec<u8>>,
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
            (label, bytes)
        });
    }

    pub(super) fn get(&self, number: u64) -> Option<(&L, &[u8])> {
        self.payloads.get(&number).map(|(label, payload)| (label, &payload[..]))
    }

    /// Forgets all with lower numbers.
    pub(super) fn release(&mut self, below: u64) {
        while let Some(first) = self.payloads.first_entry().filter(|first| *first.key() < below) {
            let (_, mut bytes) = first.remove();
            if self.spare.len() < MOST_SPARE {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.payloads.clear();
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
        kept.keep(9, 'c', b"nine");
        assert_eq!(kept.get(7), Some((&'a', &b"seven"[..])));
        kept.release(8);
        assert_eq!((kept.get(7), kept.get(9)), (None, Some((&'c', &b"nine"[..]))));
    }
}
