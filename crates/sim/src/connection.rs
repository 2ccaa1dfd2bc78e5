//! The two ends of a TCP connection on their nodes.

use weir_units::{Bytes, Ecn, Time};

use crate::agent::Turn;
use crate::fabric::Route;
use crate::tcp::{Segment, Sender, Sink};
use crate::traffic::HttpServer;
use crate::{AgentId, Body, Monitor, Packet};

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) source: Source,
    pub(crate) to: (AgentId, Route),
    pub(crate) segment_size: Bytes,
}

/// What a sending end sends.
#[derive(Debug)]
pub(crate) enum Source {
    /// What its configuration says, from the start on.
    Supply(Box<Sender>),
    /// Responses to a user of the web.
    Http(Box<HttpServer>),
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) sink: Sink,
    pub(crate) to: (AgentId, Route),
    pub(crate) ack_size: Bytes,
}

impl Sending {
    pub(crate) fn sender(&self) -> &Sender {
        match &self.source {
            Source::Supply(sender) => sender,
            Source::Http(server) => server.sender(),
        }
    }

    pub(crate) fn start(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let (now, to, size) = (turn.now, self.to, self.segment_size);
        let out = &mut |segment| send(turn, to, size, segment);
        match &mut self.source {
            Source::Supply(sender) => sender.start(now, out),
            Source::Http(server) => server.start(now, out),
        }
    }

    /// The application has had enough; what is under way is brought to its end.
    pub(crate) fn stop(&mut self) {
        match &mut self.source {
            Source::Supply(sender) => sender.close(),
            Source::Http(server) => server.stop(),
        }
    }

    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Monitor>, packet: &Packet) {
        let Body::Segment(segment) = &packet.body else { return };
        let (now, to, size) = (turn.now, self.to, self.segment_size);
        let out = &mut |segment| send(turn, to, size, segment);
        match &mut self.source {
            Source::Supply(sender) => sender.receive(now, segment, out),
            Source::Http(server) => server.receive(now, segment, out),
        }
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let (now, to, size) = (turn.now, self.to, self.segment_size);
        let out = &mut |segment| send(turn, to, size, segment);
        match &mut self.source {
            Source::Supply(sender) => sender.expire(now, out),
            Source::Http(server) => server.expire(now, out),
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        match &self.source {
            Source::Supply(sender) => sender.deadline(),
            Source::Http(server) => server.deadline(),
        }
    }
}

impl Receiving {
    #[inline]
    pub(crate) fn receive(&mut self, turn: &mut Turn<'_, impl Monitor>, packet: &Packet) {
        if let Body::Segment(segment) = &packet.body {
            let (to, size, marked) = (self.to, self.ack_size, packet.ecn == Ecn::Ce);
            self.sink.receive(turn.now, segment, marked, &mut |segment| send(turn, to, size, segment));
        }
    }

    pub(crate) fn expire(&mut self, turn: &mut Turn<'_, impl Monitor>) {
        let (to, size) = (self.to, self.ack_size);
        self.sink.expire(turn.now, &mut |segment| send(turn, to, size, segment));
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.sink.deadline()
    }
}

#[inline]
fn send(turn: &mut Turn<'_, impl Monitor>, to: (AgentId, Route), size: Bytes, segment: Segment) {
    let ecn = if segment.ecn_capable { Ecn::Ect } else { Ecn::NotEct };
    turn.send(to, size, ecn, Body::Segment(segment));
}
