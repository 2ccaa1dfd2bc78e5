//! The event queue: when what has to be looked at next.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, 1990): virtual time never goes back, so an event needs to be ordered
//! only against the last one taken, by the highest bit in which their times differ. An event is touched a few times in its
//! life, always in the order of memory, and events of one instant come out in the order in which they went in.
//!
//! Where a packet is on thousands of links, thousands of events go in for one instant in a row. These are moved as one.

use weir_units::Time;

/// Events in the order of their times, and of their insertion within one instant.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    /// The time of the event taken last; nothing is earlier.
    last: u64,
    /// Events of the instant `last`, from `next` on.
    current: Vec<E>,
    next: usize,
    /// Bucket b holds the events whose time differs from `last` first in bit b.
    buckets: Vec<Vec<(u64, Events<E>)>>,
    /// Bit b is set if bucket b holds anything.
    occupied: u64,
    /// A bucket's memory while its events are being distributed.
    spare: Vec<(u64, Events<E>)>,
    crowds: Crowds<E>,
    /// The time of the event that went in last, of those that wait.
    latest: u64,
}

/// Events of one instant.
#[derive(Debug, Clone, Copy)]
enum Events<E> {
    One(E),
    /// Those of this crowd.
    Many(u32),
}

/// Events of one instant that went in one after the other, by number.
#[derive(Debug)]
struct Crowds<E> {
    crowds: Vec<Vec<E>>,
    free: Vec<u32>,
}

impl<E> Crowds<E> {
    /// A crowd of two.
    fn add(&mut self, events: [E; 2]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.crowds.push(Vec::new());
            self.crowds.len() as u32 - 1
        });
        self.crowds[number as usize].extend(events);
        number
    }

    /// Moves a crowd's events to the end of `to`. The next crowd of this number gets the memory.
    fn take(&mut self, number: u32, to: &mut Vec<E>) {
        self.free.push(number);
        let crowd = &mut self.crowds[number as usize];
        match to.is_empty() {
            true => std::mem::swap(to, crowd),
            false => to.append(crowd),
        }
    }
}

impl<E: Copy> EventQueue<E> {
    pub(crate) fn new() -> EventQueue<E> {
        EventQueue {
            last: 0,
            current: Vec::new(),
            next: 0,
            buckets: (0..u64::BITS).map(|_| Vec::new()).collect(),
            occupied: 0,
            spare: Vec::new(),
            crowds: Crowds { crowds: Vec::new(), free: Vec::new() },
            latest: 0,
        }
    }

    /// Puts an event in. A time before that of the last event taken counts as that time.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, event: E) {
        let at = at.as_nanos();
        if at <= self.last {
            self.current.push(event);
        } else if at == self.latest {
            self.join(at, event);
        } else {
            self.latest = at;
            self.file(at, Events::One(event));
        }
    }

    /// Adds an event for the same instant to the last one that was added; on its own if that one has moved since.
    fn join(&mut self, at: u64, event: E) {
        let bucket = self.bucket(at);
        match self.buckets[bucket].last_mut() {
            Some((last, events)) if *last == at => match events {
                Events::One(first) => *events = Events::Many(self.crowds.add([*first, event])),
                Events::Many(crowd) => self.crowds.crowds[*crowd as usize].push(event),
            },
            _ => self.file(at, Events::One(event)),
        }
    }

    /// The next event, if it is not later than `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, E)> {
        if self.next == self.current.len() {
            return self.advance(until.as_nanos());
        }
        let event = self.current[self.next];
        self.next += 1;
        Some((Time::from_nanos(self.last), event))
    }

    /// Whether another event of the instant of the last one is there already.
    #[inline]
    pub(crate) fn has_more_now(&self) -> bool {
        self.next < self.current.len()
    }

    #[inline]
    fn bucket(&self, at: u64) -> usize {
        (u64::BITS - 1 - (at ^ self.last).leading_zeros()) as usize
    }

    #[inline]
    fn file(&mut self, at: u64, events: Events<E>) {
        let bucket = self.bucket(at);
        self.buckets[bucket].push((at, events));
        self.occupied |= 1 << bucket;
    }

    /// Moves on to the next instant that has events, if it is not later than `until`, and takes its first.
    #[inline]
    fn advance(&mut self, until: u64) -> Option<(Time, E)> {
        if self.occupied == 0 {
            return None;
        }
        let lowest = self.occupied.trailing_zeros() as usize;
        let bucket = &mut self.buckets[lowest];
        let earliest = bucket.iter().map(|(at, _)| *at).min().expect("an occupied bucket holds something");
        if earliest > until {
            return None;
        }
        self.last = earliest;
        self.occupied &= !(1 << lowest);
        self.current.clear();
        if let [(_, Events::One(event))] = bucket[..] {
            bucket.clear();
            self.next = 0;
            return Some((Time::from_nanos(earliest), event));
        }
        let mut bucket = std::mem::replace(bucket, std::mem::take(&mut self.spare));
        for (at, events) in bucket.drain(..) {
            match events {
                _ if at != earliest => self.file(at, events),
                Events::One(event) => self.current.push(event),
                Events::Many(crowd) => self.crowds.take(crowd, &mut self.current),
            }
        }
        self.spare = bucket;
        self.next = 1;
        Some((Time::from_nanos(earliest), self.current[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn nanos(at: u64) -> Time {
        Time::from_nanos(at)
    }

    #[test]
    fn what_is_moved_from_bucket_to_bucket_takes_16_bytes() {
        assert_eq!(size_of::<(u64, Events<crate::fabric::Due>)>(), 16);
    }

    #[test]
    fn an_event_after_the_limit_stays() {
        let mut queue = EventQueue::new();
        queue.push(nanos(5), 'a');
        assert_eq!(queue.pop(nanos(4)), None);
        queue.push(nanos(4), 'b');
        assert_eq!(queue.pop(nanos(5)), Some((nanos(4), 'b')));
        assert_eq!(queue.pop(nanos(5)), Some((nanos(5), 'a')));
        assert_eq!(queue.pop(nanos(u64::MAX)), None);
    }

    proptest! {
        #[test]
        fn events_come_out_by_time_and_then_in_the_order_of_insertion(
            steps in proptest::collection::vec((any::<bool>(), 0u64..5_000_000), 1..400),
        ) {
            let mut queue = EventQueue::new();
            let mut model: BTreeMap<(u64, usize), usize> = BTreeMap::new();
            let mut now = 0;
            for (number, (take, ahead)) in steps.into_iter().enumerate() {
                if take {
                    let got = queue.pop(nanos(u64::MAX));
                    let expected = model.pop_first().map(|((at, _), event)| (nanos(at), event));
                    prop_assert_eq!(got, expected);
                    now = got.map_or(now, |(at, _)| at.as_nanos());
                } else {
                    // Coarse times meet often.
                    let at = now + ahead / 1_000 * 1_000;
                    queue.push(nanos(at), number);
                    model.insert((at, number), number);
                }
            }
            while let Some(((at, _), event)) = model.pop_first() {
                prop_assert_eq!(queue.pop(nanos(u64::MAX)), Some((nanos(at), event)));
            }
        }
    }
}
