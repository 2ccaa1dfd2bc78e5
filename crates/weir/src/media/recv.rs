//! `weir recv` of a session of layered media: takes as many layers as the path carries, and gives out what a decoder can decode.

use std::io;
use std::time::Duration;

use weir_core::observation::Observation;
use weir_media::Codec;
use weir_net::clock::Clock;
use weir_net::description::MediaFormat;
use weir_net::host::{Application, Delivery, Host, Progress, Statistics};
use weir_object::store;
use weir_units::{Bytes, Rate, Time};
use weir_wire::media::Media;

use super::events::{MediaReceiverEvent, WatchEnd, WatchProgress, WatchStart};
use super::goodbye::Goodbye;
use super::output::{Screen, write_sdp};
use super::starts::Starts;
use super::watch::Watch;
use crate::args::Recv;
use crate::events::{Level, Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::live::{Output, open_outlet};
use crate::observer::Observer;
use crate::progress::PROGRESS_INTERVAL;
use crate::recv::{Wanted, receive_buffer, sender_key, session_config, words};
use crate::silence::Silence;
use crate::{sealing, session};

/// Takes a programme until its sender ends it.
pub(crate) fn run(
    args: &Recv,
    wanted: &Wanted,
    format: &MediaFormat,
    observer: &mut dyn Observer<MediaReceiverEvent>,
) -> Result<Exit, Failure> {
    let output = output(args)?;
    let codec = codec(format)?;
    let endpoint = wanted.description.receiver_endpoint(session::random_stream("receiver")?);
    let endpoint = endpoint.map_err(|error| wanted.refuse(error))?.expect("media have congestion control");
    let config = session_config(args, receive_buffer(&wanted.description))?;
    let mut tenant = weir_net::session::media_receiver(&wanted.description, endpoint, &config)
        .map_err(Failure::of(Exit::Network, "cannot receive"))?;
    let ssrc = u32::from_be_bytes(session::random()?);
    let outlet = open_outlet(&output, args.overwrite)?;
    let starts = Starts::open(&wanted.description, &output);
    sealing::open(&mut tenant, 0, &wanted.description, starts.least(), args.name.as_deref())?;
    let screen =
        Screen::new(outlet, codec, ssrc).map_err(Failure::of(Exit::Files, format!("cannot write to {output}")))?;
    if let (Some(path), Output::Rtp(to)) = (&args.sdp, &output) {
        let failed = Failure::of(Exit::Files, format!("cannot write {}", path.display()));
        write_sdp(path, *to, codec).map_err(failed)?;
    }
    let latency = args.latency.unwrap_or_default().max(Duration::from_millis(u64::from(format.latency_ms)));
    let clock = Clock::new();
    let started = clock.now();
    let mut run = MediaReceiver {
        observer,
        is_unheard: false,
        watch: Watch::new(codec, format.layer_count(), latency),
        screen,
        output,
        latency,
        started,
        ends: args.duration.map(|duration| started + duration),
        idle_timeout: args.idle_timeout,
        last_packet: started,
        goodbye: Goodbye::default(),
        starts,
        shown: started,
        shown_bytes: 0,
        shown_packets: 0,
        observed: Observed::default(),
        silence: Silence::new(&wanted.description, &wanted.interface, 0, started),
        first_picture: None,
        longest_lag: None,
        outcome: None,
        reason: "stopped",
    };
    run.show(&MediaReceiverEvent::Start(start_event(args, wanted, format, &run)));
    wanted.told.iter().for_each(|told| run.trouble(started, told.clone(), None));
    run.tell_of_starts(started);
    let statistics = Host::run_one(tenant, &mut run).map_err(Failure::of(Exit::Network, "cannot receive"))?;
    Ok(run.end(clock.now(), &statistics))
}

/// Where the pictures go; options that mean nothing for them are refused.
fn output(args: &Recv) -> Result<Output, Failure> {
    let usage = |text: &str| Failure::new(Exit::Usage, text.to_owned());
    if args.hook.is_some() {
        return Err(usage("--hook runs after sessions of files, and this is one of layered media"));
    }
    let text = args.out.as_deref().map_or(Some("-"), std::path::Path::to_str);
    let text = text.ok_or_else(|| usage("--out must be text"))?;
    let output: Output =
        text.parse().map_err(|error: crate::args::ValueError| usage(&format!("--out {text}: {error}")))?;
    match &output {
        Output::Stdout if args.output.json => {
            Err(usage("with --json, events take standard output; send the pictures elsewhere with --out"))
        }
        Output::Udp(_) => Err(usage("layered media go to players as RTP: --out rtp://ADDR:PORT")),
        Output::Rtp(_) => Ok(output),
        _ if args.sdp.is_some() => Err(usage("--sdp describes what --out rtp://ADDR:PORT sends; give that too")),
        _ => Ok(output),
    }
}

/// The codec that a description names.
fn codec(format: &MediaFormat) -> Result<Codec, Failure> {
    codec_named(&format.encoding).map_err(|text| Failure::new(Exit::Session, text))
}

/// The codec of this encoding name, or what to tell the user.
pub(super) fn codec_named(name: &str) -> Result<Codec, String> {
    Codec::ALL.into_iter().find(|codec| codec.encoding_name() == name).ok_or_else(|| {
        let names = Codec::ALL.map(Codec::encoding_name).join(", ");
        format!("the session's pictures are {name}, and this weir knows {names}")
    })
}

fn start_event(args: &Recv, wanted: &Wanted, format: &MediaFormat, run: &MediaReceiver<'_>) -> WatchStart {
    let description = &wanted.description;
    WatchStart {
        role: Role::Receiver,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: description.name.clone(),
        tsi: u64::from(description.tsi),
        scheme: description.control.as_ref().map(|control| control.scheme.clone()).unwrap_or_default(),
        rates_bps: wanted.levels.iter().map(|rate| rate.bps()).collect(),
        address: description.channels[0].to_string(),
        interface: wanted.interface.name.clone(),
        link_bps: args.link.as_ref().and_then(|link| link.rate).map(Rate::bps),
        out: run.output.to_string(),
        encoding: format.encoding.clone(),
        layers: format.layer_count(),
        latency_ms: run.latency.as_millis() as u64,
        sender_key: sender_key(description),
    }
}

/// A running receiver.
struct MediaReceiver<'a> {
    observer: &'a mut dyn Observer<MediaReceiverEvent>,
    /// The observer wants the run to end.
    is_unheard: bool,
    watch: Watch,
    screen: Screen,
    output: Output,
    latency: Duration,
    started: Time,
    ends: Option<Time>,
    idle_timeout: Option<Duration>,
    last_packet: Time,
    goodbye: Goodbye,
    starts: Starts,
    shown: Time,
    shown_bytes: u64,
    shown_packets: u64,
    observed: Observed,
    silence: Silence,
    first_picture: Option<Time>,
    /// Of what was given out since the last progress event.
    longest_lag: Option<Duration>,
    outcome: Option<Exit>,
    reason: &'static str,
}

/// What the scheme has told of itself.
#[derive(Debug, Default)]
struct Observed {
    level: usize,
    lost_packets: u64,
}

impl Application<Media> for MediaReceiver<'_> {
    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Media>) {
        self.watch.take(now, delivery.label, delivery.payload);
    }

    fn batch_end(&mut self) {
        self.give_out(Clock::new().now());
    }

    fn deadline(&self) -> Option<Time> {
        self.watch.deadline()
    }

    fn observe(&mut self, now: Time, observation: &Observation) {
        match observation {
            Observation::Level { level, rate, cause } => {
                self.observed.level = *level;
                let event = Level { t_s: self.t_s(now), level: *level, rate_bps: rate.bps(), cause: (*cause).into() };
                self.show(&MediaReceiverEvent::Level(event));
            }
            Observation::Slot(report) => self.observed.lost_packets += report.lost_packets,
            Observation::Flooded { received_rate } => self.trouble(now, words::flooded(*received_rate), None),
            Observation::LossyPath { lost } => self.trouble(now, words::lossy(*lost), None),
            _ => {}
        }
    }

    fn begun(&mut self, now: Time, _session: usize, epoch: u64) {
        self.starts.heard(epoch);
        self.tell_of_starts(now);
    }

    fn closed(&mut self, now: Time, _session: usize) {
        self.goodbye.hear(now);
    }

    fn reopened(&mut self, _now: Time, _session: usize) {
        self.goodbye.take_back();
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.give_out(now);
        if statistics.received.packets > self.shown_packets {
            (self.shown_packets, self.last_packet) = (statistics.received.packets, now);
        }
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics);
        }
        let no_tables = store::Progress { manifest_complete: true, ..store::Progress::default() };
        if !self.goodbye.stands()
            && let Some(waiting) = self.silence.look(now, statistics, &no_tables)
        {
            let t_s = self.t_s(now);
            self.show(&MediaReceiverEvent::Waiting(crate::events::Waiting { t_s, ..waiting }));
        }
        if self.outcome.is_none() {
            self.outcome = self.reason_to_stop(now);
        }
        if self.outcome.is_some() { Progress::Stop } else { Progress::Continue }
    }
}

impl MediaReceiver<'_> {
    fn reason_to_stop(&mut self, now: Time) -> Option<Exit> {
        let idle = now.since(self.last_packet);
        if self.is_unheard || self.observer.is_interrupted() {
            Some(Exit::Done)
        } else if self.ends.is_some_and(|ends| now >= ends) {
            // To watch for a while is what was asked for; to have seen nothing is not.
            Some(if self.first_picture.is_some() { Exit::Done } else { Exit::Incomplete })
        } else if self.watch.deadline().is_none() && self.goodbye.counts(now, self.last_packet) {
            self.reason = "bye";
            Some(if self.first_picture.is_some() { Exit::Done } else { Exit::Incomplete })
        } else if self.idle_timeout.is_some_and(|timeout| idle >= timeout) {
            self.reason = "silent";
            self.trouble(now, format!("no packet has come for {} s", idle.as_secs()), Some(Exit::Incomplete));
            Some(Exit::Incomplete)
        } else {
            None
        }
    }

    /// Gives out the pictures whose time has come.
    fn give_out(&mut self, now: Time) {
        while let Some((picture, late)) = self.watch.pop(now, self.screen.is_full()) {
            self.first_picture.get_or_insert(now);
            self.longest_lag = self.longest_lag.max(Some(self.latency + late));
            self.screen.put(picture);
        }
        if let Some(error) = self.screen.failure().filter(|_| self.outcome.is_none()) {
            self.fail(now, &error);
        }
    }

    fn fail(&mut self, now: Time, error: &io::Error) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.outcome = Some(Exit::Done);
            return;
        }
        (self.outcome, self.reason) = (Some(Exit::Files), "failed");
        let message = format!("cannot write to {}: {error}", self.output);
        self.trouble(now, message, Some(Exit::Files));
    }

    fn progress(&mut self, now: Time, statistics: &Statistics) {
        let received_bytes = statistics.received.bytes.count();
        let rate = Bytes::new(received_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, received_bytes);
        let counts = &self.watch.counts;
        let event = WatchProgress {
            t_s: self.t_s(now),
            received_bytes,
            received_packets: statistics.received.packets,
            rate_bps: rate.bps(),
            level: self.observed.level,
            pictures: counts.pictures.iter().sum(),
            withheld_pictures: counts.withheld.iter().sum(),
            layer_pictures: counts.pictures.clone(),
            layer_withheld: counts.withheld.clone(),
            lost_packets: self.observed.lost_packets,
            recovered_packets: counts.recovered,
            lag_ms: self.longest_lag.take().map(|lag| lag.as_secs_f64() * 1e3),
        };
        self.show(&MediaReceiverEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &Statistics) -> Exit {
        if let Err(error) = self.screen.close() {
            self.fail(now, &error);
        }
        let exit = self.outcome.unwrap_or(Exit::Done);
        let counts = &self.watch.counts;
        let event = WatchEnd {
            t_s: self.t_s(now),
            reason: self.reason.to_owned(),
            received_bytes: statistics.received.bytes.count(),
            received_packets: statistics.received.packets,
            pictures: counts.pictures.iter().sum(),
            withheld_pictures: counts.withheld.iter().sum(),
            layer_pictures: counts.pictures.clone(),
            layer_withheld: counts.withheld.clone(),
            late_pictures: counts.late,
            lost_packets: self.observed.lost_packets,
            recovered_packets: counts.recovered,
            first_picture_s: self.first_picture.map(|at| at.since(self.started).as_secs_f64()),
            longest_pause_ms: counts.longest_pause.map(|pause| pause.as_secs_f64() * 1e3),
            ignored_packets: statistics.ignored.total(),
            forged_packets: statistics.ignored.forged,
            exit_code: exit.code(),
        };
        self.show(&MediaReceiverEvent::End(event));
        exit
    }

    fn tell_of_starts(&mut self, now: Time) {
        if let Some(told) = self.starts.told() {
            self.trouble(now, told, None);
        }
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&MediaReceiverEvent::Error(event));
    }

    fn show(&mut self, event: &MediaReceiverEvent) {
        self.is_unheard |= self.observer.event(event).is_break();
    }
}
