//! Whom an endpoint can write to, by the number that it knows them by.

use weir_core::PeerId;

use crate::AgentId;
use crate::fabric::Route;

/// The peers of one endpoint. A number is given once and stays, so the list only grows.
///
/// There are few: a party of thousands answers those that it does not know, and keeps no list of them.
#[derive(Debug, Default)]
pub(crate) struct Peers(Vec<Peer>);

/// A correspondent of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) agent: AgentId,
    /// How packets get there, once that has been asked for.
    pub(crate) route: Option<Route>,
    /// It has said goodbye. Nothing more comes from it.
    pub(crate) is_gone: bool,
}

impl Peers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a peer; the number is the next one.
    pub(crate) fn add(&mut self, agent: AgentId) -> PeerId {
        self.0.push(Peer { agent, route: None, is_gone: false });
        PeerId(self.0.len() as u32 - 1)
    }

    /// The peer of this number.
    pub(crate) fn get_mut(&mut self, PeerId(number): PeerId) -> Option<&mut Peer> {
        self.0.get_mut(number as usize)
    }

    /// The number of an agent, and what is known of it.
    #[inline]
    pub(crate) fn find(&self, agent: AgentId) -> Option<(PeerId, Peer)> {
        let number = self.0.iter().position(|peer| peer.agent == agent)?;
        Some((PeerId(number as u32), self.0[number]))
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PeerId, Peer)> + '_ {
        self.0.iter().enumerate().map(|(number, peer)| (PeerId(number as u32), *peer))
    }
}
