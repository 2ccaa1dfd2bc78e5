//! The two ends of a TCP connection on their nodes.

use weir_link::Ecn;
use weir_units::{Bytes, Time};

use crate::agent::Turn;
use crate::fabric::Route;
use crate::tcp::{Segment, Sender, Sink};
use crate::{AgentId, Body, Packet, Probe};

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) sender: Sender,
    pub(crate) to: (AgentId, Route),
    pub(crate) segment_size: Bytes,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) sink: Sink,
    pub(crate) to: (AgentId, Route),
    pub(crate) ack_size: Bytes,
}

impl Sending {
    pub(crate) fn start(&mut self, turn: &mut Turn<'_, impl Probe>) {
        let (to, size) = (self.to, self.segment_size);
        self.sender.start(turn.now, &mut |segment| send(turn, to, size, segment));
    }

    pub(crate) fn stop(&mut self) {
        self.sender.close();
    }

    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Probe>, packet: &Packet) {
        if let Body::Segment(segment) = &packet.body {
            let (to, size) = (self.to, self.segment_size);
            self.sender.receive(turn.now, segment, &mut |segment| send(turn, to, size, segment));
        }
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Probe>) {
        let (to, size) = (self.to, self.segment_size);
        self.sender.expire(turn.now, &mut |segment| send(turn, to, size, segment));
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.sender.deadline()
    }
}

impl Receiving {
    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Probe>, packet: &Packet) {
        if let Body::Segment(segment) = &packet.body {
            let (to, size, marked) = (self.to, self.ack_size, packet.ecn == Ecn::Ce);
            self.sink.receive(turn.now, segment, marked, &mut |segment| send(turn, to, size, segment));
        }
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Probe>) {
        let (to, size) = (self.to, self.ack_size);
        self.sink.expire(turn.now, &mut |segment| send(turn, to, size, segment));
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.sink.deadline()
    }
}

#[inline]
fn send(turn: &mut Turn<'_, impl Probe>, to: (AgentId, Route), size: Bytes, segment: Segment) {
    let ecn = if segment.ecn_capable { Ecn::Ect } else { Ecn::NotEct };
    turn.send(to, size, ecn, Body::Segment(segment));
}
