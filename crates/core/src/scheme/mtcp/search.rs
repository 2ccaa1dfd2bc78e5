//! How a member finds the node above it (decision 18): it asks a few, which name others, and takes the one that is nearest.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Ecn, Random, Time};
use weir_wire::mtcp::join::{Ask, Join, Node, Offer, Standing};

use crate::endpoint::{Action, Destination, Header, Locator, Packet, PeerId};
use crate::outbox::Outbox;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Search {
    candidates: Vec<Candidate>,
    /// Nodes that were named when there were candidates enough.
    spare: Vec<Locator>,
    stage: Stage,
    /// How often nobody would take it.
    rounds: u32,
    /// When to ask those again who have not answered.
    next_ask: Time,
    feedback_size: Bytes,
    random: Random,
}

/// What a member wants of the node above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// The lowest number that it lacks.
    pub(super) need: u64,
    /// It wants nothing from before now.
    pub(super) from_now: bool,
    /// The check sum of the node above that it has lost, or 0.
    pub(super) lost: u16,
    pub(super) is_receiver: bool,
    /// Where it takes children itself.
    pub(super) door: Option<Locator>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This node takes it, and has offered this.
    Node(PeerId, Offer),
    /// The sender itself does not keep what it needs any more.
    TooLate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Until then candidates may answer.
    Asking { until: Time },
    /// This candidate is to take it.
    Joining { place: usize, until: Time },
    /// Nobody would. It begins again.
    Resting { until: Time },
}

/// A node that may take the member.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// `None` if it is known from the configuration only.
    at: Option<Locator>,
    /// `None` until it is reached.
    peer: Option<PeerId>,
    /// Its answer, and the round trip to it.
    offer: Option<(Duration, Offer)>,
    /// It would not take the member, or is gone.
    is_out: bool,
    /// When it was asked last.
    asked: Option<Time>,
}

impl Candidate {
    /// Whether it keeps what the member needs, and is in the tree itself.
    fn may_take(&self, wish: &Wish) -> bool {
        let holds = |offer: &Offer| wish.from_now || offer.first <= wish.need;
        !self.is_out && self.offer.is_some_and(|(_, offer)| offer.level < MOST_LEVELS && holds(&offer))
    }

    fn has_place(&self) -> bool {
        self.offer.is_some_and(|(_, offer)| offer.places > 0)
    }

    /// The round trip, and 10 ms for each level.
    fn cost(&self) -> Duration {
        self.offer.map_or(Duration::MAX, |(round_trip, offer)| round_trip + LEVEL_COST * u32::from(offer.level))
    }
}

impl Search {
    /// Begins with the nodes that the member knows: a peer, and the locators of others.
    pub(super) fn start(
        now: Time,
        first: Option<PeerId>,
        others: impl IntoIterator<Item = Locator>,
        feedback_size: Bytes,
        random: Random,
        out: &mut Outbox,
    ) -> Search {
        let stage = Stage::Asking { until: now + PATIENCE };
        let mut search = Search {
            candidates: Vec::new(),
            spare: Vec::new(),
            stage,
            rounds: 0,
            next_ask: now,
            feedback_size,
            random,
        };
        let first = first.map(|peer| Candidate { at: None, peer: Some(peer), offer: None, is_out: false, asked: None });
        search.candidates.extend(first);
        others.into_iter().for_each(|at| search.contact(at, out));
        search
    }

    fn contact(&mut self, at: Locator, out: &mut Outbox) {
        if self.candidates.len() == MOST_CANDIDATES {
            return self.note_spare(at);
        }
        if !self.is_known(at) {
            self.candidates.push(Candidate { at: Some(at), peer: None, offer: None, is_out: false, asked: None });
            out.push(Action::Contact { at });
        }
    }

    fn note_spare(&mut self, at: Locator) {
        if !self.is_known(at) && !self.spare.contains(&at) && self.spare.len() < MOST_CANDIDATES {
            self.spare.push(at);
        }
    }

    fn is_known(&self, at: Locator) -> bool {
        self.candidates.iter().any(|candidate| candidate.at == Some(at))
    }

    /// A candidate turned out to be below the member itself.
    pub(super) fn exclude(&mut self, at: Locator) {
        let found = self.candidates.iter_mut().find(|candidate| candidate.at == Some(at));
        found.into_iter().for_each(|candidate| (candidate.peer, candidate.is_out) = (None, true));
    }

    /// A contacted node has answered. Returns whether it is a candidate of this search.
    pub(super) fn on_reached(&mut self, now: Time, at: Locator, peer: PeerId) -> bool {
        let is_twin = self.place(peer).is_some_and(|place| self.candidates[place].at != Some(at));
        let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.at == Some(at)) else {
            return is_twin;
        };
        match is_twin {
            // A node that is reached at two places is asked once.
            true => candidate.is_out = true,
            false => (candidate.peer, self.next_ask) = (Some(peer), now),
        }
        true
    }

    /// A candidate is gone. Whether it was one.
    pub(super) fn on_gone(&mut self, peer: PeerId) -> bool {
        let gone = self.candidates.iter_mut().find(|candidate| candidate.peer == Some(peer));
        gone.map(|candidate| (candidate.peer, candidate.is_out) = (None, true)).is_some()
    }

    /// A candidate names a node; `door` is where the member itself is reached.
    pub(super) fn on_node(&mut self, now: Time, from: PeerId, node: &Node, door: Option<Locator>, out: &mut Outbox) {
        if self.place(from).is_none() || door == Some(node.at) {
            return;
        }
        match self.stage {
            Stage::Asking { .. } => {
                self.contact(node.at, out);
                self.stage = Stage::Asking { until: now + PATIENCE };
            }
            Stage::Joining { .. } | Stage::Resting { .. } => self.note_spare(node.at),
        }
    }

    /// A candidate answers.
    pub(super) fn on_offer(&mut self, now: Time, from: PeerId, offer: &Offer) -> Option<Found> {
        let place = self.place(from)?;
        let round_trip = Duration::from_micros(u64::from((now.as_micros() as u32).wrapping_sub(offer.clock_micros)));
        let known = self.candidates[place].offer.map_or(round_trip, |(known, _)| known.min(round_trip));
        self.candidates[place].offer = Some((known, *offer));
        let is_taken = matches!(offer.standing, Standing::Child | Standing::CatchingUp);
        match self.stage {
            Stage::Joining { place: joining, .. } if joining == place && is_taken => Some(Found::Node(from, *offer)),
            // An answer to an earlier question says nothing of this one.
            Stage::Joining { place: joining, until } if joining == place && answers_since(offer, until - PATIENCE) => {
                self.candidates[place].is_out = true;
                None
            }
            _ => None,
        }
    }

    /// Whether this candidate is to take the member.
    pub(super) fn joins(&self, peer: PeerId) -> bool {
        matches!(self.stage, Stage::Joining { place, .. } if self.candidates[place].peer == Some(peer))
    }

    /// Whether a peer is a candidate.
    pub(super) fn asks(&self, peer: PeerId) -> bool {
        self.place(peer).is_some()
    }

    fn place(&self, peer: PeerId) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.peer == Some(peer))
    }

    /// Does what is due.
    pub(super) fn on_deadline(&mut self, now: Time, wish: &Wish, out: &mut Outbox) -> Option<Found> {
        match self.stage {
            Stage::Asking { until } if until <= now || self.has_all_answers() => {
                if let Some(found) = self.choose(now, wish) {
                    return Some(found);
                }
            }
            Stage::Joining { place, until } if until <= now || self.candidates[place].is_out => {
                self.candidates[place].is_out = true;
                if let Some(found) = self.choose(now, wish) {
                    return Some(found);
                }
            }
            Stage::Resting { until } if until <= now => self.again(now, out),
            _ => {}
        }
        if self.next_ask <= now {
            self.ask(now, wish, out);
        }
        None
    }

    fn has_all_answers(&self) -> bool {
        self.candidates.iter().all(|candidate| candidate.is_out || candidate.offer.is_some())
    }

    /// Turns to the best candidate that is left.
    fn choose(&mut self, now: Time, wish: &Wish) -> Option<Found> {
        let able = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.may_take(wish));
        // An orphan gets a place where all are taken, if it must be there.
        let able = able.filter(|(_, candidate)| wish.lost != 0 || candidate.has_place());
        let best = able.min_by_key(|(_, candidate)| (!candidate.has_place(), candidate.cost())).map(|(place, _)| place);
        if let Some(place) = best {
            (self.stage, self.next_ask) = (Stage::Joining { place, until: now + PATIENCE }, now);
            self.candidates[place].asked = None;
            return None;
        }
        if self.is_too_late(wish) {
            return Some(Found::TooLate);
        }
        self.rounds += 1;
        self.stage = Stage::Resting { until: now + REST.mul_f64(0.5 + self.random.unit()) };
        None
    }

    /// Whether not even the sender keeps what the member needs. Another node may; but one that has not answered again and again is gone.
    fn is_too_late(&self, wish: &Wish) -> bool {
        let offers = self.candidates.iter().filter_map(|candidate| candidate.offer);
        let of_sender = offers.map(|(_, offer)| offer).find(|offer| offer.level == 0);
        let is_known = self.has_all_answers() || self.rounds >= PATIENT_ROUNDS;
        is_known && of_sender.is_some_and(|offer| !wish.from_now && offer.first > wish.need)
    }

    /// All are asked once more. Those that had no room make way for nodes below them.
    fn again(&mut self, now: Time, out: &mut Outbox) {
        if !self.spare.is_empty() {
            let is_full =
                |candidate: &Candidate| candidate.offer.is_some_and(|(_, offer)| offer.places == 0 && offer.level > 0);
            let full = self.candidates.iter().filter(|candidate| is_full(candidate)).filter_map(|full| full.peer);
            full.for_each(|peer| out.push(Action::Part { peer }));
            self.candidates.retain(|candidate| !is_full(candidate));
            core::mem::take(&mut self.spare).into_iter().for_each(|at| self.contact(at, out));
        }
        for candidate in &mut self.candidates {
            (candidate.offer, candidate.asked) = (None, None);
            candidate.is_out = candidate.at.is_none() && candidate.peer.is_none();
        }
        let lost = self.candidates.iter().filter(|candidate| candidate.peer.is_none()).filter_map(|lost| lost.at);
        let lost: Vec<Locator> = lost.collect();
        lost.into_iter().for_each(|at| out.push(Action::Contact { at }));
        (self.stage, self.next_ask) = (Stage::Asking { until: now + PATIENCE }, now);
    }

    fn ask(&mut self, now: Time, wish: &Wish, out: &mut Outbox) {
        self.next_ask = now + ASK_AGAIN;
        let joining = match self.stage {
            Stage::Joining { place, .. } => Some(place),
            _ => None,
        };
        for (place, candidate) in self.candidates.iter_mut().enumerate() {
            let is_asked = match self.stage {
                Stage::Asking { .. } => candidate.offer.is_none() && !candidate.is_out,
                Stage::Joining { .. } => joining == Some(place),
                Stage::Resting { .. } => false,
            };
            let is_due = candidate.asked.is_none_or(|asked| now >= asked + ASK_AGAIN);
            let Some(peer) = candidate.peer.filter(|_| is_asked && is_due) else { continue };
            candidate.asked = Some(now);
            let ask = Ask {
                need: wish.need as u32,
                clock_micros: now.as_micros() as u32,
                joins: joining.is_some(),
                lost: wish.lost,
                is_receiver: wish.is_receiver,
                from_now: wish.from_now,
                door: wish.door,
            };
            out.push(join(Join::Ask(ask), peer, self.feedback_size));
        }
    }

    /// When it has something to do next.
    pub(super) fn deadline(&self) -> Time {
        match self.stage {
            Stage::Asking { .. } if self.has_all_answers() => Time::ZERO,
            Stage::Joining { place, .. } if self.candidates[place].is_out => Time::ZERO,
            Stage::Asking { until } | Stage::Joining { until, .. } => until.min(self.next_ask),
            Stage::Resting { until } => until,
        }
    }

    /// Says goodbye to all candidates but the one that was found.
    pub(super) fn end(self, found: PeerId, out: &mut Outbox) {
        let others = self.candidates.iter().filter_map(|candidate| candidate.peer).filter(|peer| *peer != found);
        others.for_each(|peer| out.push(Action::Part { peer }));
    }
}

/// Whether an offer answers a question that was asked at `start` or later.
fn answers_since(offer: &Offer, start: Time) -> bool {
    offer.clock_micros.wrapping_sub(start.as_micros() as u32) as i32 >= 0
}

/// Says something of the tree's shape to a peer.
pub(super) fn join(join: Join, to: PeerId, size: Bytes) -> Action {
    Action::send(Destination::Peer(to), Packet { header: Header::TreeJoin(join), size, ecn: Ecn::NotEct })
}

/// Nodes that a newcomer asks.
const MOST_CANDIDATES: usize = 8;
/// A node below more than this many others takes nobody: the tree would have become a ring.
pub(super) const MOST_LEVELS: u8 = 16;
/// The level of a node that looks for one above it.
pub(super) const NO_LEVEL: u8 = u8::MAX;
const LEVEL_COST: Duration = Duration::from_millis(10);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(300);
/// A candidate that has not answered in this many rounds counts as gone.
const PATIENT_ROUNDS: u32 = 3;
/// About how long it waits before it asks all once more.
const REST: Duration = Duration::from_secs(1);
