//! `weir recv`: joins a session and leaves when every file is in its place, verified.

mod answers;
mod came;
mod disk;
mod pace;
mod wanted;
pub(crate) mod words;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use weir_core::observation::{LevelCause, Observation, SlotReport};
use weir_core::{Backlog, Endpoint, PeerId};
use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::host::{Application, Delivery, Host, Statistics};
use weir_net::receipts::{ReceiptSender, Standing};
use weir_net::{NetError, host};
use weir_object::keys::PublicKey;
use weir_object::manifest::Edition;
use weir_object::store::{Event, Store};
use weir_units::{Random, Rate, Time};
use weir_wire::alc::Content;

use crate::args::Recv;
use crate::collector::Collector;
use crate::events::{
    Level, ReceiptSent, ReceiverEnd, ReceiverEvent, ReceiverProgress, ReceiverStart, Role, Trouble, Waiting,
};
use crate::exit::{Exit, Failure};
use crate::hook::{Hook, Hooked};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::proof::About;
use crate::silence::Silence;
use crate::{identity, sealing, session, standard};

use answers::Answers;
use came::{Came, Said};
use pace::Pace;
use wanted::{QUEUE_SHARE, has_probes, highest_rate, memory};
pub(crate) use wanted::{Wanted, open_store, out_folder, receive_buffer, session_config};

/// Joins a session and leaves when every file is in its place, verified.
pub fn files(args: &Recv, observer: &mut dyn Observer<ReceiverEvent>) -> Result<Exit, Failure> {
    files_of(args, Wanted::of(args)?, observer)
}

/// The same of a session whose description is there.
pub(crate) fn files_of(
    args: &Recv,
    wanted: Wanted,
    observer: &mut dyn Observer<ReceiverEvent>,
) -> Result<Exit, Failure> {
    if let Some(device) = disk::of(args)? {
        let wanted = Wanted { out: disk::working_folder(&device)?, device: Some(device), ..wanted };
        return receive(args, &wanted, &mut Hooked::new(Hook::of(args), observer));
    }
    if !standard::is_output(args) {
        return receive(args, &wanted, &mut Hooked::new(Hook::of(args), observer));
    }
    standard::output(args, observer, |folder, observer| {
        let wanted = Wanted { out: folder.to_owned(), ..wanted };
        receive(args, &wanted, &mut Hooked::new(Hook::of(args), observer))
    })
}

/// Receives a session whose description is believed.
pub(crate) fn receive(
    args: &Recv,
    wanted: &Wanted,
    observer: &mut dyn Observer<ReceiverEvent>,
) -> Result<Exit, Failure> {
    let endpoint = wanted.description.receiver_endpoint(session::random_stream("receiver")?);
    let endpoint = endpoint.map_err(|error| wanted.refuse(error))?;
    let config = session_config(args, receive_buffer(&wanted.description))?;
    let mut tenant = weir_net::session::receiver(&wanted.description, endpoint, &config)
        .map_err(Failure::of(Exit::Network, "cannot receive"))?;
    let store = open_store(args, wanted)?;
    sealing::open(&mut tenant, 0, &wanted.description, store.least_epoch(), args.name.as_deref())?;
    let clock = Clock::new();
    let buffer = tenant.capabilities().buffer;
    let mut run = FileReceiver::begin(args, wanted, store, observer, 0, clock.now())?;
    if buffer.granted < highest_rate(&wanted.description) * SHORTEST_TURN {
        run.trouble(run.started, format!("the receive buffer is small for this rate: {buffer}"), None);
    }
    run.statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot receive"))?;
    run.drain_store(clock.now());
    Ok(run.end(clock.now()))
}

/// The sender's key, for people.
pub(crate) fn sender_key(description: &Description) -> Option<String> {
    let key = PublicKey::from_bytes(description.public_key.as_ref()?).ok()?;
    Some(key.to_string())
}

fn start_event(args: &Recv, wanted: &Wanted) -> ReceiverStart {
    let Wanted { description, levels, interface, .. } = wanted;
    let control = description.control.as_ref();
    ReceiverStart {
        role: Role::Receiver,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: description.name.clone(),
        tsi: u64::from(description.tsi),
        scheme: control.map_or_else(|| "none".to_owned(), |control| control.scheme.clone()),
        rates_bps: levels.iter().map(|rate| rate.bps()).collect(),
        address: description.channels[0].to_string(),
        interface: Some(interface.name.clone()),
        link_bps: args.link.as_ref().and_then(|link| link.rate).map(Rate::bps),
        out: wanted.place().display().to_string(),
        sender_key: sender_key(description),
    }
}

/// A running receiver.
pub(crate) struct FileReceiver<'a> {
    observer: &'a mut dyn Observer<ReceiverEvent>,
    /// The observer wants the run to end.
    is_unheard: bool,
    collector: Collector,
    started: Time,
    ends: Option<Time>,
    idle_timeout: Option<Duration>,
    last_packet: Time,
    /// The sender said that it ends.
    is_closed: bool,
    pace: Pace,
    observed: Observed,
    silence: Silence,
    /// Where round-trip probes go, until the user has been told that none is answered.
    probes_to: Option<SocketAddr>,
    statistics: Statistics,
    /// What came of the files that the sender offers now.
    came: Came,
    completed: Option<Time>,
    /// Nothing is missing but decoding: the channels are left until a block turns out to need more.
    only_decodes: bool,
    /// All has come, and the channels are left while it is written.
    has_left: bool,
    /// What tells the sender how far this receiver is, if it wants to know.
    receipt: Option<ReceiptSender>,
    /// What tells it what this receiver lacks, if it asks.
    answers: Option<Answers>,
    /// The disk's thread has something new to say.
    has_news: bool,
    /// Of what an endpoint is made that begins again.
    description: Description,
    random: Random,
    /// Why the run ends.
    outcome: Option<Exit>,
}

/// What the scheme has told of itself.
#[derive(Debug, Default)]
struct Observed {
    level: usize,
    levels: usize,
    level_rate: Rate,
    slot: Option<SlotReport>,
    round_trip: Option<Duration>,
    lost_packets: u64,
}

impl Application<Content> for FileReceiver<'_> {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.collector.news())
    }

    fn read(&mut self, _now: Time) {
        self.collector.take_news();
        self.has_news = true;
    }

    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Content>) {
        if let (Some(question), Some(answers)) = (delivery.label.ask, &mut self.answers)
            && answers.on_question(question)
        {
            answers.look(now, &mut self.collector, self.observed.level_rate);
        }
        self.collector.push(now, delivery.label, delivery.payload, delivery.address);
    }

    fn backlog(&self) -> Option<Backlog> {
        Some(self.collector.backlog())
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        match observation {
            Observation::Level { level, rate, cause } => self.on_level(now, *level, *rate, *cause),
            Observation::Slot(report) => {
                self.observed.lost_packets += report.lost_packets;
                self.observed.slot = Some(*report);
            }
            Observation::RoundTrip(round_trip) => self.observed.round_trip = Some(*round_trip),
            Observation::Flooded { received_rate } => self.trouble(now, words::flooded(*received_rate), None),
            Observation::LossyPath { lost } => self.trouble(now, words::lossy(*lost), None),
            Observation::FairQueued(false) => {
                let message = "the path does not seem to be fair-queued: what is lost or waits contradicts what bursts of packets say, \
                               so the rate follows loss and delay for a while";
                self.trouble(now, message.to_owned(), None);
            }
            _ => {}
        }
    }

    fn message(&mut self, now: Time, _from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        if let Some(receipt) = &mut self.receipt {
            receipt.on_message(now, message);
            if let Some(epoch) = receipt.take_other_start() {
                self.prove_again(now, epoch);
            }
        }
        None
    }

    fn next_message(&mut self, now: Time) -> Option<(PeerId, Vec<u8>)> {
        if let Some(answer) = self.answers.as_mut().and_then(|answers| answers.poll(now)) {
            return Some((PeerId(0), answer));
        }
        self.receipt.as_ref()?.deadline().filter(|due| *due <= now)?;
        let standing = self.standing(now);
        self.receipt.as_mut()?.poll(now, || standing).map(|message| (PeerId(0), message))
    }

    fn deadline(&self) -> Option<Time> {
        let receipt = self.receipt.as_ref().and_then(ReceiptSender::deadline);
        let answer = self.answers.as_ref().and_then(Answers::deadline);
        let news = self.has_news.then_some(Time::ZERO);
        [receipt, answer, news].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> host::Progress {
        if self.only_decodes || statistics.received.packets > self.statistics.received.packets {
            self.last_packet = now;
        }
        self.statistics.clone_from(statistics);
        self.has_news = false;
        self.collector.tick();
        if let Some(answers) = &mut self.answers {
            answers.look(now, &mut self.collector, self.observed.level_rate);
        }
        self.drain_store(now);
        self.look_for_surplus(now);
        if self.completed.is_none()
            && !self.has_left
            && !self.only_decodes
            && let Some(waiting) = self.silence.look(now, statistics, &self.collector.progress())
        {
            self.show(&ReceiverEvent::Waiting(Waiting { t_s: self.t_s(now), ..waiting }));
        }
        if self.outcome.is_none() && self.completed.is_none() && self.pace.since(now) >= PROGRESS_INTERVAL {
            self.progress(now);
            self.look_for_answers(now);
        }
        if self.outcome.is_none() {
            self.outcome = self.reason_to_stop(now);
            if self.completed.is_some() && self.came.worst().is_none() {
                self.begin_receipt(now);
            }
        }
        match (self.outcome, &self.receipt) {
            (None, _) if self.has_left => host::Progress::Finish,
            (None, _) if self.only_decodes => host::Progress::Rest,
            (None, _) => host::Progress::Continue,
            (Some(_), Some(receipt)) if receipt.is_confirming() && !self.observer.is_interrupted() => {
                host::Progress::Finish
            }
            _ => host::Progress::Stop,
        }
    }

    fn begin_again(&mut self, _now: Time) -> Option<Box<dyn Endpoint>> {
        let random = Random::new(self.random.bits(), "receiver");
        let endpoint = self.description.receiver_endpoint(random).expect("one was built at the start");
        Some(endpoint.unwrap_or_else(|| weir_net::session::every_channel(&self.description)))
    }

    fn problem(&mut self, now: Time, problem: &NetError) {
        self.trouble(now, problem.to_string(), None);
    }

    fn closed(&mut self, _now: Time, _session: usize) {
        self.is_closed = true;
    }

    fn reopened(&mut self, _now: Time, _session: usize) {
        self.is_closed = false;
    }
}

impl<'a> FileReceiver<'a> {
    /// A receiver of a session, whose store is open. `number` is the session's place among those of its host.
    pub(crate) fn begin(
        args: &Recv,
        wanted: &Wanted,
        store: Store,
        observer: &'a mut dyn Observer<ReceiverEvent>,
        number: usize,
        started: Time,
    ) -> Result<FileReceiver<'a>, Failure> {
        let description = &wanted.description;
        let (receipt, not_kept) = identity::reporter(args.name.as_deref(), description, started)?;
        let mut run = FileReceiver {
            observer,
            is_unheard: false,
            collector: Collector::start(store, memory(args) / QUEUE_SHARE, description.sender_address())
                .map_err(Failure::of(Exit::Internal, "cannot start the thread that writes"))?,
            has_news: false,
            started,
            ends: args.duration.map(|duration| started + duration),
            idle_timeout: args.idle_timeout,
            last_packet: started,
            is_closed: false,
            pace: Pace::new(started),
            observed: Observed { levels: wanted.levels.len().max(1), ..Observed::default() },
            silence: Silence::new(description, &wanted.interface, number, started),
            probes_to: description.control_address.filter(|_| has_probes(description)),
            statistics: Statistics::default(),
            came: Came::new(wanted, description.public_key.is_some() && !args.any_sender),
            completed: None,
            only_decodes: false,
            has_left: false,
            answers: identity::answering(description, receipt.as_ref()).map(Answers::new),
            receipt,
            description: description.clone(),
            random: session::random_stream("receiver that begins again")?,
            outcome: None,
        };
        run.show(&ReceiverEvent::Start(start_event(args, wanted)));
        wanted.told.iter().chain(&not_kept).for_each(|told| run.trouble(started, told.clone(), None));
        Ok(run)
    }
}

impl FileReceiver<'_> {
    fn reason_to_stop(&mut self, now: Time) -> Option<Exit> {
        let idle = now.since(self.last_packet);
        if self.completed.is_some() {
            Some(self.came.worst().unwrap_or(Exit::Done))
        } else if self.is_unheard || self.observer.is_interrupted() {
            Some(Exit::Interrupted)
        } else if self.ends.is_some_and(|ends| now >= ends) {
            self.trouble(now, "the time is up and something is still missing".to_owned(), Some(Exit::Incomplete));
            Some(Exit::Incomplete)
        } else if self.has_left {
            if self.collector.progress().has_everything {
                return None;
            }
            let message = "all had come, and some of it has changed since: the sender offers something else now, or the partial files were \
                           written to; start the receiver again for the rest";
            self.trouble(now, message.to_owned(), Some(Exit::Incomplete));
            Some(Exit::Incomplete)
        } else if self.idle_timeout.is_some_and(|timeout| idle >= timeout) {
            self.trouble(now, format!("no packet has come for {} s", idle.as_secs()), Some(Exit::Incomplete));
            Some(Exit::Incomplete)
        } else if self.is_closed && idle >= CLOSED_AND_SILENT {
            let message =
                "the sender has ended the session and something is still missing; it is kept for the next time";
            self.trouble(now, message.to_owned(), Some(Exit::Incomplete));
            Some(Exit::Incomplete)
        } else {
            None
        }
    }

    /// What comes while blocks are only decoded is surplus, and decoding needs the processor: the receiver leaves the channels, and begins
    /// again if a block cannot be decoded after all. It leaves for good once all blocks are here and right: files of bundles may still be
    /// written for a while.
    fn look_for_surplus(&mut self, now: Time) {
        let progress = self.collector.progress();
        self.has_left |= self.completed.is_none() && progress.has_everything;
        let only_decodes = self.completed.is_none() && progress.only_decodes;
        if std::mem::replace(&mut self.only_decodes, only_decodes) && !only_decodes {
            self.silence.begin_again(now);
        }
    }

    /// Tells, once, of a sender that answers no probes.
    fn look_for_answers(&mut self, now: Time) {
        let Statistics { probes_sent, control_received, .. } = self.statistics;
        let is_unanswered = control_received == 0 && probes_sent >= PROBES_TO_WAIT_FOR;
        if let Some(address) = self.probes_to.take_if(|_| is_unanswered) {
            let message = format!(
                "the sender answers no round-trip probes at {address}: it may not hear this host, and then sends little, and the rate goes by a \
                 round trip that is assumed; firewalls on the way, and the sender's own, must let UDP port {} through",
                address.port()
            );
            self.trouble(now, message, None);
        }
    }

    fn on_level(&mut self, now: Time, level: usize, rate: Rate, cause: LevelCause) {
        (self.observed.level, self.observed.level_rate) = (level, rate);
        let event = Level { t_s: self.t_s(now), level, rate_bps: rate.bps(), cause: cause.into() };
        self.show(&ReceiverEvent::Level(event));
    }

    pub(crate) fn drain_store(&mut self, now: Time) {
        // Asked before: then what the last events say of these files is among those that follow.
        let mut is_complete = self.collector.is_complete();
        while let Some(event) = self.collector.next_event() {
            match event {
                Ok(event) => {
                    is_complete &= !matches!(event, Event::NewSet);
                    self.on_store_event(now, event);
                }
                Err(error) => {
                    // The disk is full, or the folder has gone: nothing that comes could be kept.
                    self.trouble(now, error.to_string(), Some(Exit::Files));
                    self.outcome = Some(Exit::Files);
                    return;
                }
            }
        }
        if self.completed.is_none() && is_complete {
            self.completed = Some(now);
            // What comes from here until the receiver has left is not part of the transfer.
            self.progress(now);
        }
    }

    fn on_store_event(&mut self, now: Time, event: Event) {
        match self.came.take(self.t_s(now), event) {
            Some(Said::File(done)) => self.show(&ReceiverEvent::File(done)),
            Some(Said::Trouble(message, exit)) => self.trouble(now, message, exit),
            None => {}
        }
    }

    /// Shows what has come since it was shown last.
    fn progress(&mut self, now: Time) {
        let store = self.collector.progress();
        let received_bytes = self.statistics.received.bytes.count();
        let Some(rate) = self.pace.look(now, received_bytes, store.bytes_useful) else { return };
        let needed = store.manifest_complete.then_some(store.bytes_needed);
        let missing = needed.map(|needed| needed.saturating_sub(store.bytes_useful));
        let Observed { level, levels, level_rate, round_trip, lost_packets, .. } = self.observed;
        let slot = self.observed.slot.as_ref();
        let event = ReceiverProgress {
            t_s: self.t_s(now),
            received_bytes,
            useful_bytes: store.bytes_useful,
            needed_bytes: needed,
            rate_bps: rate.bps(),
            level,
            levels,
            level_rate_bps: level_rate.bps(),
            loss_event_rate: slot.and_then(|slot| slot.loss_event_rate).map(|rates| rates[0]),
            received_packets: self.statistics.received.packets,
            lost_packets,
            host_dropped_packets: self.statistics.host_dropped + self.collector.overrun_symbols(),
            queuing_delay_ms: slot.map_or(0.0, |slot| slot.queuing_delay[0].as_secs_f64() * 1e3),
            round_trip_ms: round_trip.map(|round_trip| round_trip.as_secs_f64() * 1e3),
            eta_s: missing.and_then(|missing| self.pace.to_go(missing)),
            target_bps: slot.and_then(|slot| slot.target_rate).map(|[short, long]| short.min(long).bps()),
        };
        self.show(&ReceiverEvent::Progress(event));
    }

    /// The sender is to hear that everything is here. Chance spreads the receipts of receivers that finish together.
    fn begin_receipt(&mut self, now: Time) {
        let edition = self.collector.progress().edition.unwrap_or_default();
        if let Some((standing, proof)) = self.proof(now, edition)
            && let Some(receipt) = &mut self.receipt
        {
            receipt.finish(now, RECEIPT_SPREAD, standing, proof);
        }
    }

    /// The same for another start of the sender, of which this receiver has not heard by a table.
    fn prove_again(&mut self, now: Time, epoch: u64) {
        let edition = Edition { epoch, ..self.collector.progress().edition.unwrap_or_default() };
        if let Some((standing, proof)) = self.proof(now, edition)
            && let Some(receipt) = &mut self.receipt
        {
            receipt.prove_again(now, standing, proof);
        }
    }

    /// What a receipt says: how this receiver stands, and the proof that it has everything.
    fn proof(&mut self, now: Time, edition: Edition) -> Option<(Standing, [u8; 32])> {
        let receiver = *self.receipt.as_ref()?.key();
        match self.came.proof(&About { receiver: &receiver, tsi: self.description.tsi, edition }) {
            Ok(proof) => Some((self.standing(self.completed.unwrap_or(now)), proof)),
            // The files are there; that the sender does not hear of it changes nothing about that.
            Err(error) => {
                self.trouble(now, format!("cannot send a receipt: {error}"), None);
                None
            }
        }
    }

    /// How far this receiver is.
    fn standing(&self, now: Time) -> Standing {
        let store = self.collector.progress();
        let needed = if store.manifest_complete { store.bytes_needed.max(1) } else { u64::MAX };
        let share = u128::from(store.bytes_useful.min(needed)) * 10_000 / u128::from(needed);
        Standing {
            received_bytes: self.statistics.received.bytes.count(),
            elapsed_millis: u64::try_from(now.since(self.started).as_millis()).unwrap_or(u64::MAX),
            // All of it is said by a receipt alone.
            share: (share as u16).min(9_999),
            of: self.mark(store.edition),
        }
    }

    /// By what a report says which content it goes by.
    fn mark(&self, edition: Option<Edition>) -> [u8; 32] {
        let about = |(receipt, edition): (&ReceiptSender, _)| {
            About { receiver: receipt.key(), tsi: self.description.tsi, edition }.mark()
        };
        self.receipt.as_ref().zip(edition).map_or([0; 32], about)
    }

    /// Puts whatever has come where the next run finds it, and tells how it ended.
    pub(crate) fn end(mut self, now: Time) -> Exit {
        let mut exit = self.outcome.unwrap_or(Exit::Internal);
        if let Some(receipt) = self.receipt.as_ref().filter(|receipt| receipt.tries() > 0) {
            let (acknowledged, tries) = (receipt.is_acknowledged(), receipt.tries());
            let event = ReceiptSent { t_s: self.t_s(now), acknowledged, tries };
            self.show(&ReceiverEvent::Receipt(event));
        }
        let (overrun, store) = (self.collector.overrun_symbols(), self.collector.progress());
        if overrun > 0 {
            let packets = self.statistics.received.packets;
            let message = self.collector.bottleneck().words(overrun, packets);
            self.trouble(now, message, None);
        }
        if let Err(error) = self.collector.finish()
            && exit != Exit::Files
        {
            exit = Exit::Files;
            let event = Trouble {
                t_s: now.since(self.started).as_secs_f64(),
                message: error.to_string(),
                exit_code: Some(exit.code()),
            };
            let _ = self.observer.event(&ReceiverEvent::Error(event));
        }
        let until = self.completed.unwrap_or(now);
        let event = ReceiverEnd {
            bad_blocks: store.bad_blocks,
            forged_packets: self.statistics.ignored.forged,
            bad_tables: store.rejected_manifests,
            old_tables: store.old_manifests,
            t_s: now.since(self.started).as_secs_f64(),
            complete: self.completed.is_some() && exit == Exit::Done,
            verified: self.completed.is_some() && exit == Exit::Done && self.came.is_signed(),
            files: self.came.files(),
            bytes: self.came.bytes(),
            seconds: until.since(self.started).as_secs_f64(),
            received_bytes: self.statistics.received.bytes.count(),
            received_packets: self.statistics.received.packets,
            lost_packets: self.observed.lost_packets,
            host_dropped_packets: self.statistics.host_dropped + overrun,
            ignored_packets: self.statistics.ignored.total(),
            epoch: store.edition.map(|edition| edition.epoch),
            exit_code: exit.code(),
        };
        let _ = self.observer.event(&ReceiverEvent::End(event));
        exit
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    pub(crate) fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&ReceiverEvent::Error(event));
    }

    fn show(&mut self, event: &ReceiverEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}

/// A sender that said goodbye and is silent for this long has gone.
const CLOSED_AND_SILENT: Duration = Duration::from_secs(10);

/// So many round-trip probes without an answer are no accident. Some schemes send one a second, and sluice two a minute once it has its rate.
const PROBES_TO_WAIT_FOR: u64 = 3;

/// Receipts of receivers that finish together are spread over this.
const RECEIPT_SPREAD: Duration = Duration::from_millis(200);

/// A buffer of less than this is worth a word.
const SHORTEST_TURN: Duration = Duration::from_millis(10);
