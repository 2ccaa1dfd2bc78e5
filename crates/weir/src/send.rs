//! `weir send file`: hashes, describes, and sends until the time is up or enough receivers have everything.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_core::ChannelId;
use weir_core::observation::{Audience, CeilingCause, Observation};
use weir_net::clock::{Clock, wall_ntp_secs};
use weir_net::description::Description;
use weir_net::groups;
use weir_net::host::{Application, Host, Progress, Statistics};
use weir_net::receipts::ReceiptBook;
use weir_net::session::SessionConfig;
use weir_net::{Interface, LinkSpeed, NetError};
use weir_object::carousel::{Carousel, CarouselOptions};
use weir_object::keys::PublicKey;
use weir_object::source::{SourceError, SourceSet};
use weir_units::{Bytes, Rate, Time};
use weir_wire::alc::Content;
use weir_wire::lack;

use crate::announce::{Announcing, Plan};
use crate::args::SendFile;
use crate::asks::Asks;
use crate::ceilings::Ceilings;
use crate::changes::Changes;
use crate::events::{
    Hashing, Reading, ReceiptReceived, Role, SenderEnd, SenderEvent, SenderProgress, SenderStart, Top, Trouble,
};
use crate::exit::{Exit, Failure};
use crate::hosts::{self, Expected, Sending};
use crate::observer::Observer;
use crate::openings::Openings;
use crate::progress::PROGRESS_INTERVAL;
use crate::remainder::{Made, Remainder};
use crate::sent::{self, Sent};
use crate::session::{self, Offer};
use crate::unsent::Unsent;
use crate::{key, left_out, sealing, standard};

/// Sends files and folders, over and over, until the time is up or enough receivers have them.
pub fn files(args: &SendFile, observer: &mut dyn Observer<SenderEvent>) -> Result<Exit, Failure> {
    let choice = session::interface_choice(args.iface.as_deref());
    let interface = Interface::choose(&choice, args.to.ip()).map_err(Failure::of(Exit::Network, "cannot send"))?;
    if args.describe && key::file(args.key.as_deref()).is_none() {
        let message = "cannot describe a session that nobody could send: its key would be made for this run alone; make one that lasts \
                       (weir key new), or name one (--key FILE)";
        return Err(Failure::new(Exit::Usage, message.to_owned()));
    }
    let offer = session::offer(args, &interface)?;
    if args.describe {
        write_description(args, &offer)?;
        return Ok(Exit::Done);
    }
    let plan = Plan::new(args, &offer, &interface)?;
    let clock = Clock::new();
    let started = clock.now();
    let config = SessionConfig { interface: choice, capture: args.output.pcap.clone(), ..SessionConfig::default() };
    let endpoint = offer.description.sender_endpoint(session::random_stream("sender")?);
    let endpoint = endpoint.map_err(Failure::of(Exit::Usage, "cannot send"))?;
    let endpoint = endpoint.expect("an offer has congestion control");
    let mut tenant =
        weir_net::session::sender(&offer.description, endpoint, &config).map_err(|error| refused(&error))?;
    sealing::seal(&mut tenant, &offer.description, &offer.secret)?;
    let expected = args.expect.as_deref().map(|path| hosts::read("--expect", path)).transpose()?.unwrap_or_default();
    let mut report = Report { observer, started, is_unheard: false };
    let input = read_standard_input(args, &clock, &mut report)?;
    let mut sources = collect(args, &input.paths, &clock, &mut report)?;
    let mut changes = args.changes.as_deref().map(|file| Changes::since(file, &mut sources)).transpose()?;
    if let Some(changes) = &changes {
        if sources.files().is_empty() {
            report.trouble(started, "nothing has changed since the last session, and nothing is sent".to_owned(), None);
            return Ok(Exit::Done);
        }
        if changes.unchanged > 0 {
            let message = format!("{} files are as in the last session and are not sent", changes.unchanged);
            report.trouble(started, message, None);
        }
    }
    let had_other_rates = has_other_rates(&args.session, &offer.description);
    write_description(args, &offer)?;

    for message in left_out::messages(sources.skipped()) {
        report.trouble(started, message, None);
    }
    for pattern in &sources.excluded().idle {
        report.trouble(started, format!("--exclude {pattern} matches nothing in the folders that are sent"), None);
    }
    let wanted = args.expect.as_ref().map(|_| expected.len() as u64).or(args.receipts.map(u64::from));
    let announced = plan.as_ref().map(|plan| plan.group.to_string());
    let start = SenderStart { announced, ..start_event(args, &offer, &interface, &sources, wanted)? };
    report.show(&SenderEvent::Start(start));
    if had_other_rates {
        let path = args.session.display();
        let message = format!(
            "{path} described this session with other rates until now: give receivers that have it the new one, or send with \
             the --rates of then"
        );
        report.trouble(started, message, None);
    }
    for trouble in offer.epoch_trouble.iter().cloned().chain(key::exposed(args.key.as_deref())) {
        report.trouble(started, trouble, None);
    }
    if args.source_specific && !groups::is_for_one_source(args.to.ip()) {
        report.trouble(started, beyond_one_source(args.to), None);
    }
    let sent = sent::account(args, &offer, &sources, |message| report.trouble(started, message, None))?;
    let skipped_cycles = sent.as_ref().map_or(0, Sent::before);
    let content = hosts::content(&sources);
    let bytes = sources.bytes();
    let options = options(&offer, args, skipped_cycles)?;
    let remainder = Remainder::new(sources.clone(), options.clone(), key::file(args.key.as_deref()));
    let carousel = Carousel::new(sources, &options).map_err(Failure::of(Exit::Files, "cannot send"))?;
    let skipped = Bytes::new(carousel.stats().skipped_bytes);
    if skipped >= WORTH_TELLING {
        let message =
            format!("{skipped} of zeros are not sent: Weir's receivers fill them in (others need --plain-flute)");
        report.trouble(started, message, None);
    }
    let announcing = plan.map(Plan::start).transpose();
    let announcing = announcing.map_err(Failure::of(Exit::Internal, "cannot announce the session"))?;
    let sending = Arc::new(Sending { content, edition: carousel.edition() });
    let mut run = FileSender {
        report,
        receipts: hosts::book(&offer, Arc::clone(&sending), &expected),
        asks: asks(&offer, bytes),
        offer: &offer,
        sets: vec![sending],
        remainder,
        wanted,
        expected,
        complete: (0, 0),
        duration: args.duration,
        begun: None,
        control_port: offer.description.control_address.map(|address| address.port()),
        shown: started,
        shown_bytes: 0,
        symbols_per_pass: carousel.stats().symbols_per_cycle,
        earlier: (0.0, 0),
        carousel,
        openings: Openings::new(&offer.channel_rates()?, Bytes::new(offer.symbol_size.into())),
        ceilings: Ceilings::default(),
        audience: None,
        sent,
        unsent: Unsent::new(interface, args.to.ip()),
        is_told_of_overflow: false,
        announcing,
        outcome: None,
    };
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let exit = run.end(clock.now(), &statistics);
    if let Some(changes) = changes.as_mut().filter(|_| run.outcome == Some(Exit::Done)) {
        changes.remember_without(run.remainder.left_out())?;
    }
    Ok(exit)
}

/// Reads standard input, if it is among the paths, and tells how far that is where it takes a while.
fn read_standard_input<'a>(
    args: &'a SendFile,
    clock: &Clock,
    report: &mut Report<'_>,
) -> Result<standard::Input<'a>, Failure> {
    let mut shown = report.started;
    standard::input(args, &mut |read_bytes| {
        let now = clock.now();
        if now.since(shown) >= PROGRESS_INTERVAL {
            shown = now;
            report.show(&SenderEvent::Reading(Reading { t_s: report.t_s(now), read_bytes }));
        }
        report.is_unheard || report.observer.is_interrupted()
    })
}

/// Finds and hashes what is to be sent, and tells how far that is where it takes a while.
fn collect(args: &SendFile, paths: &[PathBuf], clock: &Clock, report: &mut Report<'_>) -> Result<SourceSet, Failure> {
    let mut shown = report.started;
    let mut watch = |hashed_bytes, bytes| {
        let now = clock.now();
        if now.since(shown) >= PROGRESS_INTERVAL {
            shown = now;
            report.show(&SenderEvent::Hashing(Hashing { t_s: report.t_s(now), hashed_bytes, bytes }));
        }
        let is_over = report.is_unheard || report.observer.is_interrupted();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    SourceSet::collect_without(paths, &args.exclude, args.md5, &mut watch).map_err(|error| match error {
        SourceError::Stopped => Failure::new(Exit::Interrupted, error.to_string()),
        _ => Failure::new(Exit::Files, format!("cannot send: {error}")),
    })
}

/// What to tell of a source-specific session to groups of any source.
fn beyond_one_source(to: SocketAddr) -> String {
    format!(
        "{} is no group for source-specific multicast, which is 232.0.0.0/8 and [ff3x::]/32: hosts and routers with IGMPv2 may send \
         receivers what others send there, too",
        to.ip()
    )
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

fn write_description(args: &SendFile, offer: &Offer) -> Result<(), Failure> {
    session::write_description(&args.session, &offer.description, &offer.secret)
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
    receipts_wanted: Option<u64>,
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
        excluded: sources.excluded().count,
        description: args.session.display().to_string(),
        announced: None,
        receipts_wanted,
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

fn options(offer: &Offer, args: &SendFile, skipped_cycles: u64) -> Result<CarouselOptions, Failure> {
    let control = offer.description.control.as_ref().expect("an offer has congestion control");
    // Receivers of other makers know no bundles, and need what is zeros.
    let is_for_others = args.plain_flute || args.md5 || args.flute_version == 1;
    Ok(CarouselOptions {
        tsi: offer.description.tsi,
        symbol_size: offer.symbol_size,
        base_channel: control.has_base_channel(),
        channel_rates: offer.channel_rates()?,
        memory_limit: args.memory.count(),
        expected_loss: args.expected_loss,
        bundle: !is_for_others,
        skip_zeros: !is_for_others,
        flute_version: offer.description.flute_version,
        skipped_cycles,
        epoch: offer.description.epoch.expect("a start has an epoch"),
        expires: expires(date()),
        key: Some(offer.secret.clone()),
        ..CarouselOptions::default()
    })
}

/// The questions of what receivers lack, if the session has them speak at all.
fn asks(offer: &Offer, bytes: u64) -> Option<Asks> {
    offer.description.receipt_key.map(|key| Asks::new(offer.description.tsi, key, bytes))
}

/// Seconds of the NTP era, which wrap, by the wall clock as it stands now.
fn date() -> u32 {
    wall_ntp_secs() as u32
}

/// When a table expires that is signed now.
fn expires(date: u32) -> u32 {
    date.wrapping_add(TABLE_LIFETIME.as_secs() as u32)
}

/// Whether a table that expires then is to be signed again: half of its time is over, or the clock was set since it was signed.
fn is_due(expires: u32, date: u32) -> bool {
    // 32 bits that wrap, and never decades apart unless a clock was wrong.
    let left = i64::from(expires.wrapping_sub(date) as i32);
    let lifetime = TABLE_LIFETIME.as_secs() as i64;
    !(lifetime / 2..=lifetime + SMALL_STEP).contains(&left)
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
    offer: &'a Offer,
    carousel: Carousel,
    /// What goes on being sent if a file is lost.
    remainder: Remainder,
    /// The set that is sent, and those that were before.
    sets: Vec<Arc<Sending>>,
    openings: Openings,
    ceilings: Ceilings,
    /// The receivers, where the scheme knows them.
    audience: Option<Audience>,
    /// The account of what was sent, while it can be written.
    sent: Option<Sent>,
    receipts: Option<ReceiptBook>,
    /// What receivers are asked, if the session has them speak at all.
    asks: Option<Asks>,
    wanted: Option<u64>,
    /// The hosts that are waited for, if they are named.
    expected: Vec<Expected>,
    /// Receivers that had everything when it was last looked who of the expected does, and how many those are.
    complete: (u64, u64),
    /// When the first packet was sent, and how long to send from then on.
    begun: Option<Time>,
    duration: Option<Duration>,
    /// Where receivers are heard; `None` once one was, or it has been told that none is.
    control_port: Option<u16>,
    shown: Time,
    shown_bytes: u64,
    symbols_per_pass: u64,
    /// Passes over the sets that were sent before this one, and their packets.
    earlier: (f64, u64),
    unsent: Unsent,
    /// That there are more reports and receipts than can be looked at has been told.
    is_told_of_overflow: bool,
    /// The session is announced as long as this is here.
    announcing: Option<Announcing>,
    outcome: Option<Exit>,
}

impl Application<Content> for FileSender<'_> {
    fn payload(&mut self, now: Time, channel: Option<ChannelId>) -> Option<(Content, &[u8])> {
        self.begun.get_or_insert(now);
        let ChannelId(channel) = channel?;
        if let Some(asks) = self.asks.as_mut().filter(|_| self.carousel.is_waiting()) {
            asks.look(now, &mut self.carousel);
        }
        if self.openings.is_new(now, channel) { self.carousel.again(channel) } else { self.carousel.next(channel) }
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        match observation {
            Observation::Ceiling { rate, cause } => {
                if *cause == CeilingCause::Busy {
                    self.asks.iter_mut().for_each(|asks| asks.on_busy(now));
                }
                let message = self.ceilings.on_ceiling(now, *rate, *cause);
                message.into_iter().for_each(|message| self.report.trouble(now, message, None));
            }
            Observation::Audience(audience) => {
                self.audience = *audience;
                if audience.is_some_and(|audience| audience.receivers > 0) {
                    self.control_port = None;
                }
                self.asks.iter_mut().for_each(|asks| asks.on_audience(now, *audience));
            }
            Observation::Reached { level } => {
                self.carousel.repeat_table(*level);
                // With several receivers, the others may have joined later.
                if self.audience.is_some_and(|audience| audience.receivers == 1) {
                    self.openings.on_reached(*level);
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, now: Time, from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        if lack::is_lack(message) {
            self.asks.iter_mut().for_each(|asks| asks.on_message(now, message, &mut self.carousel));
            return None;
        }
        let book = self.receipts.as_mut()?;
        let mut new = None;
        let answer = book.on_message(now, message, |receipt| new = Some(*receipt));
        if let Some(receipt) = new {
            let event = ReceiptReceived {
                t_s: self.report.t_s(now),
                from: from.to_string(),
                name: receipt.name().to_owned(),
                receiver: PublicKey::from_bytes(&receipt.receiver)
                    .map_or_else(|_| String::new(), |key| key.to_string()),
                received_bytes: receipt.received_bytes,
                seconds: receipt.elapsed_millis as f64 / 1e3,
                receipts: self.count(),
            };
            self.report.show(&SenderEvent::Receipt(event));
        }
        answer
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if let Some(message) = self.ceilings.on_time(now) {
            self.report.trouble(now, message, None);
        }
        if let Some(message) = self.unsent.on_time(now, statistics) {
            self.report.trouble(now, message, None);
        }
        self.look_for_receivers(now);
        if let Some(asks) = &mut self.asks {
            asks.look(now, &mut self.carousel);
        }
        let cycles = self.carousel.stats().cycles;
        if let Some(error) = self.sent.as_mut().and_then(|sent| sent.note(cycles).err()) {
            self.cannot_note(now, &error);
        }
        if let Some(trouble) = self.announcing.as_ref().and_then(Announcing::trouble) {
            self.report.trouble(now, trouble, None);
        }
        let date = date();
        if is_due(self.carousel.expires(), date) {
            self.carousel.renew(expires(date));
        }
        if let Some(made) = self.remainder.take() {
            self.go_on_with(now, made, statistics);
        }
        if self.outcome.is_none() {
            self.outcome = self.reason_to_stop(now);
        }
        if self.outcome.is_some() { Progress::Stop } else { Progress::Continue }
    }
}

impl FileSender<'_> {
    /// Tells, once, that no receiver was heard, where the scheme would know.
    fn look_for_receivers(&mut self, now: Time) {
        let is_late = self.begun.is_some_and(|begun| now.since(begun) >= UNHEARD);
        if self.audience.is_some()
            && is_late
            && let Some(port) = self.control_port.take()
        {
            let message = format!(
                "no receiver has been heard for {} s, so little is sent; if there are any, this host's firewall and those on the way must let \
                 UDP port {port} in, or send everything to receivers that cannot be heard: --cc-set offer=all",
                UNHEARD.as_secs()
            );
            self.report.trouble(now, message, None);
        }
    }

    fn cannot_note(&mut self, now: Time, error: &std::io::Error) {
        self.sent = None;
        let message = format!("what is sent cannot be noted any more next to the key: {error}");
        self.report.trouble(now, message, None);
    }

    fn reason_to_stop(&mut self, now: Time) -> Option<Exit> {
        let (failure, cycles) = (self.carousel.failure(), self.carousel.stats().cycles);
        if let Some(failure) = failure.filter(|failure| !self.remainder.make(failure, cycles)) {
            let message = failure.to_string();
            self.report.trouble(now, message, Some(Exit::Files));
            return Some(Exit::Files);
        }
        let has_receipts = self.wanted.is_some_and(|wanted| self.receivers() >= wanted);
        let is_over = self.begun.zip(self.duration).is_some_and(|(begun, duration)| now >= begun + duration);
        if has_receipts {
            Some(Exit::Done)
        } else if is_over {
            Some(if self.wanted.is_some() { Exit::Receipts } else { Exit::Done })
        } else if self.report.observer.is_interrupted() {
            // Without a reason to end of its own, a sender is ended so.
            Some(if self.wanted.is_some() || self.duration.is_some() { Exit::Interrupted } else { Exit::Done })
        } else if self.report.is_unheard {
            Some(Exit::Done)
        } else {
            None
        }
    }

    /// Sends what is left without the files that were lost.
    fn go_on_with(&mut self, now: Time, made: Made, statistics: &Statistics) {
        let paths: Vec<_> = made.left_out.iter().map(|(reason, file)| (file.path().to_owned(), *reason)).collect();
        let messages = left_out::messages(&paths).into_iter().chain(made.trouble);
        messages.for_each(|message| self.report.trouble(now, message, None));
        self.carousel = match made.carousel {
            Ok(carousel) if !made.sources.files().is_empty() => carousel,
            failed => {
                let why = failed.err().map_or_else(|| NOTHING_LEFT.to_owned(), |error| error.to_string());
                self.report.trouble(now, why, Some(Exit::Files));
                self.outcome.get_or_insert(Exit::Files);
                return;
            }
        };
        self.earlier = (self.passes(statistics), statistics.sent.packets);
        self.symbols_per_pass = self.carousel.stats().symbols_per_cycle;
        self.asks = asks(self.offer, made.sources.bytes());
        self.asks.iter_mut().for_each(|asks| asks.on_audience(now, self.audience));
        let edition = self.carousel.edition();
        self.sets.push(Arc::new(Sending { content: hosts::content(&made.sources), edition }));
        if let Some(book) = &mut self.receipts {
            let (tsi, secret) = (self.offer.description.tsi, self.offer.secret.clone());
            book.begin_again(edition.epoch, hosts::verdicts(tsi, secret, self.sets.clone(), &self.expected));
        }
        let (set, before) = (made.sources.fingerprint(), made.skipped_cycles);
        if let Some(error) = self.sent.as_mut().and_then(|sent| sent.go_on_with(set, before).err()) {
            self.cannot_note(now, &error);
        }
    }

    /// Receivers that have everything, of those that are waited for.
    fn receivers(&self) -> u64 {
        match &self.receipts {
            Some(book) if self.expected.is_empty() => book.receivers(),
            _ => self.complete.1,
        }
    }

    /// The same, after a receipt has come.
    fn count(&mut self) -> u64 {
        if let Some(book) = self.receipts.as_ref().filter(|book| book.receivers() != self.complete.0) {
            self.complete = (book.receivers(), hosts::complete(&self.expected, book.entries()));
        }
        self.receivers()
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
            receivers: self.audience.map(|audience| audience.receivers),
            lowest_bps: self.audience.map(|audience| audience.lowest.bps()),
            highest_bps: self.audience.map(|audience| audience.highest.bps()),
        };
        self.report.show(&SenderEvent::Progress(event));
        let has_overflowed = self.receipts.as_ref().is_some_and(|book| book.overflowed() > 0);
        if has_overflowed && !std::mem::replace(&mut self.is_told_of_overflow, true) {
            self.report.trouble(now, OVERFLOW.to_owned(), None);
        }
    }

    fn end(&mut self, now: Time, statistics: &Statistics) -> Exit {
        self.announcing = None;
        let mut exit = self.outcome.unwrap_or(Exit::Internal);
        let left_out = self.remainder.left_out().len();
        if left_out > 0 && exit == Exit::Done {
            exit = Exit::Files;
            let message = format!("{left_out} of the files were left out: send them again when nobody writes to them");
            self.report.trouble(now, message, Some(exit));
        }
        if let Some(book) = self.receipts.as_ref().filter(|_| !self.expected.is_empty()) {
            let results = hosts::results(&self.expected, book.entries(), |at| self.report.t_s(at));
            results.into_iter().for_each(|result| self.report.show(&SenderEvent::Result(result)));
        }
        let event = SenderEnd {
            t_s: self.report.t_s(now),
            seconds: self.report.t_s(now),
            sent_bytes: statistics.sent.bytes.count(),
            sent_packets: statistics.sent.packets,
            passes: self.passes(statistics),
            receipts: self.receivers(),
            forged_messages: self.receipts.as_ref().map_or(0, ReceiptBook::forged),
            overflowed_messages: self.receipts.as_ref().map_or(0, ReceiptBook::overflowed),
            exit_code: exit.code(),
        };
        self.report.show(&SenderEvent::End(event));
        exit
    }

    fn passes(&self, statistics: &Statistics) -> f64 {
        let (passes, packets) = self.earlier;
        passes + (statistics.sent.packets - packets) as f64 / self.symbols_per_pass.max(1) as f64
    }
}

/// What to tell when every file was lost.
const NOTHING_LEFT: &str = "no file is left to be sent: start again when nobody writes to them";

/// What to tell of more messages than there is time or room for.
const OVERFLOW: &str = "more reports and receipts come than can be looked at in time, or from more receivers than can be remembered: some receivers are \
                        heard late. Whoever has the description can send as many";

/// Receivers that are there report within a fraction of a second.
const UNHEARD: Duration = Duration::from_secs(60);
/// Zeros that are not sent are told of from here on: a user who sends an image wants to know.
const WORTH_TELLING: Bytes = Bytes::new(1_000_000);
/// How long a table is good for. Clocks that differ by less do no harm; whoever plays a session again has no longer, before
/// receivers that have heard of no later one.
const TABLE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// A clock that is set back by so many seconds, as clocks are that are kept right, is no reason to sign a table again.
const SMALL_STEP: i64 = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_signed_again_at_half_its_time_and_when_the_clock_is_set() {
        let (day, hour) = (86_400_u32, 3_600);
        // Also where the 32 bits of seconds wrap.
        for signed in [4_000_000_000, u32::MAX - 100] {
            let due = |since: i64| is_due(expires(signed), signed.wrapping_add(since as u32));
            let [day, hour] = [day, hour].map(i64::from);
            assert_eq!([0, hour, 12 * hour, 12 * hour + 1].map(due), [false, false, false, true]);
            // Set back by a little, by an hour, by years; ahead by years.
            assert_eq!([-60, -hour, -3_000 * day, 3_000 * day].map(due), [false, true, true, true]);
        }
    }
}
