//! A tenant in the loop: reads what has arrived, and brings its endpoint up to now.

use std::time::Duration;

use nix::poll::{PollFd, PollFlags};
use weir_core::{ChannelId, Header};
use weir_units::Time;

use super::application::{Application, Progress};
use super::link::ModelledLink;
use super::party::{Datagram, Party, Stage};
use super::seats::Seats;
use super::tenant::Tenant;
use super::{Run, Statistics};
use crate::clock;
use crate::error::Result;
use crate::interface;
use crate::profile::Profile;
use crate::socket::{Arrival, Reading, Way};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Driver<'a, P: Profile, A> {
    party: Party<'a, P, A>,
    link: Option<ModelledLink>,
    tick: Duration,
    next_tick: Time,
    /// When it is looked again whether the interface is still the same.
    next_look: Time,
    rests_until: Time,
    /// What the application reads from can be read.
    is_application_ready: bool,
    closing: Option<Closing>,
}

/// A tenant that says goodbye.
#[derive(Debug, Clone, Copy)]
struct Closing {
    /// Packets that close the session, still to be sent on each channel.
    rounds: usize,
    next: Time,
    /// The time between the next ones and those after them.
    wait: Duration,
}

/// What one read of all sockets was.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// All that arrived until then has been taken; `None` if there is more.
    complete_until: Option<Time>,
    is_quiet: bool,
}

impl<'a, P: Profile, A: Application<P::Label>> Driver<'a, P, A> {
    pub(super) fn new(tenant: Tenant<P>, application: &'a mut A) -> Driver<'a, P, A> {
        let Tenant { clock, tick, endpoint, sessions, calls, reachable_at, peers, input, outgoing, link, statistics } =
            tenant;
        let party = Party {
            application,
            clock,
            stage: if endpoint.is_none() { Stage::Started } else { Stage::Waiting },
            seats: Seats::new(endpoint),
            sessions,
            calls,
            reachable_at,
            peers,
            input,
            outgoing,
            opened: Vec::new(),
            statistics,
            time: Time::ZERO,
            has_news: false,
            backlog: None,
            closed: Vec::new(),
            has_changed: false,
        };
        Driver {
            party,
            link,
            tick,
            next_tick: Time::ZERO,
            next_look: Time::ZERO,
            rests_until: Time::ZERO,
            is_application_ready: false,
            closing: None,
        }
    }

    /// Completes the account.
    fn count(&mut self) {
        self.party.statistics.link_dropped = self.link.as_ref().map_or(0, ModelledLink::dropped);
        self.party.statistics.turned_away = self.party.peers.turned_away;
    }

    /// When the application wants to be called; not any more once the tenant says goodbye.
    fn application_due(&self) -> Option<Time> {
        let others = [self.party.application.deadline(), self.party.has_changed.then_some(Time::ZERO)];
        let due = others.into_iter().flatten().fold(self.next_tick, Time::min);
        self.closing.is_none().then_some(due)
    }

    /// Runs the application's tick.
    fn tick(&mut self, now: Time) -> Result<()> {
        self.next_tick = now + self.tick;
        (self.party.has_changed, self.party.has_news) = (false, true);
        if self.next_look <= now {
            self.next_look = now + interface::LOOK_INTERVAL;
            self.party.look_at_interface()?;
        }
        self.count();
        match self.party.application.tick(now, &self.party.statistics) {
            Progress::Continue => self.party.go_on(now)?,
            Progress::Rest => self.party.rest(now)?,
            Progress::Finish => self.party.finish(now)?,
            Progress::Stop => {
                self.party.finish(now)?;
                self.party.peers.leave_all();
                self.closing = Some(Closing { rounds: CLOSE_ROUNDS, next: now, wait: FIRST_CLOSE_WAIT });
            }
        }
        while let Some(event) = self.party.application.next_event(now) {
            self.party.event_to_all(now, event)?;
        }
        while let Some((peer, message)) = self.party.application.next_message(now) {
            let Some((socket, to)) = self.party.peers.address(peer) else { continue };
            self.party.outgoing.message(socket, to, &message, &mut self.party.statistics)?;
        }
        Ok(())
    }

    /// Tells the members of all channels, a few times, that the session ends.
    fn close(&mut self, now: Time) -> Result<()> {
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.rounds > 0 && closing.next <= now) else {
            return Ok(());
        };
        *closing = Closing { rounds: closing.rounds - 1, next: now + closing.wait, wait: closing.wait * 2 };
        let (clock, Party { sessions, outgoing, statistics, .. }) = (self.party.clock, &mut self.party);
        let write = |channel: ChannelId, last: Option<&Header>, leaves, out: &mut [u8]| {
            let session = sessions.of_channel(channel);
            session.profile.close(channel.0 - session.channels.start, last, clock.ntp_micros(leaves), out)
        };
        if !outgoing.close(write, statistics)? {
            closing.rounds = 0;
        }
        Ok(())
    }

    /// Reads what is there, and gives it to the endpoint in its order, with deadlines between.
    fn read(&mut self) -> Result<Taken> {
        for refused in self.party.input.refusals() {
            self.party.peers.on_refused(self.party.clock.now(), refused);
        }
        let reading = self.party.input.receive()?;
        for arrival in reading.arrivals() {
            self.release(arrival.time)?;
            if arrival.dropped_before > 0 {
                self.party.host_dropped(arrival.time, arrival.dropped_before)?;
            }
            self.take(arrival, &reading)?;
        }
        let complete_until = reading.complete_until;
        let little = self.party.input.capabilities().buffer.granted.count() / QUIET_SHARE;
        let is_quiet = complete_until.is_some() && reading.bytes() <= little;
        self.party.input.recycle(reading);
        Ok(Taken { complete_until, is_quiet })
    }

    /// Takes the packets of one read: to the endpoint, or into the modelled link.
    fn take(&mut self, arrival: &Arrival, reading: &Reading) -> Result<()> {
        if matches!(arrival.way, Some(Way::Channel(_))) && self.party.outgoing.is_own(arrival.from) {
            // For others on this host, the system loops back what this party sends to a channel.
            return Ok(());
        }
        for bytes in reading.packets(arrival) {
            let Arrival { time: at, way, from, ecn, .. } = *arrival;
            let Some(way) = way else {
                self.party.statistics.ignored.foreign += 1;
                continue;
            };
            let datagram = Datagram { at, way, from, ecn, bytes };
            let is_dropped = match &mut self.link {
                Some(link) => !link.offer(&datagram, self.party.sessions.of(way)),
                None => self.party.take_in(&datagram).map(|()| false)?,
            };
            self.party.outgoing.record_arrival(arrival, way, bytes, is_dropped)?;
        }
        Ok(())
    }

    /// Takes the packets that come out of the modelled link until `until`.
    fn release(&mut self, until: Time) -> Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        while let Some(at) = link.next_departure().filter(|at| *at <= until) {
            if let Some(out) = link.release(at) {
                self.party.take_in(&out.datagram(at))?;
            }
        }
        Ok(())
    }
}

impl<P: Profile, A: Application<P::Label>> Run for Driver<'_, P, A> {
    fn start(&mut self, now: Time) -> Result<()> {
        self.next_tick = now;
        self.party.start(now)
    }

    fn due(&self) -> Option<Time> {
        let is_closed = self.closing.is_some_and(|closing| closing.rounds == 0);
        if is_closed && !self.party.peers.is_anybody_there() {
            return None;
        }
        let departure = self.link.as_ref().and_then(ModelledLink::next_departure).map(|at| at + LINK_PATIENCE);
        let closing = self.closing.filter(|closing| closing.rounds > 0).map(|closing| closing.next);
        let offer = self.party.has_offer().then_some(Time::ZERO);
        let (endpoint, peers) = (self.party.deadline(), self.party.peers.deadline());
        let all = [departure, closing, offer, endpoint, peers, self.application_due()];
        Some(all.into_iter().flatten().min().unwrap_or(Time::ZERO))
    }

    fn rests_until(&self) -> Time {
        self.rests_until
    }

    fn waiting<'s>(&'s self, into: &mut Vec<PollFd<'s>>) {
        into.extend(self.party.input.waiting());
        into.extend(self.party.application.readable().map(clock::readable));
    }

    fn set_ready(&mut self, found: &mut dyn Iterator<Item = PollFlags>, at: Time) {
        self.party.input.set_ready(found.take(self.party.input.sockets()), at);
        self.is_application_ready = match self.party.application.readable() {
            Some(_) => found.next().is_some_and(|flags| !flags.is_empty()),
            None => false,
        };
    }

    fn round(&mut self) -> Result<()> {
        let is_due = self.due().is_some_and(|due| due <= self.party.clock.now());
        if !is_due && !self.is_application_ready && !self.party.input.is_ready() {
            return Ok(());
        }
        if std::mem::take(&mut self.is_application_ready) {
            let now = self.party.clock.now();
            self.party.application.read(now);
            self.party.peers.answer_early(now, |from| self.party.application.terms(from));
            self.party.has_news = true;
        }
        let delivered = self.party.statistics.delivered;
        let taken = self.read()?;
        let now = self.party.clock.now();
        self.party.peers.on_time(now);
        self.party.on_news(now)?;
        self.party.tell_backlog(now)?;
        self.party.offer(now)?;
        if self.application_due().is_some_and(|due| due <= now) {
            self.tick(now)?;
        }
        self.party.on_news(now)?;
        // The application may have ended the run: then what is due is not sent.
        if let Some(until) = taken.complete_until {
            self.release(until)?;
            self.party.meet_deadlines(until)?;
        }
        if self.party.statistics.delivered > delivered {
            self.party.application.batch_end();
            self.party.has_news = true;
        }
        self.close(now)?;
        let rest = self.party.sessions.rest();
        let rests = taken.is_quiet && self.party.input.has_channels() && !rest.is_zero();
        self.rests_until = if rests { self.party.clock.now() + rest } else { Time::ZERO };
        Ok(())
    }

    fn end(&mut self) -> Result<Statistics> {
        self.party.application.batch_end();
        self.party.outgoing.recorder.flush()?;
        self.count();
        Ok(self.party.statistics.clone())
    }
}

/// What comes out of the modelled link does so at its own time, so that a call for it may be this late.
const LINK_PATIENCE: Duration = Duration::from_millis(5);
/// A read of less than this share of a socket's buffer was little: what comes during a rest fits easily.
const QUIET_SHARE: u64 = 16;
/// A closing packet may be lost, or come while a receiver changes from one channel to another, so there are several, with twice the time between
/// them each time: the last goes 620 ms after the first.
const CLOSE_ROUNDS: usize = 6;
const FIRST_CLOSE_WAIT: Duration = Duration::from_millis(20);
