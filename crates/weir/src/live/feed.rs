//! What viewers of a live stream are fed with: the input, and what was read of it lately. Says whether the program that makes the stream waits for
//! those who view it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use weir_core::PeerId;
use weir_units::{Bytes, Time};
use weir_wire::rtp::{Origin, Rtp};

use super::content::{Content, Next};
use super::input::{Source, Supply};
use super::pictures::Pictures;
use super::ring::{Ring, Slot, Window};

/// An input and its viewers.
#[derive(Debug)]
pub(super) struct Feed {
    source: Source,
    header_len: usize,
    ring: Ring,
    pictures: Pictures,
    /// For viewers that the input does not wait for.
    window: Window,
    /// The user knows whether the input goes by a clock of its own, and how many payloads are too large.
    is_clock_told: bool,
    large_told: u64,
}

impl Feed {
    /// What has waited for `longest_wait` is of no use, where the input does not wait. RTP headers take `header_len` bytes.
    pub(super) fn new(source: Source, header_len: usize, longest_wait: Duration) -> Feed {
        let most = MOST_BYTES / source.payload_len().max(1);
        let window = Window { longest_wait, most };
        Feed {
            source,
            header_len,
            ring: Ring::default(),
            pictures: Pictures::default(),
            window,
            is_clock_told: false,
            large_told: 0,
        }
    }

    /// Whether the input waits until the slowest viewer has got what was read. One that goes by a clock waits for a viewer that is alone.
    fn waits(&self) -> bool {
        match &self.source {
            Source::Bytes(source) => !source.has_clock() || self.ring.viewers() <= 1,
            Source::Datagrams(_) => false,
        }
    }
}

impl Content for Feed {
    fn add(&mut self, _now: Time, viewer: PeerId, _packet_size: Bytes) {
        self.ring.add(viewer);
    }

    fn remove(&mut self, viewer: PeerId) {
        self.ring.remove(viewer);
    }

    /// While enough waits for the slowest viewer nothing is read.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        let has_enough = self.waits() && self.ring.len() >= AHEAD / 2;
        if has_enough { None } else { self.source.readable() }
    }

    fn read(&mut self, now: Time) {
        self.source.fill(now);
        self.turn(now);
    }

    fn turn(&mut self, now: Time) {
        self.source.pace(now, self.ring.viewers() > 0);
        let window = (!self.waits()).then_some(self.window);
        while window.is_some() || self.ring.len() < AHEAD {
            let Some((header, payload)) = self.source.next(now) else { break };
            let begins = self.pictures.begins(now, &header, payload);
            self.ring.push(Slot::new(now, header, Arc::from(payload), begins), window);
        }
    }

    fn next_due(&self) -> Option<Time> {
        let has_room = !self.waits() || self.ring.len() <= AHEAD / 2;
        match self.source.waiting() {
            0 => self.source.next_due(),
            _ => has_room.then_some(Time::ZERO),
        }
    }

    fn next(&mut self, now: Time, viewer: PeerId) -> Option<Next> {
        let (came, header, payload) = self.ring.next(viewer)?;
        // What waits is taken when it goes.
        let waited = if self.waits() { now.since(came) } else { Duration::ZERO };
        Some(Next { header: later(header, waited), payload, is_again: false })
    }

    fn waiting(&self, viewer: PeerId) -> u64 {
        self.ring.waiting(viewer)
    }

    fn waiting_in_all(&self) -> u64 {
        self.ring.len() as u64 + self.source.waiting()
    }

    fn is_over(&self) -> bool {
        self.source.is_over() && self.source.waiting() == 0
    }

    fn payload_type(&self) -> Option<u8> {
        self.source.payload_type()
    }

    fn payload_len(&self) -> usize {
        self.source.payload_len()
    }

    fn header_len(&self) -> usize {
        self.header_len
    }

    fn dropped_of(&self, viewer: PeerId) -> u64 {
        self.ring.dropped_of(viewer)
    }

    /// For each viewer that lost them, and once those that fit no packet.
    fn dropped(&self) -> u64 {
        self.ring.dropped() + self.source.dropped()
    }

    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        if self.source.lacks_clock() && !std::mem::replace(&mut self.is_clock_told, true) {
            let text = "the input has no clock that can be read, as an MPEG transport stream has: it goes as fast as the path allows; \
                        --pace RATE holds it to a rate";
            told.push(text.to_owned());
        }
        let large = self.source.too_large();
        if large > self.large_told && self.is_over() {
            self.large_told = large;
            told.push(format!("{large} payloads were not sent, as they are larger than --packet-size allows"));
        }
        told
    }

    fn failure(&self) -> Option<String> {
        self.source.failure().map(ToString::to_string)
    }
}

/// What the header says of a payload that came so much later.
fn later(header: Rtp, by: Duration) -> Rtp {
    let (micros, ticks) = (by.as_micros() as u32, (by.as_micros() * 9 / 100) as u32);
    let shifted = |origin: Origin| Origin { micros: origin.micros.wrapping_add(micros), ..origin };
    Rtp { timestamp: header.timestamp.wrapping_add(ticks), origin: header.origin.map(shifted), ..header }
}

/// Bytes of payloads that are kept for viewers that are behind.
const MOST_BYTES: usize = 32 << 20;
/// Payloads that are read ahead of the slowest viewer: 40 ms of 100 Mbit/s. Congestion control must not run out of them because this host was busy for a
/// while: it takes that for a stream that has no more to send, and its rate falls.
const AHEAD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::input::Pacing;
    use std::io::Write;

    const FAST: PeerId = PeerId(1);
    const SLOW: PeerId = PeerId(2);
    const PACKET: Bytes = Bytes::new(1_100);

    /// A file of this many payloads of 1000 bytes, at this pace.
    fn feed(payloads: usize, pacing: Pacing) -> Feed {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&vec![b'x'; payloads * 1_000]).expect("it takes bytes");
        let input = crate::live::Input::File(file.path().to_owned());
        let source = Source::open(&input, 1_000, None, 0, pacing, Duration::from_secs(1)).expect("it is there");
        Feed::new(source, Rtp::LEN, Duration::from_millis(300))
    }

    /// A second in which one viewer takes what it can, and another one a payload every so many milliseconds; what each got.
    fn second(feed: &mut Feed, slow_every: u64) -> [usize; 2] {
        let mut got = [0; 2];
        for millis in 0..1_000 {
            let now = Time::from_millis(millis);
            while feed.readable().is_some() {
                feed.read(now);
            }
            feed.turn(now);
            got[0] += std::iter::from_fn(|| feed.next(now, FAST)).count();
            got[1] += usize::from(millis % slow_every == 0 && feed.next(now, SLOW).is_some());
        }
        got
    }

    #[test]
    fn an_input_without_a_clock_waits_for_the_slowest_and_nobody_loses_anything() {
        let mut feed = feed(10_000, Pacing::None);
        [FAST, SLOW].into_iter().for_each(|viewer| feed.add(Time::ZERO, viewer, PACKET));
        let [fast, slow] = second(&mut feed, 10);
        assert_eq!((slow, feed.dropped()), (100, 0));
        assert!((100..=100 + AHEAD).contains(&fast), "{fast}");
        feed.remove(SLOW);
        assert!(second(&mut feed, 10)[0] > 1_000, "nobody holds it up any more");
    }

    #[test]
    fn an_input_with_a_clock_goes_by_it_and_a_slow_viewer_loses_what_is_too_old() {
        // A payload a millisecond.
        let mut feed = feed(10_000, Pacing::Rate(weir_units::Rate::from_mbps(8)));
        [FAST, SLOW].into_iter().for_each(|viewer| feed.add(Time::ZERO, viewer, PACKET));
        let [fast, slow] = second(&mut feed, 10);
        assert!((995..=1_001).contains(&fast), "{fast}");
        assert_eq!((slow, feed.dropped_of(FAST)), (100, 0));
        let (lost, waits) = (feed.dropped_of(SLOW), feed.waiting(SLOW));
        assert!((295..=305).contains(&waits), "{waits} wait, 300 ms");
        assert_eq!(lost + waits + 100, fast as u64);
    }

    #[test]
    fn an_input_with_a_clock_waits_for_a_viewer_that_is_alone() {
        let mut feed = feed(10_000, Pacing::Rate(weir_units::Rate::from_mbps(8)));
        feed.add(Time::ZERO, SLOW, PACKET);
        let [_, slow] = second(&mut feed, 10);
        assert_eq!((slow, feed.dropped()), (100, 0));
    }

    #[test]
    fn a_payload_that_waited_for_its_viewer_is_as_old_as_one_that_is_taken_now() {
        let mut feed = feed(10, Pacing::None);
        feed.add(Time::ZERO, SLOW, PACKET);
        feed.read(Time::from_millis(1));
        let [first, second] =
            [10, 510].map(|millis| feed.next(Time::from_millis(millis), SLOW).expect("it waits").header);
        let micros = |header: Rtp| header.origin.expect("it has a time").micros;
        assert_eq!((micros(first), micros(second)), (10_000, 510_000));
        assert_eq!(second.timestamp - first.timestamp, 45_000, "half a second of 90 kHz");
    }

    #[test]
    fn a_feed_is_over_when_all_was_read_and_can_be_got() {
        let mut feed = feed(100, Pacing::None);
        feed.add(Time::ZERO, FAST, PACKET);
        let mut got = 0;
        for millis in 0..1_000 {
            let now = Time::from_millis(millis);
            if feed.readable().is_some() {
                feed.read(now);
            }
            if feed.next_due().is_some_and(|due| due <= now) {
                feed.turn(now);
            }
            got += usize::from(feed.next(now, FAST).is_some());
        }
        assert_eq!((got, feed.is_over(), feed.waiting_in_all()), (100, true, 0));
    }
}
