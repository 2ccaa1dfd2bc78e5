//! The receiver's driver: it runs a receiving endpoint on a real clock and real sockets.
//!
//! Packets reach the endpoint in the order and at the times of their arrival in the kernel, over all sockets, with the
//! endpoint's deadlines between them where they belong; how late this thread was does not show. With an emulated link in
//! front, the endpoint sees what comes out of the link, when it comes out.
//!
//! Not here: which channels to join, which the endpoint decides, and what is done with the content.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use weir_capture::{Capture, Datagram};
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Observation, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::alc::{Alc, Content};
use weir_wire::{CciForm, Layered};

use crate::clock::{self, Clock};
use crate::description::Description;
use crate::emulator::Emulator;
use crate::error::NetError;
use crate::everything::Everything;
use crate::interface::{Interface, InterfaceChoice};
use crate::probes::{Prober, UNICAST_TTL, echo};
use crate::socket::{Arrival, Capabilities, Reading, ReceiveConfig, ReceiveSockets, header_len};

pub use crate::emulator::LinkInFront;

/// What an application hears from a running receiver.
pub trait Application {
    /// A packet brought something new: `symbol` of what `content` says.
    fn deliver(&mut self, content: &Content, symbol: &[u8]);

    /// All packets that were there have been delivered; more will take at least a moment.
    fn batch_end(&mut self);

    /// The endpoint observed something.
    fn observe(&mut self, now: Time, observation: &Observation);

    /// Called every [`ReceiverConfig::tick`]. Break ends the session.
    fn tick(&mut self, now: Time) -> ControlFlow<()>;

    /// Called before each tick with what has been counted so far.
    fn statistics(&mut self, _now: Time, _statistics: &ReceiverStatistics) {}

    /// Something failed, such as a join; the session goes on without it.
    fn problem(&mut self, _now: Time, _problem: &NetError) {}

    /// The sender says that the session is over. Told once. Anyone can forge this, so the session goes on.
    fn closed(&mut self, _now: Time) {}
}

/// How to run a receiver.
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    /// The interface to join on.
    pub interface: InterfaceChoice,
    /// The sockets.
    pub sockets: ReceiveConfig,
    /// How often the application is called when nothing else happens.
    pub tick: Duration,
    /// A modelled link between the sockets and the endpoint.
    pub link: Option<LinkInFront>,
    /// A pcapng file of all that arrives at the sockets.
    pub capture: Option<PathBuf>,
}

impl Default for ReceiverConfig {
    /// The routing table's interface, a tick of 100 ms, no link, no capture.
    fn default() -> ReceiverConfig {
        ReceiverConfig {
            interface: InterfaceChoice::default(),
            sockets: ReceiveConfig::default(),
            tick: Duration::from_millis(100),
            link: None,
            capture: None,
        }
    }
}

/// What a receiver has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverStatistics {
    /// Packets of the session that reached the endpoint.
    pub packets: u64,
    /// Their bytes on the network, all headers included.
    pub bytes: Bytes,
    /// Packets whose content was new and went to the application.
    pub delivered: u64,
    /// Packets that cannot be read.
    pub undecodable: u64,
    /// Packets of other groups, sessions or senders.
    pub foreign: u64,
    /// Packets that the kernel dropped because the receive buffer was full.
    pub host_dropped: u64,
    /// Packets that the emulated link dropped because its buffer was full, or lost at random.
    pub link_dropped: u64,
    /// Round-trip probes sent.
    pub probes: u64,
    /// Answers to them that came.
    pub echoes: u64,
    /// Joins and leaves that the system refused.
    pub failed_memberships: u64,
}

/// A receiver that is ready to run.
#[derive(Debug)]
pub struct Receiver {
    inlet: Inlet,
    session: Session,
    emulator: Option<Emulator>,
    capture: Option<Capture>,
    ttl: u8,
    tick: Duration,
}

impl Receiver {
    /// A receiver of the session of `description`. Without an endpoint it takes every channel and every packet, which is
    /// right for a session without congestion control.
    pub fn new(
        description: &Description,
        endpoint: Option<Box<dyn Endpoint>>,
        config: &ReceiverConfig,
    ) -> Result<Receiver, NetError> {
        let group = description.channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
        let interface = Interface::choose(&config.interface, group.ip())?;
        let capture = config.capture.as_ref().map(|path| Capture::create(path, &interface.name)).transpose()?;
        let prober = description.probe.map(|desk| Prober::new(desk, &interface, description.tsi)).transpose()?;
        let sockets = ReceiveSockets::new(interface, &description.channels, description.source, &config.sockets)?;
        let form = description.form().filter(|_| endpoint.is_some());
        let endpoint = endpoint.unwrap_or_else(|| Box::new(Everything::new(description.channels.len())));
        let session = Session {
            endpoint,
            form,
            tsi: description.tsi,
            source: description.source,
            header_len: header_len(group.ip()),
            time: Time::ZERO,
            is_closed: false,
            statistics: ReceiverStatistics::default(),
        };
        let emulator = config.link.as_ref().map(|link| Emulator::new(link, header_len(group.ip())));
        let inlet = Inlet { sockets, prober };
        Ok(Receiver { inlet, session, emulator, capture, ttl: description.ttl, tick: config.tick })
    }

    /// The interface on which channels are joined.
    pub fn interface(&self) -> &Interface {
        self.inlet.sockets.interface()
    }

    /// What the system grants.
    pub fn capabilities(&self) -> Capabilities {
        self.inlet.sockets.capabilities()
    }

    /// Runs until the application says break, and then leaves every channel.
    pub fn run(mut self, application: &mut impl Application) -> Result<ReceiverStatistics, NetError> {
        let clock = Clock::new();
        let mut next_tick = clock.now();
        let mut rest_until = Time::ZERO;
        self.session.event(clock.now(), Event::Start, &self.inlet, application);
        loop {
            if clock.now() >= next_tick {
                next_tick = clock.now() + self.tick;
                application.statistics(clock.now(), &self.session.statistics);
                if application.tick(clock.now()).is_break() {
                    break;
                }
            }
            let until = self.next_call().map_or(next_tick, |due| due.min(next_tick));
            // Reading packet by packet would cost a wake-up each. The kernel keeps them, with their times.
            if rest_until > clock.now() {
                clock::wait(&mut [], rest_until.min(until)).map_err(|error| NetError::Wait(error.into()))?;
            }
            self.inlet.wait(until)?;
            let is_quiet = self.round(&clock, application)?;
            rest_until = if is_quiet { clock.now() + REST } else { Time::ZERO };
        }
        self.session.event(clock.now(), Event::Finish, &self.inlet, application);
        application.batch_end();
        application.statistics(clock.now(), &self.session.statistics);
        if let Some(capture) = &mut self.capture {
            capture.flush()?;
        }
        Ok(self.session.statistics)
    }

    /// When the endpoint or the emulated link must be called next if nothing arrives. What comes out of the link does so at
    /// its own time, so that a call for it may be late.
    fn next_call(&self) -> Option<Time> {
        let departure = self.emulator.as_ref().and_then(Emulator::next_departure).map(|at| at + REST);
        [self.session.endpoint.deadline(), departure].into_iter().flatten().min()
    }

    /// Reads once and brings the endpoint up to now. Returns whether little was there.
    fn round(&mut self, clock: &Clock, application: &mut impl Application) -> Result<bool, NetError> {
        let reading = self.inlet.receive(clock)?;
        let before = self.session.statistics.packets;
        for number in 0..self.inlet.sockets.arrivals().len() {
            let arrival = self.inlet.sockets.arrivals()[number];
            self.take_answers(arrival.time, clock, application)?;
            self.advance(arrival.time, application);
            if arrival.dropped_before > 0 {
                self.session.statistics.host_dropped += arrival.dropped_before;
                let event = Event::HostDropped { packets: arrival.dropped_before };
                self.session.event(arrival.time, event, &self.inlet, application);
            }
            self.take(&arrival, clock, application)?;
        }
        if let Some(now) = reading.complete_until {
            self.take_answers(now, clock, application)?;
            self.advance(now, application);
        }
        self.session.statistics.link_dropped = self.emulator.as_ref().map_or(0, Emulator::dropped);
        if self.session.statistics.packets > before {
            application.batch_end();
        }
        let little = self.inlet.sockets.capabilities().buffer.granted.count() / QUIET_SHARE;
        Ok(reading.complete_until.is_some() && reading.bytes as u64 <= little)
    }

    /// Takes the packets of one read: to the endpoint, or into the link.
    fn take(&mut self, arrival: &Arrival, clock: &Clock, application: &mut impl Application) -> Result<(), NetError> {
        for packet in self.inlet.sockets.packets(arrival) {
            let (way, from) = (arrival.channel.map(Origin::Channel), arrival.from.ip());
            let is_dropped = match (&mut self.emulator, way) {
                (Some(emulator), Some(way)) => !emulator.offer(arrival.time, way, from, packet),
                _ => {
                    self.session.datagram(arrival.time, way, from, packet, &self.inlet, application);
                    false
                }
            };
            let Some((capture, channel)) = self.capture.as_mut().zip(arrival.channel) else { continue };
            let to = self.inlet.sockets.address(channel).expect("arrivals come over channels of the session");
            capture.record(&Datagram {
                unix_nanos: arrival.stamp_nanos.unwrap_or_else(|| clock.unix_nanos(arrival.time)),
                from: arrival.from,
                to,
                ttl: self.ttl,
                payload: packet,
                comment: is_dropped.then_some(DROPPED),
            })?;
        }
        Ok(())
    }

    /// Takes the answers to probes that arrived by `until`, as packets are taken.
    fn take_answers(&mut self, until: Time, clock: &Clock, application: &mut impl Application) -> Result<(), NetError> {
        while let Some(received) = self.inlet.prober.as_mut().and_then(|prober| prober.take(until)) {
            self.advance(received.time, application);
            let Some(prober) = &self.inlet.prober else { break };
            let (message, from) = (prober.message(&received), received.from.ip());
            let is_dropped = match &mut self.emulator {
                Some(emulator) => !emulator.offer(received.time, Origin::Peer(SENDER), from, message),
                None => {
                    let way = Some(Origin::Peer(SENDER));
                    self.session.datagram(received.time, way, from, message, &self.inlet, application);
                    false
                }
            };
            let Some(capture) = &mut self.capture else { continue };
            capture.record(&Datagram {
                unix_nanos: received.stamp_nanos.unwrap_or_else(|| clock.unix_nanos(received.time)),
                from: received.from,
                to: prober.local(),
                ttl: UNICAST_TTL,
                payload: message,
                comment: is_dropped.then_some(DROPPED),
            })?;
        }
        Ok(())
    }

    /// Lets everything happen that happens until `until`: packets come out of the link, deadlines pass.
    fn advance(&mut self, until: Time, application: &mut impl Application) {
        for _ in 0..MAX_STEPS {
            let departure = self.emulator.as_ref().and_then(Emulator::next_departure).filter(|at| *at <= until);
            let deadline = self.session.endpoint.deadline().filter(|at| *at <= until);
            match (departure, deadline) {
                (Some(departure), deadline) if deadline.is_none_or(|deadline| departure <= deadline) => {
                    let emulator = self.emulator.as_mut().expect("only a link has departures");
                    let Some(out) = emulator.release(departure) else { continue };
                    self.session.datagram(departure, Some(out.way), out.from, &out.packet, &self.inlet, application);
                    emulator.recycle(out);
                }
                (_, Some(deadline)) => {
                    self.session.event(deadline, Event::Deadline, &self.inlet, application);
                }
                _ => return,
            }
        }
    }
}

/// Everything that packets come in through.
#[derive(Debug)]
struct Inlet {
    sockets: ReceiveSockets,
    prober: Option<Prober>,
}

impl Inlet {
    fn wait(&mut self, until: Time) -> Result<bool, NetError> {
        self.sockets.wait(self.prober.as_ref().map(Prober::readable), until)
    }

    /// Reads answers first: what is read of the channels then reaches beyond them.
    fn receive(&mut self, clock: &Clock) -> Result<Reading, NetError> {
        if let Some(prober) = &mut self.prober {
            prober.receive(clock)?;
        }
        self.sockets.receive(clock)
    }
}

/// The endpoint, and what decides which packets are for it.
#[derive(Debug)]
struct Session {
    endpoint: Box<dyn Endpoint>,
    /// `None` for a session without congestion control.
    form: Option<CciForm>,
    tsi: u16,
    source: Option<IpAddr>,
    header_len: u64,
    /// The time of the last event: it never goes back.
    time: Time,
    is_closed: bool,
    statistics: ReceiverStatistics,
}

impl Session {
    /// A datagram arrived, from the network or out of the link.
    fn datagram(
        &mut self,
        at: Time,
        way: Option<Origin>,
        from: IpAddr,
        datagram: &[u8],
        inlet: &Inlet,
        application: &mut impl Application,
    ) {
        match way {
            Some(Origin::Channel(channel)) if self.source.is_none_or(|source| source == from) => {
                self.packet(at, channel, datagram, inlet, application);
            }
            Some(Origin::Peer(_)) => self.answer(at, datagram, inlet, application),
            _ => self.statistics.foreign += 1,
        }
    }

    /// The sender answered a probe, or somebody pretends to be the sender.
    fn answer(&mut self, at: Time, message: &[u8], inlet: &Inlet, application: &mut impl Application) {
        let Some(echo) = echo(message, self.tsi) else {
            self.statistics.foreign += 1;
            return;
        };
        self.statistics.echoes += 1;
        let size = Bytes::new(message.len() as u64 + self.header_len);
        let packet = Packet { header: Header::Probe(echo), size, ecn: Ecn::NotEct };
        self.event(at, Event::Packet { from: Origin::Peer(SENDER), packet: &packet }, inlet, application);
    }

    /// A datagram came over a channel.
    fn packet(
        &mut self,
        at: Time,
        channel: ChannelId,
        datagram: &[u8],
        inlet: &Inlet,
        application: &mut impl Application,
    ) {
        let Ok(alc) = Alc::decode(datagram) else {
            self.statistics.undecodable += 1;
            return;
        };
        if alc.tsi != u64::from(self.tsi) {
            self.statistics.foreign += 1;
            return;
        }
        let layered = match self.form.map(|form| alc.layered(form)) {
            None => Layered { channel: channel.0, ..Layered::default() },
            Some(Ok(layered)) => layered,
            Some(Err(_)) => {
                self.statistics.undecodable += 1;
                return;
            }
        };
        if layered.channel != channel.0 {
            self.statistics.foreign += 1;
            return;
        }
        if alc.close_session && !std::mem::replace(&mut self.is_closed, true) {
            application.closed(at);
        }
        let Some(content) = &alc.content else {
            return; // a closing packet repeats the header of the last one with data
        };
        let size = Bytes::new(datagram.len() as u64 + self.header_len);
        self.statistics.packets += 1;
        self.statistics.bytes += size;
        let packet = Packet { header: Header::Layered(layered), size, ecn: Ecn::NotEct };
        let event = Event::Packet { from: Origin::Channel(channel), packet: &packet };
        if self.event(at, event, inlet, application) {
            self.statistics.delivered += 1;
            application.deliver(content, alc.symbol);
        }
    }

    /// Tells the endpoint, and does what it wants. Returns whether it wants the packet delivered.
    fn event(&mut self, at: Time, event: Event<'_>, inlet: &Inlet, application: &mut impl Application) -> bool {
        self.time = self.time.max(at);
        let mut is_new = false;
        self.endpoint.handle(self.time, event);
        while let Some(action) = self.endpoint.poll(self.time) {
            let done = match action {
                Action::Join(channel) => inlet.sockets.join(channel),
                Action::Leave(channel) => inlet.sockets.leave(channel),
                Action::Deliver => {
                    is_new = true;
                    Ok(())
                }
                Action::Observe(observation) => {
                    application.observe(self.time, &observation);
                    Ok(())
                }
                Action::Send { to: Destination::Peer(SENDER), packet } => {
                    if let (Header::Probe(probe), Some(prober)) = (packet.header, &inlet.prober) {
                        self.statistics.probes += 1;
                        prober.ask(&probe);
                    }
                    Ok(())
                }
                // A receiver of channels has no one else to send to.
                _ => Ok(()),
            };
            if let Err(problem) = done {
                self.statistics.failed_memberships += 1;
                application.problem(self.time, &problem);
            }
        }
        is_new
    }
}

/// The only correspondent that a receiver has.
const SENDER: PeerId = PeerId(0);
/// What a capture says of a packet that goes no further.
const DROPPED: &str = "dropped by the emulated link";
/// How long a receiver rests after a round that read little: as long as a sender of ours does between two bursts of a channel.
const REST: Duration = Duration::from_millis(5);
/// A round that read less than this share of a socket's buffer read little: what comes in [`REST`] fits easily.
const QUIET_SHARE: u64 = 16;
/// Departures and deadlines in one go, lest an endpoint that asks for the same time again and again stops the driver.
const MAX_STEPS: usize = 100_000;
