//! `weir send file`: hashes, describes, and sends until the time is up or enough receivers have everything.

mod lifetime;
mod running;

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::groups;
use weir_net::host::Host;
use weir_net::session::SessionConfig;
use weir_net::{Interface, LinkSpeed, NetError};
use weir_object::carousel::{Carousel, CarouselOptions};
use weir_object::source::{SourceError, SourceSet};
use weir_units::{Bytes, Rate};

use self::running::{FileSender, Report, Start};
use crate::announce::Plan;
use crate::args::SendFile;
use crate::changes::Changes;
use crate::events::{Hashing, Reading, Role, SenderEvent, SenderStart, Top};
use crate::exit::{Exit, Failure};
use crate::hosts::{self, Sending};
use crate::observer::Observer;
use crate::openings::Openings;
use crate::progress::PROGRESS_INTERVAL;
use crate::remainder::Remainder;
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
    let mut run = FileSender::new(Start {
        report,
        offer: &offer,
        sending: Sending { content, edition: carousel.edition() },
        bytes,
        carousel,
        remainder,
        wanted,
        expected,
        duration: args.duration,
        openings: Openings::new(&offer.channel_rates()?, Bytes::new(offer.symbol_size.into())),
        sent,
        announcing,
        unsent: Unsent::new(interface, args.to.ip()),
    });
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let exit = run.end(clock.now(), &statistics);
    if let (Some(changes), (Some(Exit::Done), left_out)) = (&mut changes, run.outcome()) {
        changes.remember_without(left_out)?;
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
        expires: lifetime::expires(lifetime::date()),
        key: Some(offer.secret.clone()),
        ..CarouselOptions::default()
    })
}

/// Zeros that are not sent are told of from here on: a user who sends an image wants to know.
const WORTH_TELLING: Bytes = Bytes::new(1_000_000);
