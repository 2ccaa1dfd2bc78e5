//! The source: it sends by its gap, and changes the gap by what comes back (§III).

use core::time::Duration;

use weir_units::{Bytes, Ecn, Seq, Time};
use weir_wire::{Feedback, Paced};

use super::config::{Config, Growth, Losses, SILENT_TIMEOUTS};
use super::history::History;
use super::pace::Pace;
use super::quality::{Carried, LayerManager, Turn};
use super::repair::Repair;
use super::round_trip::RoundTrip;
use super::standing::Standing;
use super::usage::Usage;
use crate::definition::Stream;
use crate::endpoint::{Action, Destination, Endpoint, Event, Header, Packet, PeerId};
use crate::observation::{Observation, PaceCause, PaceReport, PayloadFate};
use crate::outbox::Outbox;

/// The one whom a source sends to.
const SINK: PeerId = PeerId(0);

/// The source of a stream.
#[derive(Debug)]
pub struct Source {
    packet_size: Bytes,
    config: Config,
    pace: Pace,
    round_trip: RoundTrip,
    standing: Standing,
    usage: Usage,
    history: History,
    repair: Option<Repair>,
    /// The layers of the stream, if it has any (decision 15).
    layers: Option<LayerManager>,
    /// The receiver's buffers are full until then.
    rests_until: Time,
    /// Payloads that the application has.
    offered: u64,
    path: Path,
    /// From when the gap to the next packet counts; `None` before the first packet.
    anchor: Option<Time>,
    /// When the next packet may go.
    due: Time,
    step: Step,
    /// The last packet that was on its way at the last back-off: its loss, or an earlier one's, is of the same cluster (Eq. 6).
    reacted_to: Option<Seq>,
    actions: Outbox,
    end: End,
    finished: bool,
}

/// How far the end of the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The application may offer more.
    Open,
    /// It has offered everything.
    Offered,
    /// Everything is sent, and acknowledged or given up.
    Complete,
}

/// What is known of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Path {
    /// Nothing has come back yet.
    Unknown,
    /// It answers.
    Alive,
    /// Of the last packets, none was acknowledged in time.
    Failing {
        /// Back-offs for it.
        timeouts: u32,
        /// The gap before the first of them, seconds.
        gap: f64,
    },
    /// It does not answer any more (decision 6).
    Silent {
        /// The gap when it last did, seconds.
        gap: f64,
    },
}

/// The time between two points at which the gap is adjusted.
#[derive(Debug, Clone, Copy)]
struct Step {
    end: Time,
    /// Whether anything came back.
    heard: bool,
    /// Whether a packet could have gone and there was none.
    limited: bool,
}

impl Source {
    /// A source that has sent nothing.
    pub fn new(stream: &Stream, config: Config) -> Source {
        Source {
            packet_size: stream.packet_size,
            pace: Pace::new(stream.packet_size, &config),
            round_trip: RoundTrip::new(config.timing, config.fine_grain),
            repair: config.repair.map(Repair::new),
            layers: config.quality().map(LayerManager::new),
            rests_until: Time::ZERO,
            config,
            standing: Standing::new(),
            usage: Usage::default(),
            history: History::default(),
            offered: 0,
            path: Path::Unknown,
            anchor: None,
            due: Time::ZERO,
            step: Step { end: Time::ZERO, heard: false, limited: false },
            reacted_to: None,
            actions: Outbox::default(),
            end: End::Open,
            finished: false,
        }
    }

    fn offer(&mut self, now: Time, packets: u64) {
        if !self.has_work() && packets > 0 && now > self.due {
            self.step.limited = self.anchor.is_some();
            if self.step.limited {
                self.usage.limited(now);
            }
            self.end_idleness(now);
            self.due = now;
        }
        self.offered = self.offered.saturating_add(packets);
    }

    /// Whether the next packet would have something to carry.
    #[inline]
    fn has_work(&self) -> bool {
        self.offered > 0
            || match &self.layers {
                Some(layers) => layers.has_lost(),
                None => self.repair.as_ref().is_some_and(Repair::is_wanted),
            }
    }

    /// When the next packet goes, if there is one.
    #[inline]
    fn next_at(&self) -> Time {
        self.due.max(self.rests_until)
    }

    /// The rate was not used for a while: it halves with every time-out, down to one packet a round trip, and may double back
    /// to what it was (decision 5).
    fn end_idleness(&mut self, now: Time) {
        let halvings = now.since(self.due).as_nanos() / self.round_trip.timeout().as_nanos().max(1);
        let (gap, least) = (self.pace.gap(), self.round_trip.smoothed());
        if self.path == Path::Alive && halvings > 0 && gap < least {
            let halved = gap * (1u64 << halvings.min(60)) as f64;
            self.pace.restart(halved.min(least), gap);
            self.begin_step(now);
        }
    }

    fn on_deadline(&mut self, now: Time) {
        if self.path == Path::Alive && self.step.end <= now {
            self.end_step(now);
        }
        if self.ends_at().is_some_and(|at| at <= now) {
            self.gives_up_overdue(now);
        }
        while self.next_at() <= now && self.has_work() {
            if self.gives_up_overdue(now) {
                if !self.config.moves_the_waiting {
                    self.due = now + self.interval();
                }
                continue;
            }
            if self.history.has_room() && !self.send(now) {
                break;
            }
            self.schedule(now);
        }
    }

    /// Sends the next packet, unless there is nothing that it could carry.
    fn send(&mut self, now: Time) -> bool {
        let Some(content) = self.choose(now) else { return false };
        let number = match content {
            Content::Again(number) => Some(number),
            Content::New | Content::OfLayer { .. } => {
                self.offered -= u64::from(self.offered != u64::MAX);
                self.take(now)
            }
        };
        if let (Content::OfLayer { layer, from }, Some(number), Some(layers)) = (content, number, &mut self.layers) {
            let (bytes, span) = (self.packet_size, layers.span(layer, self.packet_size));
            layers.on_sent(now, &Carried { number, layer, from, span, bytes });
        }
        let sequence = self.history.send(now, number).truncate(16) as u16;
        let ecn = if self.config.ecn { Ecn::Ect } else { Ecn::NotEct };
        let kept = number.filter(|_| self.repair.is_some());
        let payload = number.filter(|_| self.repair.is_some() || self.config.tells).map(|number| number as u16);
        let packet = Packet { header: Header::Paced(Paced { sequence, payload }), size: self.packet_size, ecn };
        let to = Destination::Peer(SINK);
        self.actions.push(match kept {
            Some(number) => Action::send_kept(to, packet, number),
            None => Action::send_fresh(to, packet),
        });
        true
    }

    /// What the next packet carries, if anything.
    fn choose(&mut self, now: Time) -> Option<Content> {
        let has_new = self.offered > 0;
        let Some(layers) = &mut self.layers else {
            let trip = Duration::from_secs_f64(self.round_trip.smoothed() / 2.0);
            let again = self.repair.as_mut().and_then(|repair| repair.next(now, trip));
            return again.map(Content::Again).or(has_new.then_some(Content::New));
        };
        while let Some(turn) = layers.next(now, |_| has_new) {
            match turn {
                Turn::New { layer, from } => return Some(Content::OfLayer { layer, from }),
                Turn::Again { number, .. } if self.repair.as_ref().is_some_and(|repair| repair.keeps(number)) => {
                    return Some(Content::Again(number));
                }
                Turn::Again { .. } => {}
            }
        }
        if has_new {
            let wanted = layers.wants_at(now, |_| true).unwrap_or(now);
            self.rests_until = wanted.max(now + self.pace.interval(1.0));
            self.step.limited = true;
            self.usage.limited(now);
        }
        None
    }

    /// The application's next payload is kept, if it may be sent again; gives its number, if it has one.
    fn take(&mut self, now: Time) -> Option<u64> {
        let Some(repair) = &mut self.repair else {
            // Each packet has a payload of its own, so that its number is the packet's.
            return (self.layers.is_some() || self.config.tells).then(|| self.history.next().value());
        };
        if let Some(below) = repair.forget(now) {
            self.actions.push(Action::Release { below });
        }
        let number = repair.take(now);
        self.actions.push(Action::Take { number });
        Some(number)
    }

    /// What was given up goes again.
    fn collect_lost(&mut self, now: Time) {
        while let Some(payload) = self.history.next_lost() {
            self.tell_of(payload, PayloadFate::Lost);
            if let Some(layers) = &mut self.layers {
                layers.on_lost(now, payload);
                self.rests_until = Time::ZERO;
            } else if let Some(repair) = &mut self.repair {
                repair.note_lost(payload);
            }
        }
    }

    /// Tells what has become of a payload.
    fn tell_of(&mut self, number: u64, fate: PayloadFate) {
        if self.config.tells {
            self.actions.push(Action::Observe(Observation::Payload { number, fate }));
        }
    }

    /// When the last packet's acknowledgement is overdue, if nothing is left to send and somebody waits for its fate.
    #[inline]
    fn ends_at(&self) -> Option<Time> {
        let is_awaited = self.end == End::Offered || self.config.tells;
        if !is_awaited || self.has_work() || self.history.outstanding() == 0 {
            return None;
        }
        self.history.last_sent().map(|at| at + self.round_trip.timeout())
    }

    /// The stream is complete when the application has offered everything, and nothing of it is on its way.
    fn look_for_completion(&mut self) {
        if self.end == End::Offered && !self.has_work() && self.history.outstanding() == 0 {
            self.end = End::Complete;
            self.actions.push(Action::Complete);
        }
    }

    /// When the next packet may go: a gap after this one should have gone, if that is not too long ago.
    fn schedule(&mut self, now: Time) {
        let late = now.since(self.due);
        let anchor = if late <= self.config.catch_up { self.due } else { now };
        self.anchor = Some(anchor);
        self.due = anchor + self.interval();
    }

    /// The gap has changed: so does when the next packet may go.
    fn reschedule(&mut self) {
        if let (Some(anchor), true) = (self.anchor, self.config.moves_the_waiting) {
            self.due = anchor + self.interval();
        }
    }

    fn interval(&self) -> Duration {
        self.pace.interval(self.round_trip.feedback())
    }

    fn begin_step(&mut self, now: Time) {
        let end = now + Duration::from_secs_f64(self.round_trip.smoothed());
        self.step = Step { end, heard: false, limited: false };
    }

    /// A step is over: the rate grows, if it was used and something came back.
    fn end_step(&mut self, now: Time) {
        let Step { end, heard, limited } = self.step;
        let round_trip = self.round_trip.smoothed();
        let bound = self.bound(now);
        let limited = limited || bound.is_some_and(|bound| self.pace.increased(round_trip) * bound < 1.0);
        let cause = match self.pace.growth() {
            _ if limited => PaceCause::ApplicationLimited,
            Growth::Additive => PaceCause::Step,
            Growth::Doubling => PaceCause::StartUp,
        };
        let late = end + Duration::from_secs_f64(round_trip);
        self.begin_step(if now > late { now } else { end });
        if !heard && !self.config.steps_from_start {
            return;
        }
        if !limited {
            self.pace.increase(round_trip);
            self.reschedule();
        }
        self.observe(now, cause);
    }

    /// The most that may be allowed, packets a second, where the application has less to send (decision 13).
    fn bound(&mut self, now: Time) -> Option<f64> {
        self.usage.bound(now, self.round_trip.smoothed()).filter(|_| self.config.validates)
    }

    /// Looks for packets whose acknowledgement is overdue, as before every packet (§III); tells whether it backed off.
    #[inline]
    fn gives_up_overdue(&mut self, now: Time) -> bool {
        let lost = self.history.give_up_overdue(now, self.round_trip.timeout());
        self.collect_lost(now);
        lost.is_some_and(|lost| self.is_news(lost) && self.on_timeout(now))
    }

    /// A packet's acknowledgement is overdue, and that is news; tells whether it backed off.
    fn on_timeout(&mut self, now: Time) -> bool {
        let (timeouts, gap) = match self.path {
            Path::Failing { timeouts, gap } => (timeouts + 1, gap),
            Path::Unknown | Path::Alive => (1, self.pace.gap()),
            Path::Silent { .. } => {
                self.reacted_to = self.history.last();
                return false;
            }
        };
        if timeouts >= SILENT_TIMEOUTS {
            self.path = Path::Silent { gap };
            self.fall_silent(now);
        } else {
            if self.path != Path::Unknown {
                self.path = Path::Failing { timeouts, gap };
            }
            self.back_off(now, PaceCause::Timeout);
        }
        true
    }

    fn fall_silent(&mut self, now: Time) {
        self.pace.rest();
        self.round_trip.forget();
        self.standing.forget();
        self.reacted_to = self.history.last();
        self.begin_step(now);
        self.reschedule();
        self.observe(now, PaceCause::Silence);
    }

    /// Whether the loss of this packet tells of congestion that was not reacted to yet (§III-A; decision 2).
    fn is_news(&self, lost: Seq) -> bool {
        self.reacted_to.is_none_or(|last| lost > last)
    }

    /// Whether the loss of this many packets is a sign of congestion.
    fn is_congestion(&mut self, now: Time, lost: u64) -> bool {
        let is_queued = self.standing.is_congestion(now, lost);
        is_queued || self.config.losses == Losses::All
    }

    fn back_off(&mut self, now: Time, cause: PaceCause) {
        self.reacted_to = self.history.last();
        // What was not used was not tried.
        let used = self.bound(now);
        self.pace.back_off(used);
        self.begin_step(now);
        self.reschedule();
        self.observe(now, cause);
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        let Some(last) = self.history.last() else { return };
        let newest = last.extend(u32::from(feedback.newest), 16);
        if newest > last || feedback.arrived & 1 == 0 {
            return;
        }
        let heard = self.acknowledge(now, newest, feedback);
        if !heard.anything {
            return;
        }
        self.step.heard = true;
        if let Some(sent) = heard.newest_sent {
            let round_trip = now.since(sent).saturating_sub(feedback.held_for());
            self.round_trip.sample(round_trip);
            self.standing.sample(now, round_trip, self.round_trip.smoothed());
            self.actions.push(Action::Observe(Observation::RoundTrip(round_trip)));
            self.come_alive(now);
        }
        let was_idle = !self.has_work();
        let outstanding = self.history.outstanding();
        let lost = self.history.give_up_lost(newest, self.config.loss);
        let is_congestion = lost.is_some() && self.is_congestion(now, outstanding - self.history.outstanding());
        self.collect_lost(now);
        if was_idle && self.has_work() {
            self.due = self.due.max(now);
        }
        if is_congestion && lost.is_some_and(|lost| self.is_news(lost)) {
            self.back_off(now, PaceCause::Loss);
        }
        if heard.marked.is_some_and(|marked| self.config.ecn && self.is_news(marked)) {
            self.back_off(now, PaceCause::Mark);
        }
    }

    fn acknowledge(&mut self, now: Time, newest: Seq, feedback: &Feedback) -> Heard {
        let mut heard = Heard::default();
        for back in 0..u32::from(feedback.reports.min(Feedback::MAX_REPORTS)) {
            let Some(number) = newest.value().checked_sub(u64::from(back)) else { break };
            if feedback.arrived >> back & 1 == 0 {
                continue;
            }
            let Some((sent, payload)) = self.history.acknowledge(Seq::new(number)) else { continue };
            if let Some(payload) = payload {
                self.tell_of(payload, PayloadFate::Arrived);
                self.layers.iter_mut().for_each(|layers| layers.on_acknowledged(now, payload));
            }
            heard.anything = true;
            self.usage.acknowledged(now, self.round_trip.smoothed());
            self.standing.acknowledged(now);
            if back == 0 {
                heard.newest_sent = Some(sent);
            }
            if feedback.marked >> back & 1 == 1 {
                heard.marked = heard.marked.or(Some(Seq::new(number)));
            }
        }
        heard
    }

    /// A round trip was measured: the path is there.
    fn come_alive(&mut self, now: Time) {
        let cause = match core::mem::replace(&mut self.path, Path::Alive) {
            Path::Alive | Path::Failing { .. } => return,
            Path::Unknown => {
                self.pace.begin(self.round_trip.smoothed(), self.config.start_packets);
                PaceCause::Start
            }
            Path::Silent { gap } => {
                self.pace.restart(self.round_trip.smoothed(), gap / self.config.decrease);
                PaceCause::Resumed
            }
        };
        if cause == PaceCause::Resumed || !self.config.steps_from_start {
            self.begin_step(now);
        }
        self.reschedule();
        self.observe(now, cause);
    }

    fn observe(&mut self, now: Time, cause: PaceCause) {
        let report = PaceReport {
            rate: self.pace.rate(),
            smoothed_round_trip: Duration::from_secs_f64(self.round_trip.smoothed()),
            outstanding_packets: self.history.outstanding(),
            cause,
        };
        self.actions.push(Action::Observe(Observation::Pace(report)));
        if let Some(layers) = &mut self.layers {
            layers.on_pace(now, &report, self.packet_size);
        }
    }

    /// What the layers have come to.
    #[inline]
    fn tell_of_layers(&mut self) {
        while let Some(report) = self.layers.as_mut().and_then(LayerManager::poll_report) {
            self.actions.push(Action::Observe(Observation::Layers(report)));
        }
    }
}

/// What a packet carries.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// The application's next payload.
    New,
    /// The application's next payload, which is of this layer and plays from there on.
    OfLayer { layer: usize, from: Duration },
    /// What was lost.
    Again(u64),
}

/// What a feedback told that was not known.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    /// Whether any packet's delivery was news.
    anything: bool,
    /// When the newest packet was sent, if its delivery was news.
    newest_sent: Option<Time>,
    /// The newest packet that was marked.
    marked: Option<Seq>,
}

impl Endpoint for Source {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        if self.finished {
            return;
        }
        match event {
            Event::Start => {
                self.due = now;
                self.begin_step(now);
            }
            Event::Offer { packets } => self.offer(now, packets),
            Event::Deadline => self.on_deadline(now),
            Event::Packet { packet: Packet { header: Header::Feedback(feedback), .. }, .. } => {
                self.on_feedback(now, feedback);
            }
            Event::End if self.end == End::Open => self.end = End::Offered,
            Event::Finish => self.finished = true,
            _ => {}
        }
        self.look_for_completion();
        self.tell_of_layers();
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop()
    }

    fn deadline(&self) -> Option<Time> {
        if self.finished || !self.has_work() {
            return self.ends_at().filter(|_| !self.finished);
        }
        let step = Some(self.step.end).filter(|_| self.path == Path::Alive);
        let due = self.next_at();
        Some(step.map_or(due, |end| end.min(due)))
    }
}
