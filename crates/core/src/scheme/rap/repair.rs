//! The retransmission manager of the paper's Fig. 1: which payload the next packet carries, and which payloads have come.
//!
//! A lost payload goes again, within the rate that RAP allows, as long as it can arrive in time. Payloads have numbers of their own; a
//! packet's number stays that of the packet. Not here: the payloads themselves, which the driver keeps.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::{Seq, Time};

/// What a source keeps, to send it again.
#[derive(Debug, Clone)]
pub(super) struct Repair {
    /// For how long a payload is of use to the sink.
    latency: Duration,
    /// When each payload that is kept was sent for the first time, from number `first` on.
    sent: VecDeque<Time>,
    first: u64,
    /// Lost and not sent again, in the order of their losses.
    lost: VecDeque<u64>,
}

impl Repair {
    /// Nothing was sent.
    pub(super) fn new(latency: Duration) -> Repair {
        Repair { latency, sent: VecDeque::new(), first: 0, lost: VecDeque::new() }
    }

    /// The next payload of the application is sent; gives its number.
    pub(super) fn take(&mut self, now: Time) -> u64 {
        self.sent.push_back(now);
        self.first + self.sent.len() as u64 - 1
    }

    /// A packet with this payload is lost.
    pub(super) fn note_lost(&mut self, payload: u64) {
        self.lost.push_back(payload);
    }

    /// Whether something lost may be worth sending again.
    pub(super) fn is_wanted(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lost payload to send again, if one can still arrive in time `trip` from `now`. Those that cannot are given up.
    pub(super) fn next(&mut self, now: Time, trip: Duration) -> Option<u64> {
        while let Some(payload) = self.lost.pop_front() {
            let sent = payload.checked_sub(self.first).and_then(|index| self.sent.get(index as usize));
            if sent.is_some_and(|sent| now + trip <= *sent + self.latency) {
                return Some(payload);
            }
        }
        None
    }

    /// Whether this payload is kept.
    pub(super) fn keeps(&self, payload: u64) -> bool {
        payload >= self.first
    }

    /// Forgets what is of no use any more, and more than can be told apart; gives the lowest number that is kept, if that has changed.
    pub(super) fn forget(&mut self, now: Time) -> Option<u64> {
        let before = self.first;
        while self.sent.front().is_some_and(|sent| *sent + self.latency < now) || self.sent.len() > MOST {
            self.sent.pop_front();
            self.first += 1;
        }
        (self.first != before).then_some(self.first)
    }
}

/// Which payloads have come to a sink, so that each is delivered once.
#[derive(Debug, Clone)]
pub(super) struct Payloads {
    newest: Option<Seq>,
    /// Bit n % MOST: whether payload n came, for the newest `MOST`.
    came: Box<[u64; MOST / 64]>,
}

impl Default for Payloads {
    fn default() -> Payloads {
        Payloads { newest: None, came: Box::new([0; MOST / 64]) }
    }
}

impl Payloads {
    /// A packet with this payload came, whose own number was believed; gives the payload's number in full, unless it came before or is too
    /// old to tell.
    pub(super) fn on_payload(&mut self, wire: u16) -> Option<u64> {
        // The first is far enough from zero that earlier ones have numbers too.
        let newest = *self.newest.get_or_insert(Seq::new((1 << 16) + u64::from(wire) - 1));
        let seq = newest.extend(u32::from(wire), 16);
        if newest.since(seq) >= MOST as u64 {
            return None;
        }
        for skipped in 1..=seq.since(newest).min(MOST as u64) {
            self.set(seq.value() - skipped + 1, false);
        }
        self.newest = Some(newest.max(seq));
        let has_come = self.came[index(seq.value())] >> (seq.value() % 64) & 1 == 1;
        self.set(seq.value(), true);
        (!has_come).then_some(seq.value())
    }

    fn set(&mut self, number: u64, came: bool) {
        let word = &mut self.came[index(number)];
        *word = *word & !(1 << (number % 64)) | u64::from(came) << (number % 64);
    }
}

fn index(number: u64) -> usize {
    (number as usize % MOST) / 64
}

/// Payloads that are kept, or told apart: a quarter of the wire's numbers, as packets in flight are (`history.rs`).
const MOST: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const LATENCY: Duration = Duration::from_millis(300);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn what_was_lost_goes_again_as_long_as_it_can_arrive_in_time() {
        let mut repair = Repair::new(LATENCY);
        let numbers: Vec<u64> = (0..3).map(|n| repair.take(at(n * 100))).collect();
        assert_eq!(numbers, [0, 1, 2]);
        (0..2).for_each(|payload| repair.note_lost(payload));
        let trip = Duration::from_millis(20);
        assert_eq!(repair.next(at(281), trip), Some(1), "payload 0 would arrive at 301 ms");
        repair.note_lost(1);
        assert_eq!(repair.next(at(380), trip), Some(1), "again, as the repair was lost too");
        assert!(!repair.is_wanted());
    }

    #[test]
    fn what_is_of_no_use_any_more_is_forgotten_and_never_sent_again() {
        let mut repair = Repair::new(LATENCY);
        let last = (0..3).map(|n| repair.take(at(n * 100))).last();
        assert_eq!(last, Some(2));
        assert_eq!((repair.forget(at(300)), repair.forget(at(401))), (None, Some(2)));
        repair.note_lost(1);
        assert_eq!(repair.next(at(401), Duration::ZERO), None);
        assert_eq!(repair.take(at(402)), 3);
    }

    #[test]
    fn memory_is_bounded_however_fast_a_stream_is() {
        let mut repair = Repair::new(LATENCY);
        for number in 0..100_000 {
            assert_eq!(repair.take(at(0)), number);
            repair.forget(at(0));
        }
        assert_eq!(repair.sent.len(), MOST);
    }

    proptest! {
        #[test]
        fn every_payload_is_delivered_once_under_its_own_number(
            first in any::<u16>(), steps in proptest::collection::vec(0u64..200, 1..2_000),
        ) {
            let (mut payloads, mut delivered) = (Payloads::default(), BTreeSet::new());
            let (mut ahead, mut base) = (0, None);
            for step in steps {
                // Mostly forwards, up to 100 back.
                ahead = (ahead + step).saturating_sub(100);
                let told = payloads.on_payload((u64::from(first) + ahead) as u16);
                if let Some(number) = told {
                    let base = *base.get_or_insert(number - ahead);
                    prop_assert_eq!(number, base + ahead);
                }
                prop_assert_eq!(told.is_some(), delivered.insert(ahead), "payload {}", ahead);
            }
        }
    }
}
