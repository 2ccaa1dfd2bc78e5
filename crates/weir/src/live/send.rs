//! `weir send live`: paces an input to whoever asks for it, one viewer at a time, until the input ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

use weir_core::Endpoint;
use weir_core::observation::{Observation, PaceCause, PaceReport};
use weir_core::registry::{Habitat, Stream};
use weir_net::NetError;
use weir_net::clock::Clock;
use weir_net::socket::header_len;
use weir_net::stream::door::Viewer;
use weir_net::stream::source::{Leave, Source as Driver, SourceApplication, SourceConfig, SourceStatistics, Supply};
use weir_units::{Bytes, Random, Time};
use weir_wire::rtcp::congestion;
use weir_wire::rtp::Rtp;

use super::events::{LiveEnd, LiveSenderEvent, SendProgress, SendStart, ViewerChange};
use super::input::{Input, Source};
use crate::args::SendLive;
use crate::events::{Role, Trouble};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::progress::{Display, PROGRESS_INTERVAL, Stdout, Style};
use crate::session;

/// Runs the command.
pub(crate) fn run(args: &SendLive) -> Result<Exit, Failure> {
    // A bad setting is told before anybody comes.
    let packet_size = Bytes::new(u64::from(args.packet_size));
    let stream = stream(packet_size, Ipv4Addr::UNSPECIFIED.into());
    args.cc.check_stream(&stream, &args.cc_set).map_err(|error| {
        Failure::new(Exit::Usage, format!("{error}; `weir schemes` lists schemes and their settings"))
    })?;
    let interrupt = Interrupt::install(|| {}).map_err(Failure::of(Exit::Internal, "cannot watch for Ctrl-C"))?;
    let room = usize::from(args.packet_size) - header_len(Ipv6Addr::UNSPECIFIED.into()) as usize - Rtp::LEN;
    let random = u32::from_be_bytes(session::random()?);
    let mut source = Source::open(&args.input, room, args.payload_type, random)
        .map_err(Failure::of(Exit::Files, format!("cannot read {}", args.input)))?;
    let driver = listen(args)?;
    let clock = Clock::new();
    let mut run = Run {
        args,
        display: Display::new(Style::of(&args.output)),
        interrupt,
        random: session::random_stream("viewers")?,
        started: clock.now(),
        shown: clock.now(),
        shown_bytes: 0,
        viewer: None,
        pace: None,
        backoffs: 0,
        last_leave: None,
        outcome: None,
    };
    run.show(&LiveSenderEvent::Start(SendStart {
        role: Role::Sender,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scheme: args.cc.name.to_owned(),
        address: driver.local().to_string(),
        input: args.input.to_string(),
    }));
    let statistics = driver.run(&mut source, &mut run).map_err(Failure::of(Exit::Network, "cannot send"))?;
    Ok(run.end(clock.now(), &statistics, &source))
}

fn listen(args: &SendLive) -> Result<Driver, Failure> {
    let config = |listen| -> Result<SourceConfig, Failure> {
        let secret = session::random()?;
        let config = SourceConfig::new(listen, args.cc.name, secret);
        Ok(SourceConfig { silence: args.silence, capture: args.output.pcap.clone(), ..config })
    };
    let failed = Failure::of(Exit::Network, "cannot wait for viewers");
    let outcome = Driver::new(&config(args.unicast)?);
    match outcome {
        // A host without IPv6 has IPv4 at least.
        Err(NetError::Socket { .. }) if args.unicast.ip() == Ipv6Addr::UNSPECIFIED => {
            let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), args.unicast.port());
            Driver::new(&config(any)?).map_err(failed)
        }
        outcome => outcome.map_err(failed),
    }
}

fn stream(packet_size: Bytes, viewer: IpAddr) -> Stream {
    let feedback_size = Bytes::new(header_len(viewer) + congestion::MAX_LEN as u64);
    Stream { packet_size, feedback_size, habitat: Habitat::Sockets }
}

/// A running sender, as its user sees it.
struct Run<'a> {
    args: &'a SendLive,
    display: Display,
    interrupt: Interrupt,
    random: Random,
    started: Time,
    shown: Time,
    shown_bytes: u64,
    viewer: Option<Viewer>,
    /// The last that was heard of the pace to this viewer.
    pace: Option<PaceReport>,
    backoffs: u64,
    /// How the last viewer left.
    last_leave: Option<Leave>,
    outcome: Option<Exit>,
}

impl SourceApplication for Run<'_> {
    fn came(&mut self, now: Time, viewer: Viewer, packet_size: Bytes) -> Box<dyn Endpoint> {
        (self.viewer, self.pace) = (Some(viewer), None);
        self.viewer_change(now, viewer, "came");
        let random = Random::new(self.random.bits(), "source");
        let endpoint = self.args.cc.source(&stream(packet_size, viewer.address.ip()), &self.args.cc_set, random);
        endpoint.expect("the same settings were good at the start")
    }

    fn left(&mut self, now: Time, viewer: Viewer, why: Leave) {
        (self.viewer, self.last_leave) = (None, Some(why));
        let what = match why {
            Leave::Bye => "bye",
            Leave::Finished => "finished",
            Leave::Stopped => "stopped",
            Leave::Silent => "silent",
            Leave::Refused => "refused",
        };
        self.viewer_change(now, viewer, what);
    }

    fn observe(&mut self, _now: Time, observation: &Observation) {
        if let Observation::Pace(report) = observation {
            let is_backoff = matches!(report.cause, PaceCause::Loss | PaceCause::Timeout | PaceCause::Mark);
            self.backoffs += u64::from(is_backoff);
            self.pace = Some(*report);
        }
    }

    fn tick(&mut self, now: Time, statistics: &SourceStatistics, supply: &dyn Supply) -> ControlFlow<()> {
        if now.since(self.shown) >= PROGRESS_INTERVAL {
            self.progress(now, statistics, supply);
        }
        if self.interrupt.is_set() && self.outcome.is_none() {
            // An input without an end is ended so.
            let is_endless = matches!(self.args.input, Input::Rtp(_));
            self.outcome = Some(if is_endless { Exit::Done } else { Exit::Interrupted });
        }
        if self.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Run<'_> {
    fn viewer_change(&mut self, now: Time, viewer: Viewer, what: &str) {
        let event = ViewerChange { t_s: self.t_s(now), viewer: viewer.address.to_string(), what: what.to_owned() };
        self.show(&LiveSenderEvent::Viewer(event));
    }

    fn progress(&mut self, now: Time, statistics: &SourceStatistics, supply: &dyn Supply) {
        let sent_bytes = statistics.sent.bytes.count();
        let rate = Bytes::new(sent_bytes - self.shown_bytes).per(now.since(self.shown));
        (self.shown, self.shown_bytes) = (now, sent_bytes);
        let event = SendProgress {
            t_s: self.t_s(now),
            viewer: self.viewer.map(|viewer| viewer.address.to_string()),
            sent_bytes,
            sent_packets: statistics.sent.packets,
            rate_bps: rate.bps(),
            allowed_bps: self.pace.map(|pace| pace.rate.bps()),
            round_trip_ms: self.pace.map(|pace| pace.smoothed_round_trip.as_secs_f64() * 1e3),
            backoffs: self.backoffs,
            waiting: supply.waiting(),
            dropped: supply.dropped(),
        };
        self.show(&LiveSenderEvent::Progress(event));
    }

    fn end(mut self, now: Time, statistics: &SourceStatistics, source: &Source) -> Exit {
        let mut exit = self.outcome.unwrap_or(match self.last_leave {
            Some(Leave::Silent | Leave::Refused) => Exit::Incomplete,
            _ => Exit::Done,
        });
        if let Some(error) = source.failure() {
            exit = Exit::Files;
            self.trouble(now, format!("cannot read {} any further: {error}", self.args.input), Some(exit));
        }
        if source.too_large() > 0 {
            let message = format!(
                "{} RTP packets were not sent, as they are larger than --packet-size {} allows",
                source.too_large(),
                self.args.packet_size
            );
            self.trouble(now, message, None);
        }
        if let Some(error) = statistics.last_refusal {
            let refused = statistics.refused;
            let message = format!(
                "the system refused {refused} packets: {error}; if it says that they are too long, try a smaller --packet-size"
            );
            self.trouble(now, message, None);
        }
        let event = LiveEnd {
            t_s: self.t_s(now),
            sent_bytes: statistics.sent.bytes.count(),
            sent_packets: statistics.sent.packets,
            payload_bytes: statistics.payload.count(),
            viewers: statistics.viewers,
            dropped: source.dropped(),
            ignored: statistics.ignored.total(),
            turned_away: statistics.turned_away,
            exit_code: exit.code(),
        };
        self.show(&LiveSenderEvent::End(event));
        exit
    }

    fn t_s(&self, now: Time) -> f64 {
        now.since(self.started).as_secs_f64()
    }

    fn trouble(&mut self, now: Time, message: String, exit: Option<Exit>) {
        let event = Trouble { t_s: self.t_s(now), message, exit_code: exit.map(Exit::code) };
        self.show(&LiveSenderEvent::Error(event));
    }

    /// Nobody left to read what this prints is no reason to send on for ever, nor a failure.
    fn show(&mut self, event: &LiveSenderEvent) {
        if self.display.live_sender(event) == Stdout::Closed && self.outcome.is_none() {
            self.outcome = Some(Exit::Done);
        }
    }
}
