//! `weir send file`: hashes, describes, and sends until the time is up or enough receivers have everything.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use weir_core::ChannelId;
use weir_core::Observation;
use weir_core::observation::CeilingCause;
use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::host::{Application, Host, Progress, Statistics};
use weir_net::receipts::ReceiptBook;
use weir_net::session::SessionConfig;
use weir_net::{Interface, LinkSpeed, NetError};
use weir_object::carousel::{Carousel, CarouselOptions};
use weir_object::source::SourceSet;
use weir_units::{Bytes, Rate, Time};
use weir_wire::alc::Content;

use crate::args::SendFile;
use crate::events::{ReceiptReceived, Role, SenderEnd, SenderEvent, SenderProgress, SenderStart, Top, Trouble};
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::session::{self, Offer};

/// Sends files and folders, over and over, until the time is up or enough receivers have them.
pub fn files(args: &SendFile, observer: &mut dyn Observer<SenderEvent>) -> Result<Exit, Failure> {
    let choice = session::interface_choice(args.iface.as_deref());
    let interface = Interface::choose(&choice, args.to.ip()).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let offer = session::offer(args, &interface)?;
    if args.describe {
        write_description(args, &offer.description)?;
        return Ok(Exit::Done);
    }
    let clock = Clock::new();
    let started = clock.now();
    let config = SessionConfig { interface: choice, capture: args.output.pcap.clone(), ..SessionConfig::default() };
    let endpoint = offer.description.sender_endpoint(session::random_stream("sender")?);
    let endpoint = endpoint.map_err(Failure::of(Exit::Usage, "cannot send"))?;
    let endpoint = endpoint.expect("an offer has congestion control");
    let tenant = weir_net::session::sender(&offer.description, endpoint, &config).map_err(|error| refused(&error))?;
    let sources = SourceSet::collect(&args.paths, args.md5).map_err(Failure::of(Exit::Files, "cannot send"))?;
    let had_other_rates = has_other_rates(&args.session, &offer.description);
    write_description(args, &offer.description)?;

    let mut report = Report { observer, started, is_unheard: false };
    for (path, reason) in sources.skipped() {
        report.trouble(started, format!("{} is not sent: {reason}", path.display()), None);
    }
    let start = start_event(args, &offer, &interface, &sources)?;
    report.show(&SenderEvent::Start(start));
    if had_other_rates {
        let path = args.session.display();
        let message = format!(
            "{path} described this session with other rates until now: give receivers that have it the new one, or send with \
             the --rates of then"
        );
        report.trouble(started, message, None);
    }
    if let Some(trouble) = &offer.epoch_trouble {
        report.trouble(started, trouble.clone(), None);
    }
    let carousel = carousel(&offer, sources, args.memory, &clock)?;
    let mut run = FileSender {
        report,
        receipts: offer.description.receipt_key.map(|key| ReceiptBook::new(key, offer.description.tsi)),
        wanted: args.receipts.map(u64::from),
        ends: args.duration.map(|duration| started + duration),
        clock,
        renews: started + TABLE_LIFETIME / 2,
        shown: started,
        shown_bytes: 0,
        symbols_per_pass: carousel.stats().symbols_per_cycle,
        carousel,
        outcome: None,
    };
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics))
}

/// Why the sockets cannot be had.
fn refused(error: &NetError) -> Failure {
    let advice = match error {
        NetError::Socket { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            "\nreceipts and round-trip probes come to the port after the session's: another session may have it; choose \
             another port with --to"
        }
        _ => "",
    };
    Failure::new(Exit::Network, format!("cannot send: {error}{advice}"))
}

fn write_description(args: &SendFile, description: &Description) -> Result<(), Failure> {
    let path = &args.session;
    // Written to a file next to it and renamed, so that a receiver never reads half of it.
    let new = path.with_extension("sdp.new");
    std::fs::write(&new, description.to_string())
        .and_then(|()| std::fs::rename(&new, path))
        .map_err(Failure::of(Exit::Files, format!("cannot write the session description {}", path.display())))
}

/// Whether receivers may have been told other rates of this session: its description was there before, and has them.
fn has_other_rates(path: &Path, new: &Description) -> bool {
    let old = std::fs::read_to_string(path).ok().and_then(|text| text.parse::<Description>().ok());
    let ladder = |description: &Description| description.control.as_ref().map(|control| control.ladder.clone());
    old.is_some_and(|old| old.tsi == new.tsi && old.public_key == new.public_key && ladder(&old) != ladder(new))
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
        top: top(args, offer.speed),
        address: args.to.to_string(),
        interface: Some(interface.name.clone()),
        interface_speed_bps: stated(offer.speed).map(Rate::bps),
        files: sources.files().len() as u64,
        bytes: sources.bytes(),
        description: args.session.display().to_string(),
        receipts_wanted: args.receipts.map(u64::from),
    })
}

/// Where the highest rate is from.
fn top(args: &SendFile, speed: LinkSpeed) -> Top {
    match speed {
        _ if args.rates.has_top() => Top::Asked,
        LinkSpeed::Stated(_) => Top::Interface,
        LinkSpeed::Virtual => Top::Virtual,
        LinkSpeed::Unknown => Top::Unknown,
    }
}

fn stated(speed: LinkSpeed) -> Option<Rate> {
    match speed {
        LinkSpeed::Stated(speed) => Some(speed),
        LinkSpeed::Virtual | LinkSpeed::Unknown => None,
    }
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
        epoch: offer.epoch,
        expires: expires(clock, clock.now()),
        key: Some(offer.secret.clone()),
        ..CarouselOptions::default()
    };
    Carousel::new(sources, &options).map_err(Failure::of(Exit::Files, "cannot send"))
}

/// The file delivery table is good for so long from `now` on, in seconds of the NTP era, which wrap.
fn expires(clock: &Clock, now: Time) -> u32 {
    (clock.ntp_micros(now) / 1_000_000 + TABLE_LIFETIME.as_secs()) as u32
}

/// What to tell of a network that sends to receivers what they did not ask for.
fn ceiling(rate: Rate, cause: CeilingCause) -> String {
    match cause {
        CeilingCause::Flooded => format!(
            "a receiver's path is full whatever it leaves: where a switch sends every channel to every port, the slowest port decides. No more than {rate} \
             is sent from here on. Turn on IGMP snooping (for IPv6 MLD snooping) and an IGMP querier on the switch, or send with a lower --rates"
        ),
        CeilingCause::Futile => {
            format!("the path is as full as before, so it is other traffic that fills it: up to {rate} is sent again")
        }
        _ => format!("up to {rate} is sent, to see whether the network still floods"),
    }
}

/// What the observer is told.
struct Report<'a> {
    observer: &'a mut dyn Observer<SenderEvent>,
    started: Time,
    /// The observer wants no more.
    is_unheard: bool,
}

impl Report<'_> {
    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&SenderEvent::Error(event));
    }

    fn show(&mut self, event: &SenderEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}

/// A running sender.
struct FileSender<'a> {
    report: Report<'a>,
    carousel: Carousel,
    receipts: Option<ReceiptBook>,
    wanted: Option<u64>,
    ends: Option<Time>,
    clock: Clock,
    /// When the table is signed again, long before it expires.
    renews: Time,
    shown: Time,
    shown_bytes: u64,
    symbols_per_pass: u64,
    outcome: Option<Exit>,
}

impl Application<Content> for FileSender<'_> {
    fn payload(&mut self, _now: Time, channel: Option<ChannelId>) -> Option<(Content, &[u8])> {
        self.carousel.next(channel?.0)
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        if let Observation::Ceiling { rate, cause } = observation {
            self.report.trouble(now, ceiling(*rate, *cause), None);
        }
    }

    fn message(&mut self, now: Time, from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        let book = self.receipts.as_mut()?;
        let before = book.receivers();
        let mut new = None;
        let answer = book.on_message(message, |receipt| new = Some(*receipt));
        if let Some(receipt) = new {
            let event = ReceiptReceived {
                t_s: self.report.t_s(now),
                from: from.to_string(),
                receiver: format!("{:016x}", receipt.receiver),
                received_bytes: receipt.received_bytes,
                seconds: receipt.elapsed_millis as f64 / 1e3,
                receipts: before + 1,
            };
            self.report.show(&SenderEvent::Receipt(event));
        }
        answer.map(|answer| answer.to_vec())
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if now >= self.renews {
            self.renews = now + TABLE_LIFETIME / 2;
            self.carousel.renew(expires(&self.clock, now));
        }
        if self.outcome.is_none() {
            self.outcome = self.reason_to_stop(now);
        }
        if self.outcome.is_some() { Progress::Stop } else { Progress::Continue }
    }
}

impl FileSender<'_> {
    fn reason_to_stop(&mut self, now: Time) -> Option<Exit> {
        if let Some(failure) = self.carousel.failure() {
            let message = failure.to_string();
            self.report.trouble(now, message, Some(Exit::Files));
            return Some(Exit::Files);
        }
        let has_receipts = self.wanted.is_some_and(|wanted| self.receivers() >= wanted);
        let is_over = self.ends.is_some_and(|ends| now >= ends);
        if has_receipts {
            Some(Exit::Done)
        } else if is_over {
            Some(if self.wanted.is_some() { Exit::Receipts } else { Exit::Done })
        } else if self.report.observer.is_interrupted() {
            // Without a reason to end of its own, a sender is ended so.
            Some(if self.wanted.is_some() || self.ends.is_some() { Exit::Interrupted } else { Exit::Done })
        } else if self.report.is_unheard {
            Some(Exit::Done)
        } else {
            None
        }
    }

    /// Receivers that have everything.
    fn receivers(&self) -> u64 {
        self.receipts.as_ref().map_or(0, ReceiptBook::receivers)
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let sent_bytes = statistics.sent.bytes.count();
        let rate = Bytes::new(sent_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let event = SenderProgress {
            t_s: self.report.t_s(now),
            sent_bytes,
            sent_packets: statistics.sent.packets,
            rate_bps: rate.bps(),
            receipts: self.receivers(),
            passes: self.passes(statistics),
        };
        self.report.show(&SenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        let exit = self.outcome.unwrap_or(Exit::Internal);
        let event = SenderEnd {
            t_s: self.report.t_s(now),
            seconds: self.report.t_s(now),
            sent_bytes: statistics.sent.bytes.count(),
            sent_packets: statistics.sent.packets,
            passes: self.passes(statistics),
            receipts: self.receivers(),
            exit_code: exit.code(),
        };
        self.report.show(&SenderEvent::End(event));
        exit
    }

    fn passes(&self, statistics: &Statistics) -> f64 {
        statistics.sent.packets as f64 / self.symbols_per_pass.max(1) as f64
    }
}

/// How long a table is good for. Clocks that differ by less do no harm; who plays a session again has no longer, before
/// receivers that have heard of no later one.
const TABLE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
