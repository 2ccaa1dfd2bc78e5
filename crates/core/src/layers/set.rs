//! Sets of layers.

/// Layers of a session by number, at most [`LayerSet::CAPACITY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerSet([u64; LayerSet::CAPACITY / 64]);

impl LayerSet {
    /// Layers are numbered below this.
    pub const CAPACITY: usize = 256;

    /// Adds a layer. One that cannot be numbered is left out.
    pub fn insert(&mut self, layer: usize) {
        if let Some(word) = self.0.get_mut(layer / 64) {
            *word |= 1 << (layer % 64);
        }
    }

    /// Takes a layer out.
    pub fn remove(&mut self, layer: usize) {
        if let Some(word) = self.0.get_mut(layer / 64) {
            *word &= !(1 << (layer % 64));
        }
    }

    /// Whether the layer is in the set.
    #[inline]
    pub fn contains(&self, layer: usize) -> bool {
        self.0.get(layer / 64).is_some_and(|word| word >> (layer % 64) & 1 == 1)
    }

    /// The layers of both.
    #[must_use]
    pub fn union(self, other: LayerSet) -> LayerSet {
        LayerSet(core::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The layers that are not in `other`.
    #[must_use]
    pub fn without(self, other: LayerSet) -> LayerSet {
        LayerSet(core::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The layers, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..LayerSet::CAPACITY).filter(move |layer| self.contains(*layer))
    }
}

impl FromIterator<usize> for LayerSet {
    fn from_iter<I: IntoIterator<Item = usize>>(layers: I) -> LayerSet {
        let mut set = LayerSet::default();
        layers.into_iter().for_each(|layer| set.insert(layer));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn sets_are_sets() {
        let (a, b) = (LayerSet::from_iter([0, 63, 64, 255]), LayerSet::from_iter([64, 70]));
        assert_eq!(a.union(b).iter().collect::<Vec<_>>(), [0, 63, 64, 70, 255]);
        assert_eq!(a.without(b).iter().collect::<Vec<_>>(), [0, 63, 255]);
        assert_eq!((a.len(), a.is_empty(), LayerSet::from_iter([256]).is_empty()), (4, false, true));
    }
}
