//! Who watches a run: a monitor is told what happens, where and when, and changes nothing.

use weir_core::Observation;
use weir_link::DropReason;
use weir_units::Time;

use crate::{AgentId, LinkId, Packet};

/// Watches a run. Every method does nothing unless it is written, and then costs nothing.
pub trait Monitor {
    /// An endpoint told something.
    fn observe(&mut self, _now: Time, _agent: AgentId, _observation: &Observation) {}

    /// A manager of several sessions told something of one of them.
    fn observe_session(&mut self, _now: Time, _agent: AgentId, _session: u16, _observation: &Observation) {}

    /// A packet reached its agent, which has not seen it yet. A packet to a channel reaches every member.
    fn arrive(&mut self, _now: Time, _agent: AgentId, _packet: &Packet) {}

    /// An endpoint gave a payload to its application, under its number if payloads have an order. `bytes` is the size of the
    /// packet that brought it, and 0 for a payload that the endpoint's own application had offered.
    fn deliver(&mut self, _now: Time, _agent: AgentId, _bytes: u64, _number: Option<u64>) {}

    /// An endpoint has done what its application wanted of it.
    fn complete(&mut self, _now: Time, _agent: AgentId) {}

    /// An endpoint joins or leaves a channel; the network may hear of it later.
    fn member(&mut self, _now: Time, _agent: AgentId, _channel: u16, _joins: bool) {}

    /// A packet came to a link; it may be dropped, there and then or later.
    fn enqueue(&mut self, _now: Time, _link: LinkId, _packet: &Packet) {}

    /// A link lost a packet.
    fn drop(&mut self, _at: Time, _link: LinkId, _packet: &Packet, _reason: DropReason) {}

    /// A packet came out of a link at its far end.
    fn dequeue(&mut self, _now: Time, _link: LinkId, _packet: &Packet) {}
}

/// Nobody watches.
impl Monitor for () {}

/// Two monitors watch the same run.
impl<A: Monitor, B: Monitor> Monitor for (A, B) {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        self.0.observe(now, agent, observation);
        self.1.observe(now, agent, observation);
    }

    fn observe_session(&mut self, now: Time, agent: AgentId, session: u16, observation: &Observation) {
        self.0.observe_session(now, agent, session, observation);
        self.1.observe_session(now, agent, session, observation);
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        self.0.arrive(now, agent, packet);
        self.1.arrive(now, agent, packet);
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        self.0.deliver(now, agent, bytes, number);
        self.1.deliver(now, agent, bytes, number);
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.0.complete(now, agent);
        self.1.complete(now, agent);
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, joins: bool) {
        self.0.member(now, agent, channel, joins);
        self.1.member(now, agent, channel, joins);
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.0.enqueue(now, link, packet);
        self.1.enqueue(now, link, packet);
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        self.0.drop(at, link, packet, reason);
        self.1.drop(at, link, packet, reason);
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.0.dequeue(now, link, packet);
        self.1.dequeue(now, link, packet);
    }
}

impl<P: Monitor> Monitor for &mut P {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        (**self).observe(now, agent, observation);
    }

    fn observe_session(&mut self, now: Time, agent: AgentId, session: u16, observation: &Observation) {
        (**self).observe_session(now, agent, session, observation);
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        (**self).arrive(now, agent, packet);
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        (**self).deliver(now, agent, bytes, number);
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        (**self).complete(now, agent);
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, joins: bool) {
        (**self).member(now, agent, channel, joins);
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        (**self).enqueue(now, link, packet);
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        (**self).drop(at, link, packet, reason);
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        (**self).dequeue(now, link, packet);
    }
}
