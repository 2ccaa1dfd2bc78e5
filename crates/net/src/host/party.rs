//! A tenant's endpoints and all that surrounds them: an endpoint is told what happens, and all that it wants is carried out
//! (`actions.rs`). Here: events, deadlines and offers. Datagrams are in `taking.rs`, peers that come and go in `peer_events.rs`.

use std::net::SocketAddr;

use weir_core::{Backlog, Event, Locator, Origin, PeerId};
use weir_units::{Bytes, Ecn, Time};

use super::application::Application;
use super::outgoing::Outgoing;
use super::peers::Peers;
use super::seats::Seats;
use super::statistics::Statistics;
use super::tenant::Sessions;
use crate::clock::Clock;
use crate::error::Result;
use crate::profile::Profile;
use crate::socket::{Input, Way, header_len};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Party<'a, P: Profile, A> {
    pub(super) application: &'a mut A,
    pub(super) clock: Clock,
    /// One endpoint, or one for each peer: the application makes it when the peer comes, and it goes with the peer.
    pub(super) seats: Seats<P::Label>,
    pub(super) sessions: Sessions<P>,
    pub(super) calls: Option<Calls>,
    /// Where others can contact this party.
    pub(super) reachable_at: Option<Locator>,
    pub(super) peers: Peers<P::Association>,
    pub(super) input: Input,
    pub(super) outgoing: Outgoing,
    /// Where a datagram is opened.
    pub(super) opened: Vec<u8>,
    pub(super) statistics: Statistics,
    /// The time of the last event: it never goes back.
    pub(super) time: Time,
    pub(super) stage: Stage,
    /// The application may have something for endpoints that they do not know of yet.
    pub(super) has_news: bool,
    /// The application's backlog that was told of last.
    pub(super) backlog: Option<Backlog>,
    /// Sessions that are over by what their senders said last.
    pub(super) closed: Vec<usize>,
    /// Something has happened that the application should not wait a tick to act on.
    pub(super) has_changed: bool,
}

/// How an endpoint contacts others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// Through which unicast socket, on which interface.
    pub(super) socket: usize,
    pub(super) interface: u32,
    /// This host's.
    pub(super) ssrc: u32,
}

/// How far the session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for the peers of the configuration. Where there is an endpoint for each peer, none waits.
    Waiting,
    Started,
    /// The application wants nothing for now: the endpoint has left, and another one will begin.
    Resting,
    Finished,
}

/// A datagram, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'d> {
    pub(super) at: Time,
    pub(super) way: Way,
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: &'d [u8],
}

/// The packet that the endpoint is told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled<'d, L> {
    pub(super) datagram: &'d Datagram<'d>,
    pub(super) origin: Origin,
    /// The peer that it is from, if it is from one.
    pub(super) peer: Option<PeerId>,
    pub(super) label: Option<L>,
    pub(super) payload: &'d [u8],
}

impl Datagram<'_> {
    /// Bytes on the network.
    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.bytes.len() as u64 + header_len(self.from.ip()))
    }
}

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    /// Tells the endpoint at a place, and does what it wants. `handled` is the packet of the event. Nothing happens to an endpoint
    /// before its session starts.
    #[inline]
    pub(super) fn event(
        &mut self,
        place: usize,
        at: Time,
        event: Event<'_>,
        handled: Option<&Handled<'_, P::Label>>,
    ) -> Result<()> {
        self.time = self.time.max(at);
        if self.stage == Stage::Waiting {
            return Ok(());
        }
        let Some(mut seat) = self.seats.take(place) else { return Ok(()) };
        seat.endpoint.handle(self.time, event);
        while let Some(action) = seat.endpoint.poll(self.time) {
            self.carry_out(&mut seat, &action, handled)?;
        }
        self.seats.put_back(place, seat);
        self.outgoing.flush(&mut self.statistics)
    }

    /// Tells all endpoints.
    pub(super) fn event_to_all(&mut self, at: Time, event: Event<'_>) -> Result<()> {
        self.seats.places().into_iter().try_for_each(|place| self.event(place, at, event, None))
    }

    /// When an endpoint wants to be called.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.first_due().map(|(due, _)| due)
    }

    #[inline]
    fn first_due(&self) -> Option<(Time, usize)> {
        if self.stage == Stage::Waiting { None } else { self.seats.first_due() }
    }

    /// The session of the endpoint at a place starts. An application whose room is limited says so before.
    pub(super) fn begin(&mut self, place: usize, now: Time) -> Result<()> {
        if let Some(at) = self.reachable_at {
            self.event(place, now, Event::Reachable { at }, None)?;
        }
        if let Some(payloads) = self.application.room() {
            self.tell(place, now, Event::Room { payloads })?;
        }
        self.has_news = true;
        self.event(place, now, Event::Start, None)
    }

    /// Tells which deadlines have passed at `at`, before anything else that happens then. A deadline is told
    /// as late as the order of events allows, so that an endpoint knows how late it is.
    pub(super) fn meet_deadlines(&mut self, at: Time) -> Result<()> {
        for _ in 0..MAX_DEADLINES {
            let Some((due, place)) = self.first_due().filter(|(due, _)| *due <= at) else { break };
            self.statistics.note_lateness(due, at);
            self.event(place, at, Event::Deadline, None)?;
        }
        Ok(())
    }

    /// The host dropped packets of a channel before one that came at `at`.
    pub(super) fn host_dropped(&mut self, at: Time, packets: u64) -> Result<()> {
        self.statistics.host_dropped += packets;
        self.meet_deadlines(at)?;
        self.event_to_all(at, Event::HostDropped { packets })
    }

    /// The application wants nothing for now.
    pub(super) fn rest(&mut self, now: Time) -> Result<()> {
        if self.stage != Stage::Started {
            return Ok(());
        }
        self.stage = Stage::Resting;
        self.event_to_all(now, Event::Finish)
    }

    /// The application wants something. If it has rested, another endpoint begins.
    pub(super) fn go_on(&mut self, now: Time) -> Result<()> {
        if self.stage != Stage::Resting {
            return Ok(());
        }
        let Some(endpoint) = self.application.begin_again(now) else { return Ok(()) };
        self.seats.renew(endpoint);
        (self.stage, self.backlog) = (Stage::Waiting, None);
        self.start(now)
    }

    /// The application has what it wanted.
    pub(super) fn finish(&mut self, now: Time) -> Result<()> {
        self.peers.admit_nobody();
        match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Started => self.event_to_all(now, Event::Finish),
            Stage::Waiting | Stage::Resting | Stage::Finished => Ok(()),
        }
    }

    /// Tells of the application's backlog, if that is another than before.
    pub(super) fn tell_backlog(&mut self, now: Time) -> Result<()> {
        let backlog = self.application.backlog().filter(|_| self.stage == Stage::Started);
        match backlog.filter(|backlog| self.backlog.replace(*backlog) != Some(*backlog)) {
            Some(backlog) => self.event_to_all(now, Event::Backlog(backlog)),
            None => Ok(()),
        }
    }

    /// Whether the application has something that an endpoint does not know of yet.
    pub(super) fn has_offer(&self) -> bool {
        let has_offer = |place: &usize| self.next_offer(*place).is_some();
        match self.seats.is_per_peer() {
            false => has_offer(&0),
            true if self.has_news => self.seats.places().iter().any(has_offer),
            true => self.seats.takers().iter().any(has_offer),
        }
    }

    /// What the endpoint at a place does not know yet of payloads to send, of their end, and of the room for received ones.
    fn next_offer(&self, place: usize) -> Option<Event<'static>> {
        let seat = self.seats.get(place).filter(|_| self.stage == Stage::Started)?;
        let waiting = match seat.peer {
            Some(peer) => self.application.waiting_for(peer),
            None => self.application.waiting(),
        };
        seat.told.news(waiting, self.application.is_over(), self.application.room())
    }

    /// Tells them, each one thing at a time. Only those are looked at for whom there can be something.
    pub(super) fn offer(&mut self, now: Time) -> Result<()> {
        let places = match self.seats.is_per_peer() {
            false => return self.offer_to(0, now),
            true if self.has_news => self.seats.places(),
            true => self.seats.takers().to_vec(),
        };
        self.has_news = false;
        self.seats.forget_takers();
        for place in places {
            self.offer_to(place, now)?;
            self.has_news |= self.next_offer(place).is_some();
        }
        Ok(())
    }

    fn offer_to(&mut self, place: usize, now: Time) -> Result<()> {
        self.next_offer(place).map_or(Ok(()), |event| self.tell(place, now, event))
    }

    /// Tells an endpoint something of the application.
    fn tell(&mut self, place: usize, now: Time, event: Event<'static>) -> Result<()> {
        self.seats.note_told(place, &event);
        self.event(place, now, event, None)
    }
}

/// Deadlines in one go, so that an endpoint that asks for the same time again and again does not stop the host.
const MAX_DEADLINES: usize = 100_000;
