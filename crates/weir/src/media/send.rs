//! `weir send media`: sends a layered programme to a multicast group, a channel or more for each layer, until it ends.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use weir_core::ChannelId;
use weir_core::observation::Observation;
use weir_media::{SplitOptions, Splitter};
use weir_net::Interface;
use weir_net::clock::Clock;
use weir_net::host::{Application, Host, Progress, Statistics};
use weir_net::session::SessionConfig;
use weir_units::{Bytes, Time};
use weir_wire::media::{Media, StreamId};

use super::events::{MediaSenderEvent, ProgrammeEnd, ProgrammeProgress, ProgrammeStart};
use super::merge::Reading;
use super::programme::{self, Input, Programme, ProgrammeError, Survey, input_in_words};
use super::queue::{Counts, Dropped, LayerQueue, Stream};
use super::rtp_input::RtpInput;
use super::session::{Carried, Offer, offer};
use crate::args::SendMedia;
use crate::ceilings::Ceilings;
use crate::events::{Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::unsent::Unsent;
use crate::{key, sealing, session};

/// Sends a layered programme to a group until it ends.
pub fn run(args: &SendMedia, observer: &mut dyn Observer<MediaSenderEvent>) -> Result<Exit, Failure> {
    let to = args.to.ok_or_else(|| Failure::new(Exit::Usage, "--to GROUP:PORT is missing: the group to send to"))?;
    let choice = session::interface_choice(args.iface.as_deref());
    let interface = Interface::choose(&choice, to.ip()).map_err(Failure::of(Exit::Network, "cannot send"))?;
    let (survey, programme) = open(args, &|| observer.is_interrupted())?;
    let offer = offer(args, to, &survey, &interface)?;
    let config = SessionConfig { interface: choice, capture: args.output.pcap.clone(), ..SessionConfig::default() };
    let endpoint = offer.description.sender_endpoint(session::random_stream("sender")?);
    let endpoint = endpoint.map_err(Failure::of(Exit::Usage, "cannot send"))?.expect("media have congestion control");
    let mut tenant = weir_net::session::media_sender(&offer.description, endpoint, &config)
        .map_err(Failure::of(Exit::Network, "cannot send"))?;
    sealing::seal(&mut tenant, &offer.description, &offer.secret)?;
    session::write_description(&args.session, &offer.description, &offer.secret)?;
    let clock = Clock::new();
    let unsent = Unsent::new(interface.clone(), to.ip());
    let mut run = MediaSender::new(args, &offer, survey, programme, observer, clock.now(), unsent);
    run.show(&MediaSenderEvent::Start(start_event(args, to, &offer, &interface)?));
    let troubles = offer.epoch_trouble.iter().cloned().chain(key::exposed(args.key.as_deref()));
    troubles.for_each(|trouble| run.trouble(clock.now(), trouble, None));
    run.tell();
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics))
}

/// Looks at the input for what it holds, and opens it to be sent.
pub(super) fn open(args: &SendMedia, is_interrupted: &dyn Fn() -> bool) -> Result<(Survey, Programme), Failure> {
    let options = SplitOptions { format: None, frame_rate: args.frame_rate };
    let failed = |error: ProgrammeError| match error {
        ProgrammeError::Interrupted => Failure::new(Exit::Interrupted, "stopped before the first picture"),
        error => Failure::new(Exit::Files, format!("cannot send {}: {error}", args.input)),
    };
    let usage = |text: &str| Failure::new(Exit::Usage, text.to_owned());
    match &args.input {
        Input::File(path) => {
            let file = |layer: &Input| match layer {
                Input::File(path) => Ok(path.clone()),
                _ => Err(usage("--in is a file, so each --layer has to be one")),
            };
            let others = args.layer.iter().map(file).collect::<Result<Vec<_>, _>>()?;
            let survey = programme::survey_file(path, &others, options).map_err(failed)?;
            let bytes = Reading::open(path, &others).map_err(|error| failed(error.into()))?;
            Ok((survey, Programme::stored(bytes, options)))
        }
        Input::Stdin if !args.layer.is_empty() => {
            Err(usage("--layer adds files or RTP streams to that of the base layer: give that with --in"))
        }
        Input::Stdin => {
            let owned = io::stdin().as_fd().try_clone_to_owned().map_err(|error| failed(error.into()))?;
            open_live(args, Reading::One(File::from(owned)), options, is_interrupted).map_err(failed)
        }
        Input::Rtp(at) => {
            let stream = |layer: &Input| match layer {
                Input::Rtp(at) => Ok(*at),
                _ => Err(usage("--in is an RTP stream, so each --layer has to be one")),
            };
            let others = args.layer.iter().map(stream);
            let all = [Ok(*at)].into_iter().chain(others).collect::<Result<Vec<_>, _>>()?;
            let codec = args.codec.ok_or_else(|| usage("an RTP stream does not say what it holds: --codec does"))?;
            let input = RtpInput::open(&all, codec).map_err(|error| failed(error.into()))?;
            open_live(args, Reading::Rtp(Box::new(input)), options, is_interrupted).map_err(failed)
        }
    }
}

/// Looks at the beginning of what comes for what it holds.
fn open_live(
    args: &SendMedia,
    mut bytes: Reading,
    options: SplitOptions,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(Survey, Programme), ProgrammeError> {
    let mut splitter = Splitter::new(options);
    // What comes first tells how fast the layers are, unless the user does.
    let most = if args.layer_rates.is_empty() { args.measure } else { Duration::from_millis(500) };
    let survey = programme::survey(&mut bytes, &mut splitter, Some(most), is_interrupted)?;
    Ok((survey, Programme::live(bytes, splitter)))
}

fn start_event(
    args: &SendMedia,
    to: SocketAddr,
    offer: &Offer,
    interface: &Interface,
) -> Result<ProgrammeStart, Failure> {
    let control = offer.description.control.as_ref().expect("media have congestion control");
    let levels = control.levels().map_err(Failure::of(Exit::Usage, "cannot send"))?;
    Ok(ProgrammeStart {
        role: Role::Sender,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: offer.description.name.clone(),
        tsi: u64::from(offer.description.tsi),
        scheme: control.scheme.clone(),
        rates_bps: levels.iter().map(|rate| rate.bps()).collect(),
        address: to.to_string(),
        interface: interface.name.clone(),
        input: input_in_words(&args.input, &args.layer),
        encoding: offer.format.encoding.clone(),
        layers: offer.format.layer_count(),
        latency_ms: u64::from(offer.format.latency_ms),
        description: args.session.display().to_string(),
    })
}

/// A running sender.
struct MediaSender<'a> {
    observer: &'a mut dyn Observer<MediaSenderEvent>,
    /// The observer wants no more.
    is_unheard: bool,
    input: String,
    /// It is ended by an interruption.
    is_endless: bool,
    programme: Programme,
    queues: Vec<LayerQueue>,
    dropped: Dropped,
    channels: Vec<Carried>,
    latency: Duration,
    started: Time,
    ends: Option<Time>,
    /// When the last picture was handed over.
    over: Option<Time>,
    shown: Time,
    shown_bytes: u64,
    is_told_of_drops: bool,
    ceilings: Ceilings,
    unsent: Unsent,
    outcome: Option<Exit>,
}

impl Application<Media> for MediaSender<'_> {
    fn payload(&mut self, now: Time, channel: Option<ChannelId>) -> Option<(Media, &[u8])> {
        let (layer, repair_only) = match self.channels.get_mut(usize::from(channel?.0))? {
            Carried::Layer { layer, has_pictures } => (usize::from(*layer), !*has_pictures),
            Carried::All(turns) => (turns.next(), false),
        };
        Some(self.queues[layer].next(now, &mut self.dropped, repair_only))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.programme.readable()
    }

    fn read(&mut self, now: Time) {
        self.programme.read();
        self.take(now);
    }

    fn deadline(&self) -> Option<Time> {
        self.programme.next_due()
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        if let Observation::Ceiling { rate, cause } = observation
            && let Some(message) = self.ceilings.on_ceiling(now, *rate, *cause)
        {
            self.trouble(now, message, None);
        }
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.take(now);
        self.tell();
        let messages = [self.ceilings.on_time(now), self.unsent.on_time(now, statistics)];
        messages.into_iter().flatten().for_each(|message| self.trouble(now, message, None));
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        if self.outcome.is_none() {
            self.outcome = match () {
                () if self.observer.is_interrupted() && self.is_endless => Some(Exit::Done),
                () if self.observer.is_interrupted() => Some(Exit::Interrupted),
                () if self.ends.is_some_and(|ends| now >= ends) => Some(Exit::Done),
                () if self.is_over(now) => Some(Exit::Done),
                () => None,
            };
        }
        if self.outcome.is_some() || self.is_unheard { Progress::Stop } else { Progress::Continue }
    }
}

impl<'a> MediaSender<'a> {
    fn new(
        args: &SendMedia,
        offer: &Offer,
        survey: Survey,
        mut programme: Programme,
        observer: &'a mut dyn Observer<MediaSenderEvent>,
        started: Time,
        unsent: Unsent,
    ) -> MediaSender<'a> {
        let (format, room) = (&offer.format, offer.room);
        let queue = |layer| {
            let id = StreamId { tsi: offer.description.tsi, start: offer.start, is_repair: false, layer };
            let is_spread = offer.carried.iter().any(|carried| matches!(carried, Carried::All(_)));
            LayerQueue::new(Stream::new(id, format.payload_type, room, args.latency, is_spread), survey.codec)
        };
        programme.told.extend(survey.told);
        MediaSender {
            observer,
            is_unheard: false,
            input: input_in_words(&args.input, &args.layer),
            is_endless: args.input.is_endless(),
            programme,
            queues: (0..survey.layers).map(queue).collect(),
            dropped: Dropped::default(),
            channels: offer.carried.clone(),
            latency: args.latency,
            started,
            ends: args.duration.map(|duration| started + duration),
            over: None,
            shown: started,
            shown_bytes: 0,
            is_told_of_drops: false,
            ceilings: Ceilings::default(),
            unsent,
            outcome: None,
        }
    }

    /// Pictures whose time has come wait for their channels from here on.
    fn take(&mut self, now: Time) {
        while let Some(picture) = self.programme.next(now) {
            let layer = usize::from(picture.info.layer).min(self.queues.len() - 1);
            self.queues[layer].push(now, &picture);
        }
        // A layer whose channels are withheld is not asked for packets.
        self.queues.iter_mut().for_each(|queue| queue.drop_late(now, &mut self.dropped));
        if self.over.is_none() && self.programme.is_over() && self.queues.iter().all(LayerQueue::is_empty) {
            self.over = Some(now);
        }
    }

    /// Whether all pictures went, and what went last was repaired for a while.
    fn is_over(&self, now: Time) -> bool {
        self.over.is_some_and(|over| now.since(over) >= self.latency / 2)
    }

    /// Tells what the input turned out to be like.
    fn tell(&mut self) {
        for message in std::mem::take(&mut self.programme.told) {
            self.trouble(self.started, message, None);
        }
        let total: u64 = self.queues.iter().map(|queue| queue.counts.dropped).sum();
        if total > 0 && !std::mem::replace(&mut self.is_told_of_drops, true) {
            let message = "pictures have waited for longer than half of the latency and are dropped: the programme is faster than \
                           the rates of its layers; --layer-rates raises them, --latency lets pictures wait for longer";
            self.trouble(self.shown, message.to_owned(), None);
        }
    }

    fn counts(&self, of: impl Fn(&Counts) -> u64) -> Vec<u64> {
        self.queues.iter().map(|queue| of(&queue.counts)).collect()
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let sent_bytes = statistics.sent.bytes.count();
        let rate = Bytes::new(sent_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let waited = self.queues.iter().map(|queue| queue.waited(now)).max().unwrap_or_default();
        let (layer_pictures, layer_dropped) = (self.counts(|it| it.pictures), self.counts(|it| it.dropped));
        let event = ProgrammeProgress {
            t_s: self.t_s(now),
            sent_bytes,
            sent_packets: statistics.sent.packets,
            rate_bps: rate.bps(),
            repair_packets: self.counts(|it| it.repair).iter().sum(),
            pictures: layer_pictures.iter().sum(),
            dropped_pictures: layer_dropped.iter().sum(),
            layer_pictures,
            layer_dropped,
            waited_ms: waited.as_secs_f64() * 1e3,
        };
        self.show(&MediaSenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        let mut exit = self.outcome.unwrap_or(Exit::Done);
        if let Some(failure) = self.programme.failure.take() {
            exit = Exit::Files;
            let message = format!("cannot read {} any further: {failure}", self.input);
            self.trouble(now, message, Some(exit));
        }
        let (layer_pictures, layer_dropped) = (self.counts(|it| it.pictures), self.counts(|it| it.dropped));
        let event = ProgrammeEnd {
            t_s: self.t_s(now),
            sent_bytes: statistics.sent.bytes.count(),
            sent_packets: statistics.sent.packets,
            repair_packets: self.counts(|it| it.repair).iter().sum(),
            pictures: layer_pictures.iter().sum(),
            dropped_pictures: layer_dropped.iter().sum(),
            layer_pictures,
            layer_dropped,
            exit_code: exit.code(),
        };
        self.show(&MediaSenderEvent::End(event));
        exit
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&MediaSenderEvent::Error(event));
    }

    fn show(&mut self, event: &MediaSenderEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}
