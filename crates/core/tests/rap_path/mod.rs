//! A path between RAP's source and sink: a round trip of 100 ms, and whatever else befalls packets.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use weir_core::observation::{LayersReport, PaceCause, PaceReport, PayloadFate};
use weir_core::registry::{self, ConfigError, Habitat, Setting, Stream};
use weir_core::{Action, Endpoint, Event, Header, Observation, Origin, Packet, PeerId};
use weir_units::{Bytes, Random, Time};

const ONE_WAY: Duration = Duration::from_millis(50);
const STREAM: Stream = Stream { packet_size: Bytes::new(100), feedback_size: Bytes::new(40), habitat: Habitat::Lab };

/// A packet on its way to the sink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// How many were sent before it.
    pub(crate) number: usize,
    /// When.
    pub(crate) at: Time,
}

type Rule<T> = Box<dyn Fn(T) -> bool>;

/// A path, and what was seen on it.
pub(crate) struct Path {
    now: Time,
    source: Box<dyn Endpoint>,
    sink: Box<dyn Endpoint>,
    /// What happens when, in order.
    agenda: BTreeMap<(Time, u64), Due>,
    scheduled: u64,
    every: Option<Duration>,
    lose: Rule<Sent>,
    mark: Rule<Sent>,
    lose_answers: Rule<usize>,
    delay: Box<dyn Fn(Sent, Duration) -> Duration>,
    sent: Vec<Time>,
    paces: Vec<(Time, PaceReport)>,
    layers: Vec<LayersReport>,
    fates: Vec<(u64, PayloadFate)>,
    newest: u16,
    lost: usize,
    marked: usize,
    answers: usize,
    lost_answers: usize,
    overtaken: usize,
    arrived: usize,
    delivered: usize,
    completed: Vec<Time>,
}

#[derive(Debug, Clone, Copy)]
enum Due {
    AtSink(Packet),
    AtSource(Packet),
    Offer,
}

/// RAP's source with these settings.
pub(crate) fn source(settings: &[(&str, &str)]) -> Result<Box<dyn Endpoint>, ConfigError> {
    let settings: Vec<Setting> =
        settings.iter().map(|(key, value)| Setting { key: (*key).into(), value: (*value).into() }).collect();
    registry::find("rap")?.source(&STREAM, &settings, Random::new(1, "source"))
}

impl Path {
    /// A clean path with a source of these settings on it, without fine grain and at most 2 Mbit/s if they do not ask for it.
    pub(crate) fn new(settings: &[(&str, &str)]) -> Path {
        let settings: Vec<_> = [("fine_grain", "no"), ("max_rate", "2M")].iter().chain(settings).copied().collect();
        let mut path = Path {
            now: Time::ZERO,
            source: source(&settings).expect("valid settings"),
            sink: registry::find("rap")
                .and_then(|rap| rap.sink(&STREAM, &[], Random::new(1, "sink")))
                .expect("defaults are valid"),
            agenda: BTreeMap::new(),
            scheduled: 0,
            every: None,
            lose: Box::new(|_| false),
            mark: Box::new(|_| false),
            lose_answers: Box::new(|_| false),
            delay: Box::new(|_, _| Duration::ZERO),
            sent: Vec::new(),
            paces: Vec::new(),
            layers: Vec::new(),
            fates: Vec::new(),
            newest: 0,
            lost: 0,
            marked: 0,
            answers: 0,
            lost_answers: 0,
            overtaken: 0,
            arrived: 0,
            delivered: 0,
            completed: Vec::new(),
        };
        path.give_source(Event::Start);
        path.give_sink(Event::Start);
        path
    }

    /// How the layers of the stream stood, each time that its source looked.
    pub(crate) fn layers(&self) -> &[LayersReport] {
        &self.layers
    }

    /// What the source told of payloads.
    pub(crate) fn fates(&self) -> &[(u64, PayloadFate)] {
        &self.fates
    }

    pub(crate) fn lose(&mut self, rule: impl Fn(Sent) -> bool + 'static) {
        self.lose = Box::new(rule);
    }

    pub(crate) fn lose_answers(&mut self, rule: impl Fn(usize) -> bool + 'static) {
        self.lose_answers = Box::new(rule);
    }

    pub(crate) fn mark(&mut self, rule: impl Fn(Sent) -> bool + 'static) {
        self.mark = Box::new(rule);
    }

    /// Packets take longer by what `rule` says of them and of the gap since the one before.
    pub(crate) fn delay(&mut self, rule: impl Fn(Sent, Duration) -> Duration + 'static) {
        self.delay = Box::new(rule);
    }

    pub(crate) fn offer(&mut self, packets: u64) {
        self.give_source(Event::Offer { packets });
    }

    pub(crate) fn end(&mut self) {
        self.give_source(Event::End);
    }

    pub(crate) fn offer_every(&mut self, span: Duration) {
        self.every = Some(span);
        self.schedule(self.now + span, Due::Offer);
    }

    pub(crate) fn run_until(&mut self, until: Time) {
        loop {
            let deadline = self.source.deadline().map(|at| at.max(self.now));
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (deadline, next) {
                (Some(at), next) if at <= until && next.is_none_or(|next| at < next) => {
                    self.now = at;
                    self.give_source(Event::Deadline);
                }
                (_, Some(at)) if at <= until => {
                    self.now = at;
                    let (_, due) = self.agenda.pop_first().expect("there is a next");
                    self.carry_out(due);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn carry_out(&mut self, due: Due) {
        let from = Origin::Peer(PeerId(0));
        match due {
            Due::AtSink(packet) => {
                self.arrived += 1;
                if let Header::Paced(paced) = packet.header {
                    self.overtaken += usize::from(paced.sequence < self.newest);
                    self.newest = self.newest.max(paced.sequence);
                }
                self.give_sink(Event::Packet { from, packet: &packet });
            }
            Due::AtSource(packet) => self.give_source(Event::Packet { from, packet: &packet }),
            Due::Offer => {
                self.offer(1);
                self.offer_every(self.every.expect("somebody offers"));
            }
        }
    }

    fn give_source(&mut self, event: Event<'_>) {
        self.source.handle(self.now, event);
        while let Some(action) = self.source.poll(self.now) {
            match action {
                Action::Send { packet, .. } => self.forward(packet),
                Action::Observe(Observation::Pace(pace)) => self.paces.push((self.now, pace)),
                Action::Observe(Observation::Layers(report)) => self.layers.push(report),
                Action::Observe(Observation::Payload { number, fate }) => self.fates.push((number, fate)),
                Action::Complete => self.completed.push(self.now),
                _ => {}
            }
        }
    }

    fn forward(&mut self, mut packet: Packet) {
        let sent = Sent { number: self.sent.len(), at: self.now };
        let gap = self.sent.last().map_or(Duration::ZERO, |before| self.now.since(*before));
        self.sent.push(self.now);
        if (self.lose)(sent) {
            self.lost += 1;
            return;
        }
        if (self.mark)(sent) && packet.ecn.mark() {
            self.marked += 1;
        }
        self.schedule(self.now + ONE_WAY + (self.delay)(sent, gap), Due::AtSink(packet));
    }

    fn give_sink(&mut self, event: Event<'_>) {
        self.sink.handle(self.now, event);
        while let Some(action) = self.sink.poll(self.now) {
            match action {
                Action::Send { packet, .. } => {
                    self.answers += 1;
                    if (self.lose_answers)(self.answers) {
                        self.lost_answers += 1;
                    } else {
                        self.schedule(self.now + ONE_WAY, Due::AtSource(packet));
                    }
                }
                Action::Deliver { .. } => self.delivered += 1,
                _ => {}
            }
        }
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.scheduled += 1;
        self.agenda.insert((at, self.scheduled), due);
    }

    /// The reports with this cause.
    pub(crate) fn paces(&self, cause: PaceCause) -> Vec<(Time, PaceReport)> {
        self.paces.iter().filter(|(_, pace)| pace.cause == cause).copied().collect()
    }

    pub(crate) fn packet_size(&self) -> Bytes {
        STREAM.packet_size
    }

    pub(crate) fn sent_between(&self, from: Time, to: Time) -> usize {
        self.sent.iter().filter(|at| (from..to).contains(*at)).count()
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost
    }

    pub(crate) fn marked(&self) -> usize {
        self.marked
    }

    pub(crate) fn lost_answers(&self) -> usize {
        self.lost_answers
    }

    /// Packets that came after one with a higher number.
    pub(crate) fn overtaken(&self) -> usize {
        self.overtaken
    }

    pub(crate) fn arrived(&self) -> usize {
        self.arrived
    }

    /// When the source said that the stream is complete.
    pub(crate) fn completed(&self) -> &[Time] {
        &self.completed
    }

    pub(crate) fn delivered(&self) -> usize {
        self.delivered
    }
}

/// The last report at a time for which `when` holds.
pub(crate) fn pace_of(path: &Path, when: impl Fn(Time) -> bool) -> PaceReport {
    path.paces.iter().rev().find(|(at, _)| when(*at)).expect("the source reported").1
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path").field("now", &self.now).field("source", &self.source).finish_non_exhaustive()
    }
}
