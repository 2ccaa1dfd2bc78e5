//! `weir send file`: hashes, describes, and sends until the time is up or enough receivers have everything.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use weir_net::Interface;
use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::receipts::ReceiptDesk;
use weir_net::sender::{Payload, Sender, SenderApplication, SenderConfig, SenderStatistics};
use weir_object::carousel::{Carousel, CarouselOptions};
use weir_object::source::SourceSet;
use weir_units::{Bytes, Time};
use weir_wire::alc::Content;
use weir_wire::receipt::Receipt;

use crate::args::SendFile;
use crate::events::{ReceiptReceived, Role, SenderEnd, SenderEvent, SenderProgress, SenderStart, Trouble};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::progress::{Display, PROGRESS_INTERVAL, Stdout, Style};
use crate::session::{self, Offer};

/// Runs the command.
pub(crate) fn file(args: &SendFile) -> Result<Exit, Failure> {
    let choice = session::interface_choice(args.iface.as_deref());
    let interface = Interface::choose(&choice, args.to.ip()).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let offer = session::offer(args, &interface)?;
    if args.describe {
        write_description(args, &offer.description)?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::install(|| {}).map_err(Failure::of(Exit::Internal, "cannot watch for Ctrl-C"))?;
    let clock = Clock::new();
    let started = clock.now();
    let desk = open_desk(&offer.description)?;
    let config = SenderConfig { interface: choice, capture: args.output.pcap.clone(), ..SenderConfig::default() };
    let endpoint = offer.description.sender_endpoint(session::random_stream("sender")?);
    let endpoint = endpoint.map_err(Failure::of(Exit::Usage, "cannot send"))?;
    let endpoint = endpoint.expect("an offer has congestion control");
    let sender =
        Sender::new(&offer.description, endpoint, &config).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let sources = SourceSet::collect(&args.paths, args.md5).map_err(Failure::of(Exit::Files, "cannot send"))?;
    write_description(args, &offer.description)?;

    let mut run = Run {
        display: Display::new(Style::of(&args.output)),
        interrupt,
        desk,
        wanted: args.receipts.map(u64::from),
        ends: args.duration.map(|duration| started + duration),
        started,
        shown: started,
        shown_bytes: 0,
        symbols_per_pass: 0,
        content_failure: Rc::default(),
        outcome: None,
    };
    for (path, reason) in sources.skipped() {
        run.trouble(started, format!("{} is not sent: {reason}", path.display()), None);
    }
    let start = start_event(args, &offer, &interface, &sources)?;
    run.show(&SenderEvent::Start(start));
    let carousel = carousel(&offer, sources, args.memory, &clock)?;
    run.symbols_per_pass = carousel.stats().symbols_per_cycle;
    let mut content = CarouselPayload { carousel, failure: Rc::clone(&run.content_failure) };
    let statistics = sender.run(&mut content, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics))
}

fn open_desk(description: &Description) -> Result<Option<ReceiptDesk>, Failure> {
    let Some(receipt) = &description.receipt else { return Ok(None) };
    let desk = ReceiptDesk::open(receipt.address, receipt.key, description.tsi).map_err(|error| {
        let port = receipt.address.port();
        let advice =
            "receipts come to the port after the session's: another session may have it; choose another port with --to";
        Failure::new(Exit::Network, format!("cannot take receipts on port {port}: {error}\n{advice}"))
    })?;
    Ok(Some(desk))
}

fn write_description(args: &SendFile, description: &Description) -> Result<(), Failure> {
    let path = &args.session;
    // Written beside and renamed, so that a receiver never reads half of it.
    let beside = path.with_extension("sdp.new");
    std::fs::write(&beside, description.to_string())
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(Failure::of(Exit::Files, format!("cannot write the session description {}", path.display())))
}

fn start_event(
    args: &SendFile,
    offer: &Offer,
    interface: &Interface,
    sources: &SourceSet,
) -> Result<SenderStart, Failure> {
    let control = offer.description.control.as_ref().expect("an offer has congestion control");
    let levels = control.levels().map_err(Failure::of(Exit::Usage, "cannot send"))?;
    Ok(SenderStart {
        role: Role::Sender,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: offer.description.name.clone(),
        tsi: u64::from(offer.description.tsi),
        scheme: control.scheme.clone(),
        rates_bps: levels.iter().map(|rate| rate.bps()).collect(),
        address: args.to.to_string(),
        interface: Some(interface.name.clone()),
        files: sources.files().len() as u64,
        bytes: sources.bytes(),
        description: args.session.display().to_string(),
        receipts_wanted: args.receipts.map(u64::from),
    })
}

fn carousel(offer: &Offer, sources: SourceSet, memory: Bytes, clock: &Clock) -> Result<Carousel, Failure> {
    let control = offer.description.control.as_ref().expect("an offer has congestion control");
    let options = CarouselOptions {
        tsi: offer.description.tsi,
        symbol_size: offer.symbol_size,
        base_channel: control.has_base_channel(),
        channel_rates: control.channel_rates().map_err(Failure::of(Exit::Usage, "cannot send"))?,
        memory_limit: memory.count(),
        flute_version: offer.description.flute_version,
        expires: expires(clock),
        key: Some(offer.secret.clone()),
        ..CarouselOptions::default()
    };
    Carousel::new(sources, &options).map_err(Failure::of(Exit::Files, "cannot send"))
}

/// The file delivery table is good for a day after the start, or as long as its 32 bits of seconds go.
fn expires(clock: &Clock) -> u32 {
    let ntp_secs = clock.ntp_micros(clock.now()) / 1_000_000;
    u32::try_from(ntp_secs + TABLE_LIFETIME.as_secs()).unwrap_or(u32::MAX)
}

/// The carousel as the driver asks for it; what stops it is left where the application looks.
struct CarouselPayload {
    carousel: Carousel,
    failure: Rc<RefCell<Option<String>>>,
}

impl Payload for CarouselPayload {
    fn next(&mut self, channel: u16) -> Option<(Content, &[u8])> {
        if let Some(failure) = self.carousel.failure() {
            *self.failure.borrow_mut() = Some(failure.to_string());
        }
        self.carousel.next(channel)
    }
}

/// A running sender, as its user sees it.
struct Run {
    display: Display,
    interrupt: Interrupt,
    desk: Option<ReceiptDesk>,
    wanted: Option<u64>,
    ends: Option<Time>,
    started: Time,
    shown: Time,
    shown_bytes: u64,
    symbols_per_pass: u64,
    content_failure: Rc<RefCell<Option<String>>>,
    outcome: Option<Exit>,
}

impl SenderApplication for Run {
    fn tick(&mut self, now: Time, statistics: &SenderStatistics) -> ControlFlow<()> {
        self.take_receipts(now);
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if self.outcome.is_none() {
            self.outcome = self.reason_to_stop(now);
        }
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Run {
    fn reason_to_stop(&mut self, now: Time) -> Option<Exit> {
        let failure = self.content_failure.borrow_mut().take();
        if let Some(message) = failure {
            self.trouble(now, message, Some(Exit::Files));
            return Some(Exit::Files);
        }
        let has_receipts = self.wanted.is_some_and(|wanted| self.receipts() >= wanted);
        let is_over = self.ends.is_some_and(|ends| now >= ends);
        if has_receipts {
            Some(Exit::Done)
        } else if is_over {
            Some(if self.wanted.is_some() { Exit::Receipts } else { Exit::Done })
        } else if self.interrupt.is_set() {
            // Without a reason to end of its own, a sender is ended so.
            Some(if self.wanted.is_some() || self.ends.is_some() { Exit::Interrupted } else { Exit::Done })
        } else {
            None
        }
    }

    fn receipts(&self) -> u64 {
        self.desk.as_ref().map_or(0, ReceiptDesk::receivers)
    }

    fn take_receipts(&mut self, now: Time) {
        let Some(desk) = &mut self.desk else { return };
        let mut new: Vec<(Receipt, SocketAddr)> = Vec::new();
        let before = desk.receivers();
        let outcome = desk.serve(|receipt, from| new.push((*receipt, from)));
        for (receipts, (receipt, from)) in (before + 1..).zip(new) {
            let event = ReceiptReceived {
                t_s: self.t_s(now),
                from: from.to_string(),
                receiver: format!("{:016x}", receipt.receiver),
                received_bytes: receipt.received_bytes,
                seconds: receipt.elapsed_millis as f64 / 1e3,
                receipts,
            };
            self.show(&SenderEvent::Receipt(event));
        }
        if let Err(error) = outcome {
            self.trouble(now, format!("cannot take receipts: {error}"), None);
            self.desk = None;
        }
    }

    fn progress(&mut self, now: Time, statistics: &SenderStatistics) {
        let sent_bytes = statistics.total.bytes.count();
        let rate = weir_units::Bytes::new(sent_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let event = SenderProgress {
            t_s: self.t_s(now),
            sent_bytes,
            sent_packets: statistics.total.packets,
            rate_bps: rate.bps(),
            receipts: self.receipts(),
            passes: self.passes(statistics),
        };
        self.show(&SenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &SenderStatistics) -> Exit {
        let exit = self.outcome.unwrap_or(Exit::Internal);
        let event = SenderEnd {
            t_s: self.t_s(now),
            seconds: self.t_s(now),
            sent_bytes: statistics.total.bytes.count(),
            sent_packets: statistics.total.packets,
            passes: self.passes(statistics),
            receipts: self.receipts(),
            exit_code: exit.code(),
        };
        self.show(&SenderEvent::End(event));
        exit
    }

    fn passes(&self, statistics: &SenderStatistics) -> f64 {
        statistics.total.packets as f64 / self.symbols_per_pass.max(1) as f64
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&SenderEvent::Error(event));
    }

    /// Nobody left to read what this prints is no reason to send on for ever, nor a failure.
    fn show(&mut self, event: &SenderEvent) {
        if self.display.sender(event) == Stdout::Closed && self.outcome.is_none() {
            self.outcome = Some(Exit::Done);
        }
    }
}

const TABLE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
