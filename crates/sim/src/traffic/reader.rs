//! A receiving application: how much room it has for payloads, and when it has read them.

use std::time::Duration;

use weir_core::{Backlog, Event};
use weir_units::{Random, Time};

use super::Distribution;

/// An application that reads what its endpoint delivers. One that is not configured reads everything at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReaderConfig {
    /// Payloads that it has room for.
    pub capacity: u64,
    /// What becomes of more.
    pub when_full: WhenFull,
    /// From one payload that it reads to the next, at the least.
    pub gap: Duration,
    /// When it reads nothing.
    pub pauses: Option<Pauses>,
}

/// What an application does that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It takes nothing. Its endpoint knows for how many payloads there is room ([`Event::Room`]), and delivers no others.
    Refuses,
    /// It throws away what is delivered. Its endpoint knows how much waits ([`Event::Backlog`]).
    ThrowsAway,
}

/// What became of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It will be read.
    Taken,
    ThrownAway,
    /// The endpoint knew that there is no room.
    Refused,
}

/// Reading and resting take turns, beginning with reading. Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pauses {
    /// How long it reads.
    pub reads: Distribution,
    /// How long it rests after that.
    pub rests: Distribution,
}

/// See [`ReaderConfig`].
#[derive(Debug)]
pub(crate) struct Reader {
    config: ReaderConfig,
    random: Random,
    /// Payloads that were delivered and not read.
    unread: u64,
    /// The room that the endpoint was told of, less what has been delivered since; or the backlog that it was told of.
    told: u64,
    /// When it reads the next payload; `None` if there is none.
    next: Option<Time>,
    /// Before this it does not read.
    ready: Time,
    /// When it rests next, or rests now: from when until when.
    rest: (Time, Time),
}

impl Reader {
    /// `random` decides on its pauses.
    pub(crate) fn new(config: ReaderConfig, random: Random) -> Reader {
        let (rest, ready) = ((Time::ZERO, Time::ZERO), Time::ZERO);
        Reader { config, random, unread: 0, told: 0, next: None, ready, rest }
    }

    /// The application begins: gives the room that it has, if that limits its endpoint.
    pub(crate) fn start(&mut self, now: Time) -> Option<Event<'static>> {
        self.rest = (now, now);
        self.plan_rest();
        match self.config.when_full {
            WhenFull::Refuses => {
                self.told = self.config.capacity;
                Some(Event::Room { payloads: self.told })
            }
            WhenFull::ThrowsAway => None,
        }
    }

    /// A payload is delivered.
    pub(crate) fn deliver(&mut self, now: Time) -> Delivered {
        match self.config.when_full {
            WhenFull::Refuses if self.told == 0 => return Delivered::Refused,
            WhenFull::Refuses => self.told -= 1,
            WhenFull::ThrowsAway if self.unread == self.config.capacity => return Delivered::ThrownAway,
            WhenFull::ThrowsAway => {}
        }
        self.unread += 1;
        if self.next.is_none() {
            self.next = Some(self.reads_at(now.max(self.ready)));
        }
        Delivered::Taken
    }

    /// Reads what it can by now. Gives what the endpoint is to be told: the room, when a quarter of the capacity has been freed since the
    /// last time, and always when it knew of no room at all; the backlog, when it is another by a hundredth of the capacity.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Event<'static>> {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.unread -= 1;
            self.ready = at + self.config.gap;
            self.next = (self.unread > 0).then(|| self.reads_at(self.ready));
        }
        match self.config.when_full {
            WhenFull::Refuses => {
                let free = self.config.capacity - self.unread;
                let freed = free - self.told;
                let is_news = freed > 0 && (self.told == 0 || freed >= self.config.capacity / 4);
                is_news.then(|| {
                    self.told = free;
                    Event::Room { payloads: free }
                })
            }
            WhenFull::ThrowsAway => (self.unread.abs_diff(self.told) > self.config.capacity / 100).then(|| {
                self.told = self.unread;
                Event::Backlog(Backlog { waiting: self.unread, most: self.config.capacity })
            }),
        }
    }

    /// When [`Reader::expire`] is wanted.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The first time from `at` on when it does not rest.
    fn reads_at(&mut self, mut at: Time) -> Time {
        while at >= self.rest.0 {
            at = at.max(self.rest.1);
            if self.config.pauses.is_none() {
                return at;
            }
            self.plan_rest();
        }
        at
    }

    fn plan_rest(&mut self) {
        let Some(Pauses { reads, rests }) = self.config.pauses else { return };
        let from = self.rest.1 + reads.draw_span(&mut self.random).max(Duration::from_nanos(1));
        self.rest = (from, from + rests.draw_span(&mut self.random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(pauses: Option<Pauses>) -> Reader {
        let config = ReaderConfig { capacity: 8, when_full: WhenFull::Refuses, gap: Duration::from_millis(10), pauses };
        let mut reader = Reader::new(config, Random::new(1, "reader"));
        assert_eq!(reader.start(Time::ZERO), Some(Event::Room { payloads: 8 }));
        reader
    }

    /// When room is told of, and how much, until nothing is left to read.
    fn told(reader: &mut Reader) -> Vec<(u64, u64)> {
        let mut told = Vec::new();
        while let Some(at) = reader.deadline() {
            let event = reader.expire(at);
            told.extend(event.map(|event| match event {
                Event::Room { payloads } => (at.as_micros() / 1000, payloads),
                other => panic!("{other:?}"),
            }));
        }
        told
    }

    #[test]
    fn room_is_told_of_when_there_was_none_and_then_a_quarter_at_a_time() {
        let mut reader = reader(None);
        assert!((0..8).all(|_| reader.deliver(Time::ZERO) == Delivered::Taken));
        assert_eq!(reader.deliver(Time::ZERO), Delivered::Refused, "there is no room for a ninth");
        assert_eq!(told(&mut reader), [(0, 1), (20, 3), (40, 5), (60, 7)]);
    }

    #[test]
    fn a_payload_that_comes_later_is_read_a_gap_after_the_one_before_it() {
        let mut reader = reader(None);
        let read_at = |reader: &mut Reader, at: u64| {
            assert_eq!(reader.deliver(Time::from_millis(at)), Delivered::Taken);
            let read = reader.deadline().expect("it will be read");
            reader.expire(read);
            read
        };
        assert_eq!([5, 7, 30].map(|at| read_at(&mut reader, at)), [5, 15, 30].map(Time::from_millis));
    }

    #[test]
    fn nothing_is_read_while_the_application_rests() {
        let pauses = Pauses { reads: Distribution::Fixed(0.015), rests: Distribution::Fixed(1.0) };
        let mut reader = reader(Some(pauses));
        assert!((0..8).all(|_| reader.deliver(Time::ZERO) == Delivered::Taken));
        // Read at 0 and 10; from 15 to 1015 it rests; read at 1015 and 1025; from 1030 to 2030 it rests, and so on.
        assert_eq!(told(&mut reader), [(0, 1), (1015, 3), (2030, 5), (3045, 7)]);
    }
}
