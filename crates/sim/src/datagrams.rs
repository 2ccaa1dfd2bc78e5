//! A source of datagrams on its node.

use weir_units::{Bytes, Ecn, Time};

use crate::agent::Turn;
use crate::fabric::Route;
use crate::traffic::UdpSource;
use crate::{Address, AgentId, Body, Monitor, Packet, SessionId};

/// A source, and where its datagrams go.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) source: UdpSource,
    pub(crate) to: To,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    Agent(AgentId, Route),
    Channel(SessionId, u16),
}

impl Sending {
    pub(crate) fn start(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let (to, size) = (self.to, self.source.config().packet_size);
        self.source.start(turn.now, &mut |number| send(turn, to, size, number));
    }

    pub(crate) fn stop(&mut self) {
        self.source.stop();
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let (to, size) = (self.to, self.source.config().packet_size);
        self.source.expire(turn.now, &mut |number| send(turn, to, size, number));
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.source.deadline()
    }
}

fn send(turn: &mut Turn<'_, impl Monitor>, to: To, size: Bytes, number: u64) {
    let body = Body::Datagram(number);
    match to {
        To::Agent(agent, route) => turn.send((agent, route), size, Ecn::NotEct, body),
        To::Channel(session, channel) => {
            let to = Address::Channel(session, channel);
            let packet = Packet { size, flow: turn.flow, source: turn.id, to, ecn: Ecn::NotEct, body };
            turn.fabric.multicast(turn.now, packet, session, turn.monitor);
        }
    }
}
