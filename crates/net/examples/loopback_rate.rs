//! How fast the host is: a sender and receivers, each a process, over the loopback, with nothing to do for the content.
//!
//! `cargo run --release -p weir-net --example loopback_rate -- [RATE] [RECEIVERS] [SECONDS] [all|avmrc] [INTERFACE]`
//!
//! `RATE` is that of the highest level (5G), `all` has receivers join every channel at once (the default), `avmrc` lets
//! congestion control run; `INTERFACE` is `lo` by default. Prints Gbit/s on the network, and CPU seconds for each gigabyte,
//! of the sender and of each receiver.

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use weir_core::layers::Ladder;
use weir_core::{Action, ChannelId, Endpoint, Event, Observation};
use weir_net::description::{Control, Description, Sealing};
use weir_net::host::{Application, Delivery, Host, Progress, Statistics};
use weir_net::session::{self, SessionConfig};
use weir_net::{InterfaceChoice, NetError};
use weir_units::{Bytes, Random, Rate, Time};
use weir_wire::CciForm;
use weir_wire::alc::Content;
use weir_wire::fec::{PayloadId, RAPTORQ};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| arguments.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let rate: Rate = argument(0, "5G").parse()?;
    let receivers: usize = argument(1, "1").parse()?;
    let seconds: u64 = argument(2, "5").parse()?;
    let mode = argument(3, "all");
    let description = description(rate)?;
    if let Ok(number) = std::env::var(CHILD) {
        return receive(&description, seconds, &mode, &number);
    }
    let children: Vec<Child> = (0..receivers)
        .map(|number| {
            let this = std::env::current_exe()?;
            Command::new(this).args(&arguments).env(CHILD, number.to_string()).stdin(Stdio::null()).spawn()
        })
        .collect::<Result<_, _>>()?;
    std::thread::sleep(Duration::from_millis(200));
    send(&description, seconds)?;
    for mut child in children {
        child.wait()?;
    }
    Ok(())
}

fn description(rate: Rate) -> Result<Description, Box<dyn Error>> {
    let ladder = Ladder::geometric(Rate::from_mbps(1), rate, 1.5)?;
    let base: SocketAddr = "239.255.77.1:17700".parse()?;
    Ok(Description {
        name: "loopback rate".to_owned(),
        tsi: 1,
        flute_version: 2,
        source: None,
        channels: Description::channels_from(base, ladder.levels()).ok_or("too many channels")?,
        ttl: 1,
        control: Some(Control {
            scheme: "avmrc".to_owned(),
            settings: Vec::new(),
            ladder,
            form: CciForm::Clocked,
            packet_size: Bytes::new(SYMBOL as u64 + 28 + 28),
        }),
        symbol_size: Some(SYMBOL as u16),
        public_key: None,
        epoch: None,
        expires: None,
        control_address: None,
        receipt_key: None,
        priority: None,
        sessions: None,
        sealing: Sealing::default(),
        media: None,
    })
}

fn send(description: &Description, seconds: u64) -> Result<(), Box<dyn Error>> {
    let endpoint =
        description.sender_endpoint(Random::new(1, "sender"))?.ok_or("the session has congestion control")?;
    let sender = session::sender(description, endpoint, &config())?;
    println!("sender from {:?}", sender.local());
    let cpu = cpu_secs();
    let mut same = Same { symbol: vec![0x5a; SYMBOL], number: 0, start: None, span: Duration::from_secs(seconds) };
    let statistics = Host::run_one(sender, &mut same)?;
    let cpu = cpu_secs() - cpu;
    let Statistics { sent, batches, queue_full, refused, late_deadlines, worst_lateness, .. } = statistics;
    report("sender", sent.bytes, seconds as f64, cpu);
    println!(
        "  {} packets in {batches} batches, queue full {queue_full}, refused {refused}, \
         late {late_deadlines} (worst {worst_lateness:?})",
        sent.packets
    );
    Ok(())
}

fn receive(description: &Description, seconds: u64, mode: &str, number: &str) -> Result<(), Box<dyn Error>> {
    let endpoint: Box<dyn Endpoint> = match mode {
        "avmrc" => description
            .receiver_endpoint(Random::new(1, &format!("receiver {number}")))?
            .ok_or("the session has congestion control")?,
        _ => Box::new(All { actions: VecDeque::new(), channels: description.channels.len() as u16 }),
    };
    let receiver = session::receiver(description, Some(endpoint), &config())?;
    let capabilities = receiver.capabilities();
    let mut sink = Sink { quiet: 0, patience: 5 + seconds / 10, symbols: 0, batches: 0, level: 0 };
    let cpu = cpu_secs();
    let statistics = Host::run_one(receiver, &mut sink)?;
    let cpu = cpu_secs() - cpu;
    report(&format!("receiver {number}"), statistics.received.bytes, seconds as f64, cpu);
    println!("  {statistics:?}, {} batches, level {}, buffer {}", sink.batches, sink.level, capabilities.buffer);
    Ok(())
}

fn report(who: &str, bytes: Bytes, seconds: f64, cpu: f64) {
    let gigabytes = bytes.count() as f64 / 1e9;
    println!("{who}: {:.2} Gbit/s, {:.3} CPU-s/GB ({cpu:.2} s)", gigabytes * 8.0 / seconds, cpu / gigabytes);
}

fn config() -> SessionConfig {
    let interface = InterfaceChoice::Name(std::env::args().nth(5).unwrap_or_else(|| "lo".to_owned()));
    SessionConfig { interface, ..SessionConfig::default() }
}

/// CPU time of this process, user and system.
fn cpu_secs() -> f64 {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has it");
    used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9
}

/// Always the same symbol under a new number, for a while.
struct Same {
    symbol: Vec<u8>,
    number: u32,
    start: Option<Time>,
    span: Duration,
}

impl Application<Content> for Same {
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<(Content, &[u8])> {
        self.number = (self.number + 1) & 0x00ff_ffff;
        let payload_id = PayloadId { block: 0, symbol: self.number };
        Some((Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None, ask: None }, &self.symbol))
    }

    fn tick(&mut self, now: Time, _statistics: &Statistics) -> Progress {
        let start = *self.start.get_or_insert(now);
        if now.since(start) < self.span { Progress::Continue } else { Progress::Stop }
    }
}

/// Counts, and ends half a second after the last packet.
struct Sink {
    quiet: u64,
    patience: u64,
    symbols: u64,
    batches: u64,
    level: usize,
}

impl Application<Content> for Sink {
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, Content>) {
        self.quiet = 0;
        self.symbols += 1;
    }

    fn batch_end(&mut self) {
        self.batches += 1;
    }

    fn observe(&mut self, _now: Time, observation: &Observation) {
        if let Observation::Level { level, .. } = observation {
            self.level = self.level.max(*level);
        }
    }

    fn tick(&mut self, _now: Time, _statistics: &Statistics) -> Progress {
        self.quiet += 1;
        if self.quiet < self.patience { Progress::Continue } else { Progress::Stop }
    }

    fn problem(&mut self, _now: Time, problem: &NetError) {
        eprintln!("{problem}");
    }
}

/// Joins every channel.
#[derive(Debug)]
struct All {
    actions: VecDeque<Action>,
    channels: u16,
}

impl Endpoint for All {
    fn handle(&mut self, _now: Time, event: Event<'_>) {
        match event {
            Event::Start => self.actions.extend((0..self.channels).map(|channel| Action::Join(ChannelId(channel)))),
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

/// Set in the processes that receive.
const CHILD: &str = "WEIR_LOOPBACK_RATE_RECEIVER";
const SYMBOL: usize = 1_400;
