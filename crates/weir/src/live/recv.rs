//! `weir recv HOST:PORT`: asks a sender for its live stream and puts it out, in order, as it comes. A sender that goes without a goodbye
//! is asked again, and the output goes on with the stream that it offers then.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use weir_core::registry::{self, Habitat, Stream};
use weir_core::{Endpoint, PeerId};
use weir_net::clock::Clock;
use weir_net::host::{Application, Delivery, Departure, Host, PeerChange, Progress, Statistics};
use weir_net::live::order::{Due, Order};
use weir_net::live::playout::PlayOut;
use weir_net::live::{self, LiveConfig};
use weir_net::seal::PairConfig;
use weir_net::socket::header_len;
use weir_object::keys::PublicKey;
use weir_units::{Bytes, Random, Time};
use weir_wire::rtcp::congestion;
use weir_wire::rtcp::handshake::Terms;
use weir_wire::rtp::Rtp;

use super::events::{LiveReceiverEvent, MeetingChange, ViewEnd, ViewProgress, ViewStart};
use super::output::{Outlet, Output, open_outlet, write_sdp};
use super::resume::{PATIENCE, Resume};
use crate::args::Recv;
use crate::events::{Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::media::Viewing;
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::session;
use crate::trust::Trust;

/// Takes the live stream of the sender at `address`.
pub fn run(args: &Recv, address: &str, observer: &mut dyn Observer<LiveReceiverEvent>) -> Result<Exit, Failure> {
    let output = Output::wanted(args)?;
    let sender = resolve(address)?;
    let ssrc = u32::from_be_bytes(session::random()?);
    let random = session::random_stream("viewer")?;
    let trust = Trust::of(args)?;
    let expected = trust.expected(address)?;
    let keys = PairConfig { secret: session::random()?, identity: None, expected: expected.map(|key| key.to_bytes()) };
    let capture = args.output.pcap.clone();
    let config = LiveConfig { capture, keys: Some(keys), ..LiveConfig::default() };
    let tenant = live::sink(sender, ssrc, &config).map_err(Failure::of(Exit::Network, "cannot receive"))?;
    let outlet = open_outlet(&output, args.overwrite)?;
    let clock = Clock::new();
    let started = clock.now();
    let mut run = LiveViewer {
        address: address.to_owned(),
        observer,
        is_unheard: false,
        sdp: args.sdp.clone(),
        outlet: Some(outlet),
        viewing: None,
        ssrc,
        output,
        random,
        order: Order::default(),
        resume: Resume::default(),
        early: 0,
        latency: args.latency.unwrap_or_default(),
        play_out: None,
        longest_lag: None,
        payload_bytes: 0,
        started,
        ends: args.duration.map(|duration| started + duration),
        idle_timeout: args.idle_timeout,
        last_packet: started,
        looked: started,
        shown: started,
        shown_bytes: 0,
        shown_packets: 0,
        terms: None,
        trust,
        ending: None,
        outcome: None,
    };
    run.show(&LiveReceiverEvent::Start(ViewStart {
        role: Role::Receiver,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: address.to_owned(),
        out: run.output.to_string(),
    }));
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot receive"))?;
    if run.viewing.is_none() {
        run.give_out(Time::from_nanos(u64::MAX));
    }
    Ok(run.end(clock.now(), &statistics))
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let failed = |reason: String| {
        Failure::new(
            Exit::Network,
            format!("cannot find {address}: {reason}; expected HOST:PORT, such as 192.0.2.7:5004"),
        )
    };
    let mut found = address.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    found.next().ok_or_else(|| failed("the name has no address".to_owned()))
}

/// A running viewer.
struct LiveViewer<'a> {
    address: String,
    observer: &'a mut dyn Observer<LiveReceiverEvent>,
    /// The observer wants the run to end.
    is_unheard: bool,
    sdp: Option<std::path::PathBuf>,
    /// Where payloads go; what gives out pictures has it once there is a stream of them.
    outlet: Option<Outlet>,
    viewing: Option<Viewing>,
    /// Random, for what goes to players.
    ssrc: u32,
    output: Output,
    random: Random,
    order: Order<Taken>,
    resume: Resume,
    /// Packets that the first of a stream overtook where another stream ran before.
    early: u64,
    /// How long after the sender got it the stream is given out: what the user wants, or the sender, if that is more.
    latency: Duration,
    /// Once the stream runs, if it has times.
    play_out: Option<PlayOut>,
    /// Of what was given out since the last progress event.
    longest_lag: Option<Duration>,
    /// Bytes of payload given out.
    payload_bytes: u64,
    started: Time,
    ends: Option<Time>,
    idle_timeout: Option<Duration>,
    last_packet: Time,
    /// When it was looked last at what is due.
    looked: Time,
    shown: Time,
    shown_bytes: u64,
    shown_packets: u64,
    terms: Option<Terms>,
    trust: Trust,
    /// How the stream ended.
    ending: Option<Departure>,
    outcome: Option<Exit>,
}

/// A payload that waits for its time.
#[derive(Debug)]
struct Taken {
    header: Rtp,
    payload: Vec<u8>,
    /// When it is due, if the stream has times.
    due: Option<Time>,
}

impl Application<Rtp> for LiveViewer<'_> {
    fn open(&mut self, now: Time, sender: SocketAddr, terms: &Terms) -> Option<Box<dyn Endpoint>> {
        if let Err(message) = self.believe(now, terms) {
            self.stop(now, message, Exit::Unverified);
            return None;
        }
        self.terms = Some(*terms);
        self.resume.on_offer();
        self.latency = self.latency.max(Duration::from_millis(u64::from(terms.latency_ms)));
        let has_times = !self.latency.is_zero() || terms.pictures.is_some();
        self.play_out = has_times.then(|| PlayOut::new(self.latency));
        if let Err(message) = self.open_output(terms) {
            self.stop(now, message, Exit::Files);
            return None;
        }
        if terms.latency_ms == 0 && self.play_out.is_some() {
            let message = "the sender sends without times (its --latency is 0s), so that --latency has no effect here";
            self.trouble(now, message.to_owned(), None);
        }
        let packet_size = Bytes::new(u64::from(terms.packet_size));
        let feedback_size = Bytes::new(header_len(sender.ip()) + congestion::MAX_LEN as u64);
        let stream = Stream { packet_size, feedback_size, habitat: Habitat::Sockets };
        let name = terms.scheme().unwrap_or_default();
        let random = Random::new(self.random.bits(), "sink");
        let endpoint = match registry::find(name).and_then(|scheme| scheme.sink(&stream, &[], random)) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                self.stop(now, format!("cannot take the stream of {}: {error}", self.address), Exit::Session);
                return None;
            }
        };
        if let (Some(path), Output::Rtp(to), None) = (&self.sdp, &self.output, terms.pictures)
            && let Err(error) = write_sdp(path, *to, terms.payload_type)
        {
            let message = format!("cannot write {}: {error}", path.display());
            self.stop(now, message, Exit::Files);
        }
        Some(endpoint)
    }

    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Rtp>) {
        if let Some(viewing) = &mut self.viewing {
            if let Some((play_out, origin)) = self.play_out.as_mut().zip(delivery.label.origin) {
                viewing.take(now, delivery.label, delivery.payload, play_out.due(now, origin.micros));
            }
            return;
        }
        let Some(number) = self.resume.number(delivery.number.unwrap_or_default()) else {
            self.early += 1;
            return;
        };
        let header = Rtp { sequence: number.value() as u16, ..*delivery.label };
        let due = self.play_out.as_mut().zip(header.origin).map(|(play_out, origin)| play_out.due(now, origin.micros));
        let when = due.map_or(Due::at_once(now, HOLD), Due::at);
        self.order.push(number, when, Taken { header, payload: delivery.payload.to_vec(), due });
    }

    fn batch_end(&mut self) {
        self.give_out(Clock::new().now());
    }

    fn deadline(&self) -> Option<Time> {
        self.next_due()
    }

    fn contact_again(&mut self, _now: Time, _address: SocketAddr, _why: Departure) -> Option<u32> {
        let is_over = self.outcome.is_some() || self.ending.is_some();
        (self.resume.asks().is_some() && !is_over).then(|| self.random.bits() as u32)
    }

    fn peer(&mut self, now: Time, _peer: PeerId, _address: SocketAddr, change: PeerChange) {
        let stage = match change {
            PeerChange::Unanswered { is_refused: false } => "unanswered",
            PeerChange::Unanswered { is_refused: true } => "refused",
            PeerChange::Busy => "busy",
            PeerChange::Later => "later",
            PeerChange::OtherKey(key) => return self.refused(now, key),
            PeerChange::Up | PeerChange::Reached => "running",
            PeerChange::Down(why) if self.resume.on_gone(why, self.last_packet) => "reconnecting",
            PeerChange::Down(why) => {
                self.ending = Some(why);
                return;
            }
        };
        let missed = if stage == "running" { self.resume.on_running(now) } else { None };
        let why = self.resume.asks().filter(|_| stage == "reconnecting");
        let event = MeetingChange {
            t_s: self.t_s(now),
            stage: stage.to_owned(),
            why: why.map(|why| word(why).to_owned()),
            missed_s: missed.map(|missed| missed.as_secs_f64()),
            scheme: self.terms.as_ref().and_then(Terms::scheme).map(str::to_owned),
            payload_type: self.terms.map(|terms| terms.payload_type),
            latency_ms: self.terms.map(|_| self.latency.as_millis() as u64),
        };
        self.show(&LiveReceiverEvent::Meeting(event));
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.give_out(now);
        if statistics.received.packets > self.shown_packets {
            (self.shown_packets, self.last_packet) = (statistics.received.packets, now);
        }
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if self.outcome.is_none() {
            let patience = self.idle_timeout.or(self.resume.asks().map(|_| PATIENCE));
            let is_idle = patience.is_some_and(|limit| now.since(self.last_packet) >= limit);
            self.outcome = match () {
                () if self.is_unheard || self.observer.is_interrupted() => Some(Exit::Done),
                () if is_idle => {
                    self.ending = self.ending.or(self.resume.asks());
                    Some(Exit::Incomplete)
                }
                // To look for a while is what was asked for; to have seen nothing is not.
                () if self.ends.is_some_and(|ends| now >= ends) => {
                    Some(if statistics.received.packets > 0 { Exit::Done } else { Exit::Incomplete })
                }
                () => None,
            };
        }
        // What came before a goodbye still has its time.
        let is_over = self.ending.is_some() && self.next_due().is_none();
        if self.outcome.is_some() || is_over { Progress::Stop } else { Progress::Continue }
    }
}

impl LiveViewer<'_> {
    /// Who sends the stream is remembered by its key; what the user is to know of it is told.
    fn believe(&mut self, now: Time, terms: &Terms) -> Result<(), String> {
        if !terms.is_encrypted() {
            return Ok(());
        }
        let key = PublicKey::from_bytes(&terms.identity).map_err(|error| error.to_string())?;
        let told = self.trust.of_stream_at(&self.address, key)?;
        told.into_iter().for_each(|message| self.trouble(now, message, None));
        Ok(())
    }

    /// The sender that answers is not the one that is expected.
    fn refused(&mut self, now: Time, key: [u8; 32]) {
        let who = match PublicKey::from_bytes(&key) {
            Ok(key) if key.to_bytes() != [0; 32] => format!("has the key {key}"),
            _ => "offers no key".to_owned(),
        };
        let message = format!(
            "who answers at {} {who}, which is not that of --sender-key, or the one that it had before: either the sender has a new key, or somebody \
             answers in its place. Nothing is taken from there; the sender is asked again",
            self.address
        );
        self.trouble(now, message, None);
    }

    /// Makes ready for pictures, if the stream is of such.
    fn open_output(&mut self, terms: &Terms) -> Result<(), String> {
        match (terms.pictures, &mut self.viewing) {
            (Some(_), Some(viewing)) => viewing.restart(),
            (Some(pictures), viewing) => {
                let outlet = self.outlet.take().ok_or("there is no output")?;
                let made = Viewing::new(outlet, &self.output, self.sdp.as_deref(), pictures, self.latency, self.ssrc)?;
                *viewing = Some(made);
            }
            (None, Some(_)) => {
                return Err("the sender has begun again with a stream that is not of pictures".to_owned());
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// When something can go out though nothing more comes. What is due soon after the last look goes together: a look and a write for each
    /// packet of a fast stream would cost more than the packets.
    fn next_due(&self) -> Option<Time> {
        let due = self.viewing.as_ref().map_or_else(|| self.order.deadline(), Viewing::deadline);
        due.map(|due| due.max(self.looked + SHORTEST_WAIT))
    }

    /// Puts out pictures whose time has come.
    fn show_pictures(&mut self, now: Time) {
        match self.viewing.as_mut().map(|viewing| viewing.give_out(now)) {
            Some(Ok(Some(late))) => self.longest_lag = self.longest_lag.max(Some(self.latency + late)),
            Some(Err(error)) if self.outcome.is_none() => self.fail(&error),
            _ => {}
        }
    }

    /// Puts out what is in order by now.
    fn give_out(&mut self, now: Time) {
        self.looked = now;
        self.show_pictures(now);
        let mut given = false;
        while let Some(Taken { header, payload, due }) = self.order.pop(now) {
            if let Some(due) = due.filter(|due| *due <= now) {
                self.longest_lag = self.longest_lag.max(Some(now.since(due) + self.latency));
            }
            let Some(outlet) = self.outlet.as_mut().filter(|_| self.outcome.is_none()) else { continue };
            given = true;
            self.payload_bytes += payload.len() as u64;
            if let Err(error) = outlet.put(&header, &payload) {
                self.fail(&error);
            }
        }
        if let Some(outlet) = self.outlet.as_mut().filter(|_| given && self.outcome.is_none())
            && let Err(error) = outlet.flush()
        {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.outcome = Some(Exit::Done);
        } else {
            let message = format!("cannot write to {}: {error}", self.output);
            self.stop(Clock::new().now(), message, Exit::Files);
        }
    }

    fn stop(&mut self, now: Time, message: String, exit: Exit) {
        self.outcome = Some(exit);
        self.trouble(now, message, Some(exit));
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&LiveReceiverEvent::Error(event));
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let received_bytes = statistics.received.bytes.count();
        let rate = Bytes::new(received_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, received_bytes);
        let event = ViewProgress {
            t_s: self.t_s(now),
            received_bytes,
            received_packets: statistics.received.packets,
            payload_bytes: self.payload_bytes + self.viewing.as_ref().map_or(0, |viewing| viewing.payload_bytes),
            rate_bps: rate.bps(),
            lost_packets: self.order.missing(),
            recovered_packets: self.order.filled(),
            reconnects: self.resume.reconnects,
            missed_s: self.resume.missed.as_secs_f64(),
            lag_ms: self.longest_lag.take().map(|lag| lag.as_secs_f64() * 1e3),
            pictures: self.viewing.as_ref().map(Viewing::shown),
        };
        self.show(&LiveReceiverEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        if let Some(Err(error)) = self.viewing.as_mut().map(Viewing::close) {
            self.fail(&error);
        }
        let exit = match self.ending {
            Some(Departure::Bye) => Exit::Done,
            Some(Departure::Silent | Departure::Refused | Departure::Forgotten) => Exit::Incomplete,
            Some(Departure::Declined) => Exit::Session,
            Some(Departure::Complete | Departure::Stopped) | None => Exit::Internal,
        };
        let exit = self.outcome.unwrap_or(exit);
        let event = ViewEnd {
            t_s: self.t_s(now),
            reason: self.ending.map_or("stopped", word).to_owned(),
            received_bytes: statistics.received.bytes.count(),
            received_packets: statistics.received.packets,
            payload_bytes: self.payload_bytes + self.viewing.as_ref().map_or(0, |viewing| viewing.payload_bytes),
            lost_packets: self.order.missing(),
            late_packets: self.order.late() + self.early,
            recovered_packets: self.order.filled(),
            reconnects: self.resume.reconnects,
            missed_s: self.resume.missed.as_secs_f64(),
            marked_packets: statistics.marked,
            ignored: statistics.ignored.total(),
            pictures: self.viewing.as_ref().map(Viewing::shown),
            exit_code: exit.code(),
        };
        self.show(&LiveReceiverEvent::End(event));
        exit
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn show(&mut self, event: &LiveReceiverEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}

/// How it is called in events that the sender is not there any more.
fn word(why: Departure) -> &'static str {
    match why {
        Departure::Bye => "bye",
        Departure::Silent => "silent",
        Departure::Refused => "refused",
        Departure::Forgotten => "forgotten",
        Departure::Declined => "declined",
        Departure::Complete | Departure::Stopped => "stopped",
    }
}

/// Longest wait of a packet for earlier ones: packets that overtake others do so by some milliseconds at most, and a player
/// notices 30 ms less than a hole.
const HOLD: Duration = Duration::from_millis(30);
/// From one look at what is due to the next: no player notices a millisecond.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
