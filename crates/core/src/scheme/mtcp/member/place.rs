//! A member's place in the tree: which node is above it, how it finds one, and what it says to those who look for one.

use alloc::vec::Vec;

use weir_units::{Random, Seq, Time};
use weir_wire::mtcp::join::{Ask, Join, Offer, Standing, check_sum};

use super::{ABOVE_SILENCE, LATE, Member};
use crate::endpoint::{Action, Locator, PeerId};
use crate::observation::{Observation, TreeReport};
use crate::scheme::mtcp::config::Shape;
use crate::scheme::mtcp::newcomers::Stock;
use crate::scheme::mtcp::search::{Found, MOST_LEVELS, NO_LEVEL, Search, Wish};

impl Member {
    /// Looks for a node above, from one that it knows on or from those that were above the last one.
    pub(super) fn seek(&mut self, now: Time, first: Option<PeerId>) {
        self.lost = self.downlink.position.parent().map_or(self.lost, check_sum);
        let others = self.downlink.position.refuges();
        let random = Random::new(self.random.bits(), "search");
        (self.above, self.heard, self.told, self.newest) = (None, None, None, None);
        (self.standing, self.downlink.position.level) = (None, None);
        self.search = Some(Search::start(now, first, others, self.stream.feedback_size, random, &mut self.out));
        self.observe(TreeReport::Seeking);
    }

    fn observe(&mut self, report: TreeReport) {
        self.out.push(Action::Observe(Observation::Tree(report)));
    }

    pub(super) fn wish(&self) -> Wish {
        let is_new = self.lost == 0 && self.arrivals.start() == Seq::new(0);
        Wish {
            need: self.arrivals.start().value(),
            // An agent stores for those who come after it.
            from_now: is_new && (self.config.from_now || !self.reading.has_application),
            lost: self.lost,
            is_receiver: self.reading.has_application,
            door: self.downlink.position.door,
        }
    }

    pub(super) fn on_found(&mut self, now: Time, found: Found) {
        match found {
            Found::Node(above, offer) => self.attach(now, above, &offer),
            Found::TooLate => self.leave_tree(Standing::TooLate),
        }
    }

    /// A node takes this member.
    fn attach(&mut self, now: Time, above: PeerId, offer: &Offer) {
        if self.wish().from_now {
            self.begin_at(Seq::new(offer.next.min(u64::MAX >> 1)));
        }
        self.search.take().into_iter().for_each(|search| search.end(above, &mut self.out));
        self.above = Some(above);
        (self.heard, self.patience) = (Some(now), now + ABOVE_SILENCE);
        self.lost = UNTOLD;
        self.on_standing(now, offer);
        self.acknowledge(now, true);
    }

    /// The stream begins here for this member.
    fn begin_at(&mut self, number: Seq) {
        if number > self.arrivals.start() {
            self.arrivals.begin_at(number);
            self.downlink.begin_at(number);
            (self.released, self.reading.delivered) = (number, number);
            self.out.push(Action::Release { below: number.value() });
            self.read();
        }
    }

    /// The node above says how things stand.
    fn on_standing(&mut self, now: Time, offer: &Offer) {
        let Some(above) = self.above else { return };
        match offer.standing {
            // It looks for a node itself, and keeps its children.
            Standing::Child | Standing::CatchingUp if offer.level == NO_LEVEL => {}
            Standing::Child | Standing::CatchingUp if offer.level < MOST_LEVELS => {
                let (level, catches_up) = (offer.level + 1, offer.standing == Standing::CatchingUp);
                self.downlink.position.above.retain(|(known, _)| *known < level);
                let is_news = self.standing.replace((level, catches_up)) != Some((level, catches_up));
                self.downlink.position.level = Some(level);
                if is_news {
                    self.observe(TreeReport::Attached { above, level, catches_up });
                }
            }
            Standing::TooSlow | Standing::TooLate => self.leave_tree(offer.standing),
            // An answer to what was asked before it took this member.
            Standing::Stranger if offer.clock_micros != 0 => {}
            // It does not know this member any more, or the tree has become a ring.
            Standing::Stranger | Standing::Child | Standing::CatchingUp => {
                self.out.push(Action::Part { peer: above });
                self.seek(now, None);
            }
        }
    }

    /// There is no place in the tree for this member.
    fn leave_tree(&mut self, standing: Standing) {
        self.observe(TreeReport::Out(standing));
        (self.above, self.search) = (None, None);
        self.downlink.position.level = None;
    }

    /// Somebody looks for a node, and wants to know of this one or to be its child.
    fn on_ask(&mut self, now: Time, peer: PeerId, ask: &Ask) {
        // Whoever is above this member does not join it.
        let ask = &Ask { joins: ask.joins && self.above != Some(peer), ..*ask };
        let stock = match self.serves() {
            true => Stock { first: self.downlink.first, next: self.arrivals.next() },
            false => Stock { first: self.arrivals.start(), next: self.arrivals.next() },
        };
        if ask.joins && !self.serves() {
            self.start_serving(now);
        }
        self.downlink.on_ask(now, peer, ask, stock, &mut self.out);
    }

    /// What has come and the application has not got is kept, and can be sent again.
    fn start_serving(&mut self, now: Time) {
        self.downlink.begin_at(self.arrivals.start());
        let beyond = (self.arrivals.start().value()..self.arrivals.next().value()).map(Seq::new);
        let came: Vec<Seq> = beyond.filter(|number| self.arrivals.has(*number)).collect();
        came.into_iter().for_each(|number| self.downlink.has(now, number));
    }

    /// A packet with which the tree is built.
    pub(super) fn on_join(&mut self, now: Time, peer: PeerId, join: &Join) {
        let is_above = self.above == Some(peer);
        let is_asked = self.search.as_ref().is_some_and(|search| search.asks(peer));
        if let Join::Node(node) = join
            && node.level == 0
            && (is_above || is_asked)
        {
            self.downlink.position.note_sender(node.at);
        }
        match (join, &mut self.search) {
            _ if self.config.tree == Shape::Given => {}
            (Join::Ask(ask), _) => self.on_ask(now, peer, ask),
            (Join::Offer(offer), Some(search)) => {
                let found = search.on_offer(now, peer, offer);
                found.into_iter().for_each(|found| self.on_found(now, found));
            }
            (Join::Offer(offer), None) if is_above => self.on_standing(now, offer),
            (Join::Node(node), search)
                if node.is_above && (is_above || search.as_ref().is_some_and(|it| it.joins(peer))) =>
            {
                self.downlink.position.note_above(node.level, node.at);
            }
            (Join::Node(node), Some(search)) if !node.is_above => {
                search.on_node(now, peer, node, self.downlink.position.door, &mut self.out);
            }
            (Join::Offer(_) | Join::Node(_), _) => {}
        }
    }

    /// A node that is to be asked is there.
    pub(super) fn on_reached(&mut self, now: Time, at: Locator, peer: PeerId) {
        let is_below = self.downlink.is_below(peer);
        let is_wanted = match &mut self.search {
            Some(search) if is_below => {
                search.exclude(at);
                true
            }
            Some(search) => search.on_reached(now, at, peer),
            None => false,
        };
        if !is_wanted && !is_below && self.above != Some(peer) {
            self.out.push(Action::Part { peer });
        }
    }

    /// Somebody is gone.
    pub(super) fn on_down(&mut self, now: Time, peer: PeerId) {
        if self.search.as_mut().is_some_and(|search| search.on_gone(peer)) {
            return;
        }
        if self.config.tree == Shape::Found && self.above == Some(peer) {
            return self.seek(now, None);
        }
        self.downlink.remove(now, peer);
        self.on_change(now);
    }

    /// Whether a peer is one of the nodes above that it knows. Children come later.
    pub(super) fn is_above(&self, peer: PeerId) -> bool {
        match self.config.tree {
            Shape::Given => u64::from(peer.0) < self.config.uplinks,
            Shape::Found => self.above == Some(peer),
        }
    }

    /// The node above has said nothing for too long; but not if this host has slept, and could not hear it.
    pub(super) fn lose_patience(&mut self, now: Time) {
        match now.since(self.patience) < LATE {
            true => self.turn_to_next(now),
            false => self.patience = now + ABOVE_SILENCE,
        }
    }

    /// The node above is lost: the next one takes its place, and holds everything above this subtree's low mark. Where it has to
    /// be found, the lost one stays a candidate, and is told goodbye only when another one is found: until then it holds what this
    /// member needs, as the path may have failed and not the node.
    pub(super) fn turn_to_next(&mut self, now: Time) {
        let Some(PeerId(lost)) = self.above else { return };
        if self.config.tree == Shape::Found {
            return self.seek(now, Some(PeerId(lost)));
        }
        self.above = Some(PeerId((lost + 1) % self.config.uplinks as u32));
        (self.heard, self.told, self.newest) = (None, None, None);
        self.patience = now + ABOVE_SILENCE;
        self.acknowledge(now, true);
    }
}

/// The check sum of a node that has not told where it is reached.
const UNTOLD: u16 = 1;
