//! The seam: how a protocol meets whatever drives it, be it the simulator, real sockets or the emulator.
//!
//! Events go in, actions come out, and there is one deadline. A driver does, over and over:
//!
//! 1. [`Endpoint::handle`] with the next event, at the time when it happened;
//! 2. [`Endpoint::poll`] until it returns `None`, carrying out each action;
//! 3. wait for the next event or for [`Endpoint::deadline`], whichever is first; then from 1, with [`Event::Deadline`] if
//!    it was the deadline.
//!
//! The time that comes in never goes back. An early [`Event::Deadline`] is harmless; a late one is legal, and endpoints
//! cope. An endpoint allocates when it is built, not per packet.

use alloc::boxed::Box;
use core::fmt::Debug;

use weir_units::{Bytes, Ecn, Time};
use weir_wire::{Feedback, Layered, Paced, Probe};

use crate::observation::Observation;

/// One party of a protocol: a sender, a receiver, an agent between them, or a manager of several of these.
pub trait Endpoint: Debug + Send {
    /// Something happened at `now`.
    fn handle(&mut self, now: Time, event: Event<'_>);

    /// The next thing the endpoint wants done, if any. `now` is that of the last [`Endpoint::handle`].
    fn poll(&mut self, now: Time) -> Option<Action>;

    /// When the endpoint must be called next if nothing else happens; `None` is never.
    fn deadline(&self) -> Option<Time>;
}

/// What can happen to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The session starts: a sender may send, a receiver may join.
    Start,
    /// A packet arrived. The time of the event is its arrival, not when the driver got round to it.
    Packet {
        /// Where it came from.
        from: Origin,
        /// The packet.
        packet: &'a Packet,
    },
    /// The time that [`Endpoint::deadline`] asked for has come.
    Deadline,
    /// This host threw `packets` away after the network had delivered them (its receive buffer was full). They will be
    /// missing from the sequence, and are not the network's fault.
    HostDropped {
        /// How many, since the last such event.
        packets: u64,
    },
    /// The application has this many more payloads to send; `u64::MAX` is a supply without end. Senders that always find
    /// something to send (a carousel's) need not be told.
    Offer {
        /// How many, beside those offered before.
        packets: u64,
    },
    /// The application has what it wanted: leave everything, send no more.
    Finish,
}

/// What an endpoint can want.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a packet. If the header is one that carries data, the driver appends the next payload of the application.
    Send {
        /// Where to.
        to: Destination,
        /// The packet.
        packet: Packet,
    },
    /// Become a member of a channel. Takes effect when the network has got round to it: the first packet tells.
    Join(ChannelId),
    /// Stop being a member of a channel. Packets may still arrive for a while.
    Leave(ChannelId),
    /// The payload of the packet just handled is new: give it to the application.
    Deliver,
    /// Something an observer may want to know.
    Observe(Observation),
}

/// A packet as protocols see it: a typed header, and a payload that they do not look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The protocol's part.
    pub header: Header,
    /// Bytes of the whole packet on the network: IP and UDP headers, the encoding of `header`, payload.
    pub size: Bytes,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
}

/// The headers of all protocol families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Data on a channel of a layered multicast session; carries payload.
    Layered(Layered),
    /// Data of a paced unicast stream; carries payload.
    Paced(Paced),
    /// What the sink of a paced unicast stream says of what came.
    Feedback(Feedback),
    /// How a receiver of a session measures its round trip to the sender, its first correspondent.
    Probe(Probe),
}

/// A multicast channel that the driver knows. Channels of a session are numbered from 0, the base layer; sessions under
/// one manager have ranges of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u16);

/// A unicast correspondent that the driver knows: the other end, a parent or child in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// To all members of a channel.
    Channel(ChannelId),
    /// To one correspondent.
    Peer(PeerId),
}

/// Where a packet came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Over a channel.
    Channel(ChannelId),
    /// From one correspondent.
    Peer(PeerId),
}

impl Endpoint for Box<dyn Endpoint> {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        (**self).handle(now, event);
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        (**self).poll(now)
    }

    fn deadline(&self) -> Option<Time> {
        (**self).deadline()
    }
}
