//! The application of a party: it offers and reads as the scenario says, and writes down what it is given.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_core::ChannelId;
use weir_net::host::{self, Delivery, Progress, Statistics};
use weir_units::Time;

use super::Details;
use crate::seam::script::PAYLOAD_SIZE;
use crate::seam::{Account, Given, Reads};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Application<'a> {
    starts: Time,
    stops: Option<Time>,
    is_over: &'a AtomicBool,
    offers: Option<u64>,
    /// Payloads that the endpoint has taken.
    taken: u64,
    payload: Vec<u8>,
    reader: Option<Reader>,
    account: Account,
}

/// Payloads that were given and wait to be read.
#[derive(Debug)]
struct Reader {
    reads: Reads,
    unread: u64,
    /// When it reads the next one, if there is one.
    next: Time,
    worst_lateness: Duration,
}

impl<'a> Application<'a> {
    /// `is_over` ends the run, which began at `start`.
    pub(super) fn new(details: &Details, start: Time, is_over: &'a AtomicBool) -> Application<'a> {
        let Details { starts, stops, offers, reads } = *details;
        Application {
            starts: start + starts,
            stops: stops.map(|stops| start + stops),
            is_over,
            offers,
            taken: 0,
            payload: vec![0; PAYLOAD_SIZE as usize],
            reader: reads.map(|reads| Reader { reads, unread: 0, next: Time::ZERO, worst_lateness: Duration::ZERO }),
            account: Account::default(),
        }
    }

    /// What it was given, and how late it read at worst.
    pub(super) fn end(self) -> (Account, Duration) {
        (self.account, self.reader.map_or(Duration::ZERO, |reader| reader.worst_lateness))
    }
}

impl Reader {
    fn deliver(&mut self, now: Time) {
        assert!(self.unread < self.reads.capacity, "the endpoint delivers into room that there is");
        self.next = self.next.max(now);
        self.unread += 1;
    }

    fn read(&mut self, now: Time) {
        while self.unread > 0 && self.next <= now {
            self.worst_lateness = self.worst_lateness.max(now.since(self.next));
            self.unread -= 1;
            self.next += self.reads.gap;
        }
    }
}

impl host::Application<()> for Application<'_> {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<((), &[u8])> {
        self.payload[..8].copy_from_slice(&self.taken.to_be_bytes());
        self.taken += 1;
        Some(((), &self.payload))
    }

    fn waiting(&self) -> Option<u64> {
        self.offers.map(|offers| if offers == u64::MAX { offers } else { offers.saturating_sub(self.taken) })
    }

    fn is_over(&self) -> bool {
        self.offers != Some(u64::MAX)
    }

    fn deliver(&mut self, now: Time, delivery: Delivery<'_, ()>) {
        if let Some(reader) = &mut self.reader {
            reader.deliver(now);
        }
        let place = delivery.payload.first_chunk().map(|place| u64::from_be_bytes(*place));
        self.account.given.push(Given { at: now.since(self.starts), number: delivery.number, place });
    }

    fn room(&self) -> Option<u64> {
        self.reader.as_ref().map(|reader| reader.reads.capacity - reader.unread)
    }

    fn complete(&mut self, _now: Time) {
        self.account.complete += 1;
    }

    fn deadline(&self) -> Option<Time> {
        let reads = self.reader.as_ref().filter(|reader| reader.unread > 0).map(|reader| reader.next);
        reads.into_iter().chain(self.stops).min()
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        if let Some(reader) = &mut self.reader {
            reader.read(now);
        }
        let stops = self.stops.is_some_and(|stops| now >= stops) || self.is_over.load(Ordering::Relaxed);
        if stops { Progress::Stop } else { Progress::Continue }
    }
}
