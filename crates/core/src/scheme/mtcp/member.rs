//! A member of the tree: it takes the stream, tells the node above it what has come, and serves the members below it, if there
//! are any. A receiver and a sender's agent are the same, but that an agent has no application. How it finds the node above is in
//! [`place`], and what it does where no multicast leads to it in [`cut_off`].

mod cut_off;
mod place;

use core::time::Duration;

use weir_units::{Ecn, Random, Seq, Time};
use weir_wire::mtcp::{Ack, Data};
use weir_wire::probe::Kind;
use weir_wire::{Probe, probe};

use crate::definition::Stream;
use crate::endpoint::{Action, ChannelId, Destination, Endpoint, Event, Header, Origin, Packet, PeerId};
use crate::outbox::Outbox;

use super::arrivals::Arrivals;
use super::child::Summary;
use super::config::{Config, Shape};
use super::downlink::{Downlink, HELD_UNIT, data};
use super::search::Search;
use cut_off::CutOff;

/// See the module's documentation.
#[derive(Debug)]
pub struct Member {
    config: Config,
    stream: Stream,
    random: Random,
    arrivals: Arrivals,
    end: Option<Seq>,
    downlink: Downlink,
    reading: Reading,
    /// Lower numbers are not kept any more.
    released: Seq,
    /// The newest packet that came the way of all: its stamp, and when.
    newest: Option<(u32, Time)>,
    /// The number that would confirm a packet far ahead.
    expected: Option<Seq>,
    /// New packets since the last acknowledgement.
    unacknowledged: u64,
    ack: Option<Time>,
    /// When it acknowledged last.
    acknowledged: Time,
    /// What the node above was told last.
    told: Option<Summary>,
    /// When it is told again although there is nothing new (§3.11), and after how long then.
    update: Time,
    update_after: Duration,
    /// The node above, if there is one now, and when that was heard last, if it was.
    above: Option<PeerId>,
    heard: Option<Time>,
    /// When it turns to another one unless this one says something.
    patience: Time,
    search: Option<Search>,
    /// The check sum of the last node above, whose place another is to take: what this member needs is kept for it. 0 if it
    /// has had none.
    lost: u16,
    /// Its level, and whether it catches up, as the node above said last.
    standing: Option<(u8, bool)>,
    cut_off: CutOff,
    state: State,
    out: Outbox,
}

/// Where the application is.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// An agent has none.
    has_application: bool,
    /// It has all lower numbers.
    delivered: Seq,
    /// Payloads that it has room for; without bound if `None`.
    room: Option<u64>,
    is_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Over,
}

impl Member {
    /// A member that has nothing yet; an agent without `has_application`.
    pub fn new(stream: &Stream, config: Config, has_application: bool, random: Random) -> Member {
        Member {
            config,
            stream: *stream,
            random,
            arrivals: Arrivals::default(),
            end: None,
            downlink: Downlink::new(stream, config, false),
            reading: Reading { has_application, delivered: Seq::new(0), room: None, is_complete: false },
            released: Seq::new(0),
            newest: None,
            expected: None,
            unacknowledged: 0,
            ack: None,
            acknowledged: Time::ZERO,
            told: None,
            update: Time::ZERO,
            update_after: FIRST_UPDATE,
            above: None,
            heard: None,
            patience: Time::ZERO,
            search: None,
            lost: 0,
            standing: None,
            cut_off: CutOff::default(),
            state: State::Waiting,
            out: Outbox::default(),
        }
    }

    fn start(&mut self, now: Time) {
        self.state = State::Running;
        self.patience = now + ABOVE_SILENCE;
        self.out.push(Action::Join(CHANNEL));
        match self.config.tree {
            Shape::Given => self.above = Some(PeerId(0)),
            Shape::Found => self.seek(now, Some(PeerId(0))),
        }
        self.acknowledge(now, true);
    }

    fn on_data(&mut self, now: Time, data: &Data) {
        let number = self.arrivals.start().extend(data.number, 32);
        if !data.is_repair {
            self.newest = Some((data.sent_micros, now));
        }
        if !self.is_plausible(number, data) || self.is_far(number, data) || !self.arrivals.note(number, self.limit()) {
            // The acknowledgement of it was lost, or is on its way.
            self.acknowledge_by(now + self.config.ack_delay);
            return;
        }
        if data.is_end {
            (self.end, self.downlink.end) = (Some(number), Some(number));
        }
        self.store(number);
        self.forward(now, number, data);
        if self.serves() {
            self.downlink.on_data(now, number, data.sent_micros, !data.is_repair, &mut self.out);
        }
        self.read();
        self.release();
        self.unacknowledged += 1;
        self.update_after = FIRST_UPDATE;
        let at = if self.is_acknowledged_at_once() { self.acknowledged + self.spacing() } else { now + self.delay() };
        self.acknowledge_by(at.max(now));
    }

    fn is_acknowledged_at_once(&self) -> bool {
        self.config.ack_every.is_some_and(|most| self.unacknowledged >= most)
    }

    /// From one acknowledgement to the next. One that cannot report on much more does not wait.
    fn spacing(&self) -> Duration {
        if self.unacknowledged < MOST_UNACKNOWLEDGED { self.config.ack_spacing } else { Duration::ZERO }
    }

    /// Whether nothing is behind the end, and there is one.
    fn is_plausible(&self, number: Seq, data: &Data) -> bool {
        match self.end {
            Some(end) => number < end,
            None => !data.is_end || number >= self.arrivals.next(),
        }
    }

    /// Whether a new packet is so far ahead that nobody can tell whether the sender is there; if it is, the next one goes on from
    /// there (decision 26).
    fn is_far(&mut self, number: Seq, data: &Data) -> bool {
        let is_far = !data.is_repair && number.value() > self.arrivals.next().value() + LONGEST_GAP;
        let expected = self.expected.take();
        self.expected = is_far.then(|| number.next());
        is_far && !expected.is_some_and(|expected| number >= expected && number.since(expected) < LONGEST_GAP)
    }

    /// Whether there are members below, or will be.
    fn serves(&self) -> bool {
        !self.reading.has_application || self.config.children > 0 || self.downlink.has_anybody()
    }

    /// Keeps the payload of the packet being handled, or gives it to the application at once if that is all it is for.
    fn store(&mut self, number: Seq) {
        if self.end == Some(number) {
            return;
        }
        let is_next = self.reading.has_application && self.reading.delivered == number;
        let is_delivered = is_next && self.reading.room != Some(0);
        if self.serves() || !is_delivered {
            self.out.push(Action::Keep { number: number.value() });
        }
        if is_delivered {
            self.out.push(Action::Deliver { number: Some(number.value()) });
            self.reading.note_delivered();
        }
    }

    /// Gives the application what it has room for.
    fn read(&mut self) {
        if !self.reading.has_application || self.reading.is_complete {
            return;
        }
        while self.reading.delivered < self.arrivals.start() {
            if self.end == Some(self.reading.delivered) {
                self.reading.is_complete = true;
                self.out.push(Action::Complete);
                return;
            }
            if self.reading.room == Some(0) {
                return;
            }
            self.out.push(Action::DeliverKept { number: self.reading.delivered.value() });
            self.reading.note_delivered();
        }
    }

    /// Releases what neither the application nor anybody below needs.
    fn release(&mut self) {
        let below = self.needed();
        if below > self.released {
            self.released = below;
            self.downlink.forget(below, &mut self.out);
        }
    }

    /// The lowest number whose payload is needed.
    fn needed(&self) -> Seq {
        let low = self.summary().low_mark;
        if self.reading.has_application { low.min(self.reading.delivered) } else { low }
    }

    /// There is room for lower numbers.
    fn limit(&self) -> Seq {
        Seq::new(self.released.value() + self.config.buffer)
    }

    fn summary(&self) -> Summary {
        let has_end = self.end.is_some_and(|end| end < self.arrivals.start());
        let has_begun = self.downlink.has_begun();
        let own = Summary {
            min_cwnd: f64::INFINITY,
            max_twnd: 0.0,
            limit: self.limit(),
            low_mark: if has_begun { self.arrivals.start() } else { self.released },
            receivers: self.reading.has_application.into(),
            is_complete: has_end && has_begun,
        };
        self.downlink.summary(own)
    }

    fn delay(&mut self) -> Duration {
        self.config.ack_delay + self.config.ack_jitter.mul_f64(self.random.unit())
    }

    fn acknowledge_by(&mut self, at: Time) {
        self.ack = Some(self.ack.map_or(at, |ack| ack.min(at)));
    }

    /// Something may have changed below: the node above is told soon.
    fn on_change(&mut self, now: Time) {
        self.release();
        let summary = self.summary();
        if summary.is_complete && !self.reading.has_application && !self.reading.is_complete {
            self.reading.is_complete = true;
            self.out.push(Action::Complete);
        }
        let Some(told) = self.told.filter(|told| *told != summary) else { return };
        // That it is complete everybody waits for.
        let is_end = summary.is_complete && !told.is_complete;
        match self.config.report_within {
            _ if is_end => self.acknowledge_by(now),
            Some(within) => self.acknowledge_by(now + within),
            None => {}
        }
    }

    fn acknowledge(&mut self, now: Time, is_update: bool) {
        if self.above.is_none() {
            return self.ack = None;
        }
        let summary = self.summary();
        let (received, reported) = self.arrivals.report();
        let (echo_micros, held) = match self.newest.take() {
            Some((micros, came)) => (Some(micros), now.since(came).as_secs_f64() / HELD_UNIT),
            None => (None, 0.0),
        };
        let fixed = |packets: f64| (packets * 256.0).min(f64::from(u32::MAX)) as u32;
        let ack = Ack {
            received,
            start: self.arrivals.start().truncate(32),
            echo_micros: echo_micros.unwrap_or_default(),
            min_cwnd: fixed(summary.min_cwnd),
            max_twnd: fixed(summary.max_twnd),
            limit: summary.limit.truncate(32),
            low_mark: summary.low_mark.truncate(32),
            held: held.min(f64::from(u16::MAX)) as u16,
            receivers: summary.receivers.min(u16::MAX.into()) as u16,
            reported,
            has_echo: echo_micros.is_some(),
            is_update,
            is_complete: summary.is_complete,
            is_cut_off: self.cut_off.is(now),
        };
        self.say(Header::TreeAck(ack));
        if self.repeats_soon() && self.told != Some(summary) {
            // It may be lost, and nobody confirms it.
            self.update_after = FIRST_UPDATE;
        }
        (self.told, self.ack, self.unacknowledged, self.acknowledged) = (Some(summary), None, 0, now);
        self.update = now + self.until_update();
    }

    /// Until the node above has answered, its members ask again at random times: those of many would meet in its queue.
    fn until_update(&mut self) -> Duration {
        let jitter = self.config.ack_jitter.mul_f64(self.random.unit());
        if self.heard.is_some() { self.update_after + jitter } else { ATTACH.mul_f64(0.1 + self.random.unit()) }
    }

    /// A member that is to report changes soon also repeats them soon. The paper spaces all repetitions alike (§3.11).
    fn repeats_soon(&self) -> bool {
        self.config.report_within.is_some()
    }

    fn say(&mut self, header: Header) {
        let packet = Packet { header, size: self.stream.feedback_size, ecn: Ecn::NotEct };
        let to = self.above.map(Destination::Peer);
        self.out.extend(to.map(|to| Action::send(to, packet)));
    }

    fn on_packet(&mut self, now: Time, from: Origin, header: &Header) {
        let above = self.above.map(Origin::Peer);
        if Some(from) == above {
            (self.heard, self.patience) = (Some(now), now + ABOVE_SILENCE);
        }
        match (from, header) {
            (Origin::Channel(CHANNEL), Header::TreeData(data)) => {
                self.on_multicast(now);
                self.on_data(now, data);
            }
            (Origin::Peer(peer), Header::TreeData(data)) if self.is_above(peer) => {
                self.on_unicast(now, data);
                self.on_data(now, data);
            }
            (Origin::Peer(peer), Header::Probe(asked)) if asked.kind == Kind::Probe => self.answer(peer, asked),
            (Origin::Peer(peer), Header::TreeJoin(join)) => self.on_join(now, peer, join),
            (Origin::Peer(child), header) => on_child(&mut self.downlink, now, child, header, &mut self.out),
            _ => {}
        }
        self.on_change(now);
    }

    /// The node above measures its round trip, and so does one that is about to take this member.
    fn answer(&mut self, peer: PeerId, asked: &Probe) {
        let is_joined = self.search.as_ref().is_some_and(|search| search.joins(peer));
        if self.above == Some(peer) || is_joined {
            let header = Header::Probe(Probe { kind: probe::Kind::Echo, ..*asked });
            let packet = Packet { header, size: self.stream.feedback_size, ecn: Ecn::NotEct };
            self.out.push(Action::send(Destination::Peer(peer), packet));
        }
    }

    fn on_deadline(&mut self, now: Time) {
        self.downlink.on_deadline(now, &mut self.out);
        self.on_change(now);
        let wish = self.wish();
        if let Some(search) = &mut self.search {
            let found = search.on_deadline(now, &wish, &mut self.out);
            return found.into_iter().for_each(|found| self.on_found(now, found));
        }
        if self.above.is_none() {
            return;
        }
        if self.patience <= now {
            self.lose_patience(now);
        } else if self.ack.is_some_and(|at| at <= now) {
            self.acknowledge(now, false);
        } else if self.update <= now {
            // The sender counts receivers by these until it begins, and a lost one delays everybody.
            let is_counted = self.repeats_soon() && self.arrivals.next() == Seq::new(0);
            if self.heard.is_some() && !is_counted {
                self.update_after += UPDATE_STEP;
            }
            self.acknowledge(now, true);
        }
    }

    fn stop(&mut self) {
        self.state = State::Over;
        self.out.push(Action::Leave(CHANNEL));
    }
}

impl Reading {
    fn note_delivered(&mut self) {
        self.delivered = self.delivered.next();
        self.room = self.room.map(|room| room - 1);
    }
}

/// What a child says to a node.
pub(super) fn on_child(downlink: &mut Downlink, now: Time, child: PeerId, header: &Header, out: &mut Outbox) {
    match header {
        Header::TreeAck(ack) => downlink.on_ack(now, child, ack, out),
        Header::Probe(answer) if answer.kind == Kind::Echo => downlink.on_echo(now, child, answer.clock_micros),
        _ => {}
    }
}

impl Endpoint for Member {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Room { payloads } => self.reading.room = Some(payloads),
            Event::Reachable { at } => self.downlink.position.door = Some(at),
            Event::Start if self.state == State::Waiting => return self.start(now),
            Event::Finish if self.state == State::Waiting => self.state = State::Over,
            _ => {}
        }
        if self.state != State::Running {
            return;
        }
        match event {
            Event::Packet { from, packet } => self.on_packet(now, from, &packet.header),
            Event::PeerUp(child) => self.downlink.add(now, child, &mut self.out),
            Event::Finish => self.stop(),
            Event::Reached { at, peer } => self.on_reached(now, at, peer),
            Event::PeerDown(peer) if self.config.tree == Shape::Found => self.on_down(now, peer),
            Event::PeerDown(peer) if self.is_above(peer) => match self.config.uplinks {
                1 => self.stop(),
                _ if Some(peer) == self.above => self.turn_to_next(now),
                _ => {}
            },
            Event::PeerDown(child) => self.on_down(now, child),
            Event::Room { .. } => {
                self.read();
                self.on_change(now);
            }
            Event::Deadline => self.on_deadline(now),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Time> {
        let of_above =
            [self.ack, Some(self.update), Some(self.patience)].map(|due| due.filter(|_| self.above.is_some()));
        let others = [self.search.as_ref().map(Search::deadline), self.downlink.deadline()];
        let due = of_above.into_iter().chain(others).flatten().min();
        due.filter(|_| self.state == State::Running)
    }
}

/// The stream's channel.
pub(super) const CHANNEL: ChannelId = ChannelId(0);
/// A node above that says nothing for this long, not even a probe, is lost.
const ABOVE_SILENCE: Duration = Duration::from_secs(7);
/// A deadline that is later than this is no host's usual lateness.
const LATE: Duration = Duration::from_secs(2);
/// Half of the packets that an acknowledgement can report on.
const MOST_UNACKNOWLEDGED: u64 = 32;
/// A new packet that is further ahead counts when the next one goes on behind it.
const LONGEST_GAP: u64 = 8;
/// §3.11.
const FIRST_UPDATE: Duration = Duration::from_millis(500);
const UPDATE_STEP: Duration = Duration::from_secs(1);
/// About how often a member asks the node above to attach it.
const ATTACH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;
    use alloc::vec::Vec;
    use weir_units::Bytes;

    const STREAM: Stream =
        Stream { packet_size: Bytes::new(1000), feedback_size: Bytes::new(60), habitat: Habitat::Lab };

    fn receiver() -> Member {
        Member::new(&STREAM, Config::refined(Habitat::Lab), true, Random::new(1, "receiver"))
    }

    /// What the member wants done, but for what it sends.
    fn done(member: &mut Member, event: Event<'_>) -> Vec<Action> {
        member.handle(Time::from_secs(1), event);
        core::iter::from_fn(|| member.poll(Time::from_secs(1)))
            .filter(|it| !matches!(it, Action::Send { .. }))
            .collect()
    }

    fn data(number: u32, is_end: bool) -> Packet {
        let header = Header::TreeData(Data { number, is_end, ..Data::default() });
        Packet { header, size: STREAM.packet_size, ecn: Ecn::NotEct }
    }

    fn arrives(packet: &Packet) -> Event<'_> {
        Event::Packet { from: Origin::Channel(CHANNEL), packet }
    }

    #[test]
    fn a_member_starts_once_and_not_after_its_end() {
        let mut member = receiver();
        assert_eq!(done(&mut member, Event::Start), [Action::Join(CHANNEL)]);
        assert_eq!(done(&mut member, Event::Start), []);
        assert_eq!(done(&mut member, Event::Finish), [Action::Leave(CHANNEL)]);
        assert_eq!(done(&mut member, Event::Start), []);
        let mut early = receiver();
        assert_eq!(done(&mut early, Event::Finish), []);
        assert_eq!(done(&mut early, Event::Start), []);
    }

    #[test]
    fn an_end_is_before_nothing_that_came_and_stays_the_end() {
        let mut member = receiver();
        done(&mut member, Event::Start);
        assert_eq!(done(&mut member, arrives(&data(2, false))), [Action::Keep { number: 2 }]);
        assert_eq!(done(&mut member, arrives(&data(1, true))), [], "2 has come");
        assert_eq!(done(&mut member, arrives(&data(3, true))), []);
        assert_eq!(done(&mut member, arrives(&data(4, true))), [], "3 is the end");
        let [first, second] = [0, 1].map(|number| done(&mut member, arrives(&data(number, false))));
        assert_eq!(first, [Action::Deliver { number: Some(0) }, Action::Release { below: 1 }]);
        let kept = Action::DeliverKept { number: 2 };
        assert_eq!(second[..3], [Action::Deliver { number: Some(1) }, kept, Action::Complete]);
    }

    /// When the member acknowledges, in milliseconds, if a packet comes at each of these microseconds.
    fn acknowledged_at(spacing: Duration, packets: impl Iterator<Item = u64>) -> Vec<u64> {
        let config = Config { ack_spacing: spacing, ..Config::refined(Habitat::Lab) };
        let mut member = Member::new(&STREAM, config, true, Random::new(1, "receiver"));
        let (mut times, mut now) = (Vec::new(), Time::ZERO);
        let mut note = |member: &mut Member, now: Time| {
            while let Some(action) = member.poll(now) {
                if matches!(action, Action::Send { .. }) {
                    times.push(now.as_micros() / 1000);
                }
            }
        };
        member.handle(now, Event::Start);
        note(&mut member, now);
        for (number, at) in (0..).zip(packets.map(Time::from_micros)) {
            while let Some(due) = member.deadline().filter(|due| *due <= at) {
                now = now.max(due);
                member.handle(now, Event::Deadline);
                note(&mut member, now);
            }
            now = at;
            member.handle(now, arrives(&data(number, false)));
            note(&mut member, now);
        }
        times
    }

    #[test]
    fn acknowledgements_that_go_at_once_are_spaced_unless_many_packets_have_come() {
        let each = |micros: u64| (1..=16).map(move |number| 10_000 + number * micros);
        // The first one asks the node above to attach it.
        assert_eq!(acknowledged_at(Duration::ZERO, each(250)), [0, 11, 12, 13]);
        assert_eq!(acknowledged_at(Duration::from_millis(2), each(250)), [0, 11, 13]);
        assert_eq!(acknowledged_at(Duration::from_millis(2), each(1000)), [0, 14, 18, 22]);
        let fast = (0..=32).map(|number| 10_000 + number * 10);
        assert_eq!(acknowledged_at(Duration::from_secs(1), fast), [0, 10]);
    }
}
