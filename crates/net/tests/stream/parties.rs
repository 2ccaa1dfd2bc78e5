//! Endpoints without any protocol: one sends a packet every millisecond, the other answers each. And what they are run with.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_core::{Action, Destination, Endpoint, Event, Header, Observation, Packet, PeerId};
use weir_net::stream::door::Viewer;
use weir_net::stream::sink::{Ending, Meeting, Sink, SinkApplication, SinkConfig, SinkStatistics};
use weir_net::stream::source::{Leave, Payload, Source, SourceApplication, SourceConfig, SourceStatistics, Supply};
use weir_units::{Bytes, Ecn, Time};
use weir_wire::rtcp::meeting::Terms;
use weir_wire::rtp::Rtp;
use weir_wire::{Feedback, Paced};

/// Sends a packet every millisecond while there is something to send.
#[derive(Debug)]
struct Metronome {
    offered: u64,
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
            Event::Deadline if self.offered > 0 && self.due <= now => {
                let header = Header::Paced(Paced { sequence: self.sequence });
                let packet = Packet { header, size: Bytes::new(100), ecn: Ecn::Ect };
                self.actions.push_back(Action::Send { to: Destination::Peer(PeerId(0)), packet });
                self.sequence = self.sequence.wrapping_add(1);
                self.offered -= 1;
                self.due = now + Duration::from_millis(1);
            }
            Event::Packet { packet: Packet { header: Header::Feedback(_), .. }, .. } => {
                self.board.lock().expect("nobody panics with it").heard += 1;
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

/// Answers each packet, and takes it.
#[derive(Debug, Default)]
struct Answerer {
    actions: VecDeque<Action>,
}

impl Endpoint for Answerer {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        if let Event::Packet { packet: Packet { header: Header::Paced(paced), ecn, .. }, .. } = event {
            assert_eq!(*ecn, Ecn::Ect, "it is told what the packet's header says");
            let feedback = Feedback { newest: paced.sequence, reports: 1, arrived: 1, marked: 0, held: 0 };
            let packet = Packet { header: Header::Feedback(feedback), size: Bytes::new(60), ecn: Ecn::NotEct };
            self.actions.push_back(Action::Deliver);
            self.actions.push_back(Action::Send { to: Destination::Peer(PeerId(0)), packet });
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Payloads of 100 bytes that begin with their number.
struct Numbers {
    next: u64,
    end: u64,
    bytes: [u8; 100],
}

impl Supply for Numbers {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn fill(&mut self, _now: Time) {}

    fn waiting(&self) -> u64 {
        (self.end - self.next).min(50)
    }

    fn next(&mut self, _now: Time) -> Option<Payload<'_>> {
        self.bytes[..8].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Some(Payload { marker: false, payload_type: 96, timestamp: 0, bytes: &self.bytes })
    }

    fn is_over(&self) -> bool {
        self.end < u64::MAX
    }

    fn payload_type(&self) -> u8 {
        96
    }

    fn payload_len(&self) -> usize {
        self.bytes.len()
    }
}

/// What a test can see of a source while it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    pub(crate) came: u64,
    pub(crate) left: Vec<Leave>,
    pub(crate) packet_size: u64,
    /// Answers that reached the endpoint.
    pub(crate) heard: u64,
    pub(crate) statistics: SourceStatistics,
    stop: bool,
}

struct Host(Arc<Mutex<Board>>);

impl Host {
    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl SourceApplication for Host {
    fn came(&mut self, _now: Time, _viewer: Viewer, packet_size: Bytes) -> Box<dyn Endpoint> {
        let mut board = self.board();
        board.came += 1;
        board.packet_size = packet_size.count();
        let board = Arc::clone(&self.0);
        Box::new(Metronome { offered: 0, sequence: 0, due: Time::ZERO, actions: VecDeque::new(), board })
    }

    fn left(&mut self, _now: Time, _viewer: Viewer, why: Leave) {
        self.board().left.push(why);
    }

    fn observe(&mut self, _now: Time, _observation: &Observation) {}

    fn tick(&mut self, _now: Time, statistics: &SourceStatistics, _supply: &dyn Supply) -> ControlFlow<()> {
        let mut board = self.board();
        board.statistics = *statistics;
        if board.stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A source in a thread of its own.
pub(crate) struct Running {
    port: u16,
    board: Arc<Mutex<Board>>,
    thread: JoinHandle<SourceStatistics>,
}

pub(crate) fn source_config(listen: SocketAddr) -> SourceConfig {
    SourceConfig { tick: Duration::from_millis(10), ..SourceConfig::new(listen, "metronome", [9; 32]) }
}

/// Runs a source that has so many payloads.
pub(crate) fn run_source(config: &SourceConfig, payloads: u64) -> Running {
    let source = Source::new(config).expect("a socket");
    let port = source.local().port();
    let board = Arc::<Mutex<Board>>::default();
    let mut host = Host(Arc::clone(&board));
    let mut numbers = Numbers { next: 0, end: payloads, bytes: [0; 100] };
    let thread = std::thread::spawn(move || source.run(&mut numbers, &mut host).expect("the socket works"));
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

    pub(crate) fn stop(&self) {
        self.board.lock().expect("nobody panics with it").stop = true;
    }

    pub(crate) fn join(self) -> (SourceStatistics, Board) {
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
    pub(crate) stages: Vec<Meeting>,
    /// Leaves when it has so many; 0 is never.
    pub(crate) stop_at: usize,
}

impl SinkApplication for Screen {
    fn offered(&mut self, _now: Time, terms: &Terms, _feedback_size: Bytes) -> Option<Box<dyn Endpoint>> {
        (terms.scheme() == Some("metronome")).then(|| Box::new(Answerer::default()) as Box<dyn Endpoint>)
    }

    fn deliver(&mut self, _header: &Rtp, payload: &[u8]) {
        self.payloads.extend(payload.first_chunk().map(|number| u64::from_be_bytes(*number)));
    }

    fn batch_end(&mut self) {}

    fn observe(&mut self, _now: Time, _observation: &Observation) {}

    fn meeting(&mut self, _now: Time, stage: Meeting) {
        self.stages.push(stage);
    }

    fn tick(&mut self, _now: Time, _statistics: &SinkStatistics) -> ControlFlow<()> {
        let is_enough = self.stop_at > 0 && self.payloads.len() >= self.stop_at;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

pub(crate) fn sink_config(sender: SocketAddr) -> SinkConfig {
    SinkConfig { tick: Duration::from_millis(10), ..SinkConfig::new(sender, 0x0102_0304) }
}

/// Runs a viewer to its end.
pub(crate) fn run_sink(config: &SinkConfig, mut screen: Screen) -> (Ending, Screen, SinkStatistics) {
    let (ending, statistics) = Sink::new(config).expect("a socket").run(&mut screen).expect("the socket works");
    (ending, screen, statistics)
}

/// A port that nobody uses at the moment.
pub(crate) fn free_port() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.local_addr().expect("it is bound").port()
}

/// What takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(20);
