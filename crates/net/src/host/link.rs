//! A modelled link between a tenant's sockets and its endpoint, in real time.
//!
//! A packet enters the link at the time at which the kernel got it and comes out, if it does, when the model says. What
//! waits in the link is bounded by the link's own queue. Memberships need no model: a channel that is not joined does not
//! arrive at the sockets.

use std::net::SocketAddr;

use weir_link::{Label, Link, LinkConfig};
use weir_units::{Ecn, Random, Time};

use super::party::Datagram;
use crate::socket::Way;

/// A link to put in front of a tenant's sockets.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkInFront {
    /// What it is like.
    pub config: LinkConfig,
    /// Decides which packets it loses.
    pub seed: u64,
}

/// The link.
#[derive(Debug)]
pub(super) struct ModelledLink {
    link: Link<Held>,
    /// The link's time never goes back.
    time: Time,
}

/// A packet in the link.
#[derive(Debug)]
pub(super) struct Held {
    way: Way,
    from: SocketAddr,
    ecn: Ecn,
    bytes: Vec<u8>,
}

impl Held {
    /// As it comes out of the link.
    pub(super) fn datagram(&self, at: Time) -> Datagram<'_> {
        Datagram { at, way: self.way, from: self.from, ecn: self.ecn, bytes: &self.bytes }
    }
}

impl ModelledLink {
    /// An idle link.
    pub(super) fn new(link: &LinkInFront) -> ModelledLink {
        let random = Random::new(link.seed, "link in front");
        ModelledLink { link: Link::new(link.config.clone(), random), time: Time::ZERO }
    }

    /// A packet of a session enters; each session is a flow to a fair queue. `false` if the queue dropped one for it.
    pub(super) fn offer(&mut self, datagram: &Datagram<'_>, session: usize) -> bool {
        let Datagram { at, way, from, ecn, bytes } = *datagram;
        self.time = self.time.max(at);
        let held = Held { way, from, ecn, bytes: bytes.to_vec() };
        let mut all_wait = true;
        let label = Label { flow: session as u64, ecn };
        self.link.enqueue(self.time, datagram.size(), label, held, &mut |_| all_wait = false);
        all_wait
    }

    /// When the next packet may come out.
    pub(super) fn next_departure(&self) -> Option<Time> {
        self.link.next_arrival()
    }

    /// The packet that comes out by `at`; `None` if it was lost on the way.
    pub(super) fn release(&mut self, at: Time) -> Option<Held> {
        self.time = self.time.max(at);
        let out = self.link.dequeue(self.time, &mut drop)?;
        Some(Held { ecn: if out.marked { Ecn::Ce } else { out.packet.ecn }, ..out.packet })
    }

    /// Packets that the link has dropped and lost so far.
    pub(super) fn dropped(&self) -> u64 {
        let counters = self.link.counters();
        counters.dropped + counters.lost
    }
}
