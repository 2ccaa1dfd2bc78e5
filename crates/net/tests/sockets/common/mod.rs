//! A pair of endpoints without any protocol, and what else the tests of the host share.

pub(crate) mod script;
pub(crate) mod stranger;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet};
use weir_net::description::{Control, Description, Sealing};
use weir_net::host::{Application, Delivery, Host, Progress, Statistics, TenantConfig};
use weir_net::session::{self, SessionConfig};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::alc::Content;
use weir_wire::fec::PayloadId;
use weir_wire::{CciForm, Layered};

/// Sends a burst on each channel every few milliseconds, a given number of times, and is then silent.
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

    /// It begins when a receiver of this session has joined.
    pub(crate) fn after_a_join(self, description: &Description) -> Beacon {
        Beacon { session: description.channels[0].port(), ..self }
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
        Some(Action::send_fresh(Destination::Channel(ChannelId(layered.channel)), packet))
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
            Event::Packet { .. } => self.actions.push_back(Action::Deliver { number: None }),
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

/// A sender's application: its symbols say where they belong, by channel and a number that counts up on each channel.
#[derive(Debug)]
pub(crate) struct Counting {
    symbol: Vec<u8>,
    next: BTreeMap<u16, u32>,
    /// It ends after so long at the latest.
    most: Duration,
    /// It ends when nothing has been sent for so long, after something was.
    quiet: Duration,
    start: Option<Time>,
    last: (u64, Time),
}

impl Counting {
    /// Symbols of 1000 bytes, until none was sent for a while, or for `most`.
    pub(crate) fn within(most: Duration) -> Counting {
        let quiet = Duration::from_millis(300);
        Counting { symbol: vec![0x5a; 1_000], next: BTreeMap::new(), most, quiet, start: None, last: (0, Time::ZERO) }
    }

    /// Symbols of 1000 bytes, for so long.
    pub(crate) fn for_all_of(span: Duration) -> Counting {
        Counting { quiet: Duration::MAX, ..Counting::within(span) }
    }
}

impl Application<Content> for Counting {
    fn payload(&mut self, _now: Time, channel: Option<ChannelId>) -> Option<(Content, &[u8])> {
        let ChannelId(channel) = channel.expect("a sender of a session sends data to channels only");
        let number = self.next.entry(channel).or_default();
        self.symbol[..2].copy_from_slice(&channel.to_be_bytes());
        self.symbol[2..6].copy_from_slice(&number.to_be_bytes());
        let payload_id = PayloadId { block: u32::from(channel), symbol: *number };
        *number += 1;
        Some((
            Content { toi: 1, encoding_id: weir_wire::fec::RAPTORQ, payload_id, fdt: None, oti: None, ask: None },
            &self.symbol,
        ))
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        let packets = statistics.sent.packets;
        if packets != self.last.0 {
            self.last = (packets, now);
        }
        let is_quiet = packets > 0 && now.since(self.last.1) > self.quiet;
        if is_quiet || now.since(start) >= self.most { Progress::Stop } else { Progress::Continue }
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

impl Application<Content> for Ledger {
    fn deliver(&mut self, _now: Time, delivery: Delivery<'_, Content>) {
        self.quiet_ticks = 0;
        let Delivery { label: content, payload: symbol, .. } = delivery;
        let channel = u16::from_be_bytes(symbol[..2].try_into().expect("two bytes"));
        let number = u32::from_be_bytes(symbol[2..6].try_into().expect("four bytes"));
        self.wrong += u32::from(content.payload_id != PayloadId { block: u32::from(channel), symbol: number });
        *self.seen.entry((channel, number)).or_default() += 1;
    }

    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        note_joined(self.session);
        self.quiet_ticks += 1;
        // A closing packet is followed by two more rounds of them.
        let silence = if self.is_closed { AFTER_CLOSE_TICKS } else { self.silence };
        if self.quiet_ticks > silence { Progress::Stop } else { Progress::Continue }
    }

    fn problem(&mut self, _now: Time, problem: &NetError) {
        self.problems.push(problem.to_string());
    }

    fn closed(&mut self, _now: Time, _session: usize) {
        self.is_closed = true;
        self.quiet_ticks = 0;
    }
}

const AFTER_CLOSE_TICKS: u32 = 20;
const SILENCE_TICKS: u32 = 200;

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
    // Below the ports of traceroute, of which tshark notes what they are, and below those that the kernel gives.
    let port = 20_000 + (process % 120) as u16 * 100 + number;
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
        epoch: None,
        expires: None,
        control_address: None,
        receipt_key: None,
        priority: None,
        sessions: None,
        sealing: Sealing::default(),
        media: None,
    }
}

pub(crate) fn loopback() -> InterfaceChoice {
    InterfaceChoice::Name("lo".to_owned())
}

/// On the loopback, with a short tick.
pub(crate) fn config() -> SessionConfig {
    SessionConfig { interface: loopback(), tenant: tenant_config(), ..SessionConfig::default() }
}

/// A short tick.
pub(crate) fn tenant_config() -> TenantConfig {
    TenantConfig { tick: Duration::from_millis(10), ..TenantConfig::default() }
}

/// Runs a beacon in a thread of its own, once a receiver has joined.
pub(crate) fn send(
    description: &Description,
    beacon: Beacon,
    config: &SessionConfig,
) -> thread::JoinHandle<Statistics> {
    let tenant = session::sender(description, Box::new(beacon.after_a_join(description)), config).expect("a sender");
    let mut counting = Counting::within(Duration::from_secs(20));
    thread::spawn(move || Host::run_one(tenant, &mut counting).expect("it runs"))
}

/// Receives `channels` until a while after the closing packets, or after silence.
pub(crate) fn receive(
    description: &Description,
    channels: impl IntoIterator<Item = u16>,
    config: &SessionConfig,
) -> (Ledger, Statistics) {
    let taker = Box::new(Taker::new(channels));
    let tenant = session::receiver(description, Some(taker), config).expect("a receiver");
    let mut ledger = Ledger::new(description);
    let statistics = Host::run_one(tenant, &mut ledger).expect("it runs");
    (ledger, statistics)
}
