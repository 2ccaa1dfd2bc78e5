//! The viewer's driver: it asks a sender for its stream, runs a sink's endpoint on it, and gives out what comes, in order.
//!
//! Packets reach the endpoint at the times of their arrival in the kernel. How long a packet then waited for this driver is added
//! to what the feedback says of it, so that a busy host does not look like a long path.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use weir_capture::Capture;
use weir_core::{Action, Destination, Endpoint, Event, Header, Observation, Origin, Packet, PeerId};
use weir_units::{Bytes, Ecn, Seq, Time};
use weir_wire::Feedback;
use weir_wire::rtcp::meeting::{Message, Terms};
use weir_wire::rtcp::{self, Bye, congestion};
use weir_wire::rtp::Rtp;

use super::order::Order;
use super::visit::{News, Visit};
use super::{Amount, FAREWELLS, Ignored, SILENCE, Word, ntp_middle, record_received, record_sent, says_bye};
use crate::clock::Clock;
use crate::error::NetError;
use crate::socket::{Received, UnicastSocket, header_len};

/// What an application hears from a running sink.
pub trait SinkApplication {
    /// The sender offers a stream; an endpoint for it, or `None` if it cannot be taken, which ends the run. `feedback_size` is the
    /// most bytes of an answer, all headers included.
    fn offered(&mut self, now: Time, terms: &Terms, feedback_size: Bytes) -> Option<Box<dyn Endpoint>>;

    /// A packet, in order. Numbers that are left out are lost.
    fn deliver(&mut self, header: &Rtp, payload: &[u8]);

    /// All packets that were there have been delivered.
    fn batch_end(&mut self);

    /// The endpoint observed something.
    fn observe(&mut self, now: Time, observation: &Observation);

    /// How the meeting stands has changed.
    fn meeting(&mut self, now: Time, stage: Meeting);

    /// Called every [`SinkConfig::tick`]. Break ends the stream.
    fn tick(&mut self, now: Time, statistics: &SinkStatistics) -> ControlFlow<()>;
}

/// How the meeting with the sender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// Asked, and nobody has answered yet.
    Unanswered {
        /// The sender's host says that nobody listens on the port.
        is_refused: bool,
    },
    /// The sender has another viewer; it is asked again.
    Busy,
    /// The stream runs.
    Running,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The sender said goodbye.
    Bye,
    /// The application ended it.
    Stopped,
    /// The sender has said nothing for too long.
    Silent,
    /// The sender's host says that nobody listens there any more.
    Refused,
    /// The offer cannot be taken.
    Declined,
}

/// How to run a sink.
#[derive(Debug, Clone)]
pub struct SinkConfig {
    /// The sender.
    pub sender: SocketAddr,
    /// This viewer's SSRC: random.
    pub ssrc: u32,
    /// A sender that says nothing for this long is gone.
    pub silence: Duration,
    /// Longest wait of a packet for earlier ones.
    pub hold: Duration,
    /// How often the application is called when nothing else happens.
    pub tick: Duration,
    /// A pcapng file of all that is sent and received.
    pub capture: Option<PathBuf>,
}

impl SinkConfig {
    /// The usual silence of [`SILENCE`], a hold of [`HOLD`], a tick of 100 ms, no capture.
    pub fn new(sender: SocketAddr, ssrc: u32) -> SinkConfig {
        SinkConfig { sender, ssrc, silence: SILENCE, hold: HOLD, tick: Duration::from_millis(100), capture: None }
    }
}

/// Packets that overtake others do so by some milliseconds at most; and a player notices 30 ms less than a hole.
pub const HOLD: Duration = Duration::from_millis(30);

/// What a sink has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SinkStatistics {
    /// Data packets received, repeated ones included.
    pub received: Amount,
    /// Bytes of payload given out.
    pub payload: Bytes,
    /// Packets given out.
    pub delivered: u64,
    /// Packets that were never given out: lost, or later than the hold.
    pub lost: u64,
    /// Of these, packets that came later than the hold.
    pub late: u64,
    /// Packets that came with a congestion mark.
    pub marked: u64,
    /// Feedback sent.
    pub feedback: u64,
    /// Feedback that the system did not take.
    pub unsent: u64,
    /// What came and was ignored.
    pub ignored: Ignored,
}

/// A sink that is ready to run.
#[derive(Debug)]
pub struct Sink {
    socket: UnicastSocket,
    seat: Seat,
    tick: Duration,
}

impl Sink {
    /// A sink that will ask `config.sender`.
    pub fn new(config: &SinkConfig) -> Result<Sink, NetError> {
        let socket = UnicastSocket::connect(config.sender)?;
        let capture = config.capture.as_ref().map(|path| Capture::create(path, "any")).transpose()?;
        let clock = Clock::new();
        let seat = Seat {
            visit: Visit::new(config.ssrc, config.silence, clock.now()),
            config: config.clone(),
            clock,
            capture,
            endpoint: None,
            highest: None,
            order: Order::new(config.hold),
            time: Time::ZERO,
            meeting: None,
            ending: None,
            statistics: SinkStatistics::default(),
        };
        Ok(Sink { socket, seat, tick: config.tick })
    }

    /// The address that it has.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Runs until the stream ends, one way or another.
    pub fn run(mut self, application: &mut impl SinkApplication) -> Result<(Ending, SinkStatistics), NetError> {
        let clock = self.seat.clock;
        let mut next_tick = clock.now();
        let ending = loop {
            let now = clock.now();
            if now >= next_tick {
                next_tick = now + self.tick;
                self.seat.tell_meeting(now, application);
                if application.tick(now, &self.seat.statistics).is_break() {
                    break Ending::Stopped;
                }
            }
            self.seat.meet_deadlines(&self.socket, application)?;
            if let Some(ending) = self.seat.ending() {
                break ending;
            }
            let ready = self.socket.wait(None, self.seat.deadline().min(next_tick))?;
            if ready.socket {
                self.read(application)?;
            }
        };
        self.take_leave(ending, application)?;
        self.seat.give_out(Time::from_nanos(u64::MAX), application);
        self.seat.capture.as_mut().map_or(Ok(()), Capture::flush)?;
        Ok((ending, self.seat.statistics))
    }

    fn read(&mut self, application: &mut impl SinkApplication) -> Result<(), NetError> {
        if !self.socket.refusals().is_empty() {
            self.seat.visit.on_refusal(self.seat.clock.now());
        }
        self.socket.receive(&self.seat.clock)?;
        for received in self.socket.received() {
            self.seat.receive(&self.socket, received, application)?;
        }
        self.seat.give_out(self.seat.clock.now(), application);
        Ok(())
    }

    /// Answers the sender's goodbye, or says it.
    fn take_leave(&mut self, ending: Ending, application: &mut impl SinkApplication) -> Result<(), NetError> {
        let now = self.seat.clock.now();
        self.seat.event(&self.socket, now, Event::Finish, application)?;
        let bye = Bye { ssrc: self.seat.config.ssrc }.encode();
        let Some(stream_ssrc) = self.seat.visit.stream_ssrc().filter(|_| ending != Ending::Declined) else {
            return Ok(());
        };
        let rounds = if ending == Ending::Stopped { &FAREWELLS[..] } else { &FAREWELLS[..1] };
        for interval in rounds {
            self.seat.control(&self.socket, &bye)?;
            if ending != Ending::Stopped {
                break;
            }
            let until = self.seat.clock.now() + *interval;
            let mut is_answered = false;
            while !is_answered && self.socket.wait(None, until)?.socket {
                is_answered = !self.socket.refusals().is_empty();
                self.socket.receive(&self.seat.clock)?;
                for received in self.socket.received() {
                    let datagram = self.socket.payload(received);
                    let seat = &mut self.seat;
                    record_received(&mut seat.capture, &seat.clock, self.socket.local(), received, datagram)?;
                    is_answered |= says_bye(datagram, stream_ssrc);
                }
            }
            if is_answered {
                break;
            }
        }
        Ok(())
    }
}

/// Everything but the socket.
#[derive(Debug)]
struct Seat {
    visit: Visit,
    config: SinkConfig,
    clock: Clock,
    capture: Option<Capture>,
    endpoint: Option<Box<dyn Endpoint>>,
    /// The highest number that came.
    highest: Option<Seq>,
    order: Order<(Rtp, Vec<u8>)>,
    /// The time of the last event: it never goes back.
    time: Time,
    /// What the application was last told of the meeting.
    meeting: Option<Meeting>,
    ending: Option<Ending>,
    statistics: SinkStatistics,
}

impl Seat {
    fn deadline(&self) -> Time {
        let endpoint = self.endpoint.as_ref().and_then(Endpoint::deadline);
        let others = [endpoint, self.order.deadline()].into_iter().flatten();
        others.fold(self.visit.deadline(), Time::min)
    }

    fn ending(&self) -> Option<Ending> {
        let gone = || if self.visit.is_refused() { Ending::Refused } else { Ending::Silent };
        self.ending.or_else(|| self.visit.is_over(self.clock.now()).then(gone))
    }

    fn meet_deadlines(
        &mut self,
        socket: &UnicastSocket,
        application: &mut impl SinkApplication,
    ) -> Result<(), NetError> {
        let now = self.clock.now();
        if let Some(message) = self.visit.poll(now) {
            self.control(socket, &message.encode())?;
        }
        let due = self.endpoint.as_ref().and_then(Endpoint::deadline);
        if due.is_some_and(|due| due <= now) {
            self.event(socket, now, Event::Deadline, application)?;
        }
        self.give_out(now, application);
        Ok(())
    }

    fn tell_meeting(&mut self, now: Time, application: &mut impl SinkApplication) {
        if !self.visit.is_running() && (self.visit.is_unanswered() || self.visit.is_refused()) {
            self.note_meeting(now, Meeting::Unanswered { is_refused: self.visit.is_refused() }, application);
        }
    }

    fn note_meeting(&mut self, now: Time, stage: Meeting, application: &mut impl SinkApplication) {
        if self.meeting.replace(stage) != Some(stage) {
            application.meeting(now, stage);
        }
    }

    fn receive(
        &mut self,
        socket: &UnicastSocket,
        received: &Received,
        application: &mut impl SinkApplication,
    ) -> Result<(), NetError> {
        let datagram = socket.payload(received);
        record_received(&mut self.capture, &self.clock, socket.local(), received, datagram)?;
        if !rtcp::is_rtcp(datagram) {
            return self.on_data(socket, received, datagram, application);
        }
        for packet in rtcp::packets(datagram) {
            match packet.and_then(|packet| Word::read(&packet)) {
                Ok(Word::Message(message)) => self.on_message(received.time, &message, socket, application)?,
                Ok(Word::Bye(bye)) if self.visit.stream_ssrc() == Some(bye.ssrc) => self.ending = Some(Ending::Bye),
                Ok(Word::Bye(_) | Word::Report(_)) => self.statistics.ignored.foreign += 1,
                Ok(Word::Other) => {}
                Err(_) => self.statistics.ignored.undecodable += 1,
            }
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        message: &Message,
        socket: &UnicastSocket,
        application: &mut impl SinkApplication,
    ) -> Result<(), NetError> {
        match self.visit.on_message(now, message) {
            Some(News::Offered(terms)) if self.endpoint.is_none() => {
                let feedback_size = header_len(self.config.sender.ip()) + congestion::MAX_LEN as u64;
                self.endpoint = application.offered(now, &terms, Bytes::new(feedback_size));
                if self.endpoint.is_none() {
                    self.ending = Some(Ending::Declined);
                }
                self.event(socket, now, Event::Start, application)?;
            }
            Some(News::Busy) => self.note_meeting(now, Meeting::Busy, application),
            Some(News::Offered(_)) | None => {}
        }
        if self.visit.is_running() {
            self.note_meeting(now, Meeting::Running, application);
        }
        Ok(())
    }

    fn on_data(
        &mut self,
        socket: &UnicastSocket,
        received: &Received,
        datagram: &[u8],
        application: &mut impl SinkApplication,
    ) -> Result<(), NetError> {
        let Ok((header, payload)) = Rtp::decode(datagram) else {
            self.statistics.ignored.undecodable += 1;
            return Ok(());
        };
        if self.visit.stream_ssrc() != Some(header.ssrc) {
            self.statistics.ignored.foreign += 1;
            return Ok(());
        }
        self.visit.on_data(received.time);
        self.note_meeting(received.time, Meeting::Running, application);
        let size = Bytes::new(datagram.len() as u64 + header_len(self.config.sender.ip()));
        self.statistics.received.add(Amount { packets: 1, bytes: size });
        self.statistics.marked += u64::from(received.ecn == Ecn::Ce);
        let packet = Packet { header: Header::Paced(header.paced()), size, ecn: received.ecn };
        let event = Event::Packet { from: Origin::Peer(PeerId(0)), packet: &packet };
        if self.event(socket, received.time, event, application)? {
            let number = self.number(header.sequence);
            self.order.push(self.clock.now(), number, (header, payload.to_vec()));
        }
        Ok(())
    }

    /// The number of a packet, in full. The first one is far enough from zero that earlier ones have a number too.
    fn number(&mut self, sequence: u16) -> Seq {
        let highest = self.highest.unwrap_or(Seq::new(1 << 16 | u64::from(sequence)));
        let number = highest.extend(u32::from(sequence), 16);
        self.highest = Some(highest.max(number));
        number
    }

    /// Tells the endpoint, and does what it wants. Returns whether it wants the packet delivered.
    fn event(
        &mut self,
        socket: &UnicastSocket,
        at: Time,
        event: Event<'_>,
        application: &mut impl SinkApplication,
    ) -> Result<bool, NetError> {
        self.time = self.time.max(at);
        let now = self.time;
        let mut is_new = false;
        let Some(mut endpoint) = self.endpoint.take() else { return Ok(false) };
        endpoint.handle(now, event);
        while let Some(action) = endpoint.poll(now) {
            match action {
                Action::Send { to: Destination::Peer(PeerId(0)), packet } => {
                    if let Header::Feedback(feedback) = packet.header {
                        self.send(socket, &feedback)?;
                    }
                }
                Action::Deliver => is_new = true,
                Action::Observe(observation) => application.observe(now, &observation),
                // A sink has one correspondent and no channels.
                _ => {}
            }
        }
        self.endpoint = Some(endpoint);
        Ok(is_new)
    }

    fn send(&mut self, socket: &UnicastSocket, feedback: &Feedback) -> Result<(), NetError> {
        let Some(stream_ssrc) = self.visit.stream_ssrc() else { return Ok(()) };
        let now = self.clock.now();
        let waited =
            (now.since(self.time).as_nanos() * 1024 / 1_000_000_000).min(u128::from(Feedback::MAX_HELD)) as u16;
        let held = feedback.held.saturating_add(waited).min(Feedback::MAX_HELD);
        let feedback = Feedback { held, ..*feedback };
        let mut datagram = [0; congestion::MAX_LEN];
        let timestamp = ntp_middle(&self.clock, now);
        let len = congestion::encode(self.config.ssrc, stream_ssrc, &feedback, timestamp, &mut datagram);
        let is_sent = socket.send(self.config.sender, Ecn::NotEct, &[&datagram[..len]]).is_ok();
        self.statistics.feedback += u64::from(is_sent);
        self.statistics.unsent += u64::from(!is_sent);
        record_sent(&mut self.capture, &self.clock, socket.local(), self.config.sender, &datagram[..len])
    }

    /// Sends a question or a farewell. If it is lost, another one follows.
    fn control(&mut self, socket: &UnicastSocket, datagram: &[u8]) -> Result<(), NetError> {
        let _ = socket.send(self.config.sender, Ecn::NotEct, &[datagram]);
        record_sent(&mut self.capture, &self.clock, socket.local(), self.config.sender, datagram)
    }

    /// Gives out what can be.
    fn give_out(&mut self, now: Time, application: &mut impl SinkApplication) {
        let before = self.statistics.delivered;
        while let Some((header, payload)) = self.order.pop(now) {
            self.statistics.delivered += 1;
            self.statistics.payload += Bytes::new(payload.len() as u64);
            application.deliver(&header, &payload);
        }
        self.statistics.lost = self.order.missing();
        self.statistics.late = self.order.late();
        if self.statistics.delivered > before {
            application.batch_end();
        }
    }
}
