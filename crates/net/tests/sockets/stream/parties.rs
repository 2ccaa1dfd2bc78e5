//! Endpoints without any protocol: one sends a packet every millisecond, the other answers each. And what they are run with.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet, PeerId};
use weir_net::host::{Application, Delivery, Departure, Host, PeerChange, Progress, Statistics, TenantConfig};
use weir_net::live::order::{Due, Order};
use weir_net::live::{self, LiveConfig};
use weir_net::socket::header_len;
use weir_units::{Bytes, Ecn, Seq, Time};
use weir_wire::rtcp::handshake::Terms;
use weir_wire::rtp::Rtp;
use weir_wire::{Feedback, Paced};

/// Sends a packet every millisecond while there is something to send, and is done when the last one is answered.
#[derive(Debug)]
struct Metronome {
    offered: u64,
    is_end_told: bool,
    sequence: u16,
    due: Time,
    actions: VecDeque<Action>,
    board: Arc<Mutex<Board>>,
}

impl Endpoint for Metronome {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => self.due = now,
            Event::Offer { packets } => self.offered += packets,
            Event::End => self.is_end_told = true,
            Event::Deadline if self.offered > 0 && self.due <= now => {
                let header = Header::Paced(Paced { sequence: self.sequence, payload: None });
                let packet = Packet { header, size: Bytes::new(100), ecn: Ecn::Ect };
                self.actions.push_back(Action::send_fresh(Destination::Peer(PeerId(0)), packet));
                self.sequence = self.sequence.wrapping_add(1);
                self.offered -= 1;
                self.due = now + Duration::from_millis(1);
            }
            Event::Packet { packet: Packet { header: Header::Feedback(feedback), .. }, .. } => {
                self.board.lock().expect("nobody panics with it").heard += 1;
                let is_last = feedback.newest.wrapping_add(1) == self.sequence;
                if self.is_end_told && self.offered == 0 && is_last {
                    self.actions.push_back(Action::Complete);
                }
            }
            Event::Finish => self.offered = 0,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        (self.offered > 0).then_some(self.due)
    }
}

/// Answers each packet, and takes it under its number.
#[derive(Debug, Default)]
struct Answerer {
    /// The highest number that came.
    highest: Option<Seq>,
    actions: VecDeque<Action>,
}

impl Endpoint for Answerer {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        if let Event::Packet { packet: Packet { header: Header::Paced(paced), ecn, .. }, .. } = event {
            assert_eq!(*ecn, Ecn::Ect, "it is told what the packet's header says");
            // The first one is far enough from zero that earlier ones have a number too.
            let highest = self.highest.unwrap_or(Seq::new(1 << 16 | u64::from(paced.sequence)));
            let number = highest.extend(u32::from(paced.sequence), 16);
            self.highest = Some(highest.max(number));
            let feedback = Feedback { newest: paced.sequence, reports: 1, arrived: 1, marked: 0, held: 0 };
            let packet = Packet { header: Header::Feedback(feedback), size: Bytes::new(60), ecn: Ecn::NotEct };
            self.actions.push_back(Action::Deliver { number: Some(number.value()) });
            self.actions.push_back(Action::send(Destination::Peer(PeerId(0)), packet));
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// What a test can see of a source while it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    pub(crate) came: u64,
    pub(crate) left: Vec<Departure>,
    pub(crate) packet_size: u64,
    /// Answers that reached the endpoint.
    pub(crate) heard: u64,
    pub(crate) statistics: Statistics,
    stop: bool,
}

/// The application of a source: payloads of 100 bytes that begin with their number, for one viewer after another.
struct Numbers {
    next: u64,
    end: u64,
    bytes: [u8; 100],
    board: Arc<Mutex<Board>>,
}

impl Numbers {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().expect("nobody panics with it")
    }
}

impl Application<Rtp> for Numbers {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<(Rtp, &[u8])> {
        self.bytes[..8].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Some((Rtp { payload_type: 96, ..Rtp::default() }, &self.bytes))
    }

    fn waiting(&self) -> Option<u64> {
        Some((self.end - self.next).min(50))
    }

    fn is_over(&self) -> bool {
        self.end < u64::MAX
    }

    fn terms(&self, peer: SocketAddr) -> Option<Terms> {
        let size = header_len(peer.ip()) as u16 + Rtp::LEN as u16 + self.bytes.len() as u16;
        Terms::new(96, size, "metronome")
    }

    fn open(&mut self, _now: Time, _peer: SocketAddr, terms: &Terms) -> Option<Box<dyn Endpoint>> {
        let mut board = self.board();
        board.came += 1;
        board.packet_size = u64::from(terms.packet_size);
        let (board, due) = (Arc::clone(&self.board), Time::ZERO);
        Some(Box::new(Metronome { offered: 0, is_end_told: false, sequence: 0, due, actions: VecDeque::new(), board }))
    }

    fn peer(&mut self, _now: Time, _peer: PeerId, _address: SocketAddr, change: PeerChange) {
        if let PeerChange::Down(why) = change {
            self.board().left.push(why);
        }
    }

    fn tick(&mut self, _now: Time, statistics: &Statistics) -> Progress {
        let is_served = self.next == self.end;
        let mut board = self.board();
        board.statistics = statistics.clone();
        let is_over = board.stop || (is_served && board.left.len() as u64 == board.came);
        if is_over { Progress::Stop } else { Progress::Continue }
    }
}

/// A source in a thread of its own.
pub(crate) struct Running {
    port: u16,
    board: Arc<Mutex<Board>>,
    thread: JoinHandle<Statistics>,
}

/// A short tick.
pub(crate) fn config() -> LiveConfig {
    let usual = LiveConfig::default();
    LiveConfig { tenant: TenantConfig { tick: Duration::from_millis(10), ..usual.tenant }, ..usual }
}

/// A short tick, and this silence.
pub(crate) fn silent_after(silence: Duration) -> LiveConfig {
    LiveConfig { tenant: TenantConfig { silence, ..config().tenant }, ..config() }
}

/// Runs a source with a given number of payloads, for one viewer at a time.
pub(crate) fn run_source(listen: SocketAddr, config: &LiveConfig, payloads: u64) -> Running {
    run_source_for(1, listen, config, payloads)
}

/// Runs a source with a given number of payloads, for up to `most` viewers, each of which gets some of them.
pub(crate) fn run_source_for(most: usize, listen: SocketAddr, config: &LiveConfig, payloads: u64) -> Running {
    let source = live::source(listen, [9; 32], most, config).expect("a socket");
    let port = source.unicast_local(0).expect("it listens").port();
    let board = Arc::<Mutex<Board>>::default();
    let mut numbers = Numbers { next: 0, end: payloads, bytes: [0; 100], board: Arc::clone(&board) };
    let thread = std::thread::spawn(move || Host::run_one(source, &mut numbers).expect("the socket works"));
    Running { port, board, thread }
}

impl Running {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for what the test expects, and fails if it does not come.
    pub(crate) fn until(&self, mut holds: impl FnMut(&Board) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let board = self.board.lock().expect("nobody panics with it").clone();
            if holds(&board) {
                return;
            }
            assert!(Instant::now() < end, "what was waited for did not come: {board:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn stop(&self) {
        self.board.lock().expect("nobody panics with it").stop = true;
    }

    pub(crate) fn join(self) -> (Statistics, Board) {
        let statistics = self.thread.join().expect("no panic");
        let board = self.board.lock().expect("nobody panics with it").clone();
        (statistics, board)
    }
}

/// What a viewer sees.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// The numbers of the payloads, in order.
    pub(crate) payloads: Vec<u64>,
    /// How it stood with the source until it was gone.
    pub(crate) stages: Vec<PeerChange>,
    /// Leaves when it has this number of payloads; 0 is never.
    stop_at: usize,
    /// Asks a source that is gone again, until this number of payloads has come.
    again_until: usize,
    /// Why it asked again.
    pub(crate) asked_again: Vec<Departure>,
    order: Order<u64>,
    ending: Option<Departure>,
}

impl Screen {
    /// One that leaves when it has this number of payloads.
    pub(crate) fn of(stop_at: usize) -> Screen {
        Screen { stop_at, ..Screen::default() }
    }

    /// One that looks for its source again when it is gone, until it has this number of payloads.
    pub(crate) fn again_until(payloads: usize) -> Screen {
        Screen { again_until: payloads, ..Screen::default() }
    }

    /// Packets that never came.
    pub(crate) fn missing(&self) -> u64 {
        self.order.missing()
    }

    fn show(&mut self, now: Time) {
        self.payloads.extend(std::iter::from_fn(|| self.order.pop(now)));
    }
}

impl Application<Rtp> for Screen {
    fn open(&mut self, _now: Time, _peer: SocketAddr, terms: &Terms) -> Option<Box<dyn Endpoint>> {
        (terms.scheme() == Some("metronome")).then(|| Box::new(Answerer::default()) as Box<dyn Endpoint>)
    }

    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Rtp>) {
        let number = Seq::new(delivery.number.expect("the endpoint numbers payloads"));
        let payload = delivery.payload.first_chunk().expect("payloads begin with their number");
        self.order.push(number, Due::at_once(now, Duration::from_millis(30)), u64::from_be_bytes(*payload));
        self.show(now);
    }

    fn peer(&mut self, _now: Time, _peer: PeerId, _address: SocketAddr, change: PeerChange) {
        match change {
            PeerChange::Down(why) if self.payloads.len() < self.again_until && why != Departure::Bye => {
                self.asked_again.push(why);
                self.show(Time::from_nanos(u64::MAX));
                self.order = Order::default();
            }
            PeerChange::Down(why) => self.ending = Some(why),
            stage => self.stages.push(stage),
        }
    }

    fn contact_again(&mut self, _now: Time, _address: SocketAddr, _why: Departure) -> Option<u32> {
        self.ending.is_none().then_some(0x0203_0400 + self.asked_again.len() as u32)
    }

    fn deadline(&self) -> Option<Time> {
        self.order.deadline()
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        self.show(now);
        if self.stop_at > 0 && self.payloads.len() >= self.stop_at {
            self.ending = Some(Departure::Stopped);
        }
        if self.ending.is_some() { Progress::Stop } else { Progress::Continue }
    }
}

/// Runs a viewer to its end.
pub(crate) fn run_sink(sender: SocketAddr, config: &LiveConfig, mut screen: Screen) -> (Departure, Screen, Statistics) {
    let sink = live::sink(sender, 0x0102_0304, config).expect("a socket");
    let statistics = Host::run_one(sink, &mut screen).expect("the socket works");
    screen.show(Time::from_nanos(u64::MAX));
    (screen.ending.expect("that is why it ended"), screen, statistics)
}

/// A port that nobody uses at the moment.
pub(crate) fn free_port() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.local_addr().expect("it is bound").port()
}

/// What takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(20);
