//! What travels through the simulated network, and the pool that holds it.

use weir_core::Header;
use weir_units::{Bytes, Ecn};

use crate::fabric::Route;
use crate::tcp::Segment;
use crate::{AgentId, FlowId, SessionId};

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Bytes on every link.
    pub size: Bytes,
    /// Whose it is, for queues and monitors that tell flows apart.
    pub flow: FlowId,
    /// Who sent it.
    pub source: AgentId,
    /// Where it goes.
    pub to: Address,
    /// What the sender says of congestion marks, or the network has written over it.
    pub ecn: Ecn,
    /// What is in it.
    pub body: Body,
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// To one agent.
    Agent(AgentId),
    /// To all members of a session's channel.
    Channel(SessionId, u16),
}

/// What is in a packet. Payload is its length only.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// A packet of an endpoint.
    Endpoint(Header),
    /// A segment of a TCP connection, or its acknowledgement.
    Segment(Segment),
    /// The datagram of this number, from 0.
    Datagram(u64),
}

/// A packet in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(u32);

/// Where packets live while they travel. A link carries handles; a multicast packet is one packet with many handles.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    packet: Packet,
    /// Where on its way a packet to one agent is; the tree that one to a channel takes.
    route: Route,
    /// Handles that are out.
    handles: u32,
}

impl Pool {
    /// Takes a packet in; one handle to it is out.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet, route: Route) -> Handle {
        let slot = Slot { packet, route, handles: 1 };
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                Handle(index)
            }
            None => {
                self.slots.push(slot);
                Handle(u32::try_from(self.slots.len() - 1).expect("memory ends before four billion packets"))
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &Packet {
        &self.slots[handle.0 as usize].packet
    }

    #[inline]
    pub(crate) fn route(&self, handle: Handle) -> Route {
        self.slots[handle.0 as usize].route
    }

    /// Whether a packet of one agent to another travels, or has come and was not given to it yet.
    pub(crate) fn has_any(&self, from: AgentId, to: AgentId) -> bool {
        let is_one = |packet: &Packet| packet.source == from && packet.to == Address::Agent(to);
        self.slots.iter().any(|slot| slot.handles > 0 && is_one(&slot.packet))
    }

    /// The packet has crossed a link: the rest of its way, if it takes a route and not a tree.
    #[inline]
    pub(crate) fn cross(&mut self, handle: Handle) -> Option<Route> {
        let slot = &mut self.slots[handle.0 as usize];
        match slot.packet.to {
            Address::Agent(_) => {
                slot.route.0 += 1;
                Some(slot.route)
            }
            Address::Channel(..) => None,
        }
    }

    /// One more handle to the same packet.
    #[inline]
    pub(crate) fn share(&mut self, handle: Handle) -> Handle {
        self.slots[handle.0 as usize].handles += 1;
        handle
    }

    /// A handle with a congestion mark: the same packet if nobody else holds it, or a marked copy.
    pub(crate) fn mark(&mut self, handle: Handle) -> Handle {
        let slot = &mut self.slots[handle.0 as usize];
        if slot.handles == 1 {
            slot.packet.ecn = Ecn::Ce;
            return handle;
        }
        let (copy, route) = (Packet { ecn: Ecn::Ce, ..slot.packet }, slot.route);
        self.release(handle);
        self.insert(copy, route)
    }

    /// A handle comes back.
    #[inline]
    pub(crate) fn release(&mut self, handle: Handle) {
        let slot = &mut self.slots[handle.0 as usize];
        slot.handles -= 1;
        if slot.handles == 0 {
            self.free.push(handle.0);
        }
    }

    /// Packets that are travelling.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
