//! Packets at the links that are watched.

use weir_units::Time;

/// What is recorded of everything that sends: a session, a tree, a flow.
#[derive(Debug, Clone, Default)]
pub struct Packets {
    /// Its packets at each of the links that are watched, in order.
    pub passages: Vec<Vec<Passage>>,
    /// Its number among all that is recorded.
    pub number: u32,
    /// Whether a packet of it came to any link at all.
    pub sent: bool,
}

/// A packet at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// When.
    pub at: Time,
    /// Its bytes on the link.
    pub bytes: u32,
    /// What happened to it.
    pub fate: Fate,
    /// Whether it carried a congestion mark.
    pub marked: bool,
}

/// What happens to a packet at a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It came. Every packet does, before anything else.
    Came,
    /// It was dropped.
    Dropped,
    /// It left for the other end.
    Left,
}

impl Packets {
    /// Those of which `passages` were at the bottleneck.
    pub fn at_bottleneck(passages: Vec<Passage>) -> Packets {
        Packets { sent: !passages.is_empty(), passages: vec![passages], number: 0 }
    }

    /// Those at a link that is watched.
    pub fn at(&self, link: usize) -> &[Passage] {
        self.passages.get(link).map_or(&[], |passages| passages)
    }

    /// Whether it sent, and nothing of that came to a link.
    pub(in crate::metric) fn passes_by(&self, link: usize) -> bool {
        self.sent && self.at(link).is_empty()
    }
}
