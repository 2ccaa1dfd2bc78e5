//! A running sender of files: what goes into each packet, what receivers say, and when it is over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_core::ChannelId;
use weir_core::observation::{Audience, CeilingCause, Observation};
use weir_net::host::{Application, Progress, Statistics};
use weir_net::receipts::ReceiptBook;
use weir_object::carousel::Carousel;
use weir_object::keys::PublicKey;
use weir_object::source::SourceFile;
use weir_units::{Bytes, Time};
use weir_wire::alc::Content;
use weir_wire::lack;

use super::lifetime;
use crate::announce::Announcing;
use crate::asks::Asks;
use crate::ceilings::Ceilings;
use crate::events::{ReceiptReceived, SenderEnd, SenderEvent, SenderProgress, Trouble};
use crate::exit::Exit;
use crate::hosts::{self, Expected, Sending};
use crate::left_out;
use crate::observer::Observer;
use crate::openings::Openings;
use crate::progress::PROGRESS_INTERVAL;
use crate::remainder::{Made, Remainder};
use crate::sent::Sent;
use crate::session::Offer;
use crate::unsent::Unsent;

/// What the observer is told.
pub(super) struct Report<'a> {
    pub(super) observer: &'a mut dyn Observer<SenderEvent>,
    pub(super) started: Time,
    /// The observer wants no more.
    pub(super) is_unheard: bool,
}

impl Report<'_> {
    pub(super) fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    pub(super) fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&SenderEvent::Error(event));
    }

    pub(super) fn show(&mut self, event: &SenderEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}

/// A running sender.
pub(super) struct FileSender<'a> {
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
        let date = lifetime::date();
        if lifetime::is_due(self.carousel.expires(), date) {
            self.carousel.renew(lifetime::expires(date));
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

/// What a sender begins with.
pub(super) struct Start<'a> {
    pub(super) report: Report<'a>,
    pub(super) offer: &'a Offer,
    pub(super) carousel: Carousel,
    pub(super) remainder: Remainder,
    /// The set that is sent, and its bytes.
    pub(super) sending: Sending,
    pub(super) bytes: u64,
    /// What it waits for.
    pub(super) wanted: Option<u64>,
    pub(super) expected: Vec<Expected>,
    pub(super) duration: Option<Duration>,
    pub(super) openings: Openings,
    pub(super) sent: Option<Sent>,
    pub(super) announcing: Option<Announcing>,
    pub(super) unsent: Unsent,
}

impl<'a> FileSender<'a> {
    pub(super) fn new(start: Start<'a>) -> FileSender<'a> {
        let Start { report, offer, carousel, remainder, sending, bytes, wanted, expected, .. } = start;
        let sending = Arc::new(sending);
        FileSender {
            receipts: hosts::book(offer, Arc::clone(&sending), &expected),
            asks: asks(offer, bytes),
            sets: vec![sending],
            wanted,
            expected,
            complete: (0, 0),
            begun: None,
            duration: start.duration,
            control_port: offer.description.control_address.map(|address| address.port()),
            shown: report.started,
            shown_bytes: 0,
            symbols_per_pass: carousel.stats().symbols_per_cycle,
            earlier: (0.0, 0),
            openings: start.openings,
            ceilings: Ceilings::default(),
            audience: None,
            sent: start.sent,
            unsent: start.unsent,
            is_told_of_overflow: false,
            announcing: start.announcing,
            outcome: None,
            report,
            offer,
            carousel,
            remainder,
        }
    }

    /// How it ended, and the files that it had to leave out.
    pub(super) fn outcome(&self) -> (Option<Exit>, &[SourceFile]) {
        (self.outcome, self.remainder.left_out())
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

    /// The run is over: tells what became of it.
    pub(super) fn end(&mut self, now: Time, statistics: &Statistics) -> Exit {
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

/// The questions of what receivers lack, if the session has them speak at all.
fn asks(offer: &Offer, bytes: u64) -> Option<Asks> {
    offer.description.receipt_key.map(|key| Asks::new(offer.description.tsi, key, bytes))
}

/// What to tell when every file was lost.
const NOTHING_LEFT: &str = "no file is left to be sent: start again when nobody writes to them";

/// What to tell of more messages than there is time or room for.
const OVERFLOW: &str = "more reports and receipts come than can be looked at in time, or from more receivers than can be remembered: some receivers are \
                        heard late. Whoever has the description can send as many";

/// Receivers that are there report within a fraction of a second.
const UNHEARD: Duration = Duration::from_secs(60);
