//! What an application is to its host: a source of payloads, a sink for them, and somebody who watches.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weir_core::{Backlog, ChannelId, Endpoint, Event, Observation, Origin, PeerId};
use weir_units::Time;
use weir_wire::rtcp::handshake::Terms;

use super::Statistics;
use crate::error::NetError;

/// An application whose payloads are labelled by `L`. Everything but [`Application::tick`] has a default: nothing to send,
/// everything that comes thrown away.
pub trait Application<L> {
    /// The next payload to send, for a channel or, without one, for a peer or to keep.
    fn payload(&mut self, _now: Time, _channel: Option<ChannelId>) -> Option<(L, &[u8])> {
        None
    }

    /// How many payloads wait to be sent. `None` is a supply that is always there and needs no offers. It falls by
    /// [`Application::payload`] only: what replaces a payload takes its place.
    fn waiting(&self) -> Option<u64> {
        None
    }

    /// The next payload for the endpoint of one peer, where each peer has an endpoint. What several of them get is there once.
    fn payload_for(&mut self, now: Time, _peer: PeerId) -> Option<(L, Arc<[u8]>)> {
        self.payload(now, None).map(|(label, payload)| (label, payload.into()))
    }

    /// How many payloads wait for the endpoint of one peer, where each peer has an endpoint. It falls by [`Application::payload_for`]
    /// only, and grows by that, by [`Application::read`] and in a tick.
    fn waiting_for(&self, _peer: PeerId) -> Option<u64> {
        self.waiting()
    }

    /// Whether no more payloads will come; some may wait.
    fn is_over(&self) -> bool {
        false
    }

    /// What to wait on for more payloads; `None` while there is no room for more, or no more will come.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// There is something to read.
    fn read(&mut self, _now: Time) {}

    /// A payload came.
    fn deliver(&mut self, _now: Time, _delivery: Delivery<'_, L>) {}

    /// All payloads that were there have been delivered; more will take at least a moment.
    fn batch_end(&mut self) {}

    /// For how many payloads there is room; `None` is for all that come.
    fn room(&self) -> Option<u64> {
        None
    }

    /// What it has not worked off, if it throws payloads away once that is too much.
    fn backlog(&self) -> Option<Backlog> {
        None
    }

    /// What a stream from here to `peer` is like, which asks; `None` while that is not known yet, so that it asks again.
    fn terms(&self, _peer: SocketAddr) -> Option<Terms> {
        Some(Terms::default())
    }

    /// A host has proved its address, or offers a stream on these terms, and this tenant has no endpoint for all: the endpoint for
    /// this peer. `None` declines.
    fn open(&mut self, _now: Time, _peer: SocketAddr, _terms: &Terms) -> Option<Box<dyn Endpoint>> {
        None
    }

    /// The application goes on after [`Progress::Rest`]: the endpoint that begins in place of the one that left. With `None` the tenant rests on.
    fn begin_again(&mut self, _now: Time) -> Option<Box<dyn Endpoint>> {
        None
    }

    /// How it stands with a peer has changed.
    fn peer(&mut self, _now: Time, _peer: PeerId, _address: SocketAddr, _change: PeerChange) {}

    /// A host that was contacted is gone, and this tenant has an endpoint for each peer: to contact it again, as from the beginning, give
    /// a new random SSRC for this host.
    fn contact_again(&mut self, _now: Time, _address: SocketAddr, _why: Departure) -> Option<u32> {
        None
    }

    /// A message of the other side's application came to the control port. An answer must not be longer than the message.
    fn message(&mut self, _now: Time, _from: SocketAddr, _message: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// The message to send to the application of a peer from the configuration, if it is time for one.
    fn next_message(&mut self, _now: Time) -> Option<(PeerId, Vec<u8>)> {
        None
    }

    /// What the endpoint is to be told of the user's wishes, such as [`Event::Priority`]; asked after each tick.
    fn next_event(&mut self, _now: Time) -> Option<Event<'static>> {
        None
    }

    /// When [`Application::next_message`] wants to be called, or the application wants a tick before its time.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The endpoint observed something.
    fn observe(&mut self, _now: Time, _observation: &Observation) {}

    /// The endpoint of one peer observed something, where each peer has an endpoint.
    fn observe_peer(&mut self, now: Time, _peer: PeerId, observation: &Observation) {
        self.observe(now, observation);
    }

    /// A manager of several sessions observed something of one of them.
    fn observe_session(&mut self, _now: Time, _session: u16, _observation: &Observation) {}

    /// The endpoint has done what was wanted of it.
    fn complete(&mut self, _now: Time) {}

    /// The sender says that the session of this number is over. Reported once, and again after [`Application::reopened`]. Anyone
    /// can forge this, so it means something only if nothing follows.
    fn closed(&mut self, _now: Time, _session: usize) {}

    /// Data of a session has come that was said to be over: it is not.
    fn reopened(&mut self, _now: Time, _session: usize) {}

    /// A packet of a session came whose seal says that it is of this start of the sender, from now on the only one that counts.
    fn begun(&mut self, _now: Time, _session: usize, _epoch: u64) {}

    /// Something failed, such as a join; the session goes on without it.
    fn problem(&mut self, _now: Time, _problem: &NetError) {}

    /// Called every tick, and at every deadline of the application.
    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress;
}

/// What an application wants at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Go on.
    Continue,
    /// Want nothing for now: the endpoint leaves all channels and sends no more. Messages still go both ways. If the application goes on
    /// later, [`Application::begin_again`] makes another endpoint. Only for a tenant that has one endpoint for all peers.
    Rest,
    /// The application has what it wanted: the endpoint leaves all channels and sends no more. Messages still go both ways.
    Finish,
    /// Finish, say goodbye, and end the run.
    Stop,
}

/// A payload that came.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a, L> {
    /// How it came; `None` for one that was kept.
    pub from: Option<Origin>,
    /// The address that it came from, which may be forged; `None` for one that was kept.
    pub address: Option<SocketAddr>,
    /// Its number, where payloads are numbered.
    pub number: Option<u64>,
    /// What its packet says about it.
    pub label: &'a L,
    /// The payload.
    pub payload: &'a [u8],
}

/// How it stands with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerChange {
    /// It was asked several times, and nobody has answered yet.
    Unanswered {
        /// Its host says that nobody listens on the port.
        is_refused: bool,
    },
    /// It offers a stream under this lasting key, zeros for none, and another is expected; it is asked again.
    OtherKey([u8; 32]),
    /// It serves as many peers as it can; it is asked again.
    Busy,
    /// It does not know yet what its stream is like; it is asked again.
    Later,
    /// It has proved its address, or its stream has begun.
    Up,
    /// The endpoint has contacted it, and it has answered.
    Reached,
    /// It is gone.
    Down(Departure),
}

/// Why a peer is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It said goodbye.
    Bye,
    /// This side's protocol is complete.
    Complete,
    /// This side's application or protocol ended the session.
    Stopped,
    /// It has said nothing for too long.
    Silent,
    /// Its host says that nobody listens there, and it has said nothing since.
    Refused,
    /// It says that it does not know this host, as one that was started again, and has said nothing else since.
    Forgotten,
    /// This side's application does not take what it offers.
    Declined,
}
