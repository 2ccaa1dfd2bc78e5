//! The sender's driver: it runs a sending endpoint on a real clock and a real socket.
//!
//! Not here: when to send what on which channel, which the endpoint decides, and what is in the packets, which the
//! application's [`Payload`] gives. The driver joins the two, hands packets to the kernel in batches, and keeps the account.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use weir_capture::{Capture, Datagram};
use weir_core::{Action, Destination, Endpoint, Event, Header, Observation, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::alc::{Content, MAX_OVERHEAD, Profile};
use weir_wire::probe::LEN as PROBE_LEN;
use weir_wire::{Layered, Probe};

use crate::clock::{self, Clock};
use crate::description::Description;
use crate::error::NetError;
use crate::interface::{Interface, InterfaceChoice};
use crate::probes::{ProbeDesk, UNICAST_TTL};
use crate::socket::{
    Capabilities, MAX_BATCH_BYTES, MAX_BATCH_PACKETS, SendConfig, SendOutcome, SendSocket, header_len,
};

/// Where the content of packets comes from.
pub trait Payload {
    /// The next encoding symbol for `channel`, and what it is a symbol of; `None` if there is nothing to send now.
    fn next(&mut self, channel: u16) -> Option<(Content, &[u8])>;
}

/// What an application hears from a running sender.
pub trait SenderApplication {
    /// The endpoint observed something.
    fn observe(&mut self, _now: Time, _observation: &Observation) {}

    /// Called every [`SenderConfig::tick`]. Break ends the session.
    fn tick(&mut self, now: Time, statistics: &SenderStatistics) -> ControlFlow<()>;
}

/// How to run a sender.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    /// The interface to send from.
    pub interface: InterfaceChoice,
    /// The socket. Its TTL is that of the description.
    pub socket: SendConfig,
    /// How often the application is called.
    pub tick: Duration,
    /// A pcapng file of all that is sent.
    pub capture: Option<PathBuf>,
}

impl Default for SenderConfig {
    /// The routing table's interface, a tick of 100 ms, no capture.
    fn default() -> SenderConfig {
        SenderConfig {
            interface: InterfaceChoice::default(),
            socket: SendConfig::default(),
            tick: Duration::from_millis(100),
            capture: None,
        }
    }
}

/// What a sender did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderStatistics {
    /// Sent on each channel.
    pub channels: Vec<Sent>,
    /// Sent in all.
    pub total: Sent,
    /// Calls to the kernel that this took.
    pub batches: u64,
    /// Packets not sent because the kernel's queue was full.
    pub queue_full: u64,
    /// Packets not sent because the system refused them.
    pub refused: u64,
    /// What it said when it last refused.
    pub last_refusal: Option<Errno>,
    /// Packets not sent because the application had nothing to put in them.
    pub starved: u64,
    /// Round-trip probes that came.
    pub probes: u64,
    /// Answers to them. They are not counted as sent on a channel or in all.
    pub echoes: u64,
    /// What came to the port for probes and is none of this session.
    pub foreign: u64,
    /// Deadlines of the endpoint that were met more than a millisecond late.
    pub late_deadlines: u64,
    /// How late the latest was.
    pub worst_lateness: Duration,
}

/// An amount sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Bytes on the network, all headers included.
    pub bytes: Bytes,
}

/// A sender that is ready to run.
#[derive(Debug)]
pub struct Sender {
    endpoint: Box<dyn Endpoint>,
    tick: Duration,
    interface: Interface,
    outlet: Outlet,
}

impl Sender {
    /// A sender of the session of `description`, on a socket of its own.
    pub fn new(
        description: &Description,
        endpoint: Box<dyn Endpoint>,
        config: &SenderConfig,
    ) -> Result<Sender, NetError> {
        let group = description.channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
        let interface = Interface::choose(&config.interface, group.ip())?;
        let packet = description.control.as_ref().map_or(Bytes::ZERO, |control| control.packet_size);
        if let Some(mtu) = interface.mtu().filter(|mtu| packet > *mtu) {
            let name = interface.name;
            return Err(NetError::PacketTooLarge { packet: packet.count(), mtu: mtu.count(), name });
        }
        let socket = SendConfig { ttl: description.ttl, ..config.socket.clone() };
        let socket = SendSocket::new(&interface, &description.channels, &socket)?;
        let capture = config.capture.as_ref().map(|path| Capture::create(path, &interface.name)).transpose()?;
        let open = |address| ProbeDesk::open(address, &interface, description.tsi);
        let desk = description.probe.map(open).transpose()?;
        let count = description.channels.len();
        let outlet = Outlet {
            profile: description.profile(),
            header_len: header_len(group.ip()),
            last: (0..count).map(|channel| Layered { channel: channel as u16, ..Layered::default() }).collect(),
            socket,
            desk,
            clock: Clock::new(),
            batch: Batch::new(),
            capture,
            description: description.clone(),
            statistics: SenderStatistics { channels: vec![Sent::default(); count], ..SenderStatistics::default() },
        };
        Ok(Sender { endpoint, tick: config.tick, interface, outlet })
    }

    /// The interface that it sends from.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The address that packets come from.
    pub fn local(&self) -> std::net::SocketAddr {
        self.outlet.socket.local()
    }

    /// What the system grants.
    pub fn capabilities(&self) -> Capabilities {
        self.outlet.socket.capabilities()
    }

    /// Runs until the application says break, and then closes the session on every channel.
    pub fn run(
        mut self,
        payload: &mut impl Payload,
        application: &mut impl SenderApplication,
    ) -> Result<SenderStatistics, NetError> {
        let mut now = self.outlet.clock.now();
        let mut next_tick = now;
        self.step(now, Event::Start, payload, application)?;
        loop {
            now = self.outlet.clock.now();
            if now >= next_tick {
                next_tick = now + self.tick;
                if application.tick(now, &self.outlet.statistics).is_break() {
                    break;
                }
                continue;
            }
            match self.endpoint.deadline() {
                Some(due) if due <= now => {
                    self.outlet.statistics.note_lateness(now.since(due));
                    self.step(now, Event::Deadline, payload, application)?;
                }
                due => {
                    let until = due.map_or(next_tick, |due| due.min(next_tick));
                    let asking = self.outlet.wait(until)?;
                    (0..asking).try_for_each(|number| self.take_probe(number, payload, application))?;
                }
            }
        }
        now = self.outlet.clock.now();
        self.step(now, Event::Finish, payload, application)?;
        self.outlet.close()?;
        Ok(self.outlet.statistics)
    }

    /// Somebody asks for the round trip. What is due on the channels goes with the answer.
    fn take_probe(
        &mut self,
        number: usize,
        payload: &mut impl Payload,
        application: &mut impl SenderApplication,
    ) -> Result<(), NetError> {
        let Some((peer, packet)) = self.outlet.probe(number) else { return Ok(()) };
        let event = Event::Packet { from: Origin::Peer(peer), packet: &packet };
        self.step(self.outlet.clock.now(), event, payload, application)
    }

    fn step(
        &mut self,
        now: Time,
        event: Event<'_>,
        payload: &mut impl Payload,
        application: &mut impl SenderApplication,
    ) -> Result<(), NetError> {
        self.endpoint.handle(now, event);
        while let Some(action) = self.endpoint.poll(now) {
            match action {
                Action::Send { to: Destination::Channel(channel), packet } => match packet.header {
                    Header::Layered(layered) => self.outlet.add(channel.0, layered, payload)?,
                    _ => self.outlet.statistics.refused += 1,
                },
                Action::Send { to: Destination::Peer(peer), packet } => match packet.header {
                    Header::Probe(echo) => self.outlet.answer(peer, &echo)?,
                    _ => self.outlet.statistics.refused += 1,
                },
                Action::Observe(observation) => application.observe(now, &observation),
                // A sender is no member of its own channels.
                _ => {}
            }
        }
        self.outlet.flush()
    }
}

/// Everything between the endpoint and the network.
#[derive(Debug)]
struct Outlet {
    profile: Profile,
    header_len: u64,
    /// The last header sent on each channel.
    last: Vec<Layered>,
    socket: SendSocket,
    desk: Option<ProbeDesk>,
    clock: Clock,
    batch: Batch,
    capture: Option<Capture>,
    description: Description,
    statistics: SenderStatistics,
}

/// Packets of one channel, behind one another, all but the last one of the same length.
#[derive(Debug)]
struct Batch {
    bytes: Vec<u8>,
    len: usize,
    channel: usize,
    packet_len: usize,
    packets: usize,
    /// When its first packet was written.
    time: Time,
}

impl Batch {
    fn new() -> Batch {
        let bytes = vec![0; 2 * MAX_BATCH_BYTES];
        Batch { bytes, len: 0, channel: 0, packet_len: 0, packets: 0, time: Time::ZERO }
    }

    /// The last packet is shorter, so nothing can follow it.
    fn is_ended(&self) -> bool {
        self.len < self.packets * self.packet_len
    }

    fn has_room_for(&self, channel: usize, len: usize) -> bool {
        self.packets == 0
            || (self.channel == channel
                && self.packets < MAX_BATCH_PACKETS
                && len <= self.packet_len
                && self.len + len <= MAX_BATCH_BYTES
                && !self.is_ended())
    }
}

impl Outlet {
    /// Puts the next payload of `channel` behind its header and adds the packet to the batch.
    fn add(&mut self, channel: u16, layered: Layered, payload: &mut impl Payload) -> Result<(), NetError> {
        let at = usize::from(channel);
        if at >= self.last.len() {
            self.statistics.refused += 1;
            return Ok(());
        }
        let Some((content, symbol)) = payload.next(channel) else {
            self.statistics.starved += 1;
            return Ok(());
        };
        if MAX_OVERHEAD + symbol.len() > MAX_BATCH_BYTES {
            self.statistics.refused += 1;
            return Ok(());
        }
        if !self.batch.has_room_for(at, 0) {
            self.flush()?;
        }
        if self.batch.packets == 0 {
            self.batch.time = self.clock.now();
        }
        let layered = Layered { clock_micros: self.clock.ntp_micros(self.batch.time), ..layered };
        self.last[at] = layered;
        let start = self.batch.len;
        let header = self.profile.encode(&layered, &content, &mut self.batch.bytes[start..]);
        let len = header + symbol.len();
        self.batch.bytes[start + header..start + len].copy_from_slice(symbol);
        if !self.batch.has_room_for(at, len) {
            // It turned out longer than the others: they go, and it begins the next batch.
            self.flush()?;
            self.batch.bytes.copy_within(start..start + len, 0);
        }
        if self.batch.packets == 0 {
            self.batch.channel = at;
            self.batch.packet_len = len;
        }
        self.batch.packets += 1;
        self.batch.len += len;
        Ok(())
    }

    /// Waits until it is `until`, or until somebody asks: how many datagrams came.
    fn wait(&mut self, until: Time) -> Result<usize, NetError> {
        match &mut self.desk {
            Some(desk) if desk.wait(until)? => desk.receive(&self.clock),
            Some(_) => Ok(0),
            None => clock::wait(&mut [], until).map(|_| 0).map_err(|error| NetError::Wait(error.into())),
        }
    }

    /// What datagram `number` of those that came asks.
    fn probe(&mut self, number: usize) -> Option<(PeerId, Packet)> {
        let asked = self.desk.as_ref().and_then(|desk| desk.probe(number));
        let count = if asked.is_some() { &mut self.statistics.probes } else { &mut self.statistics.foreign };
        *count += 1;
        let size = Bytes::new(PROBE_LEN as u64 + self.header_len);
        asked.map(|(peer, probe)| (peer, Packet { header: Header::Probe(probe), size, ecn: Ecn::NotEct }))
    }

    /// Sends an answer to who asked.
    fn answer(&mut self, peer: PeerId, echo: &Probe) -> Result<(), NetError> {
        let Some(desk) = &self.desk else { return Ok(()) };
        let Some((message, to)) = desk.answer(peer, echo) else {
            self.statistics.refused += 1;
            return Ok(());
        };
        self.statistics.echoes += 1;
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let (unix_nanos, from) = (self.clock.unix_nanos(self.clock.now()), desk.local());
        Ok(capture.record(&Datagram { unix_nanos, from, to, ttl: UNICAST_TTL, payload: &message, comment: None })?)
    }

    /// Hands the batch to the kernel.
    fn flush(&mut self) -> Result<(), NetError> {
        let Batch { len, channel, packet_len, packets, .. } = self.batch;
        if packets == 0 {
            return Ok(());
        }
        self.batch.len = 0;
        self.batch.packets = 0;
        let bytes = &self.batch.bytes[..len];
        let outcome = self.socket.send(channel, bytes, packet_len);
        let sent = self.statistics.note(outcome, packets);
        if sent == 0 {
            return Ok(());
        }
        let on_the_wire = (sent * packet_len).min(len) as u64 + sent as u64 * self.header_len;
        let amount = Sent { packets: sent as u64, bytes: Bytes::new(on_the_wire) };
        self.statistics.channels[channel].add(amount);
        self.statistics.total.add(amount);
        let Some(capture) = &mut self.capture else { return Ok(()) };
        for payload in bytes.chunks(packet_len).take(sent) {
            capture.record(&Datagram {
                unix_nanos: self.clock.unix_nanos(self.batch.time),
                from: self.socket.local(),
                to: self.description.channels[channel],
                ttl: self.description.ttl,
                payload,
                comment: None,
            })?;
        }
        Ok(())
    }

    /// Tells on every channel, a few times, that the session is over.
    fn close(&mut self) -> Result<(), NetError> {
        for round in 0..CLOSE_ROUNDS {
            if round > 0 {
                let until = self.clock.now() + CLOSE_INTERVAL;
                clock::wait(&mut [], until).map_err(|error| NetError::Wait(error.into()))?;
            }
            for channel in 0..self.last.len() {
                self.batch.time = self.clock.now();
                let clock_micros = self.clock.ntp_micros(self.batch.time);
                let layered = Layered { clock_micros, ..self.last[channel] };
                let len = self.profile.encode_close(&layered, &mut self.batch.bytes);
                self.batch = Batch {
                    bytes: std::mem::take(&mut self.batch.bytes),
                    len,
                    channel,
                    packet_len: len,
                    packets: 1,
                    time: self.batch.time,
                };
                self.flush()?;
            }
        }
        Ok(self.capture.as_mut().map_or(Ok(()), Capture::flush)?)
    }
}

impl SenderStatistics {
    /// Counts a batch; how many packets of it are on their way.
    fn note(&mut self, outcome: SendOutcome, packets: usize) -> usize {
        self.batches += 1;
        let sent = match outcome {
            SendOutcome::Sent(sent) => sent,
            SendOutcome::Full => 0,
            SendOutcome::Refused(error) => {
                self.last_refusal = Some(error);
                self.refused += packets as u64;
                return 0;
            }
        };
        self.queue_full += (packets - sent) as u64;
        sent
    }

    fn note_lateness(&mut self, late: Duration) {
        self.late_deadlines += u64::from(late > LATE);
        self.worst_lateness = self.worst_lateness.max(late);
    }
}

impl Sent {
    pub(crate) fn add(&mut self, more: Sent) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// A deadline met within this is met: it is what the system's timers and scheduler take.
const LATE: Duration = Duration::from_millis(1);
/// A closing packet may be lost, so there are several.
const CLOSE_ROUNDS: usize = 3;
const CLOSE_INTERVAL: Duration = Duration::from_millis(20);
