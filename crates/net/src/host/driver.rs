//! A tenant in the loop: reads what has arrived, and brings its endpoint up to now.

use std::net::SocketAddr;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags};
use weir_core::{ChannelId, Endpoint, Event, Header, Origin, PeerId};
use weir_units::{Ecn, Time};

use super::application::{Application, Progress};
use super::link::ModelledLink;
use super::outgoing::{Outgoing, Target};
use super::party::{Datagram, Party, Surroundings};
use super::peers::Departure;
use super::tenant::{Sessions, Tenant};
use super::{Run, Statistics};
use crate::clock::{self, Clock};
use crate::error::NetError;
use crate::profile::{Found, Profile, Sender};
use crate::socket::{Arrival, Input, Way};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Driver<'a, P: Profile, A> {
    party: Party<'a, P, A>,
    input: Input,
    sessions: Sessions<P>,
    link: Option<ModelledLink>,
    clock: Clock,
    tick: Duration,
    next_tick: Time,
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
}

impl<'a, P: Profile, A: Application<P::Label>> Driver<'a, P, A> {
    pub(super) fn new(tenant: Tenant<P>, application: &'a mut A) -> Driver<'a, P, A> {
        let Tenant { clock, tick, endpoint, sessions, peers, input, outgoing, link, statistics } = tenant;
        Driver {
            party: Party::new(endpoint, application, peers, outgoing, statistics),
            input,
            sessions,
            link,
            clock,
            tick,
            next_tick: Time::ZERO,
            rests_until: Time::ZERO,
            is_application_ready: false,
            closing: None,
        }
    }

    /// Runs the application's tick.
    fn tick(&mut self, now: Time) -> Result<(), NetError> {
        self.next_tick = now + self.tick;
        self.party.has_changed = false;
        let statistics = &mut self.party.statistics;
        statistics.link_dropped = self.link.as_ref().map_or(0, ModelledLink::dropped);
        statistics.turned_away = self.party.peers.turned_away;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        match self.party.application.tick(now, statistics) {
            Progress::Continue => {}
            Progress::Finish => self.party.finish(now, &around)?,
            Progress::Stop => {
                self.party.finish(now, &around)?;
                self.party.peers.leave_all(now, Departure::Stopped);
                self.closing = Some(Closing { rounds: CLOSE_ROUNDS, next: now });
            }
        }
        while let Some(message) = self.party.application.next_message(now) {
            let Some((socket, to)) = self.party.peers.address(PeerId(0)) else { break };
            self.party.outgoing.message(socket, to, &message, &mut self.party.statistics)?;
        }
        Ok(())
    }

    /// Tells the members of all channels, a few times, that the session ends.
    fn close(&mut self, now: Time) -> Result<(), NetError> {
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.rounds > 0 && closing.next <= now) else {
            return Ok(());
        };
        *closing = Closing { rounds: closing.rounds - 1, next: now + CLOSE_INTERVAL };
        let sessions = &self.sessions;
        let write = |channel: usize, last: Option<&Header>, ntp_micros, out: &mut [u8]| {
            let session = sessions.of_channel(ChannelId(channel as u16));
            session.profile.close(channel as u16 - session.channels.start, last, ntp_micros, out)
        };
        if !self.party.outgoing.close(write, &mut self.party.statistics)? {
            closing.rounds = 0;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.closing.is_some_and(|closing| closing.rounds == 0) && !self.party.peers.is_anybody_there()
    }

    /// Reads what is there, and gives it to the endpoint in its order, with deadlines between. Whether little was there.
    fn read(&mut self) -> Result<bool, NetError> {
        for refused in self.input.refusals() {
            self.party.peers.on_refused(self.clock.now(), refused);
        }
        let reading = self.input.receive(&self.clock)?;
        for number in 0..self.input.arrivals().len() {
            let arrival = self.input.arrivals()[number];
            self.advance(arrival.time)?;
            if arrival.dropped_before > 0 {
                self.party.statistics.host_dropped += arrival.dropped_before;
                let event = Event::HostDropped { packets: arrival.dropped_before };
                let around = Surroundings { input: &self.input, sessions: &self.sessions };
                self.party.event(arrival.time, event, None, &around)?;
            }
            self.take(&arrival)?;
        }
        if let Some(now) = reading.complete_until {
            self.advance(now)?;
        }
        let little = self.input.capabilities().buffer.granted.count() / QUIET_SHARE;
        Ok(reading.complete_until.is_some() && reading.bytes as u64 <= little)
    }

    /// Takes the packets of one read: to the endpoint, or into the modelled link.
    fn take(&mut self, arrival: &Arrival) -> Result<(), NetError> {
        if matches!(arrival.way, Some(Way::Channel(_))) && self.party.outgoing.is_own(arrival.from) {
            // For others on this host, the system loops back what this party sends to a channel.
            return Ok(());
        }
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        for packet in self.input.packets(arrival) {
            let Arrival { time, way, from, ecn, .. } = *arrival;
            let Some(way) = way else {
                self.party.statistics.ignored.foreign += 1;
                continue;
            };
            let is_dropped = match &mut self.link {
                Some(link) => !link.offer(time, way, from, ecn, packet),
                None => {
                    take_in(&mut self.party, Coming { at: time, way, from, ecn, bytes: packet }, &around)?;
                    false
                }
            };
            if self.party.outgoing.capture.is_some() {
                record(&mut self.party.outgoing, &self.clock, arrival, way, packet, is_dropped)?;
            }
        }
        Ok(())
    }

    /// Lets everything happen that happens until `until`: packets come out of the link, deadlines pass.
    ///
    /// A deadline is told as late as the order of events allows: at the time of what comes next, or now. So an endpoint knows
    /// how late it is.
    fn advance(&mut self, until: Time) -> Result<(), NetError> {
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        for _ in 0..MAX_STEPS {
            let departure = self.link.as_ref().and_then(ModelledLink::next_departure).filter(|at| *at <= until);
            let due = self.party.endpoint.as_ref().and_then(Endpoint::deadline).filter(|at| *at <= until);
            match (departure, due) {
                (Some(departure), due) if due.is_none_or(|due| departure <= due) => {
                    let Some(link) = &mut self.link else { return Ok(()) };
                    let Some(out) = link.release(departure) else { continue };
                    let coming =
                        Coming { at: departure, way: out.way, from: out.from, ecn: out.ecn, bytes: &out.packet };
                    take_in(&mut self.party, coming, &around)?;
                    link.recycle(out);
                }
                (departure, Some(due)) => {
                    let told = departure.unwrap_or(until);
                    self.party.statistics.note_lateness(due, told);
                    self.party.event(told, Event::Deadline, None, &around)?;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// A packet that comes to the endpoint.
#[derive(Debug, Clone, Copy)]
struct Coming<'d> {
    at: Time,
    way: Way,
    from: SocketAddr,
    ecn: Ecn,
    bytes: &'d [u8],
}

/// Reads a packet with the profile of its session, and gives the party what it says.
#[inline]
fn take_in<P: Profile, A: Application<P::Label>>(
    party: &mut Party<'_, P, A>,
    coming: Coming<'_>,
    around: &Surroundings<'_, P>,
) -> Result<(), NetError> {
    let Coming { at, way, from, ecn, bytes } = coming;
    let (session, origin, socket, sender) = match way {
        Way::Channel(channel) => {
            if !around.input.is_source(channel, from.ip()) {
                party.statistics.ignored.foreign += 1;
                return Ok(());
            }
            let session = around.sessions.of_channel(channel);
            (session, Origin::Channel(channel), 0, Sender::Channel(channel.0 - session.channels.start))
        }
        Way::Unicast(socket) => {
            let peer = party.peers.find(from);
            let association = peer.and_then(|peer| party.peers.association(peer));
            let origin = peer.map_or(Origin::Unverified, Origin::Peer);
            let sender = association.map_or(Sender::Unassociated, Sender::Peer);
            (around.sessions.of_unicast(socket), origin, socket, sender)
        }
    };
    let datagram = Datagram { at, origin, socket, from, ecn, bytes };
    let mut result = Ok(());
    session.profile.decode(bytes, sender, |found: Found<'_, P::Label>| {
        if result.is_ok() {
            result = party.on_found(datagram, found, around);
        }
    });
    result
}

/// Writes down a packet that came.
fn record(
    outgoing: &mut Outgoing,
    clock: &Clock,
    arrival: &Arrival,
    way: Way,
    packet: &[u8],
    is_dropped: bool,
) -> Result<(), NetError> {
    let target = match way {
        Way::Channel(channel) => Target::Channel(usize::from(channel.0)),
        Way::Unicast(socket) => Target::Unicast(socket, arrival.from),
    };
    let (shown, capture) = (outgoing.shown(target), &mut outgoing.capture);
    let (Some((to, ttl)), Some(capture)) = (shown, capture) else { return Ok(()) };
    let unix_nanos = arrival.stamp_nanos.unwrap_or_else(|| clock.unix_nanos(arrival.time));
    let comment = is_dropped.then_some(DROPPED);
    Ok(capture.record(&weir_capture::Datagram { unix_nanos, from: arrival.from, to, ttl, payload: packet, comment })?)
}

impl<P: Profile, A: Application<P::Label>> Run for Driver<'_, P, A> {
    fn start(&mut self, now: Time) -> Result<(), NetError> {
        self.next_tick = now;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        self.party.start(now, &around)
    }

    fn due(&self) -> Option<Time> {
        if self.is_over() {
            return None;
        }
        let departure = self.link.as_ref().and_then(ModelledLink::next_departure).map(|at| at + LINK_PATIENCE);
        let endpoint = self.party.endpoint.as_ref().and_then(Endpoint::deadline);
        let closing = self.closing.filter(|closing| closing.rounds > 0).map(|closing| closing.next);
        let next_tick = if self.party.has_changed { Time::ZERO } else { self.next_tick };
        let tick = self.party.application.deadline().map_or(next_tick, |at| at.min(next_tick));
        let tick = self.closing.is_none().then_some(tick);
        let others = [departure, endpoint, closing, tick, self.party.peers.deadline()];
        Some(others.into_iter().flatten().min().unwrap_or(Time::ZERO))
    }

    fn rests_until(&self) -> Time {
        self.rests_until
    }

    fn waiting<'s>(&'s self, into: &mut Vec<PollFd<'s>>) {
        into.extend(self.input.waiting());
        into.extend(self.party.application.readable().map(clock::readable));
    }

    fn set_ready(&mut self, found: &[PollFlags]) {
        let (sockets, application) = found.split_at(found.len().min(self.input.sockets()));
        self.input.set_ready(sockets.iter().copied());
        self.is_application_ready = application.first().is_some_and(|flags| !flags.is_empty());
    }

    fn round(&mut self) -> Result<(), NetError> {
        let now = self.clock.now();
        if std::mem::take(&mut self.is_application_ready) {
            self.party.application.read(now);
        }
        let received = self.party.statistics.received.packets;
        let is_quiet = self.read()?;
        if self.party.statistics.received.packets > received {
            self.party.application.batch_end();
        }
        let now = self.clock.now();
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        self.party.peers.on_time(now);
        self.party.on_news(now, &around)?;
        let is_application_due = self.party.application.deadline().is_some_and(|at| at <= now);
        if self.closing.is_none() && (now >= self.next_tick || is_application_due || self.party.has_changed) {
            self.tick(now)?;
        }
        self.close(now)?;
        let around = Surroundings { input: &self.input, sessions: &self.sessions };
        // After the tick, in which the application may have got payloads or room.
        self.party.offer(now, &around)?;
        self.party.on_news(now, &around)?;
        let rest = if is_quiet && self.input.has_channels() { self.sessions.rest() } else { Duration::ZERO };
        self.rests_until = if rest.is_zero() { Time::ZERO } else { self.clock.now() + rest };
        Ok(())
    }

    fn end(&mut self) -> Result<Statistics, NetError> {
        self.party.application.batch_end();
        let statistics = &mut self.party.statistics;
        statistics.link_dropped = self.link.as_ref().map_or(0, ModelledLink::dropped);
        statistics.turned_away = self.party.peers.turned_away;
        if let Some(capture) = &mut self.party.outgoing.capture {
            capture.flush()?;
        }
        Ok(self.party.statistics.clone())
    }
}

/// What a capture says of a packet that goes no further.
const DROPPED: &str = "dropped by the emulated link";
/// What comes out of the modelled link does so at its own time, so that a call for it may be this late.
const LINK_PATIENCE: Duration = Duration::from_millis(5);
/// A read of less than this share of a socket's buffer was little: what comes during a rest fits easily.
const QUIET_SHARE: u64 = 16;
/// Departures and deadlines in one go, lest an endpoint that asks for the same time again and again stops the host.
const MAX_STEPS: usize = 100_000;
/// A closing packet may be lost, so there are several.
const CLOSE_ROUNDS: usize = 3;
const CLOSE_INTERVAL: Duration = Duration::from_millis(20);
