//! The side of a node that has children: it clocks windows by their acknowledgements, repairs what they lack, and sums up how
//! they stand. The sender and the sender's agents have the same.

mod overdue;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Ecn, Seq, Time};
use weir_wire::Probe;
use weir_wire::mtcp::join::{Standing, check_sum};
use weir_wire::mtcp::{Ack, Data};
use weir_wire::probe::Kind;

use crate::definition::Stream;
use crate::endpoint::{Action, Destination, Header, Packet, PeerId};
use crate::observation::{Observation, WindowReport};
use crate::outbox::Outbox;

use super::child::{Child, Summary};
use super::config::{Config, NackRule, Shape};
use super::delay::{SenderClock, relative_delay};
use super::newcomers::{Guest, NEAR, Quota};
use super::orphans::Orphans;
use super::position::Position;
use super::window::{Acknowledged, Window};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Downlink {
    pub(super) config: Config,
    pub(super) stream: Stream,
    /// It is the sender's: it knows what was sent.
    pub(super) is_root: bool,
    pub(super) children: Vec<Child>,
    pub(super) guests: Vec<Guest>,
    pub(super) position: Position,
    /// Members below that are there, also those that were given up.
    pub(super) present: Vec<PeerId>,
    /// Those that are no members any more, and why.
    pub(super) turned_out: Vec<(PeerId, Standing)>,
    pub(super) quota: Quota,
    /// Counts what goes round: the children that are named, and the times at which they are probed.
    pub(super) turn: usize,
    /// The oldest packet that is still here.
    pub(super) first: Seq,
    sent: VecDeque<Sent>,
    /// Payloads with lower numbers are not kept.
    forgotten: Seq,
    window: Window,
    /// Packets in transit to the children, and the most of late.
    transit: u64,
    peak: f64,
    /// Of lower numbers none is complete or overdue for the first time any more.
    settled: Seq,
    /// The number at which the stream ends.
    pub(super) end: Option<Seq>,
    clock: SenderClock,
    next_probe: Option<Time>,
    /// When half the window is left unused for a moment again, and until when it is (decision 6).
    next_drain: Time,
    drains_until: Option<Time>,
    deadline: Option<Time>,
    complete_children: usize,
    /// All children for which it waits were there at one time.
    has_begun: bool,
    orphans: Orphans,
    /// The greatest of the least windows since one was told.
    least_peak: f64,
}

/// A packet that was sent to all.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// The sender's clock at that time, as it stands in the packet; and that time.
    stamp: u32,
    micros: i64,
    /// When it came here; `None` while it has not.
    here: Option<Time>,
    /// It came the way of all.
    is_fresh: bool,
    /// Children that have not acknowledged it.
    lacking: u32,
    /// It counts as in transit.
    in_transit: bool,
}

impl Downlink {
    pub(super) fn new(stream: &Stream, config: Config, is_root: bool) -> Downlink {
        Downlink {
            config,
            stream: *stream,
            is_root,
            children: Vec::new(),
            guests: Vec::new(),
            position: Position::default(),
            present: Vec::new(),
            turned_out: Vec::new(),
            quota: Quota::default(),
            turn: 0,
            first: Seq::new(0),
            sent: VecDeque::new(),
            forgotten: Seq::new(0),
            window: Window::new(&config, stream.packet_size.count(), config.least_window),
            transit: 0,
            peak: 0.0,
            settled: Seq::new(0),
            end: None,
            clock: SenderClock::default(),
            next_probe: None,
            next_drain: Time::ZERO,
            drains_until: None,
            deadline: None,
            complete_children: 0,
            has_begun: match config.tree {
                Shape::Given => config.children == 0,
                Shape::Found => !is_root,
            },
            orphans: Orphans::default(),
            least_peak: 0.0,
        }
    }

    /// A peer has come. Where the tree is given it is a child, and gets everything that is still here.
    pub(super) fn add(&mut self, now: Time, peer: PeerId, out: &mut Outbox) {
        if self.config.tree == Shape::Given && !self.present.contains(&peer) {
            self.present.push(peer);
            self.attach(now, self.new_child(now, peer), out);
        }
    }

    fn new_child(&self, now: Time, peer: PeerId) -> Child {
        Child::new(peer, self.first, now, &self.config, self.stream.packet_size.count())
    }

    pub(super) fn attach(&mut self, now: Time, child: Child, out: &mut Outbox) {
        let numbers = (self.first.value()..).map(Seq::new);
        let lacked = numbers.zip(&mut self.sent).filter(|(number, _)| !child.has(*number));
        lacked.for_each(|(_, sent)| sent.lacking += 1);
        self.settled = self.settled.min(child.start()).max(self.first);
        self.complete_children += usize::from(child.summary.is_complete);
        self.children.push(child);
        self.note_begin();
        self.probe(now, out);
        self.arm();
    }

    /// The stream begins once enough members have joined.
    fn note_begin(&mut self) {
        self.has_begun |= match self.config.tree {
            Shape::Given => self.children.len() as u64 >= self.config.children,
            Shape::Found => u64::from(self.receivers()) >= self.config.receivers,
        };
    }

    /// Receivers below.
    pub(super) fn receivers(&self) -> u32 {
        let guests = self.guests.iter().map(|guest| &guest.child);
        self.children.iter().chain(guests).map(|child| child.summary.receivers).fold(0, u32::saturating_add)
    }

    /// A child is gone: nothing waits for it any more.
    pub(super) fn remove(&mut self, now: Time, peer: PeerId) {
        self.present.retain(|present| *present != peer);
        self.turned_out.retain(|(known, _)| *known != peer);
        self.guests.retain(|guest| guest.child.peer != peer);
        self.detach(now, peer, true);
    }

    /// What the subtree of the child lacks is kept for a while if it `is_orphaned`.
    pub(super) fn detach(&mut self, now: Time, peer: PeerId, is_orphaned: bool) -> Option<Child> {
        let place = self.place(peer)?;
        let child = self.children.remove(place);
        self.complete_children -= usize::from(child.summary.is_complete);
        if child.has_children() && self.config.low_mark && is_orphaned {
            let below = child.summary.receivers.saturating_sub(child.is_receiver.into());
            let node = child.door.map_or(0, check_sum);
            self.orphans.lose(now, node, child.summary.low_mark, below);
        }
        let numbers = (self.first.value()..).map(Seq::new);
        let lacked = numbers.zip(&mut self.sent).filter(|(number, _)| !child.has(*number));
        let complete: Vec<Seq> = lacked
            .filter_map(|(number, sent)| {
                sent.lacking -= 1;
                (sent.lacking == 0).then_some(number)
            })
            .collect();
        complete.into_iter().for_each(|number| self.complete(now, number));
        self.arm();
        Some(child)
    }

    /// As many children as it waits for have come. Some may have gone since.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Every child has the whole stream below it.
    pub(super) fn is_complete(&self) -> bool {
        self.complete_children == self.children.len() && self.guests.is_empty()
    }

    fn place(&self, peer: PeerId) -> Option<usize> {
        self.children.iter().position(|child| child.peer == peer)
    }

    /// The number after the last one that is known.
    pub(super) fn next(&self) -> Seq {
        Seq::new(self.first.value() + self.sent.len() as u64)
    }

    fn at(&mut self, number: Seq) -> Option<&mut Sent> {
        let index = number.value().checked_sub(self.first.value())?;
        self.sent.get_mut(usize::try_from(index).ok()?)
    }

    /// What comes from now on has numbers from `number` on. Nothing is here, and nobody below.
    pub(super) fn begin_at(&mut self, number: Seq) {
        (self.first, self.settled) = (number, number);
        self.sent.clear();
    }

    /// A packet has come before there was anybody below.
    pub(super) fn has(&mut self, now: Time, number: Seq) {
        self.know(number);
        self.at(number).into_iter().for_each(|sent| sent.here = Some(now));
    }

    /// Makes room for `number`, unless it is too far ahead.
    fn know(&mut self, number: Seq) {
        let most = 2 * self.config.buffer + self.config.history;
        while self.next() <= number && number.since(self.first) < most {
            let lacking = self.children.iter().filter(|child| !child.has(self.next())).count() as u32;
            self.sent.push_back(Sent { stamp: 0, micros: 0, here: None, is_fresh: false, lacking, in_transit: false });
        }
    }

    /// A packet with the sender's `stamp` is here for the first time. It is `fresh` if it came the way of
    /// all and was not sent again.
    pub(super) fn on_data(&mut self, now: Time, number: Seq, stamp: u32, is_fresh: bool, out: &mut Outbox) {
        self.know(number);
        let micros = self.clock.note(now, stamp, is_fresh);
        let Some(sent) = self.at(number) else { return };
        (sent.stamp, sent.micros, sent.here, sent.is_fresh) = (stamp, micros, Some(now), is_fresh);
        if sent.lacking > 0 && is_fresh {
            sent.in_transit = true;
            self.transit += 1;
            self.send_to_cut_off(number, stamp, out);
        } else if sent.lacking > 0 {
            // Children may have asked for it before it was here.
            self.repair(now, out);
        }
        self.arm();
    }

    /// Children to which no multicast leads get a new packet from here (decision 24).
    fn send_to_cut_off(&self, number: Seq, stamp: u32, out: &mut Outbox) {
        let cut_off = self.children.iter().filter(|child| child.is_cut_off && !child.has(number));
        out.extend(
            cut_off.map(|child| data(&self.stream, Destination::Peer(child.peer), number, stamp, false, self.end)),
        );
    }

    /// Takes an acknowledgement of a child, and repairs what it lacks.
    pub(super) fn on_ack(&mut self, now: Time, peer: PeerId, ack: &Ack, out: &mut Outbox) {
        if self.place(peer).is_none() {
            if self.is_below(peer) {
                self.on_guest_ack(now, peer, ack, out);
                return self.repair(now, out);
            }
            // It was given up, and is back: it can be served if what it lacks is still here.
            let start = self.next().extend(ack.start, 32);
            if start < self.first || !self.present.contains(&peer) {
                return self.disown(peer, out);
            }
            if self.config.tree == Shape::Found && self.next().since(start) > NEAR {
                let child = Child::new(peer, start, now, &self.config, self.stream.packet_size.count());
                self.guests.push(Guest::new(child));
                return self.on_guest_ack(now, peer, ack, out);
            }
            self.attach(now, self.new_child(now, peer), out);
        }
        let Some(place) = self.place(peer) else { return };
        if !self.is_root {
            // A child may be ahead of its agent.
            let reported = u64::from(64 - ack.received.leading_zeros());
            let end = self.next().extend(ack.start, 32).value() + reported;
            end.checked_sub(1).into_iter().for_each(|last| self.know(Seq::new(last)));
        }
        let next = self.next();
        let (first, sent) = (self.first, &mut self.sent);
        let mut complete = Vec::new();
        let child = &mut self.children[place];
        let is_plausible = child.take(now, ack, next, |number| {
            let index = number.value().checked_sub(first.value());
            if let Some(sent) = index.and_then(|index| sent.get_mut(index as usize)) {
                sent.lacking -= 1;
                if sent.lacking == 0 {
                    complete.push(number);
                }
            }
        });
        if !is_plausible {
            return;
        }
        let was_complete = child.summary.is_complete;
        child.unanswered = 0;
        child.note_summary(ack, self.config.low_mark);
        child.is_cut_off = ack.is_cut_off;
        self.complete_children += usize::from(child.summary.is_complete && !was_complete);
        if let Some(sent) = self.clock.sent(now, ack.echo_micros).filter(|_| ack.has_echo) {
            let whole = relative_delay(now, sent);
            let held = if self.config.subtracts_held { f64::from(ack.held) * HELD_UNIT } else { 0.0 };
            child.note_delay(now, whole, whole - held);
        }
        child.settle_repairs(now, &self.config);
        let lost = core::mem::take(&mut child.orphan_of);
        self.orphans.come_back(now, lost, ack.receivers.into());
        self.note_begin();
        self.on_missing(now, place, ack);
        complete.into_iter().for_each(|number| self.complete(now, number));
        self.repair(now, out);
        self.observe_fall(out);
        self.arm();
    }

    /// A child reports packets as missing: they are repaired, and a burst of them is congestion.
    fn on_missing(&mut self, now: Time, place: usize, ack: &Ack) {
        let next = self.next();
        let child = &mut self.children[place];
        let (mut last, mut run, mut congested) = (None, 0, None);
        for number in child.missing(ack).filter(|number| *number < next) {
            run = if last.is_some_and(|last: Seq| last.next() == number) { run + 1 } else { 1 };
            last = Some(number);
            if run >= CONGESTION_RUN && self.config.nacks == NackRule::ThreeInARow {
                congested = Some(number);
            }
            child.request(now, number);
        }
        if last.is_some() && child.count_nacks() >= CONGESTION_RUN && self.config.nacks == NackRule::SamePacket {
            congested = Some(child.start());
        }
        if let Some(number) = congested.or_else(|| self.lost(place)) {
            self.limit_window();
            self.window.on_loss(&self.config, number, next);
        }
    }

    /// The newest packet that was lost on the way from here to a child, if that tells of congestion.
    fn lost(&mut self, place: usize) -> Option<Seq> {
        let number = self.children[place].lost().filter(|_| self.config.nacks == NackRule::Each)?;
        // What did not come here was lost above, and is answered there.
        self.at(number).filter(|sent| sent.here.is_some() && sent.is_fresh).map(|_| number)
    }

    /// All children have a packet.
    fn complete(&mut self, now: Time, number: Seq) {
        let (next, transit) = (self.next(), self.transit as f64);
        // It rises at once, and falls over some windows.
        self.peak = transit.max(self.peak - self.peak / PEAK_MEMORY);
        if let Some(sent) = self.at(number)
            && core::mem::take(&mut sent.in_transit)
        {
            self.transit -= 1;
        }
        let backlog = self.backlog();
        if backlog > self.config.beta {
            self.limit_window();
        }
        let round_trip = self.round_trip().unwrap_or_default().as_secs_f64();
        self.window.on_acknowledged(&self.config, &Acknowledged { now, number, next, backlog, round_trip });
    }

    /// Packets that wait in queues on the way to the slowest child.
    fn backlog(&self) -> f64 {
        self.children.iter().map(Child::backlog).fold(0.0, f64::max)
    }

    /// Congestion finds the window no higher than twice what is in transit.
    fn limit_window(&mut self) {
        if self.config.validates {
            self.window.limit_to(self.peak);
        }
    }

    /// Uses half the window for a moment, so that the queue that it keeps does not become the base of the delay.
    fn drain(&mut self, now: Time) {
        let has_queue = self.backlog() >= self.config.alpha / 2.0;
        let Some(span) = self.config.base_of.filter(|_| now >= self.next_drain && has_queue) else { return };
        (self.next_drain, self.drains_until) = (now + span / 3, Some(now + DRAIN));
    }

    /// Asks every child for a round trip.
    pub(super) fn probe(&mut self, now: Time, out: &mut Outbox) {
        let are_all = self.config.tree == Shape::Given;
        let guests = self.guests.iter_mut().map(|guest| &mut guest.child);
        for child in self.children.iter_mut().chain(guests).filter(|child| are_all || child.next_probe <= now) {
            child.next_probe = now + PROBE_INTERVAL + core::mem::take(&mut child.stagger);
            child.unanswered += 1;
            let header = Header::Probe(Probe { kind: Kind::Probe, clock_micros: now.as_micros() as u32 });
            let packet = Packet { header, size: self.stream.feedback_size, ecn: Ecn::NotEct };
            out.push(Action::send(Destination::Peer(child.peer), packet));
        }
        let guests = self.guests.iter().map(|guest| guest.child.next_probe);
        self.next_probe = self.children.iter().map(|child| child.next_probe).chain(guests).min();
    }

    /// A child has answered a probe.
    pub(super) fn on_echo(&mut self, now: Time, peer: PeerId, clock_micros: u32) {
        let round_trip = Duration::from_micros(u64::from((now.as_micros() as u32).wrapping_sub(clock_micros)));
        let guests = self.guests.iter_mut().map(|guest| &mut guest.child);
        let known = self.children.iter_mut().chain(guests).find(|child| child.peer == peer);
        let Some(child) = known.filter(|_| round_trip < MOST_ROUND_TRIP) else { return };
        child.unanswered = 0;
        child.note_round_trip(now, round_trip);
        self.arm();
    }

    /// Does what is due.
    pub(super) fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.next_probe.is_some_and(|at| at <= now) && self.has_anybody() {
            self.give_up_silent(now);
            self.review(now, out);
            self.drain(now);
            self.probe(now, out);
            self.observe(out);
        }
        self.orphans.settle(now);
        self.drains_until = self.drains_until.filter(|until| *until > now);
        self.repair(now, out);
        self.observe_fall(out);
        self.arm();
    }

    /// Nobody waits for a child that has answered no probe for so long, if this host was awake.
    fn give_up_silent(&mut self, now: Time) {
        let most = (self.config.evict_after.as_secs_f64() / PROBE_INTERVAL.as_secs_f64()) as u32 + 1;
        let is_silent = |child: &Child| child.unanswered >= most;
        let silent: Vec<PeerId> =
            self.children.iter().filter(|child| is_silent(child)).map(|child| child.peer).collect();
        silent.into_iter().for_each(|peer| _ = self.detach(now, peer, true));
        self.guests.retain(|guest| !is_silent(&guest.child));
    }

    /// Whether it has children or guests.
    pub(super) fn has_anybody(&self) -> bool {
        !self.children.is_empty() || !self.guests.is_empty()
    }

    fn arm(&mut self) {
        let orphans = self.orphans.deadline();
        if !self.has_anybody() {
            self.deadline = orphans;
            return;
        }
        let guests = self.guests.iter().map(|guest| &guest.child);
        let repair = self.children.iter().chain(guests).filter_map(Child::deadline).min();
        let first = self.oldest().map(|(_, due)| due);
        self.deadline = [repair, first, self.next_probe, orphans, self.drains_until].into_iter().flatten().min();
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Everyone has packets with lower numbers. Those that nobody may come late for any more are forgotten.
    pub(super) fn forget(&mut self, below: Seq, out: &mut Outbox) {
        let below = Seq::new(below.value().saturating_sub(self.config.history));
        if below <= self.forgotten {
            return;
        }
        self.forgotten = below;
        out.push(Action::Release { below: below.value() });
        while self.first < below && self.sent.front().is_some_and(|sent| sent.lacking == 0) {
            self.sent.pop_front();
            self.first = self.first.next();
        }
        self.settled = self.settled.max(self.first);
    }

    /// What children say of themselves, with this node's own window; `own` where there is none.
    pub(super) fn summary(&self, own: Summary) -> Summary {
        let low_mark = self.orphans.low_mark().map_or(own.low_mark, |low_mark| low_mark.min(own.low_mark));
        let is_complete = own.is_complete && self.guests.is_empty();
        let receivers = own.receivers.saturating_add(self.receivers());
        let own = Summary { low_mark, is_complete, receivers, ..own };
        if self.children.is_empty() {
            return own;
        }
        let share = if self.drains_until.is_some() { 0.5 } else { 1.0 };
        let min_cwnd = (share * self.window.size()).max(self.config.least_window);
        let here = Summary { min_cwnd, max_twnd: self.transit as f64, ..own };
        self.children.iter().map(|child| child.summary).fold(here, |all, child| Summary {
            min_cwnd: all.min_cwnd.min(child.min_cwnd),
            max_twnd: all.max_twnd.max(child.max_twnd),
            limit: all.limit.min(child.limit),
            low_mark: all.low_mark.min(child.low_mark),
            receivers: all.receivers,
            is_complete: all.is_complete && child.is_complete,
        })
    }

    /// Packets a second that the slowest child acknowledges.
    pub(super) fn rate(&self) -> Option<f64> {
        self.children.iter().filter_map(Child::rate).reduce(f64::min)
    }

    /// Whether its own window allows another packet.
    pub(super) fn has_room(&self) -> bool {
        self.window.size() - self.transit as f64 >= 1.0
    }

    /// When a packet came here.
    pub(super) fn came(&self, number: Seq) -> Option<Time> {
        let index = number.value().checked_sub(self.first.value())?;
        self.sent.get(usize::try_from(index).ok()?)?.here
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.window.is_in_slow_start()
    }

    /// To the farthest child.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        let farthest = self.children.iter().filter_map(|child| child.rtt.average()).reduce(f64::max);
        farthest.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)))
    }

    /// The least window here and below.
    fn least_window(&self) -> f64 {
        self.children.iter().map(|child| child.summary.min_cwnd).fold(self.window.size(), f64::min)
    }

    /// Tells of a fall of the least window when it happens, and not at the next probe.
    fn observe_fall(&mut self, out: &mut Outbox) {
        let least = self.least_window();
        self.least_peak = self.least_peak.max(least);
        if least < FALL * self.least_peak {
            self.least_peak = least;
            self.observe(out);
        }
    }

    pub(super) fn observe(&self, out: &mut Outbox) {
        out.push(Action::Observe(Observation::Window(WindowReport {
            window_packets: self.window.size(),
            least_packets: self.least_window(),
            in_slow_start: self.window.is_in_slow_start(),
            transit_packets: self.transit,
            backlog_packets: self.backlog(),
            children: self.children.len(),
            low_mark: self.children.iter().map(|child| child.summary.low_mark.value()).min().unwrap_or(0),
            limit: self.children.iter().map(|child| child.summary.limit.value()).min().unwrap_or(0),
            round_trip: self.round_trip(),
        })));
    }
}

/// A data packet: to all when it is new, to a child when it `is_repair`. The end has no payload.
pub(super) fn data(
    stream: &Stream,
    to: Destination,
    number: Seq,
    stamp: u32,
    is_repair: bool,
    end: Option<Seq>,
) -> Action {
    let is_end = end == Some(number);
    let data = Data { number: number.truncate(32), sent_micros: stamp, is_repair, is_end };
    let size = if is_end { stream.feedback_size } else { stream.packet_size };
    let packet = Packet { header: Header::TreeData(data), size, ecn: Ecn::NotEct };
    if is_end { Action::send(to, packet) } else { Action::send_kept(to, packet, number.value()) }
}

/// Missing packets in a row, or acknowledgements that miss the same one.
const CONGESTION_RUN: u32 = 3;
/// The unit of [`Ack::held`], seconds.
pub(super) const HELD_UNIT: f64 = 16e-6;
/// §3.3.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// In packets.
const PEAK_MEMORY: f64 = 128.0;
/// A window that is less than this share of what it was has fallen.
const FALL: f64 = 0.9;
/// Long enough for the sender to hear of it, and for a short queue to empty.
const DRAIN: Duration = Duration::from_millis(300);
/// A packet is overdue after this long while neither a relative delay nor a round trip is known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);
const MOST_ROUND_TRIP: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
