//! Merkle trees of bursts: one signature vouches for up to 64 packets, each of which is checked by itself.
//!
//! A packet carries the signature over the root and the values next to its way there. Values are 16 bytes: an attacker that wants to put another packet
//! in the place of one has to find a second text for a given value, 2^128 tries. Finding two texts of one value takes
//! 2^64, and helps the sender alone.

use super::stamp::Stamp;

/// A value of the tree.
pub(super) type Value = [u8; 16];

/// What both sides hash with.
#[derive(Debug, Clone)]
pub(super) struct Hashes {
    leaf: blake3::Hasher,
    node: blake3::Hasher,
}

impl Hashes {
    pub(super) fn new() -> Hashes {
        Hashes {
            leaf: blake3::Hasher::new_derive_key("weir 2026 packet of a burst"),
            node: blake3::Hasher::new_derive_key("weir 2026 node over packets of a burst"),
        }
    }

    /// The value of a packet at its place.
    pub(super) fn leaf(&self, place: u8, stamp: &Stamp, packet: &[u8]) -> Value {
        value(self.leaf.clone().update(&[place]).update(&stamp.encode()).update(packet))
    }

    fn node(&self, left: &Value, right: &Value) -> Value {
        value(self.node.clone().update(left).update(right))
    }

    /// The root over a packet's value, and the values next to its way there.
    pub(super) fn root(&self, place: u8, leaf: Value, way: &[u8]) -> Value {
        let levels = way.chunks_exact(VALUE_LEN).enumerate();
        levels.fold(leaf, |below, (level, next)| {
            let next: &Value = next.try_into().expect("chunks are values");
            let is_right = place >> level & 1 == 1;
            if is_right { self.node(next, &below) } else { self.node(&below, next) }
        })
    }
}

fn value(hasher: &mut blake3::Hasher) -> Value {
    let mut out = [0; VALUE_LEN];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..VALUE_LEN]);
    out
}

/// The tree of a burst. Its memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// All values, the leaves first, then level by level, the root last.
    values: Vec<Value>,
    leaves: usize,
}

impl Tree {
    /// Builds the tree over these leaves, 1 to 64, filled up with zeros to a power of two; gives the root.
    pub(super) fn build(&mut self, hashes: &Hashes, leaves: impl Iterator<Item = Value>) -> Value {
        self.values.clear();
        self.values.extend(leaves);
        self.leaves = self.values.len().next_power_of_two();
        self.values.resize(self.leaves, Value::default());
        let (mut from, mut width) = (0, self.leaves);
        while width > 1 {
            for pair in 0..width / 2 {
                let node = hashes.node(&self.values[from + 2 * pair], &self.values[from + 2 * pair + 1]);
                self.values.push(node);
            }
            (from, width) = (from + width, width / 2);
        }
        *self.values.last().expect("a burst has a packet")
    }

    /// The values next to the way from a leaf to the root.
    pub(super) fn way(&self, place: usize) -> impl Iterator<Item = &Value> {
        let (mut from, mut width, mut place) = (0, self.leaves, place);
        std::iter::from_fn(move || {
            let next = (width > 1).then(|| &self.values[from + (place ^ 1)]);
            (from, width, place) = (from + width, width / 2, place / 2);
            next
        })
    }
}

/// How many values each packet carries in a burst of `packets`: the depth of the tree.
pub(super) fn depth(packets: usize) -> usize {
    packets.next_power_of_two().trailing_zeros() as usize
}

/// Bytes that the seal adds to each packet in a burst of `packets`.
pub(super) fn overhead(packets: usize) -> usize {
    4 + Stamp::LEN + SIGNATURE_LEN + depth(packets) * VALUE_LEN
}

/// What the sender signs of a burst.
pub(super) fn signed(tsi: u16, channel: u16, stamp: &Stamp, packets: u8, root: &Value) -> [u8; SIGNED_LEN] {
    let mut out = [0; SIGNED_LEN];
    let first = Stamp { number: 0, ..*stamp }.encode();
    let parts: [&[u8]; 6] = [SIGNED_PREFIX, &tsi.to_be_bytes(), &channel.to_be_bytes(), &first[..10], &[packets], root];
    let mut at = 0;
    for part in parts {
        out[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    out
}

pub(super) const VALUE_LEN: usize = 16;
pub(super) const SIGNATURE_LEN: usize = 64;
const SIGNED_PREFIX: &[u8] = b"weir burst 1\0";
const SIGNED_LEN: usize = SIGNED_PREFIX.len() + 2 + 2 + 10 + 1 + VALUE_LEN;

#[cfg(test)]
mod tests {
    use super::super::stamp::Start;
    use super::*;

    #[test]
    fn every_packet_of_a_burst_leads_to_its_root_and_no_other_does() {
        let (hashes, mut tree) = (Hashes::new(), Tree::default());
        let stamp = Stamp { start: Start { epoch: 1, salt: 2 }, number: 3 };
        for packets in 1..=64u8 {
            let leaf = |place: u8| hashes.leaf(place, &stamp, &[place; 30]);
            let root = tree.build(&hashes, (0..packets).map(leaf));
            for place in 0..packets {
                let way: Vec<u8> = tree.way(place.into()).flatten().copied().collect();
                assert_eq!(way.len(), depth(packets.into()) * VALUE_LEN, "{packets} packets");
                assert_eq!(hashes.root(place, leaf(place), &way), root, "{place} of {packets}");
                assert_ne!(hashes.root(place, hashes.leaf(place, &stamp, b"another"), &way), root);
                if packets > 1 {
                    assert_ne!(hashes.root(place ^ 1, leaf(place), &way), root, "{place} of {packets} moved");
                }
            }
        }
    }

    #[test]
    fn a_burst_of_64_costs_180_bytes_a_packet_and_one_alone_84() {
        assert_eq!((overhead(64), overhead(33), overhead(2), overhead(1)), (180, 180, 100, 84));
    }
}
