//! What came to the sink: the newest packets, and which of them are missing.

use weir_units::Seq;

/// The newest packets of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    window: Option<Window>,
    /// As it was before the newest packet came from far ahead, until the stream goes on there or here.
    before_jump: Option<Window>,
    /// The number that would confirm that a jump was real.
    expected_after_jump: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    newest: Seq,
    /// The first packet of all that came.
    first: Seq,
    /// Bit i: whether packet `newest` − i came.
    came: u64,
    /// Bit i: whether it came marked.
    marked: u64,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// New, with this number of packets missing before it.
    New {
        /// Missing numbers since the newest before.
        missing: u64,
    },
    /// It was missing.
    Late,
    /// It came before, or is so old that nobody can tell.
    Repeated,
    /// Its number is too far off; the next packet decides whether to believe it.
    Implausible,
}

/// How far ahead a number may be to be believed at once (RFC 3550 §A.1: MAX_DROPOUT).
const FARTHEST_AHEAD: u64 = 3_000;
/// A source takes no answers about what it has not sent. So where a packet has come from further ahead, and the next one goes on where the
/// stream was, the first was somebody else's.
const LONGEST_GAP: u64 = 16;

impl Arrivals {
    /// A packet came; `wire` is the number that it carries.
    pub(super) fn on_packet(&mut self, wire: u16, marked: bool) -> Arrival {
        let Some(window) = &mut self.window else {
            return self.begin(wire, marked);
        };
        let goes_on = |window: &Window| {
            (1..=LONGEST_GAP).contains(&window.newest.extend(u32::from(wire), 16).since(window.newest))
        };
        if let Some(before) = self.before_jump.take_if(|before| goes_on(before) && !goes_on(window)) {
            *window = before;
        }
        let seq = window.newest.extend(u32::from(wire), 16);
        let (ahead, behind) = (seq.since(window.newest), window.newest.since(seq));
        if ahead > FARTHEST_AHEAD || behind > FARTHEST_AHEAD {
            if self.expected_after_jump == Some(wire) {
                return self.begin(wire, marked);
            }
            self.expected_after_jump = Some(wire.wrapping_add(1));
            return Arrival::Implausible;
        }
        self.expected_after_jump = None;
        if ahead > LONGEST_GAP {
            self.before_jump.get_or_insert(*window);
        } else if ahead > 0 {
            self.before_jump = None;
        }
        if ahead > 0 {
            window.advance(seq, ahead, marked);
            return Arrival::New { missing: ahead - 1 };
        }
        window.fill(behind, marked)
    }

    fn begin(&mut self, wire: u16, marked: bool) -> Arrival {
        // Numbers never go back, whatever the wire does.
        let newest = match self.window.map(|window| (window.newest, window.newest.extend(u32::from(wire), 16))) {
            None => Seq::new((1 << 16) + u64::from(wire)),
            Some((before, next)) if next > before => next,
            Some((_, next)) => Seq::new(next.value() + (1 << 16)),
        };
        self.window = Some(Window { newest, first: newest, came: 1, marked: u64::from(marked) });
        (self.before_jump, self.expected_after_jump) = (None, None);
        Arrival::New { missing: 0 }
    }

    /// The number, in full, of a packet that has just come with this number on the wire. The first packet's is far enough from
    /// zero that earlier ones have numbers too.
    pub(super) fn number(&self, wire: u16) -> Option<u64> {
        self.window.map(|window| window.newest.extend(u32::from(wire), 16).value())
    }

    /// The newest packet, how many are reported (`most`, or all there were), and of these who came and who was marked.
    pub(super) fn newest(&self, most: u8) -> Option<(Seq, u8, u32, u32)> {
        let window = self.window?;
        let reports = (window.newest.since(window.first) + 1).min(u64::from(most)) as u8;
        let mask = (1u64 << reports) - 1;
        Some((window.newest, reports, (window.came & mask) as u32, (window.marked & mask) as u32))
    }
}

impl Window {
    fn advance(&mut self, newest: Seq, by: u64, marked: bool) {
        let shift = |bits: u64| if by < 64 { bits << by } else { 0 };
        self.newest = newest;
        self.came = shift(self.came) | 1;
        self.marked = shift(self.marked) | u64::from(marked);
    }

    fn fill(&mut self, behind: u64, marked: bool) -> Arrival {
        if behind >= 64 || self.came >> behind & 1 == 1 {
            return Arrival::Repeated;
        }
        self.came |= 1 << behind;
        self.marked |= u64::from(marked) << behind;
        self.first = self.first.min(Seq::new(self.newest.value() - behind));
        Arrival::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Arrival::{Implausible, Late, New, Repeated};

    fn came(numbers: &[u16]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for wire in numbers {
            arrivals.on_packet(*wire, false);
        }
        arrivals
    }

    #[test]
    fn a_hole_is_reported_until_it_is_filled() {
        let mut arrivals = came(&[7, 8, 11]);
        let (newest, reports, bits, _) = arrivals.newest(16).expect("packets came");
        assert_eq!((newest.truncate(16), reports, bits), (11, 5, 0b11001));
        assert_eq!(arrivals.on_packet(9, false), Late);
        assert_eq!(arrivals.on_packet(9, false), Repeated);
        assert_eq!(arrivals.newest(16).expect("packets came").2, 0b11101);
    }

    #[test]
    fn numbers_wrap() {
        let mut arrivals = came(&[65_534, 65_535]);
        assert_eq!(arrivals.on_packet(1, false), New { missing: 1 });
        assert_eq!(arrivals.on_packet(0, true), Late);
        let (newest, reports, bits, marked) = arrivals.newest(16).expect("packets came");
        assert_eq!((newest.truncate(16), reports, bits, marked), (1, 4, 0b1111, 0b10));
    }

    #[test]
    fn one_packet_with_a_wild_number_changes_nothing_but_two_in_a_row_are_a_new_beginning() {
        let mut arrivals = came(&[100, 101]);
        assert_eq!(arrivals.on_packet(20_000, false), Implausible);
        assert_eq!(arrivals.on_packet(102, false), New { missing: 0 });
        assert_eq!(arrivals.on_packet(20_000, false), Implausible);
        assert_eq!(arrivals.on_packet(20_001, false), New { missing: 0 });
        assert_eq!(arrivals.newest(16).map(|(newest, reports, ..)| (newest.truncate(16), reports)), Some((20_001, 1)));
    }

    #[test]
    fn a_number_ahead_counts_only_if_the_stream_goes_on_from_there() {
        let mut arrivals = came(&[100]);
        for number in 101..1_000u16 {
            for forged in 0..=number % 3 {
                arrivals.on_packet(number + 17 + number % 5 * 500 + 40 * forged, false);
            }
            assert_eq!(arrivals.on_packet(number, false), New { missing: 0 });
            assert_eq!(arrivals.newest(16).map(|(newest, ..)| newest.truncate(16)), Some(u32::from(number)));
        }
    }

    #[test]
    fn a_packet_from_before_the_first_is_late_and_reported() {
        let mut arrivals = came(&[50, 51]);
        assert_eq!(arrivals.on_packet(49, false), Late);
        assert_eq!(arrivals.newest(16).expect("packets came").1, 3);
    }

    #[test]
    fn a_gap_longer_than_the_window_leaves_nothing_but_the_newest() {
        let mut arrivals = came(&[1, 2, 3]);
        assert_eq!(arrivals.on_packet(203, true), New { missing: 199 });
        assert_eq!(arrivals.newest(32).map(|(_, reports, bits, marked)| (reports, bits, marked)), Some((32, 1, 1)));
        assert_eq!(arrivals.on_packet(3, false), Repeated);
    }
}
