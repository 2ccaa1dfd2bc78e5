//! Which packets of a channel arrived, which are lost, and which came twice.

use weir_units::Seq;

/// What the arrival of a packet means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The packet is new. `lost` packets of the channel are given up because of it.
    New {
        /// Packets of the channel that now count as lost.
        lost: u64,
    },
    /// The packet is new, but it had been given up: it was sent `behind` packets before the latest one that came. Its loss stands.
    Late {
        /// Numbers from this packet's to the highest.
        behind: u64,
    },
    /// The packet came before.
    Duplicate,
    /// The number is far from what the channel was at: rubbish, or the sender started again. Should the next packet go on
    /// from here, it is taken as the latter.
    OutOfPlace,
}

/// Follows the sequence numbers of one channel.
///
/// The tracker gives a missing packet up once [`tolerated`](SequenceTracker::tolerated) later packets of the channel have arrived. With 1, the
/// first later packet shows the gap. A packet that arrives after that is [`Arrival::Late`], and its loss stands. Duplicates are known among the
/// last 1024 numbers.
///
/// Anybody can send a packet with a number far ahead. So only packets in a row give a missing one up, with none between them
/// that goes on where the channel was; and a gap of more than 768 packets counts when a second packet goes on behind it.
/// A jump that no loss explains is believed when a second packet confirms it (as in RFC 3550 A.1), and a sender that
/// repeats itself after eight packets.
#[derive(Debug, Clone)]
#[repr(C)] // Every packet needs what is behind `seen`, and few need more.
pub struct SequenceTracker {
    /// Which of the numbers in (`highest` − 1024, `highest`] arrived: bit number mod 1024. The word of `highest` is in `open`.
    seen: [u64; WORDS],
    /// The word of `seen` that `highest` is in.
    open: u64,
    /// The highest number seen.
    highest: Seq,
    /// All numbers below are received or given up.
    undecided: u64,
    /// The wire number that would confirm a jump.
    suspect: Option<u32>,
    /// Packets received at or above `undecided`, at most a window of them.
    received_undecided: u16,
    tolerated: u8,
    bits: u8,
    state: State,
    /// Duplicates in a row whose numbers follow each other, at most [`REPEATS_OF_A_RESTART`].
    repeats: u8,
    /// Packets above `undecided` in a row: since the channel was last seen at or below it.
    run: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is known: the next packet begins a sequence wherever it is.
    Fresh,
    /// Packets arrive but losses between them mean nothing: the channel is not subscribed.
    Unmeasured,
    /// Gaps are losses.
    Measured,
}

impl SequenceTracker {
    /// Before the first packet. `bits` is the width of the numbers on the wire. `tolerated` later packets give a missing one up.
    pub fn new(bits: u32, tolerated: u8) -> SequenceTracker {
        SequenceTracker {
            bits: bits as u8,
            tolerated: tolerated.max(1),
            highest: Seq::new(0),
            undecided: 0,
            received_undecided: 0,
            seen: [0; WORDS],
            open: 0,
            state: State::Fresh,
            suspect: None,
            repeats: 0,
            run: 0,
        }
    }

    /// The channel was joined: the next packet begins a sequence, whatever was missed before it.
    pub fn begin(&mut self) {
        self.state = State::Fresh;
        self.suspect = None;
    }

    /// How many later packets give a missing one up.
    pub fn tolerated(&self) -> u8 {
        self.tolerated
    }

    /// From now on, `packets` later ones give a missing packet up.
    pub fn tolerate(&mut self, packets: u8) {
        self.tolerated = packets.max(1);
    }

    /// Whether packets have numbers like this on the wire.
    pub fn is_number(&self, wire: u32) -> bool {
        u64::from(wire) >> self.bits == 0
    }

    /// Whether a number is none that the channel goes on with: it is behind what came, or far from it.
    pub fn is_elsewhere(&self, wire: u32) -> bool {
        let seq = self.highest.extend(wire, self.bits());
        self.highest.value() >= FIRST && (seq <= self.highest || seq.since(self.highest) > self.furthest_ahead())
    }

    /// A packet with the number `wire` arrived. Gaps count as losses only between packets that are `measured`.
    pub fn on_packet(&mut self, wire: u32, measured: bool) -> Arrival {
        let seq = self.highest.extend(wire, self.bits());
        let ahead = seq.since(self.highest);
        let behind = self.highest.since(seq);
        let near = self.highest.value() >= FIRST && ahead <= self.furthest_ahead() && behind < WINDOW;
        if !near {
            if self.state != State::Fresh && self.suspect != Some(wire) {
                self.expect_after(wire);
                return Arrival::OutOfPlace;
            }
            self.restart(wire, measured);
            return Arrival::New { lost: 0 };
        }
        if ahead == 0 && self.was_seen(seq) {
            self.note_where_it_is(seq);
            self.repeats = if self.suspect == Some(wire) { self.repeats + 1 } else { 1 };
            if self.repeats < REPEATS_OF_A_RESTART {
                self.expect_after(wire);
                return Arrival::Duplicate;
            }
            self.restart(wire, measured);
            return Arrival::New { lost: 0 };
        }
        let mut lost = 0;
        if measured && self.state == State::Measured && seq.value() > self.undecided + LONGEST_GAP {
            let first = self.suspect.map(|expected| Seq::new(self.highest.extend(expected, self.bits()).value() - 1));
            let Some(before) = first.filter(|first| (1..=LONGEST_GAP).contains(&seq.since(*first))) else {
                self.expect_after(wire);
                return Arrival::New { lost: 0 };
            };
            if before > self.highest || !self.was_seen(before) {
                lost = self.record(before, measured);
            }
        }
        self.suspect = None;
        let is_late = measured && self.state == State::Measured && seq.value() < self.undecided;
        lost += self.record(seq, measured);
        if is_late { Arrival::Late { behind } } else { Arrival::New { lost } }
    }

    /// A packet with this number came, and is to count. Gives how many are lost because of it.
    fn record(&mut self, seq: Seq, measured: bool) -> u64 {
        self.advance(seq.since(self.highest));
        let mut lost = if measured && self.state == State::Measured { self.give_up_beyond_window() } else { 0 };
        self.mark(seq);
        self.note_where_it_is(seq);
        if seq.value() >= self.undecided {
            self.received_undecided += 1;
            self.run = self.run.saturating_add(1);
        }
        if measured && self.state == State::Measured {
            lost += self.decide();
        } else {
            self.undecided = self.highest.value() + 1;
            (self.received_undecided, self.run) = (0, 0);
            self.state = if measured { State::Measured } else { State::Unmeasured };
        }
        lost
    }

    /// A packet of the channel, new or not, shows where it is: if that is not beyond the missing one, what came from beyond does not
    /// tell that it is lost.
    fn note_where_it_is(&mut self, seq: Seq) {
        if seq.value() <= self.undecided {
            self.run = 0;
        }
    }

    fn bits(&self) -> u32 {
        u32::from(self.bits)
    }

    fn expect_after(&mut self, wire: u32) {
        self.suspect = Some(Seq::new(u64::from(wire)).next().truncate(self.bits()));
    }

    /// How far ahead a number may be and still tell of losses: a quarter of the number space, at most 2^20.
    fn furthest_ahead(&self) -> u64 {
        (1u64 << (self.bits - 2)).min(1 << 20)
    }

    fn restart(&mut self, wire: u32, measured: bool) {
        self.highest = Seq::new(FIRST + u64::from(Seq::new(u64::from(wire)).truncate(self.bits())));
        self.undecided = self.highest.value() + 1;
        (self.received_undecided, self.run) = (0, 0);
        self.forget_all();
        self.mark(self.highest);
        self.state = if measured { State::Measured } else { State::Unmeasured };
        self.suspect = None;
    }

    fn advance(&mut self, ahead: u64) {
        if ahead >= WINDOW {
            self.forget_all();
            self.highest = Seq::new(self.highest.value() + ahead);
        } else {
            (0..ahead).for_each(|_| self.advance_by_one());
        }
    }

    fn advance_by_one(&mut self) {
        let next = self.highest.next();
        if word(next) != word(self.highest) {
            self.seen[word(self.highest)] = self.open;
            self.open = self.seen[word(next)];
        }
        self.highest = next;
        self.open &= !bit(next);
    }

    fn forget_all(&mut self) {
        self.seen = [0; WORDS];
        self.open = 0;
    }

    fn mark(&mut self, seq: Seq) {
        if word(seq) == word(self.highest) {
            self.open |= bit(seq);
        } else {
            self.seen[word(seq)] |= bit(seq);
        }
    }

    fn was_seen(&self, seq: Seq) -> bool {
        let of_seq = if word(seq) == word(self.highest) { self.open } else { self.seen[word(seq)] };
        of_seq & bit(seq) != 0
    }

    /// Numbers that fell out of the window undecided are lost, but for those that were received.
    fn give_up_beyond_window(&mut self) -> u64 {
        let oldest = (self.highest.value() + 1).saturating_sub(WINDOW);
        if self.undecided >= oldest {
            return 0;
        }
        let passed = oldest - self.undecided;
        // Received packets at or above `undecided` that are no longer in the window; those in it are counted again.
        self.seen[word(self.highest)] = self.open;
        let still_seen: u64 = self.seen.iter().map(|word| u64::from(word.count_ones())).sum();
        let received_passed = u64::from(self.received_undecided).saturating_sub(still_seen).min(passed);
        self.received_undecided -= received_passed as u16;
        self.undecided = oldest;
        passed - received_passed
    }

    /// Gives up the missing packets that `tolerated` later ones have overtaken.
    fn decide(&mut self) -> u64 {
        let mut lost = 0;
        while self.undecided <= self.highest.value() {
            if self.was_seen(Seq::new(self.undecided)) {
                self.received_undecided -= 1;
                self.run = self.run.saturating_sub(1);
            } else if self.run >= self.tolerated {
                lost += 1;
            } else {
                break;
            }
            self.undecided += 1;
        }
        lost
    }
}

/// Which word of the window a number is in.
fn word(seq: Seq) -> usize {
    (seq.value() / 64) as usize % WORDS
}

fn bit(seq: Seq) -> u64 {
    1 << (seq.value() % 64)
}

const WORDS: usize = 16;
const WINDOW: u64 = WORDS as u64 * 64;
/// A sender that starts again before it has used up the window repeats numbers, one after the other and with nothing new
/// between them, as no network does for long.
const REPEATS_OF_A_RESTART: u8 = 8;
/// A longer gap counts only once a second packet goes on behind it. The window is longer still, so packets from before the gap are not taken for
/// far behind; and it is long enough for a start-up burst that the network reorders.
const LONGEST_GAP: u64 = WINDOW * 3 / 4;
/// Where sequences begin, so that a late packet before the first one is still a number above zero. A multiple of every
/// wire space.
const FIRST: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn feed(tracker: &mut SequenceTracker, numbers: &[u32]) -> Vec<Arrival> {
        numbers.iter().map(|number| tracker.on_packet(*number, true)).collect()
    }

    fn new(lost: u64) -> Arrival {
        Arrival::New { lost }
    }

    #[test]
    fn without_tolerance_a_gap_is_a_loss_at_once() {
        let mut tracker = SequenceTracker::new(16, 1);
        assert_eq!(feed(&mut tracker, &[10, 11, 14, 15]), [new(0), new(0), new(2), new(0)]);
    }

    #[test]
    fn with_tolerance_a_gap_is_a_loss_when_that_many_later_packets_have_come() {
        let mut tracker = SequenceTracker::new(16, 3);
        assert_eq!(feed(&mut tracker, &[1, 3, 4, 5]), [new(0), new(0), new(0), new(1)]);
        let mut tracker = SequenceTracker::new(16, 3);
        assert_eq!(feed(&mut tracker, &[1, 3, 4, 2, 5, 6]), [new(0); 6], "a packet overtaken by two is not lost");
    }

    #[test]
    fn duplicates_are_recognised_and_packets_that_were_given_up_come_late_once() {
        let mut tracker = SequenceTracker::new(16, 1);
        let dup = Arrival::Duplicate;
        assert_eq!(
            feed(&mut tracker, &[1, 1, 4, 2, 2, 1]),
            [new(0), dup, new(2), Arrival::Late { behind: 2 }, dup, dup]
        );
    }

    #[test]
    fn what_came_is_known_of_all_numbers_of_the_window() {
        let mut tracker = SequenceTracker::new(16, 1);
        (0..3000).filter(|number| number % 3 > 0).for_each(|number| _ = tracker.on_packet(number, true));
        for number in (2999 - 1023..3000).rev() {
            let late = Arrival::Late { behind: u64::from(2999 - number) };
            let expected = if number % 3 > 0 { Arrival::Duplicate } else { late };
            assert_eq!(tracker.on_packet(number, true), expected, "{number}");
        }
        assert_eq!(tracker.on_packet(2999 - 1024, true), Arrival::OutOfPlace);
    }

    #[test]
    fn numbers_wrap_without_a_loss() {
        let mut tracker = SequenceTracker::new(16, 1);
        assert_eq!(feed(&mut tracker, &[65_534, 65_535, 0, 2]), [new(0), new(0), new(0), new(1)]);
    }

    #[test]
    fn a_joined_channel_begins_a_new_sequence() {
        let mut tracker = SequenceTracker::new(16, 1);
        feed(&mut tracker, &[1, 2]);
        tracker.begin();
        assert_eq!(feed(&mut tracker, &[40_000, 40_001]), [new(0), new(0)]);
        tracker.begin();
        assert_eq!(feed(&mut tracker, &[40_001, 40_100, 40_102]), [Arrival::Duplicate, new(0), new(1)]);
    }

    #[test]
    fn a_channel_goes_on_with_numbers_a_little_ahead() {
        let mut tracker = SequenceTracker::new(16, 1);
        assert!(!tracker.is_elsewhere(7), "nothing has come");
        feed(&mut tracker, &[65_000]);
        let elsewhere = [64_000, 65_000, 65_001, 500, 20_000, 40_000].map(|number| tracker.is_elsewhere(number));
        assert_eq!(elsewhere, [true, true, false, false, true, true]);
    }

    #[test]
    fn gaps_before_and_between_unmeasured_packets_are_no_losses() {
        let mut tracker = SequenceTracker::new(16, 1);
        tracker.on_packet(1, true);
        let unmeasured: Vec<Arrival> = [5, 9, 9].iter().map(|number| tracker.on_packet(*number, false)).collect();
        assert_eq!(unmeasured, [new(0), new(0), Arrival::Duplicate]);
        assert_eq!(feed(&mut tracker, &[20, 22]), [new(0), new(1)]);
    }

    #[test]
    fn a_sender_that_starts_again_is_believed_at_its_second_packet_and_rubbish_never() {
        let mut tracker = SequenceTracker::new(32, 1);
        let out = Arrival::OutOfPlace;
        let begin = 3_000_000_000;
        assert_eq!(feed(&mut tracker, &[begin, 7, begin + 1, 7, 8, 9]), [new(0), out, new(0), out, new(0), new(0)]);
    }

    #[test]
    fn a_sender_that_starts_again_within_the_window_is_believed_after_a_run_of_repeats() {
        let mut tracker = SequenceTracker::new(16, 1);
        (0..100).for_each(|number| assert_eq!(tracker.on_packet(number, true), new(0)));
        let again: Vec<Arrival> = (0..12).map(|number| tracker.on_packet(number, true)).collect();
        assert_eq!(again[..7], [Arrival::Duplicate; 7]);
        assert_eq!(again[7..], [new(0); 5]);
        let mut tracker = SequenceTracker::new(16, 1);
        for number in 0..100 {
            assert_eq!(feed(&mut tracker, &[number, number]), [new(0), Arrival::Duplicate], "a network that doubles");
        }
    }

    #[test]
    fn numbers_ahead_count_only_if_the_channel_goes_on_from_there() {
        for ahead in [5, 200, 700, 800, 2_000, 9_000] {
            let mut tracker = SequenceTracker::new(16, 3);
            let mut number = 60_000;
            feed(&mut tracker, &[number]);
            for forged in 0..2_000 {
                // A forged packet and one of the channel in turn.
                let far = number + ahead + forged % 7;
                for wire in [far % 65_536, (number + 1) % 65_536] {
                    let is_lost = matches!(tracker.on_packet(wire, true), Arrival::New { lost: 1.. });
                    assert!(!is_lost, "{wire} after {number}, {ahead} ahead");
                }
                number += 1;
            }
            if u64::from(ahead) > LONGEST_GAP {
                let later = [3, 4, 5].map(|more| (number + more) % 65_536);
                assert_eq!(feed(&mut tracker, &later), [new(0), new(0), new(2)], "losses count as ever");
            }
        }
    }

    #[test]
    fn a_channel_that_goes_on_far_ahead_with_losses_has_lost_these_too() {
        let mut tracker = SequenceTracker::new(16, 3);
        let arrivals = feed(&mut tracker, &[1, 2, 3, 1_003, 1_007, 1_011, 1_015]);
        assert_eq!(losses(&arrivals), 999 + 3, "of the gap, and up to 1007");
    }

    #[test]
    fn a_channel_that_goes_on_far_ahead_has_lost_what_is_between() {
        for gap in [200, 300, 5_000] {
            let mut tracker = SequenceTracker::new(16, 3);
            let arrivals = feed(&mut tracker, &[1, 2, 3, 3 + gap, 4 + gap, 5 + gap, 6 + gap]);
            assert_eq!(losses(&arrivals), u64::from(gap) - 1);
        }
    }

    fn losses(arrivals: &[Arrival]) -> u64 {
        arrivals
            .iter()
            .map(|arrival| if let Arrival::New { lost } = arrival { *lost } else { panic!("{arrival:?}") })
            .sum()
    }

    #[test]
    fn an_outage_longer_than_the_window_is_counted_exactly() {
        let mut tracker = SequenceTracker::new(16, 3);
        assert_eq!(feed(&mut tracker, &[1, 3])[1], new(0));
        let lost: u64 = [10_003, 10_004, 10_005, 10_006]
            .iter()
            .map(|number| match tracker.on_packet(*number, true) {
                Arrival::New { lost } => lost,
                other => panic!("{other:?}"),
            })
            .sum();
        assert_eq!(lost, 10_000, "2 and 4 to 10 002");
    }

    proptest! {
        #[test]
        fn every_number_is_received_or_lost_across_wraps(
            start in any::<u32>(), keep in proptest::collection::vec(0u8..10, 1..3000), tolerated in 1u8..5,
            bits in prop_oneof![Just(16u32), Just(32)],
        ) {
            let mut tracker = SequenceTracker::new(bits, tolerated);
            let mask = u32::MAX >> (32 - bits);
            let (mut received, mut lost) = (0u64, 0u64);
            let sent: Vec<u32> = (0..keep.len() as u32).filter(|i| keep[*i as usize] > 1).collect();
            for i in &sent {
                match tracker.on_packet(start.wrapping_add(*i) & mask, true) {
                    Arrival::New { lost: n } => { received += 1; lost += n; }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            let span = match (sent.first(), sent.last()) { (Some(a), Some(b)) => u64::from(b - a) + 1, _ => 0 };
            prop_assert_eq!(received, sent.len() as u64);
            prop_assert!(received + lost <= span);
            // What is not decided yet lies behind the last few received packets.
            let undecided_from = sent.len().saturating_sub(usize::from(tolerated));
            let certain = sent.get(undecided_from).map_or(0, |i| u64::from(i - sent[0]));
            let received_before = undecided_from as u64;
            prop_assert!(lost + received_before >= certain, "lost {} of {}", lost, certain);
        }

        #[test]
        fn what_was_given_up_and_comes_is_late_however_far_packets_are_reordered(
            delays in proptest::collection::vec(0usize..700, 1..3000), tolerated in 1u8..=255,
        ) {
            let mut order: Vec<usize> = (0..delays.len()).collect();
            order.sort_by_key(|number| (number + delays[*number], *number));
            let mut tracker = SequenceTracker::new(16, tolerated);
            let (mut lost, mut late) = (0, 0);
            for number in [0].into_iter().chain(order.into_iter().map(|number| number + 1)) {
                match tracker.on_packet(number as u32, true) {
                    Arrival::New { lost: more } => lost += more,
                    Arrival::Late { .. } => late += 1,
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            prop_assert_eq!(lost, late);
        }

        #[test]
        fn any_numbers_are_taken_without_panic(numbers in proptest::collection::vec((any::<u32>(), any::<bool>(), 0u8..20), 0..300)) {
            let mut tracker = SequenceTracker::new(16, 3);
            for (number, measured, begin) in numbers {
                if begin == 0 { tracker.begin(); }
                tracker.on_packet(number, measured);
            }
        }
    }
}
