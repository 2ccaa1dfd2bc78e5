//! An account of memory for what waits: one for packets that nothing is known of yet, files and the maps of their blocks; and one,
//! a share of the whole, for tables that are not whole and their decoders, so that no table that somebody sends takes what files need.
//!
//! Not here: what is given up when there is none left. Each owner asks before it takes.

/// Bytes of memory, and how many are taken.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Budget {
        Budget { limit, used: 0 }
    }

    /// Whether there is room for so many bytes more.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }

    /// Whether there would be if nothing else were there.
    pub(crate) fn could_have(&self, bytes: u64) -> bool {
        bytes <= self.limit
    }

    /// Takes them if there is room; whether there was.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let has = self.has(bytes);
        if has {
            self.used += bytes;
        }
        has
    }

    /// The same for what can be done without: half of all memory stays for the rest.
    #[must_use]
    pub(crate) fn take_spare(&mut self, bytes: u64) -> bool {
        self.used.saturating_add(bytes) <= self.limit / 2 && self.take(bytes)
    }

    /// Takes them though there may be no room: for what a receiver cannot go on without, one at a time.
    pub(crate) fn force(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// Gives back what was taken.
    pub(crate) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "only what was taken is given back");
        self.used = self.used.saturating_sub(bytes);
    }

    /// Bytes that are taken.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}
