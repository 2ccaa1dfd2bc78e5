//! Who knows whom, and under which number.

use weir_core::{Destination, Event, Origin, Packet, PeerId};

use crate::party::{Party, Role};

/// A chain: in a tree each party is above the next one. Two other parties know each other as the first.
#[derive(Debug)]
pub(crate) struct Relations {
    is_tree: bool,
    /// The number under which the party above knows this one.
    below: Vec<PeerId>,
    /// The next number that a party gives to a newcomer. None is used twice.
    next: Vec<u32>,
}

impl Relations {
    /// The children of a tree come up with their first packet.
    pub(crate) fn new(parties: &[Party]) -> Relations {
        let is_tree = parties[0].role == Role::Root;
        // The party above is a member's first peer.
        let first = |index: usize| u32::from(is_tree && index > 0);
        let below = (0..parties.len()).map(|index| PeerId(index.checked_sub(1).map_or(0, first)));
        Relations {
            is_tree,
            below: below.collect(),
            next: (0..parties.len()).map(|index| first(index) + u32::from(index + 1 < parties.len())).collect(),
        }
    }

    pub(crate) fn is_tree(&self) -> bool {
        self.is_tree
    }

    /// Where `other` sees a packet of `from` come from, if it gets it.
    pub(crate) fn origin(&self, from: usize, other: usize, party: &Party, to: Destination) -> Option<Origin> {
        if !self.is_tree {
            // Nobody has told the sender of a session who its receivers are.
            return Some(if party.role == Role::Sender { Origin::Unverified } else { Origin::Peer(PeerId(0)) });
        }
        let Destination::Peer(peer) = to else { return None };
        if from == other + 1 && peer == PeerId(0) {
            return Some(Origin::Peer(self.below[from]));
        }
        (other == from + 1 && peer == self.below[other]).then_some(Origin::Peer(PeerId(0)))
    }

    /// What happens to a party when a packet arrives: in a tree newcomers are announced, and nothing comes from those who are
    /// gone.
    pub(crate) fn arrival<'a>(&self, party: &Party, from: Origin, packet: &'a Packet) -> Vec<Event<'a>> {
        let arrives = Event::Packet { from, packet };
        match from {
            Origin::Peer(peer) if self.is_tree && party.gone.contains(&peer.0) => Vec::new(),
            Origin::Peer(peer) if self.is_tree && !party.peers.contains(&peer.0) => {
                vec![Event::PeerUp(peer), arrives]
            }
            _ => vec![arrives],
        }
    }

    /// The event as it can happen to the party `index`, if it can: in a tree a number is used once, who goes has been there, and
    /// a child that is gone can come back under another number, and nobody is reached without being contacted. Strangers say nothing and so
    /// hold everybody back: they are few.
    /// Only if it `may_be_final` the stream ends, or a party of the group goes.
    pub(crate) fn adapted(
        &mut self,
        index: usize,
        party: &Party,
        event: Event<'static>,
        may_be_final: bool,
    ) -> Option<Event<'static>> {
        match event {
            Event::PeerUp(PeerId(which)) if self.is_tree => {
                let child = self.below.get_mut(index + 1).filter(|child| party.gone.contains(&child.0));
                if child.is_none() && (which != 0 || party.peers.len() > MOST_PEERS) {
                    return None;
                }
                let newcomer = PeerId(self.next[index]);
                self.next[index] += 1;
                child.into_iter().for_each(|child| *child = newcomer);
                Some(Event::PeerUp(newcomer))
            }
            Event::PeerDown(PeerId(which)) if self.is_tree => {
                let strangers = self.strangers(index, party);
                let all: Vec<PeerId> = party.peers.iter().copied().map(PeerId).collect();
                let candidates = if may_be_final { all } else { strangers };
                candidates.get(which as usize % candidates.len().max(1)).copied().map(Event::PeerDown)
            }
            // A driver says so to those who have contacted somebody, and does not announce that peer besides.
            Event::Reached { .. } if self.is_tree && party.contacts() == 0 => None,
            Event::End if self.is_tree => may_be_final.then_some(Event::End),
            event => Some(event),
        }
    }

    /// Peers that are up and no party of the group.
    pub(crate) fn strangers(&self, index: usize, party: &Party) -> Vec<PeerId> {
        let is_party =
            |peer: PeerId| self.below.get(index + 1) == Some(&peer) || (party.role != Role::Root && peer == PeerId(0));
        party.peers.iter().copied().map(PeerId).filter(|peer| !is_party(*peer)).collect()
    }
}

/// Peers at a time.
const MOST_PEERS: usize = 5;
