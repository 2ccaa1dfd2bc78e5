//! Where a node is in the tree, and whom it knows above itself (decisions 18 and 19).

use alloc::vec::Vec;

use crate::endpoint::Locator;

use super::search::MOST_LEVELS;

/// Where a node is in the tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// Nodes above it; `None` while it looks for one.
    pub(super) level: Option<u8>,
    /// Where it takes children.
    pub(super) door: Option<Locator>,
    /// The nodes above it by level, in no order.
    pub(super) above: Vec<(u8, Locator)>,
    /// Where the sender is reached: the last resort.
    sender: Option<Locator>,
}

impl Position {
    /// The sender's own.
    pub(super) fn of_sender(door: Locator) -> Position {
        Position { level: Some(0), door: Some(door), ..Position::default() }
    }

    /// The sender is reached there.
    pub(super) fn note_sender(&mut self, at: Locator) {
        self.sender = Some(at);
    }

    /// A node above it is reached there.
    pub(super) fn note_above(&mut self, level: u8, at: Locator) {
        self.above.retain(|(known, _)| *known != level);
        if self.above.len() < usize::from(MOST_LEVELS) {
            self.above.push((level, at));
        }
    }

    /// Where the node above is reached, if it has told.
    pub(super) fn parent(&self) -> Option<Locator> {
        let level = self.level?.checked_sub(1)?;
        self.above.iter().find(|(known, _)| *known == level).map(|(_, at)| *at)
    }

    /// The nodes to turn to when the one above is lost, the nearest first.
    pub(super) fn refuges(&mut self) -> Vec<Locator> {
        self.above.sort_unstable_by_key(|(level, _)| core::cmp::Reverse(*level));
        let lost = self.level.map_or(0, |level| level.saturating_sub(1));
        let near =
            self.above.iter().filter(|(level, _)| *level > 0 && *level != lost).take(MOST_REFUGES).map(|(_, at)| *at);
        near.chain(self.sender).collect()
    }
}

/// Nodes that an orphan asks besides the sender.
const MOST_REFUGES: usize = 6;
