//! Payloads that an endpoint keeps by number, to send or deliver them again.

use std::collections::BTreeMap;

/// Numbered payloads. Memory of released ones is used again.
#[derive(Debug)]
pub(super) struct Kept<L> {
    payloads: BTreeMap<u64, (L, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl<L: Copy> Kept<L> {
    pub(super) fn new() -> Kept<L> {
        Kept { payloads: BTreeMap::new(), spare: Vec::new() }
    }

    /// Keeps a payload. One that is kept under the number already stays.
    pub(super) fn keep(&mut self, number: u64, label: L, payload: &[u8]) {
        let spare = &mut self.spare;
        self.payloads.entry(number).or_insert_with(|| {
            let mut bytes = spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(payload);
            (label, bytes)
        });
    }

    pub(super) fn get(&self, number: u64) -> Option<(&L, &[u8])> {
        self.payloads.get(&number).map(|(label, bytes)| (label, &bytes[..]))
    }

    /// Forgets all with lower numbers.
    pub(super) fn release(&mut self, below: u64) {
        while let Some(first) = self.payloads.first_entry().filter(|first| *first.key() < below) {
            let (_, bytes) = first.remove();
            if self.spare.len() < MAX_SPARE {
                self.spare.push(bytes);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.release(u64::MAX);
        self.payloads.clear();
    }
}

/// Payloads whose memory is used again, 1.5 MB at 1500 bytes.
const MAX_SPARE: usize = 1_024;

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
        kept.keep(10, 'd', b"ten");
        assert_eq!(kept.get(10), Some((&'d', &b"ten"[..])), "released memory is used again");
    }
}
