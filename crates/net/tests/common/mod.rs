//! A pair of endpoints without any protocol, and what else the tests of the drivers share.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Observation, Packet};
use weir_net::description::{Control, Description};
use weir_net::receiver::{Application, Receiver, ReceiverConfig, ReceiverStatistics};
use weir_net::sender::{Payload, Sender, SenderApplication, SenderConfig, SenderStatistics};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::alc::Content;
use weir_wire::fec::PayloadId;
use weir_wire::{CciForm, Layered};

/// Sends a burst on each channel every few milliseconds, so many times, and is then silent.
#[derive(Debug)]
pub(crate) struct Beacon {
    pub(crate) channels: u16,
    pub(crate) burst: u32,
    pub(crate) rounds: u32,
    round: u32,
    next: Option<Time>,
    queue: VecDeque<Layered>,
    /// It begins when a receiver of this session has joined.
    session: u16,
}

impl Beacon {
    pub(crate) fn new(channels: u16, burst: u32, rounds: u32) -> Beacon {
        Beacon { channels, burst, rounds, round: 0, next: None, queue: VecDeque::new(), session: 0 }
    }
}

/// The sessions, by their ports, that a receiver has joined.
static JOINED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A receiver of the session on `port` has joined.
pub(crate) fn note_joined(port: u16) {
    JOINED.lock().expect("nobody panics with it").insert(port);
}

/// Whether a receiver of the session on `port` has joined.
pub(crate) fn is_joined(port: u16) -> bool {
    JOINED.lock().expect("nobody panics with it").contains(&port)
}

impl Endpoint for Beacon {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => self.next = Some(now),
            Event::Deadline if self.session != 0 && !is_joined(self.session) => {
                self.next = Some(now + Duration::from_millis(5));
            }
            Event::Deadline if self.next.is_some_and(|next| next <= now) => {
                for channel in 0..self.channels {
                    for sequence in self.round * self.burst..(self.round + 1) * self.burst {
                        self.queue.push_back(Layered { channel, sequence, ..Layered::default() });
                    }
                }
                self.round += 1;
                self.next = (self.round < self.rounds).then_some(now + Duration::from_millis(5));
            }
            Event::Finish => self.next = None,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        let layered = self.queue.pop_front()?;
        let packet = Packet { header: Header::Layered(layered), size: Bytes::new(1_000), ecn: Ecn::NotEct };
        Some(Action::Send { to: Destination::Channel(ChannelId(layered.channel)), packet })
    }

    fn deadline(&self) -> Option<Time> {
        self.next
    }
}

/// Joins some channels at the start, takes everything, leaves at the end.
#[derive(Debug)]
pub(crate) struct Taker {
    actions: VecDeque<Action>,
    channels: Vec<u16>,
}

impl Taker {
    pub(crate) fn new(channels: impl IntoIterator<Item = u16>) -> Taker {
        Taker { actions: VecDeque::new(), channels: channels.into_iter().collect() }
    }
}

impl Endpoint for Taker {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        let channels = self.channels.iter().map(|channel| ChannelId(*channel));
        match event {
            Event::Start => self.actions.extend(channels.map(Action::Join)),
            Event::Finish => self.actions.extend(channels.map(Action::Leave)),
            Event::Packet { .. } => self.actions.push_back(Action::Deliver),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Symbols that say where they belong: channel, then a number that counts up on each channel.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) symbol: Vec<u8>,
    next: BTreeMap<u16, u32>,
}

impl Counting {
    pub(crate) fn new(symbol_size: usize) -> Counting {
        Counting { symbol: vec![0x5a; symbol_size], next: BTreeMap::new() }
    }
}

impl Payload for Counting {
    fn next(&mut self, channel: u16) -> Option<(Content, &[u8])> {
        let number = self.next.entry(channel).or_default();
        self.symbol[..2].copy_from_slice(&channel.to_be_bytes());
        self.symbol[2..6].copy_from_slice(&number.to_be_bytes());
        let payload_id = PayloadId { block: u32::from(channel), symbol: *number };
        *number += 1;
        Some((Content { toi: 1, encoding_id: weir_wire::fec::RAPTORQ, payload_id, fdt: None, oti: None }, &self.symbol))
    }
}

/// Counts what was delivered, and stops a while after the last packet.
#[derive(Debug)]
pub(crate) struct Ledger {
    session: u16,
    /// How often each symbol came.
    pub(crate) seen: BTreeMap<(u16, u32), u32>,
    pub(crate) problems: Vec<String>,
    pub(crate) is_closed: bool,
    pub(crate) wrong: u32,
    quiet_ticks: u32,
    silence: u32,
}

impl Ledger {
    pub(crate) fn new(description: &Description) -> Ledger {
        let (session, silence) = (description.channels[0].port(), SILENCE_TICKS);
        Ledger {
            session,
            seen: BTreeMap::new(),
            problems: Vec::new(),
            is_closed: false,
            wrong: 0,
            quiet_ticks: 0,
            silence,
        }
    }

    /// The symbols of one channel, in order.
    pub(crate) fn of_channel(&self, channel: u16) -> Vec<u32> {
        self.seen.keys().filter(|(of, _)| *of == channel).map(|(_, number)| *number).collect()
    }
}

impl Application for Ledger {
    fn deliver(&mut self, content: &Content, symbol: &[u8]) {
        self.quiet_ticks = 0;
        let channel = u16::from_be_bytes(symbol[..2].try_into().expect("two bytes"));
        let number = u32::from_be_bytes(symbol[2..6].try_into().expect("four bytes"));
        self.wrong += u32::from(content.payload_id != PayloadId { block: u32::from(channel), symbol: number });
        *self.seen.entry((channel, number)).or_default() += 1;
    }

    fn batch_end(&mut self) {}

    fn observe(&mut self, _now: Time, _observation: &Observation) {}

    fn tick(&mut self, _now: Time) -> ControlFlow<()> {
        note_joined(self.session);
        self.quiet_ticks += 1;
        // A closing packet is followed by two more rounds of them.
        let silence = if self.is_closed { AFTER_CLOSE_TICKS } else { self.silence };
        if self.quiet_ticks > silence { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn problem(&mut self, _now: Time, problem: &NetError) {
        self.problems.push(problem.to_string());
    }

    fn closed(&mut self, _now: Time) {
        self.is_closed = true;
        self.quiet_ticks = 0;
    }
}

const AFTER_CLOSE_TICKS: u32 = 20;
const SILENCE_TICKS: u32 = 200;

/// Ends a sender when it has not sent for a while after it did, or after `most`.
pub(crate) struct Done {
    pub(crate) most: Duration,
    start: Option<Time>,
    last: (u64, Time),
}

impl Done {
    pub(crate) fn within(most: Duration) -> Done {
        Done { most, start: None, last: (0, Time::ZERO) }
    }
}

impl SenderApplication for Done {
    fn tick(&mut self, now: Time, statistics: &SenderStatistics) -> ControlFlow<()> {
        let start = *self.start.get_or_insert(now);
        let packets = statistics.total.packets;
        if packets != self.last.0 {
            self.last = (packets, now);
        }
        let is_done = packets > 0 && now.since(self.last.1) > Duration::from_millis(300);
        if is_done || now.since(start) >= self.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A session on groups and a port that no other test uses at the same time.
pub(crate) fn session(channels: u16, is_ipv4: bool) -> Description {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let [_, _, high, low] = process.to_be_bytes();
    let group: IpAddr = if is_ipv4 {
        Ipv4Addr::new(239, high, low, 1).into()
    } else {
        format!("ff12::{process:x}:{number:x}:0").replace("::", ":0:0:0:0:").parse().expect("a group")
    };
    let port = 20_000 + (process % 400) as u16 * 100 + number;
    let base = SocketAddr::new(group, port);
    let rates = (1..=u64::from(channels)).map(Rate::from_mbps).collect();
    Description {
        name: "test".to_owned(),
        tsi: number + 1,
        flute_version: 2,
        source: None,
        channels: Description::channels_from(base, usize::from(channels)).expect("groups enough"),
        ttl: 1,
        control: Some(Control {
            scheme: "none".to_owned(),
            settings: Vec::new(),
            ladder: Ladder::from_rates(rates).expect("they rise"),
            form: CciForm::Short,
            packet_size: Bytes::new(1_100),
        }),
        symbol_size: Some(1_400),
        public_key: None,
        receipt: None,
        probe: None,
    }
}

pub(crate) fn loopback() -> InterfaceChoice {
    InterfaceChoice::Name("lo".to_owned())
}

pub(crate) fn sender_config() -> SenderConfig {
    SenderConfig { interface: loopback(), tick: Duration::from_millis(10), ..SenderConfig::default() }
}

pub(crate) fn receiver_config() -> ReceiverConfig {
    ReceiverConfig { interface: loopback(), tick: Duration::from_millis(10), ..ReceiverConfig::default() }
}

/// Runs a beacon in a thread of its own, once a receiver has joined.
pub(crate) fn send(
    description: &Description,
    beacon: Beacon,
    config: &SenderConfig,
) -> thread::JoinHandle<SenderStatistics> {
    let beacon = Beacon { session: description.channels[0].port(), ..beacon };
    let sender = Sender::new(description, Box::new(beacon), config).expect("a sender");
    thread::spawn(move || {
        sender.run(&mut Counting::new(1_000), &mut Done::within(Duration::from_secs(20))).expect("it runs")
    })
}

/// Receives `channels` until a while after the closing packets, or after silence.
pub(crate) fn receive(
    description: &Description,
    channels: impl IntoIterator<Item = u16>,
    config: &ReceiverConfig,
) -> (Ledger, ReceiverStatistics) {
    let receiver = Receiver::new(description, Some(Box::new(Taker::new(channels))), config).expect("a receiver");
    let mut ledger = Ledger::new(description);
    let statistics = receiver.run(&mut ledger).expect("it runs");
    (ledger, statistics)
}
