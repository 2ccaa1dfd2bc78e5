//! The sender's driver: it runs a source's endpoint for one viewer after another.
//!
//! Payloads go out when the endpoint says so, those that are due together one behind the other. Feedback counts only from the
//! viewer's address, with its number, about this stream, and for what was sent.

mod config;
mod session;

use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use weir_capture::Capture;
use weir_core::{Action, Destination, Event, Header, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::rtcp::congestion::Report;
use weir_wire::rtcp::meeting::{Kind, Message, Terms};
use weir_wire::rtcp::{self, Bye};
use weir_wire::rtp::Rtp;

pub use config::{Leave, Payload, SourceApplication, SourceConfig, SourceStatistics, Supply};

use session::{Batch, Session};

use super::door::{Door, Verdict, Viewer};
use super::visit::AFTER_REFUSAL;
use super::{Amount, FAREWELLS, Word, record_received, record_sent, says_bye};
use crate::clock::Clock;
use crate::error::NetError;
use crate::socket::{Received, UnicastSocket, header_len};

/// A source that is ready to run.
#[derive(Debug)]
pub struct Source {
    socket: UnicastSocket,
    hall: Hall,
}

impl Source {
    /// A source that listens.
    pub fn new(config: &SourceConfig) -> Result<Source, NetError> {
        let socket = UnicastSocket::listen(config.listen)?;
        let capture = config.capture.as_ref().map(|path| Capture::create(path, "any")).transpose()?;
        let hall = Hall {
            door: Door::new(config.secret),
            config: config.clone(),
            clock: Clock::new(),
            capture,
            session: None,
            batch: Batch::default(),
            statistics: SourceStatistics::default(),
        };
        Ok(Source { socket, hall })
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Runs until the supply is over and sent, or the application says break.
    pub fn run(
        mut self,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<SourceStatistics, NetError> {
        let clock = self.hall.clock;
        let mut next_tick = clock.now();
        loop {
            let now = clock.now();
            if now >= next_tick {
                next_tick = now + self.hall.config.tick;
                if application.tick(now, &self.hall.statistics, supply).is_break() {
                    self.dismiss(Leave::Stopped, application)?;
                    break;
                }
            }
            self.hall.offer(&self.socket, supply, application)?;
            self.hall.meet_deadline(&self.socket, supply, application)?;
            if let Some(why) = self.hall.why_leave(supply) {
                self.dismiss(why, application)?;
            }
            if supply.is_over() && supply.waiting() == 0 && self.hall.session.is_none() {
                break;
            }
            let until = self.hall.deadline().map_or(next_tick, |due| due.min(next_tick));
            let ready = self.socket.wait(supply.readable(), until)?;
            if ready.other {
                supply.fill(clock.now());
            }
            if ready.socket {
                self.read(supply, application)?;
            }
        }
        self.hall.capture.as_mut().map_or(Ok(()), Capture::flush)?;
        Ok(self.hall.statistics)
    }

    fn read(&mut self, supply: &mut impl Supply, application: &mut impl SourceApplication) -> Result<(), NetError> {
        for refused in self.socket.refusals() {
            self.hall.note_refusal(refused);
        }
        self.socket.receive(&self.hall.clock)?;
        for received in self.socket.received() {
            self.hall.receive(&self.socket, received, supply, application)?;
        }
        Ok(())
    }

    /// Says farewell to the viewer, if there is one.
    fn dismiss(&mut self, why: Leave, application: &mut impl SourceApplication) -> Result<(), NetError> {
        let Some(mut session) = self.hall.session.take() else { return Ok(()) };
        self.hall.door.on_departure();
        let now = self.hall.clock.now();
        session.endpoint.handle(now.max(session.time), Event::Finish);
        let bye = Bye { ssrc: session.ssrc }.encode();
        let mut is_answered = why == Leave::Bye;
        let rounds = if matches!(why, Leave::Finished | Leave::Stopped) { &FAREWELLS[..] } else { &FAREWELLS[..1] };
        for interval in rounds {
            self.hall.control(&self.socket, session.viewer.address, &bye)?;
            let until = self.hall.clock.now() + *interval;
            while !is_answered && self.socket.wait(None, until)?.socket {
                is_answered = !self.socket.refusals().is_empty();
                self.socket.receive(&self.hall.clock)?;
                for received in self.socket.received() {
                    let datagram = self.socket.payload(received);
                    let hall = &mut self.hall;
                    record_received(&mut hall.capture, &hall.clock, self.socket.local(), received, datagram)?;
                    is_answered |= received.from == session.viewer.address && says_bye(datagram, session.viewer.ssrc);
                }
            }
            if is_answered {
                break;
            }
        }
        application.left(self.hall.clock.now(), session.viewer, why);
        Ok(())
    }
}

/// Everything but the socket.
#[derive(Debug)]
struct Hall {
    door: Door,
    config: SourceConfig,
    clock: Clock,
    capture: Option<Capture>,
    session: Option<Session>,
    batch: Batch,
    statistics: SourceStatistics,
}

impl Hall {
    fn deadline(&self) -> Option<Time> {
        self.session.as_ref().and_then(|session| session.endpoint.deadline())
    }

    /// Tells the endpoint of payloads that it does not know of.
    fn offer(
        &mut self,
        socket: &UnicastSocket,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let packets = supply.waiting().saturating_sub(session.offered);
        if packets == 0 {
            return Ok(());
        }
        session.offered += packets;
        let now = self.clock.now();
        self.step(now, Event::Offer { packets }, socket, supply, application)
    }

    fn meet_deadline(
        &mut self,
        socket: &UnicastSocket,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        let now = self.clock.now();
        let Some(due) = self.deadline().filter(|due| *due <= now) else { return Ok(()) };
        let late = now.since(due);
        self.statistics.late_deadlines += u64::from(late > LATE);
        self.statistics.worst_lateness = self.statistics.worst_lateness.max(late);
        self.step(now, Event::Deadline, socket, supply, application)
    }

    /// Tells the endpoint, and does what it wants.
    fn step(
        &mut self,
        at: Time,
        event: Event<'_>,
        socket: &UnicastSocket,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.time = session.time.max(at);
        let now = session.time;
        session.endpoint.handle(now, event);
        while let Some(action) = session.endpoint.poll(now) {
            match action {
                Action::Send { to: Destination::Peer(PeerId(0)), packet } => match packet.header {
                    Header::Paced(paced) => {
                        let payload = supply.next(now);
                        self.statistics.starved += u64::from(payload.is_none());
                        self.batch.add(session, paced, packet.ecn, payload);
                    }
                    _ => self.statistics.refused += 1,
                },
                Action::Observe(observation) => application.observe(now, &observation),
                // A source has one correspondent and no channels.
                _ => {}
            }
        }
        self.flush(socket)
    }

    /// Hands the batch to the kernel.
    fn flush(&mut self, socket: &UnicastSocket) -> Result<(), NetError> {
        let Some(session) = &self.session else { return Ok(()) };
        if self.batch.ends.is_empty() {
            return Ok(());
        }
        let datagrams: Vec<&[u8]> = self.batch.datagrams().collect();
        let sent = match socket.send(session.viewer.address, self.batch.ecn, &datagrams) {
            Ok(sent) => {
                self.statistics.queue_full += (datagrams.len() - sent) as u64;
                sent
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                self.statistics.queue_full += datagrams.len() as u64;
                0
            }
            Err(error) => {
                self.statistics.refused += datagrams.len() as u64;
                self.statistics.last_refusal = Some(error);
                0
            }
        };
        let bytes: u64 = datagrams[..sent].iter().map(|one| one.len() as u64 + session.header_len).sum();
        self.statistics.sent.add(Amount { packets: sent as u64, bytes: Bytes::new(bytes) });
        let headers = sent as u64 * (session.header_len + Rtp::LEN as u64);
        self.statistics.payload += Bytes::new(bytes - headers);
        for payload in &datagrams[..sent] {
            record_sent(&mut self.capture, &self.clock, socket.local(), session.viewer.address, payload)?;
        }
        self.batch.clear();
        Ok(())
    }

    /// Sends an answer or a farewell. If it is lost, the viewer asks again.
    fn control(&mut self, socket: &UnicastSocket, to: SocketAddr, datagram: &[u8]) -> Result<(), NetError> {
        let _ = socket.send(to, Ecn::NotEct, &[datagram]);
        record_sent(&mut self.capture, &self.clock, socket.local(), to, datagram)
    }

    fn receive(
        &mut self,
        socket: &UnicastSocket,
        received: &Received,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        let datagram = socket.payload(received);
        record_received(&mut self.capture, &self.clock, socket.local(), received, datagram)?;
        if !rtcp::is_rtcp(datagram) {
            self.statistics.ignored.undecodable += 1;
            return Ok(());
        }
        for packet in rtcp::packets(datagram) {
            match packet.and_then(|packet| Word::read(&packet)) {
                Ok(Word::Message(message)) => self.on_message(socket, received, &message, supply, application)?,
                Ok(Word::Bye(bye)) => self.on_bye(received, bye),
                Ok(Word::Report(report)) => self.on_report(socket, received, &report, supply, application)?,
                Ok(Word::Other) => {}
                Err(_) => self.statistics.ignored.undecodable += 1,
            }
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        socket: &UnicastSocket,
        received: &Received,
        message: &Message,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        let guest = self.session.as_ref().map(|session| session.viewer);
        let headers = header_len(received.from.ip()) + Rtp::LEN as u64;
        let packet_size = Bytes::new(supply.payload_len() as u64 + headers);
        let wire_size = u16::try_from(packet_size.count()).unwrap_or(u16::MAX);
        let terms = Terms::new(supply.payload_type(), wire_size, self.config.scheme).unwrap_or_default();
        match self.door.on_message(received.time, received.from, message, guest, terms) {
            Verdict::Ignore => self.statistics.ignored.foreign += 1,
            Verdict::Answer(answer) => {
                let is_guest = guest == Some(Viewer { address: received.from, ssrc: message.ssrc });
                self.statistics.turned_away += u64::from(guest.is_some() && !is_guest);
                if is_guest {
                    self.note_word(received.time);
                }
                self.control(socket, received.from, &answer.encode())?;
            }
            Verdict::Admit(viewer) => {
                let now = self.clock.now();
                self.statistics.viewers += 1;
                let endpoint = application.came(now, viewer, packet_size);
                let ssrc = self.door.stream_ssrc(viewer);
                self.session = Some(Session::new(viewer, endpoint, &self.door, now));
                let alive = Message::plain(Kind::Alive, ssrc);
                self.control(socket, viewer.address, &alive.encode())?;
                self.step(now, Event::Start, socket, supply, application)?;
            }
        }
        Ok(())
    }

    fn on_bye(&mut self, received: &Received, bye: Bye) {
        match &mut self.session {
            Some(session) if session.is(received, bye.ssrc) => session.said_bye = true,
            _ => self.statistics.ignored.foreign += 1,
        }
    }

    fn on_report(
        &mut self,
        socket: &UnicastSocket,
        received: &Received,
        report: &Report<'_>,
        supply: &mut impl Supply,
        application: &mut impl SourceApplication,
    ) -> Result<(), NetError> {
        for stream in report.streams() {
            let Ok(stream) = stream else {
                self.statistics.ignored.undecodable += 1;
                continue;
            };
            let Some(session) = self
                .session
                .as_mut()
                .filter(|session| session.is(received, report.reporter) && session.ssrc == stream.source)
            else {
                self.statistics.ignored.foreign += 1;
                continue;
            };
            let Some(feedback) = stream.feedback() else { continue };
            let Some(feedback) = session.translate(feedback) else {
                self.statistics.ignored.impossible += 1;
                continue;
            };
            self.statistics.feedback += 1;
            session.is_acknowledged |= feedback.newest == session.last;
            let size = Bytes::new(socket.payload(received).len() as u64 + session.header_len);
            self.note_word(received.time);
            let packet = Packet { header: Header::Feedback(feedback), size, ecn: received.ecn };
            let event = Event::Packet { from: Origin::Peer(PeerId(0)), packet: &packet };
            self.step(received.time, event, socket, supply, application)?;
        }
        Ok(())
    }

    fn note_word(&mut self, now: Time) {
        if let Some(session) = &mut self.session {
            (session.heard, session.refused) = (now, None);
        }
    }

    fn note_refusal(&mut self, refused: SocketAddr) {
        let now = self.clock.now();
        if let Some(session) = self.session.as_mut().filter(|session| session.viewer.address == refused) {
            session.refused = session.refused.or(Some(now));
        }
    }

    /// Why the viewer is to go, if it is.
    fn why_leave(&self, supply: &impl Supply) -> Option<Leave> {
        let session = self.session.as_ref()?;
        let now = self.clock.now();
        let is_sent = supply.is_over() && supply.waiting() == 0;
        if session.said_bye {
            Some(Leave::Bye)
        } else if session.refused.is_some_and(|refused| now >= refused + AFTER_REFUSAL) {
            Some(Leave::Refused)
        } else if now >= session.heard + self.config.silence {
            Some(Leave::Silent)
        } else if is_sent && (session.sent == 0 || session.is_acknowledged || now >= session.last_time + LAST_WORD) {
            Some(Leave::Finished)
        } else {
            None
        }
    }
}

/// A deadline met within this is met: it is what the system's timers and scheduler take.
const LATE: Duration = Duration::from_millis(1);
/// How long the answer to the last packet may take.
const LAST_WORD: Duration = Duration::from_secs(2);
