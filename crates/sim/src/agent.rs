//! What runs on nodes: it is woken and given packets, and it acts on the fabric.

use weir_core::Action;
use weir_units::{Bytes, Ecn, Time};

use crate::connection;
use crate::datagrams;
use crate::fabric::{Due, Fabric, Route};
use crate::multicast::Member;
use crate::party::Party;
use crate::{Address, AgentId, Body, FlowId, Monitor, NodeId, Packet, SessionId};

/// Something that runs on a node. Two lines of the cache: many run on a large network, and each packet fetches one.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Agent {
    pub(crate) node: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) received: Received,
    pub(crate) program: Program,
    /// The instant for which an event is out.
    armed: Option<Time>,
}

/// What has arrived at an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// What an agent is.
#[derive(Debug)]
pub(crate) enum Program {
    /// A party of one of Weir's protocols.
    Party(Party),
    /// The sending side of a TCP connection.
    TcpSender(Box<connection::Sending>),
    /// The receiving side of a TCP connection.
    TcpSink(Box<connection::Receiving>),
    /// A source of datagrams.
    Datagrams(Box<datagrams::Sending>),
    /// Counts what comes over channels that it is a member of from start to stop.
    Listener(Listener),
    /// Counts what it gets.
    Counter,
}

/// A member of the channels below `channels`.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) session: SessionId,
    pub(crate) member: Member,
    pub(crate) channels: u16,
}

impl Listener {
    fn change(&self, turn: &mut Turn<'_, impl Monitor>, join: bool) {
        for channel in 0..self.channels {
            turn.fabric.change(turn.now, self.session, self.member, channel, join);
        }
    }
}

/// What an agent may do while it is running.
pub(crate) struct Turn<'a, P> {
    pub(crate) now: Time,
    pub(crate) id: AgentId,
    pub(crate) flow: FlowId,
    pub(crate) fabric: &'a mut Fabric,
    pub(crate) monitor: &'a mut P,
}

impl<P: Monitor> Turn<'_, P> {
    /// Sends to one agent.
    #[inline]
    pub(crate) fn send(&mut self, to: (AgentId, Route), size: Bytes, ecn: Ecn, body: Body) {
        let packet = Packet { size, flow: self.flow, source: self.id, to: Address::Agent(to.0), ecn, body };
        self.fabric.unicast(self.now, packet, to.1, self.monitor);
    }
}

impl Agent {
    pub(crate) fn new(node: NodeId, flow: FlowId, program: Program) -> Agent {
        Agent { node, flow, received: Received::default(), program, armed: None }
    }

    pub(crate) fn start(&mut self, now: Time, id: AgentId, fabric: &mut Fabric, monitor: &mut impl Monitor) {
        let turn = &mut Turn { now, id, flow: self.flow, fabric, monitor };
        match &mut self.program {
            Program::Party(party) => party.start(turn),
            Program::TcpSender(sender) => sender.start(turn),
            Program::Datagrams(source) => source.start(turn),
            Program::Listener(listener) => listener.change(turn, true),
            Program::TcpSink(_) | Program::Counter => {}
        }
        self.put_out(now, id, fabric);
    }

    pub(crate) fn stop(&mut self, now: Time, id: AgentId, fabric: &mut Fabric, monitor: &mut impl Monitor) {
        let turn = &mut Turn { now, id, flow: self.flow, fabric, monitor };
        match &mut self.program {
            Program::Party(party) => party.stop(turn),
            Program::TcpSender(sender) => sender.stop(),
            Program::Datagrams(source) => source.stop(),
            Program::Listener(listener) => listener.change(turn, false),
            Program::TcpSink(_) | Program::Counter => {}
        }
        self.put_out(now, id, fabric);
    }

    /// An agent that stopped has said goodbye.
    pub(crate) fn on_goodbye(
        &mut self,
        now: Time,
        id: AgentId,
        of: AgentId,
        fabric: &mut Fabric,
        monitor: &mut impl Monitor,
    ) {
        if let Program::Party(party) = &mut self.program {
            party.on_goodbye(&mut Turn { now, id, flow: self.flow, fabric, monitor }, of);
        }
        self.put_out(now, id, fabric);
    }

    /// An agent that it has contacted is there.
    pub(crate) fn on_reached(
        &mut self,
        now: Time,
        id: AgentId,
        at: AgentId,
        fabric: &mut Fabric,
        monitor: &mut impl Monitor,
    ) {
        if let Program::Party(party) = &mut self.program {
            party.on_reached(&mut Turn { now, id, flow: self.flow, fabric, monitor }, at);
        }
        self.put_out(now, id, fabric);
    }

    /// The endpoint, if it is one.
    pub(crate) fn party(&self) -> Option<&Party> {
        match &self.program {
            Program::Party(party) => Some(party),
            _ => None,
        }
    }

    /// A packet has come.
    #[inline(always)] // For each packet of every run; the second place that calls it is for threads.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        id: AgentId,
        packet: &Packet,
        fabric: &mut Fabric,
        monitor: &mut impl Monitor,
    ) {
        self.received.packets += 1;
        self.received.bytes += packet.size;
        monitor.arrive(now, id, packet);
        let turn = &mut Turn { now, id, flow: self.flow, fabric, monitor };
        match &mut self.program {
            Program::Party(party) => party.receive(turn, packet),
            Program::TcpSender(sender) => sender.receive(turn, packet),
            Program::TcpSink(sink) => sink.receive(turn, packet),
            Program::Datagrams(_) | Program::Listener(_) | Program::Counter => return,
        }
        self.put_out(now, id, fabric);
    }

    /// A packet has come. An endpoint handles it, and what it wants goes to `act`. Returns for when to put an event out, if
    /// for any time; `None` if this is no endpoint, or one that cannot decide apart, and has not seen the packet.
    #[inline]
    pub(crate) fn receive_apart(
        &mut self,
        now: Time,
        packet: &Packet,
        act: &mut impl FnMut(&Action),
    ) -> Option<Option<Time>> {
        let Program::Party(party) = &mut self.program else { return None };
        if !party.decides_apart() {
            return None;
        }
        self.received.packets += 1;
        self.received.bytes += packet.size;
        party.take_in(now, packet, &mut |_, action| act(action));
        Some(self.arm(now))
    }

    /// Does what an endpoint wanted when it handled a packet.
    pub(crate) fn carry_out(
        &mut self,
        now: Time,
        id: AgentId,
        packet: &Packet,
        action: &Action,
        fabric: &mut Fabric,
        monitor: &mut impl Monitor,
    ) {
        if let Program::Party(party) = &mut self.program {
            let turn = &mut Turn { now, id, flow: self.flow, fabric, monitor };
            party.carry_out(turn, Some(packet), action);
        }
    }

    /// An event that was out for this agent is due.
    #[inline]
    pub(crate) fn wake(&mut self, now: Time, id: AgentId, fabric: &mut Fabric, monitor: &mut impl Monitor) {
        if self.armed != Some(now) {
            return;
        }
        self.armed = None;
        if self.deadline().is_some_and(|at| at <= now) {
            let turn = &mut Turn { now, id, flow: self.flow, fabric, monitor };
            match &mut self.program {
                Program::Party(party) => party.expire(turn),
                Program::TcpSender(sender) => sender.expire(turn),
                Program::TcpSink(sink) => sink.expire(turn),
                Program::Datagrams(source) => source.expire(turn),
                Program::Listener(_) | Program::Counter => {}
            }
        }
        self.put_out(now, id, fabric);
    }

    fn deadline(&self) -> Option<Time> {
        match &self.program {
            Program::Party(party) => party.deadline(),
            Program::TcpSender(sender) => sender.deadline(),
            Program::TcpSink(sink) => sink.deadline(),
            Program::Datagrams(source) => source.deadline(),
            Program::Listener(_) | Program::Counter => None,
        }
    }

    #[inline]
    fn put_out(&mut self, now: Time, id: AgentId, fabric: &mut Fabric) {
        if let Some(at) = self.arm(now) {
            fabric.events.push(at, Due::Agent(id));
        }
    }

    /// An event is out at the deadline or before it. A deadline that moves back leaves its event where it is: when that is
    /// due, the next one is put out, and timers that are pushed back with every packet cost nothing. Returns for when to
    /// put one out now.
    #[inline]
    fn arm(&mut self, now: Time) -> Option<Time> {
        let at = self.deadline()?.max(now);
        let is_earlier = self.armed.is_none_or(|armed| at < armed);
        if is_earlier {
            self.armed = Some(at);
        }
        is_earlier.then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_takes_two_lines_of_the_cache() {
        assert_eq!(size_of::<Agent>(), 128);
    }
}
