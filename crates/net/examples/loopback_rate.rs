//! How fast the drivers are: a sender and receivers, each a process, over the loopback, with nothing to do for the content.
//!
//! `cargo run --release -p weir-net --example loopback_rate -- [RATE] [RECEIVERS] [SECONDS] [all|avmrc] [INTERFACE]`
//!
//! `RATE` is that of the highest level (5G), `all` has receivers join every channel at once (the default), `avmrc` lets
//! congestion control run; `INTERFACE` is `lo` by default. Prints Gbit/s on the network, and CPU seconds for each gigabyte,
//! of the sender and of each receiver.

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use weir_core::layers::Ladder;
use weir_core::{Action, ChannelId, Endpoint, Event, Observation};
use weir_net::description::{Control, Description};
use weir_net::receiver::{Application, Receiver, ReceiverConfig};
use weir_net::sender::{Payload, Sender, SenderApplication, SenderConfig, SenderStatistics};
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
        receipt: None,
        probe: None,
    })
}

fn send(description: &Description, seconds: u64) -> Result<(), Box<dyn Error>> {
    let endpoint =
        description.sender_endpoint(Random::new(1, "sender"))?.ok_or("the session has congestion control")?;
    let config = SenderConfig { interface: interface(), ..SenderConfig::default() };
    let sender = Sender::new(description, endpoint, &config)?;
    println!("sender on {}, {:?}", sender.interface(), sender.capabilities());
    let cpu = cpu_secs();
    let mut stop = Stop { start: None, after: Duration::from_secs(seconds) };
    let statistics = sender.run(&mut Same(vec![0x5a; SYMBOL], 0), &mut stop)?;
    let cpu = cpu_secs() - cpu;
    let SenderStatistics { total, batches, queue_full, refused, late_deadlines, worst_lateness, .. } = statistics;
    report("sender", total.bytes, seconds as f64, cpu);
    println!(
        "  {} packets in {batches} batches, queue full {queue_full}, refused {refused}, \
         late {late_deadlines} (worst {worst_lateness:?})",
        total.packets
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
    let config = ReceiverConfig { interface: interface(), ..ReceiverConfig::default() };
    let receiver = Receiver::new(description, Some(endpoint), &config)?;
    let capabilities = receiver.capabilities();
    let mut sink = Sink { quiet: 0, patience: 5 + seconds / 10, symbols: 0, batches: 0, level: 0 };
    let cpu = cpu_secs();
    let statistics = receiver.run(&mut sink)?;
    let cpu = cpu_secs() - cpu;
    report(&format!("receiver {number}"), statistics.bytes, seconds as f64, cpu);
    println!("  {statistics:?}, {} batches, level {}, buffer {}", sink.batches, sink.level, capabilities.buffer);
    Ok(())
}

fn report(who: &str, bytes: Bytes, seconds: f64, cpu: f64) {
    let gigabytes = bytes.count() as f64 / 1e9;
    println!("{who}: {:.2} Gbit/s, {:.3} CPU-s/GB ({cpu:.2} s)", gigabytes * 8.0 / seconds, cpu / gigabytes);
}

fn interface() -> InterfaceChoice {
    InterfaceChoice::Name(std::env::args().nth(5).unwrap_or_else(|| "lo".to_owned()))
}

/// CPU time of this process, user and system.
fn cpu_secs() -> f64 {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has it");
    used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9
}

/// Always the same symbol under a new number.
struct Same(Vec<u8>, u32);

impl Payload for Same {
    fn next(&mut self, _channel: u16) -> Option<(Content, &[u8])> {
        self.1 = (self.1 + 1) & 0x00ff_ffff;
        let payload_id = PayloadId { block: 0, symbol: self.1 };
        Some((Content { toi: 1, encoding_id: RAPTORQ, payload_id, fdt: None, oti: None }, &self.0))
    }
}

struct Stop {
    start: Option<Time>,
    after: Duration,
}

impl SenderApplication for Stop {
    fn tick(&mut self, now: Time, _statistics: &SenderStatistics) -> ControlFlow<()> {
        let start = *self.start.get_or_insert(now);
        if now.since(start) < self.after { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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

impl Application for Sink {
    fn deliver(&mut self, _content: &Content, _symbol: &[u8]) {
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

    fn tick(&mut self, _now: Time) -> ControlFlow<()> {
        self.quiet += 1;
        if self.quiet < self.patience { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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

/// Set in the processes that receive.
const CHILD: &str = "WEIR_LOOPBACK_RATE_RECEIVER";
const SYMBOL: usize = 1_400;
