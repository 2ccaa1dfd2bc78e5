//! What a host does besides running an endpoint: its clock is not the network's, it is late with what is due, its applications supply and
//! read payloads, it keeps payloads, it is in several sessions. Most hosts do none of these.

use std::time::Duration;

use weir_core::Event;
use weir_units::{Random, Time};

use crate::clock::Clock;
use crate::kept::Kept;
use crate::ranges::Ranges;
use crate::traffic::{Offered, Reader, ReaderConfig, Supplier, Supply};

/// What is not as on most hosts.
#[derive(Debug, Default)]
pub(crate) struct Host {
    clock: Clock,
    lateness: Option<Lateness>,
    /// The sending application, if it may have nothing to send.
    pub(crate) supplier: Option<Supplier>,
    /// The receiving application, if it may have no room.
    pub(crate) reader: Option<Box<Reader>>,
    pub(crate) kept: Kept,
    /// Its sessions besides the first.
    pub(crate) ranges: Ranges,
}

/// What applications have to tell an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct News {
    offered: Offered,
    /// What the receiving application has to tell.
    read: Option<Event<'static>>,
}

/// By how much it is late with each deadline: uniform between nothing and `most`.
#[derive(Debug)]
struct Lateness {
    most: Duration,
    random: Random,
    /// The deadline for which it was drawn, and when the host wakes for that.
    drawn: Option<(Time, Time)>,
}

impl News {
    pub(crate) fn events(self) -> impl Iterator<Item = Event<'static>> {
        let Offered { packets, is_end } = self.offered;
        let offer = (packets > 0).then_some(Event::Offer { packets });
        let end = is_end.then_some(Event::End);
        offer.into_iter().chain(end).chain(self.read)
    }
}

impl Host {
    pub(crate) fn with_clock(mut self, clock: Clock) -> Host {
        self.clock = clock;
        self
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn late(mut self, most: Duration, random: Random) -> Host {
        self.lateness = Some(Lateness { most, random, drawn: None });
        self
    }

    /// `random` decides on the bursts of the application.
    pub(crate) fn with_supply(mut self, supply: Supply, random: Random) -> Host {
        self.supplier = Some(Supplier::new(supply, random));
        self
    }

    /// `random` decides on the pauses of the application.
    pub(crate) fn with_reader(mut self, config: ReaderConfig, random: Random) -> Host {
        self.reader = Some(Box::new(Reader::new(config, random)));
        self
    }

    /// The receiving application begins; gives the room that it has, if that limits the endpoint.
    pub(crate) fn open(&mut self, now: Time) -> Option<Event<'static>> {
        self.reader.as_mut().and_then(|reader| reader.start(now))
    }

    /// The sending application begins.
    pub(crate) fn start(&mut self, now: Time) -> News {
        let offered = self.supplier.as_mut().map(|supplier| supplier.start(now));
        News { offered: offered.unwrap_or_default(), read: None }
    }

    /// What the applications have done by now; `None` if nothing of theirs was due.
    pub(crate) fn expire(&mut self, now: Time) -> Option<News> {
        if self.applications_wake_at().is_none_or(|at| at > now) {
            return None;
        }
        let offered = self.supplier.as_mut().map(|supplier| supplier.expire(now));
        let read = self.reader.as_mut().and_then(|reader| reader.expire(now));
        Some(News { offered: offered.unwrap_or_default(), read })
    }

    /// The applications have had enough: nothing more is offered, and everything that is delivered is read.
    pub(crate) fn stop(&mut self) {
        self.supplier.iter_mut().for_each(Supplier::stop);
        self.reader = None;
    }

    /// When the host has something to do for an endpoint with this deadline.
    pub(crate) fn wakes_at(&mut self, deadline: Option<Time>) -> Option<Time> {
        let late = deadline.map(|at| self.lateness.as_mut().map_or(at, |lateness| lateness.wakes_at(at)));
        earlier(late, self.applications_wake_at())
    }

    fn applications_wake_at(&self) -> Option<Time> {
        let offers = self.supplier.as_ref().and_then(Supplier::deadline);
        earlier(offers, self.reader.as_ref().and_then(|reader| reader.deadline()))
    }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

impl Lateness {
    /// Drawn once a deadline: what happens between does not change how late it will be.
    fn wakes_at(&mut self, deadline: Time) -> Time {
        match self.drawn {
            Some((known, wake)) if known == deadline => wake,
            _ => {
                let wake = deadline + self.most.mul_f64(self.random.unit());
                self.drawn = Some((deadline, wake));
                wake
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_late_by_one_draw_however_often_it_is_asked_for() {
        let most = Duration::from_millis(10);
        let mut host = Host::default().late(most, Random::new(1, "host"));
        let deadline = Time::from_secs(1);
        let wake = host.wakes_at(Some(deadline)).expect("there is a deadline");
        assert!((deadline..=deadline + most).contains(&wake));
        assert_eq!(host.wakes_at(Some(deadline)), Some(wake));
        assert_ne!(host.wakes_at(Some(Time::from_secs(2))), Some(wake + Duration::from_secs(1)));
        assert_eq!(host.wakes_at(None), None);
    }
}
