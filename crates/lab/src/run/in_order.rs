//! What of a flow its receiving application can have: TCP gives it in order, everything else as it comes.

use std::collections::BTreeSet;

use weir_core::Header;
use weir_sim::Body;
use weir_sim::tcp::Kind;

/// Which segments have come.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    next: u64,
    /// Those that came before others that are missing.
    ahead: BTreeSet<u64>,
}

impl InOrder {
    /// How many packets more the application can have now.
    pub(super) fn receive(&mut self, body: &Body) -> u64 {
        match body {
            Body::Segment(segment) if segment.kind == Kind::Data => self.segment(segment.seq),
            Body::Datagram(_) | Body::Endpoint(Header::Paced(_)) => 1,
            Body::Segment(_) | Body::Endpoint(_) => 0,
        }
    }

    fn segment(&mut self, number: u64) -> u64 {
        if number < self.next || !self.ahead.insert(number) {
            return 0;
        }
        let before = self.next;
        while self.ahead.remove(&self.next) {
            self.next += 1;
        }
        self.next - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_counts_once_and_what_is_ahead_when_the_gap_is_filled() {
        let mut order = InOrder::default();
        let counts: Vec<u64> = [0, 1, 3, 3, 4, 1, 2, 5].into_iter().map(|number| order.segment(number)).collect();
        assert_eq!(counts, [1, 1, 0, 0, 0, 0, 3, 1]);
    }
}
