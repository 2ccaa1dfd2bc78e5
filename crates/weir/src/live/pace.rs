//! When the bytes of a file are due: by the clock in an MPEG transport stream, or by a rate. A state machine without clock or
//! socket.

use std::collections::VecDeque;
use std::time::Duration;

use weir_units::{Rate, Time};

/// Paces bytes, while somebody takes them.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    by: By,
    /// How long the stream has run, and when that was brought up to date; it stands while nobody takes it.
    elapsed: Duration,
    at: Option<Time>,
}

/// What says when bytes are due.
#[derive(Debug, Clone)]
pub(super) enum By {
    /// The program clock reference of a transport stream (ISO/IEC 13818-1 §2.4.2.2).
    Stream(StreamClock),
    /// So much, evenly.
    Rate(Rate),
}

impl Pace {
    pub(super) fn new(by: By) -> Pace {
        Pace { by, elapsed: Duration::ZERO, at: None }
    }

    /// It is `now`, and somebody takes the stream or nobody does.
    pub(super) fn turn(&mut self, now: Time, is_taken: bool) {
        self.elapsed += self.at.map_or(Duration::ZERO, |at| now.since(at));
        self.at = is_taken.then_some(now);
    }

    /// Whether what is at this position may go.
    pub(super) fn is_due(&self, position: u64) -> bool {
        self.at.is_some() && self.due(position) <= self.elapsed
    }

    /// When what is at this position may go; `None` while nobody takes it.
    pub(super) fn due_at(&self, position: u64) -> Option<Time> {
        self.at.map(|at| at + self.due(position).saturating_sub(self.elapsed))
    }

    /// What reads the stream's own clock, if that paces it.
    pub(super) fn stream_clock(&mut self) -> Option<&mut StreamClock> {
        match &mut self.by {
            By::Stream(clock) => Some(clock),
            By::Rate(_) => None,
        }
    }

    /// Whether nothing has said so far when anything is due.
    pub(super) fn lacks_clock(&self) -> bool {
        matches!(&self.by, By::Stream(clock) if clock.points.is_empty())
    }

    fn due(&self, position: u64) -> Duration {
        match &self.by {
            By::Stream(clock) => clock.due(position),
            By::Rate(rate) => nanoseconds(u128::from(position) * 8 * 1_000_000_000 / u128::from(rate.bps().max(1))),
        }
    }
}

/// Where in a transport stream its clock was read, and what it said.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamClock {
    /// The program whose clock it is.
    pid: Option<u16>,
    /// The last reading, in units of 27 MHz.
    last: u64,
    points: VecDeque<Point>,
}

/// A byte's time.
#[derive(Debug, Clone, Copy)]
struct Point {
    position: u64,
    at: Duration,
}

impl StreamClock {
    /// Takes the packet at this position, which may tell the time. Packets come in order.
    pub(super) fn read(&mut self, position: u64, packet: &[u8]) {
        let Some(Reading { pid, ticks, is_discontinuous }) = Reading::of(packet) else { return };
        if *self.pid.get_or_insert(pid) != pid {
            return;
        }
        let passed = ticks.wrapping_sub(self.last).wrapping_add(WRAP) % WRAP;
        let at = match self.points.back() {
            None => Duration::ZERO,
            // The clock was set: the stream goes on as it did.
            Some(_) if is_discontinuous || passed > LONGEST_GAP => self.due(position),
            Some(last) => last.at + nanoseconds(u128::from(passed) * 1_000 / 27),
        };
        self.last = ticks;
        self.points.push_back(Point { position, at });
    }

    /// Nothing before this position will be asked for again.
    pub(super) fn forget(&mut self, before: u64) {
        while self.points.len() > 2 && self.points[1].position <= before {
            self.points.pop_front();
        }
    }

    /// When a byte is due: evenly between two readings, and after the last as fast as before it.
    fn due(&self, position: u64) -> Duration {
        let after = self.points.partition_point(|point| point.position <= position);
        let Some(before) = after.checked_sub(1) else {
            return self.points.front().map_or(Duration::ZERO, |point| point.at);
        };
        let from = self.points[before];
        let (one, other) = match self.points.get(after) {
            Some(next) => (from, *next),
            None if before > 0 => (self.points[before - 1], from),
            None => return from.at,
        };
        let (time, bytes) = (other.at.saturating_sub(one.at).as_nanos(), other.position - one.position);
        from.at + nanoseconds(time * u128::from(position - from.position) / u128::from(bytes.max(1)))
    }
}

/// What a packet says of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    pid: u16,
    ticks: u64,
    is_discontinuous: bool,
}

impl Reading {
    /// Reads the adaptation field of a transport stream packet (ISO/IEC 13818-1 §2.4.3.4).
    fn of(packet: &[u8]) -> Option<Reading> {
        let [SYNC, high, low, control, len, flags, clock @ ..] = packet else { return None };
        let has_clock = control & 0x20 != 0 && *len >= 7 && flags & 0x10 != 0;
        let [a, b, c, d, e, f, ..] = clock else { return None };
        let base = u64::from(u32::from_be_bytes([*a, *b, *c, *d])) << 1 | u64::from(e >> 7);
        let extension = u64::from(e & 1) << 8 | u64::from(*f);
        has_clock.then_some(Reading {
            pid: u16::from_be_bytes([high & 0x1f, *low]),
            ticks: (base * 300 + extension) % WRAP,
            is_discontinuous: flags & 0x80 != 0,
        })
    }
}

fn nanoseconds(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

const SYNC: u8 = 0x47;
/// A clock of 33 bits at 90 kHz, in units of 27 MHz.
const WRAP: u64 = (1 << 33) * 300;
/// Readings are 100 ms apart at most (§2.7.2). What is further apart than two seconds was cut there.
const LONGEST_GAP: u64 = 2 * 27_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of program 256 with this reading.
    fn packet(ticks: u64, discontinuity: bool) -> Vec<u8> {
        let (base, extension) = (ticks / 300, ticks % 300);
        let mut packet = vec![SYNC, 1, 0, 0x20, 183, if discontinuity { 0x90 } else { 0x10 }];
        packet.extend(((base >> 1) as u32).to_be_bytes());
        packet.extend([(base as u8 & 1) << 7 | 0x7e | (extension >> 8) as u8, extension as u8]);
        packet.resize(188, 0xff);
        packet
    }

    /// A clock with these readings, in ms, 1000 bytes apart.
    fn clock(readings: &[u64]) -> StreamClock {
        let mut clock = StreamClock::default();
        for (number, millis) in readings.iter().enumerate() {
            clock.read(number as u64 * 1_000, &packet(millis * 27_000 % WRAP, false));
        }
        clock
    }

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn bytes_are_due_evenly_between_two_readings_and_go_on_after_the_last() {
        let clock = clock(&[500, 540, 640]);
        assert_eq!([0, 500, 1_000, 1_500, 2_000].map(|at| clock.due(at)), [0, 20, 40, 90, 140].map(millis));
        assert_eq!(clock.due(3_000), millis(240));
    }

    #[test]
    fn a_clock_that_wraps_goes_on() {
        let wrap = WRAP / 27_000;
        assert_eq!(clock(&[wrap - 10, wrap + 30]).due(1_000).as_millis(), 40);
    }

    #[test]
    fn a_clock_that_is_set_goes_on_as_before() {
        for cut in [9_000, 10] {
            let clock = clock(&[500, 540, cut, cut + 40]);
            assert_eq!([2_000, 3_000].map(|at| clock.due(at)), [80, 120].map(millis), "to {cut} ms");
        }
        let mut told = clock(&[500, 540]);
        told.read(2_000, &packet(541 * 27_000, true));
        assert_eq!(told.due(2_000), millis(80));
    }

    #[test]
    fn only_the_clock_of_the_first_program_counts() {
        let mut clock = clock(&[500, 540]);
        let mut other = packet(5_000 * 27_000, false);
        other[2] = 9;
        clock.read(1_500, &other);
        assert_eq!(clock.due(2_000), millis(80));
        assert_eq!(Reading::of(&other[..10]), None, "it is cut off");
        assert_eq!(Reading::of(&packet(27, false)).map(|reading| (reading.pid, reading.ticks)), Some((256, 27)));
    }

    #[test]
    fn what_was_sent_is_forgotten_and_the_rest_stays_due_when_it_was() {
        let mut clock = clock(&[0, 40, 60, 100]);
        clock.forget(2_500);
        assert_eq!((clock.points.len(), clock.due(2_500)), (2, millis(80)));
        clock.forget(9_000);
        assert_eq!(clock.due(4_000), millis(140), "the last speed is still known");
    }

    #[test]
    fn time_stands_while_nobody_takes_the_stream() {
        let mut pace = Pace::new(By::Rate(Rate::from_kbps(8)));
        pace.turn(Time::from_secs(1), false);
        assert_eq!((pace.is_due(0), pace.due_at(0)), (false, None));
        pace.turn(Time::from_secs(5), true);
        assert!(pace.is_due(0) && !pace.is_due(1));
        assert_eq!(pace.due_at(2_000), Some(Time::from_secs(7)));
        pace.turn(Time::from_secs(6), false);
        pace.turn(Time::from_secs(10), true);
        assert!(pace.is_due(1_000) && !pace.is_due(1_001));
    }
}
