//! Whom an endpoint can write to, by the number that it knows them by.

use weir_core::PeerId;

use crate::AgentId;
use crate::fabric::Route;

/// The peers of one endpoint. A number is given once and stays, so the list only grows.
///
/// There are few: a party of thousands answers those that it does not know, and keeps no list of them. Most endpoints have one,
/// which takes no memory of its own.
#[derive(Debug, Default)]
pub(crate) enum Peers {
    #[default]
    None,
    One(Peer),
    Many(Vec<Peer>),
}

/// A correspondent of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) agent: AgentId,
    /// How packets get there, once that has been asked for.
    pub(crate) route: Option<Route>,
    /// One of the two has said goodbye. If they meet again, the agent gets another number.
    pub(crate) is_gone: bool,
}

impl Peers {
    fn all(&self) -> &[Peer] {
        match self {
            Peers::None => &[],
            Peers::One(peer) => std::slice::from_ref(peer),
            Peers::Many(peers) => peers,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Adds a peer; the number is the next one.
    pub(crate) fn add(&mut self, agent: AgentId) -> PeerId {
        let number = PeerId(self.all().len() as u32);
        let peer = Peer { agent, route: None, is_gone: false };
        match self {
            Peers::None => *self = Peers::One(peer),
            Peers::One(first) => *self = Peers::Many(vec![*first, peer]),
            Peers::Many(peers) => peers.push(peer),
        }
        number
    }

    /// The peer of this number.
    #[inline]
    pub(crate) fn get_mut(&mut self, PeerId(number): PeerId) -> Option<&mut Peer> {
        match self {
            Peers::One(peer) if number == 0 => Some(peer),
            Peers::None | Peers::One(_) => None,
            Peers::Many(peers) => peers.get_mut(number as usize),
        }
    }

    /// The last number of an agent, and what is known of it.
    #[inline]
    pub(crate) fn find(&self, agent: AgentId) -> Option<(PeerId, Peer)> {
        match self {
            Peers::One(peer) => (peer.agent == agent).then_some((PeerId(0), *peer)),
            Peers::None | Peers::Many(_) => self.iter().rfind(|(_, peer)| peer.agent == agent),
        }
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (PeerId, Peer)> + '_ {
        self.all().iter().enumerate().map(|(number, peer)| (PeerId(number as u32), *peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_takes_no_more_room_than_a_list_and_numbers_follow_one_another() {
        assert_eq!(size_of::<Peers>(), size_of::<Vec<Peer>>());
        let (mut peers, agents) = (Peers::default(), [7, 3, 5].map(AgentId::new));
        assert_eq!(agents.map(|agent| peers.add(agent)), [0, 1, 2].map(PeerId));
        assert_eq!(agents.map(|agent| peers.find(agent).map(|(id, _)| id)), [0, 1, 2].map(|id| Some(PeerId(id))));
        assert_eq!([1, 3].map(|id| peers.get_mut(PeerId(id)).map(|peer| peer.agent)), [Some(agents[1]), None]);
    }
}
