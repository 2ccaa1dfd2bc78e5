//! Members that find a node (decisions 18 to 20): who may become a child, who catches up first, and who is waited for no more.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Seq, Time};
use weir_wire::mtcp::Ack;
use weir_wire::mtcp::join::{Ask, Join, Node, Offer, Standing};

use crate::definition::Stream;
use crate::endpoint::{Action, Locator, PeerId};
use crate::observation::{Observation, TreeReport};
use crate::outbox::Outbox;

use super::child::Child;
use super::config::{Config, Shape};
use super::downlink::{Downlink, PROBE_INTERVAL};
use super::search::{MOST_LEVELS, NO_LEVEL, join};

/// A child that catches up. The stream does not wait for it.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) child: Child,
    /// It has been slower than it may be since then.
    slow_since: Option<Time>,
}

impl Guest {
    /// One that nobody has found slow.
    pub(super) fn new(child: Child) -> Guest {
        Guest { child, slow_since: None }
    }
}

/// How a child gets on, from probe to probe.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// What it had, and what there was, at the last probe.
    start: Seq,
    next: Seq,
    /// It has been slower than it may be since then.
    slow_since: Option<Time>,
}

impl Pace {
    /// A probe's time has come. Whether the child has been slower than `least` packets a second for `patience` while it could
    /// have had more: it lacks what there was at the last probe, or has no room for more than there is.
    fn is_too_slow(&mut self, now: Time, child: (Seq, Seq), next: Seq, least: f64, patience: Duration) -> bool {
        let (start, limit) = child;
        let rate = start.since(self.start) as f64 / PROBE_INTERVAL.as_secs_f64();
        let is_slow = rate < least && (start < self.next || limit <= next);
        (self.start, self.next) = (start, next);
        let since = is_slow.then(|| self.slow_since.unwrap_or(now));
        self.slow_since = since;
        since.is_some_and(|since| now.since(since) >= patience)
    }
}

/// At most a quarter of the children are demoted or turned out in a minute.
#[derive(Debug, Default)]
pub(super) struct Quota(VecDeque<Time>);

impl Quota {
    fn take(&mut self, now: Time, children: usize) -> bool {
        while self.0.front().is_some_and(|at| now.since(*at) >= QUOTA_SPAN) {
            self.0.pop_front();
        }
        let is_left = self.0.len() < (children / 4).max(1);
        if is_left {
            self.0.push_back(now);
        }
        is_left
    }
}

/// What a node has: the lowest number that it can send again, and the number after the last one that it knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stock {
    pub(super) first: Seq,
    pub(super) next: Seq,
}

/// Children for whose acknowledgements an uplink has room: these may take a quarter of what the data takes.
fn uplink_places(config: &Config, stream: &Stream) -> u64 {
    let packets_an_ack = config.ack_every.unwrap_or(1);
    let data = packets_an_ack * stream.packet_size.count();
    (data / (4 * stream.feedback_size.count()).max(1)).max(2)
}

impl Downlink {
    /// How many more children it takes.
    fn places(&self) -> u64 {
        let most = self.config.fan_out.min(uplink_places(&self.config, &self.stream));
        let taken = (self.children.len() + self.guests.len()) as u64;
        if self.is_attached() { most.saturating_sub(taken) } else { 0 }
    }

    /// Whether it takes this member. An orphan gets a place even if all are taken, as this node may be the only one that keeps
    /// what it lacks.
    fn takes(&self, ask: &Ask) -> bool {
        self.places() > 0 || (ask.lost != 0 && self.is_attached())
    }

    fn is_attached(&self) -> bool {
        self.position.door.is_some() && self.position.level.is_some_and(|level| level < MOST_LEVELS)
    }

    /// What a peer is to this node.
    fn standing(&self, peer: PeerId) -> Standing {
        let is_peer = |child: &Child| child.peer == peer;
        if self.children.iter().any(is_peer) {
            Standing::Child
        } else if self.guests.iter().any(|guest| is_peer(&guest.child)) {
            Standing::CatchingUp
        } else {
            Standing::Stranger
        }
    }

    /// Whether a peer is a child, or catches up.
    pub(super) fn is_below(&self, peer: PeerId) -> bool {
        self.standing(peer) != Standing::Stranger
    }

    /// A member asks what this node offers, or asks to become its child.
    pub(super) fn on_ask(&mut self, now: Time, peer: PeerId, ask: &Ask, stock: Stock, out: &mut Outbox) {
        let was_below = self.is_below(peer);
        let standing = match self.standing(peer) {
            Standing::Stranger if ask.joins && self.takes(ask) => self.admit(now, peer, ask, stock, out),
            standing => standing,
        };
        if standing == Standing::Stranger {
            self.name_children(peer, out);
            if self.is_root {
                self.name_above(0, peer, out);
            }
        }
        if self.is_below(peer) {
            (0..=self.position.above.len()).for_each(|turn| self.name_above(turn, peer, out));
            if !was_below {
                report(peer, standing, out);
            }
        }
        // Last: what was said before may be all that the other ever hears of the tree.
        self.offer(peer, standing, stock, ask.clock_micros, out);
    }

    fn admit(&mut self, now: Time, peer: PeerId, ask: &Ask, stock: Stock, out: &mut Outbox) -> Standing {
        let need = if ask.from_now { stock.next } else { stock.next.extend(ask.need, 32).min(stock.next) };
        if need < stock.first {
            return Standing::TooLate;
        }
        // A member may come back before its last goodbye was processed.
        self.present.retain(|present| *present != peer);
        self.present.push(peer);
        let mut child = Child::new(peer, need, now, &self.config, self.stream.packet_size.count());
        (child.door, child.is_receiver, child.orphan_of) = (ask.door, ask.is_receiver, ask.lost);
        child.stagger = self.slot();
        if ask.lost != 0 || stock.next.since(need) <= NEAR {
            self.attach(now, child, out);
            Standing::Child
        } else {
            self.guests.push(Guest::new(child));
            self.probe(now, out);
            Standing::CatchingUp
        }
    }

    pub(super) fn offer(&self, to: PeerId, standing: Standing, stock: Stock, clock_micros: u32, out: &mut Outbox) {
        let offer = Offer {
            first: stock.first.value(),
            next: stock.next.value(),
            clock_micros,
            places: self.places().min(u64::from(u16::MAX)) as u16,
            level: self.position.level.unwrap_or(NO_LEVEL),
            standing,
        };
        out.push(join(Join::Offer(offer), to, self.stream.feedback_size));
    }

    /// Names this node to a child, or one of those above it.
    fn name_above(&self, turn: usize, to: PeerId, out: &mut Outbox) {
        let own = self.position.level.zip(self.position.door);
        let mut all = own.into_iter().chain(self.position.above.iter().copied());
        let named = all.nth(turn % (self.position.above.len() + 1));
        let node = named.map(|(level, at)| Join::Node(Node { at, level, is_above: true }));
        out.extend(node.map(|node| join(node, to, self.stream.feedback_size)));
    }

    /// Names some children to a member that looks for a node, and other ones next time.
    fn name_children(&mut self, to: PeerId, out: &mut Outbox) {
        let Some(level) = self.position.level else { return };
        let doors: Vec<Locator> = self.children.iter().filter_map(|child| child.door).collect();
        let named = doors.iter().cycle().skip(self.turn % doors.len().max(1)).take(doors.len().min(MOST_NAMED));
        for at in named {
            let node = Node { at: *at, level: level + 1, is_above: false };
            out.push(join(Join::Node(node), to, self.stream.feedback_size));
        }
        self.turn = self.turn.wrapping_add(MOST_NAMED);
    }

    /// A child that catches up says what it has.
    pub(super) fn on_guest_ack(&mut self, now: Time, peer: PeerId, ack: &Ack, out: &mut Outbox) {
        let (next, config) = (self.next(), self.config);
        let Some(place) = self.guests.iter().position(|guest| guest.child.peer == peer) else { return };
        let child = &mut self.guests[place].child;
        if !child.take(now, ack, next, |_| {}) {
            return;
        }
        child.unanswered = 0;
        child.note_summary(ack, config.low_mark);
        child.settle_repairs(now, &config);
        if child.start() < self.first {
            return self.turn_out(peer, Standing::TooLate, out);
        }
        if next.since(child.start()) <= NEAR {
            let Guest { child, .. } = self.guests.remove(place);
            self.attach(now, child, out);
            report(peer, Standing::Child, out);
        } else {
            child.request_ahead(now, next);
        }
    }

    /// It is time for a probe: children get on or not, and are told how they stand.
    pub(super) fn review(&mut self, now: Time, out: &mut Outbox) {
        if self.config.tree == Shape::Given {
            return;
        }
        self.demote_slow(now, out);
        self.turn_out_slow(now, out);
        let stock = Stock { first: self.first, next: self.next() };
        let guests = self.guests.iter_mut().map(|guest| &mut guest.child);
        let due = self.children.iter_mut().chain(guests).filter(|child| child.next_probe <= now);
        let due: Vec<(PeerId, usize)> = due
            .map(|child| {
                child.turn += 1;
                (child.peer, child.turn)
            })
            .collect();
        for (peer, turn) in due {
            self.offer(peer, self.standing(peer), stock, 0, out);
            self.name_above(turn, peer, out);
        }
    }

    /// How much later than others a new child is probed from the second probe on: probes to all at once would meet in a short
    /// queue, and always the same ones would be lost.
    fn slot(&mut self) -> Duration {
        self.turn = self.turn.wrapping_add(1);
        (self.turn % SLOTS) as u32 * PROBE_INTERVAL / SLOTS as u32
    }

    /// The stream no longer waits for children that are slower than they may be.
    fn demote_slow(&mut self, now: Time, out: &mut Outbox) {
        let Some(least) = self.least_rate() else { return };
        let (next, patience) = (self.next(), self.config.evict_after);
        let is_slow = |child: &mut Child| {
            if child.next_probe > now {
                return false;
            }
            let stands = (child.start(), child.summary.limit);
            // A node is given the time to see to those below it.
            let patience = if child.has_children() { 2 * patience } else { patience };
            child.pace.is_too_slow(now, stands, next, least, patience)
        };
        let slow: Vec<PeerId> =
            self.children.iter_mut().filter_map(|child| is_slow(child).then_some(child.peer)).collect();
        for peer in slow {
            if !self.quota.take(now, self.children.len() + self.guests.len()) {
                break;
            }
            if let Some(child) = self.detach(now, peer, false) {
                self.guests.push(Guest { child, slow_since: Some(now) });
                report(peer, Standing::CatchingUp, out);
            }
        }
    }

    /// A demoted child that stays slow for as long again is turned out. So is a guest that needs packets that are no longer kept.
    fn turn_out_slow(&mut self, now: Time, out: &mut Outbox) {
        let patience = self.config.evict_after;
        let is_slow = |guest: &Guest| guest.slow_since.is_some_and(|since| now.since(since) >= patience);
        let slow = self.guests.iter().filter(|guest| is_slow(guest)).map(|guest| (guest.child.peer, Standing::TooSlow));
        let late = self.guests.iter().filter(|guest| guest.child.start() < self.first);
        let late = late.map(|guest| (guest.child.peer, Standing::TooLate));
        let all: Vec<(PeerId, Standing)> = late.chain(slow).collect();
        all.into_iter().for_each(|(peer, standing)| self.turn_out(peer, standing, out));
    }

    fn turn_out(&mut self, peer: PeerId, standing: Standing, out: &mut Outbox) {
        let stock = Stock { first: self.first, next: self.next() };
        self.guests.retain(|guest| guest.child.peer != peer);
        self.present.retain(|present| *present != peer);
        self.turned_out.push((peer, standing));
        self.offer(peer, standing, stock, 0, out);
        report(peer, standing, out);
    }

    /// An acknowledgement came from a peer that is not a child and may believe that it is one.
    pub(super) fn disown(&self, peer: PeerId, out: &mut Outbox) {
        if self.config.tree == Shape::Found {
            let known = self.turned_out.iter().find(|(known, _)| *known == peer);
            let standing = known.map_or(Standing::Stranger, |(_, standing)| *standing);
            self.offer(peer, standing, Stock { first: self.first, next: self.next() }, 0, out);
        }
    }

    /// Packets a second that a child takes at least.
    fn least_rate(&self) -> Option<f64> {
        let packet = self.stream.packet_size;
        let rate = self.config.min_rate?;
        (packet > Bytes::ZERO).then(|| rate.bps() as f64 / (8.0 * packet.count() as f64))
    }
}

fn report(peer: PeerId, standing: Standing, out: &mut Outbox) {
    out.push(Action::Observe(Observation::Tree(TreeReport::Below { peer, standing })));
}

/// A guest that lacks no more than one acknowledgement can report has caught up.
pub(super) const NEAR: u64 = 64;
/// The packets that answer a question are few, as they come in one piece and may meet a short queue.
const MOST_NAMED: usize = 3;
const SLOTS: usize = 16;
const QUOTA_SPAN: Duration = Duration::from_secs(60);
