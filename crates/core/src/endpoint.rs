//! The contract between a protocol and its driver: the simulator, real sockets, or sockets behind modelled links.
//!
//! Events go in, actions come out, and there is one deadline. A driver repeats three steps:
//!
//! 1. [`Endpoint::handle`] with the next event, at the time when it happened;
//! 2. [`Endpoint::poll`] until it returns `None`, carrying out each action;
//! 3. wait for the next event or for [`Endpoint::deadline`], whichever is first; then from 1, with [`Event::Deadline`] if
//!    it was the deadline.
//!
//! Every driver keeps the same promises:
//!
//! - *Time.* The time that comes in never goes back. An early [`Event::Deadline`] is harmless; a late one is legal, and
//!   endpoints cope. Each packet has its own arrival time, that of the network and not of the driver's loop. A profile for
//!   sockets can turn the kernel's coalescing off where packets read together must not share one time.
//! - *Peers.* A [`PeerId`] names one correspondent for the whole session and is never reused. Peers from the configuration
//!   are numbered from 0 and are there at [`Event::Start`]. Others appear while the session runs, with [`Event::PeerUp`],
//!   after they have proved that they receive at their address. Whoever has not proved it is [`Origin::Unverified`], and can
//!   only be answered at once, with [`Destination::Reply`]. An endpoint that has been told where it is reached itself may
//!   tell others, and may contact those whose locators it is told ([`Action::Contact`]).
//! - *Channels.* Any party may send to a channel, whether or not it is a member; packets travel from the party's own node, and
//!   do not come back to it. A party of several sessions knows their channels by consecutive ranges of [`ChannelId`]s.
//! - *Payloads.* A protocol never holds a payload. The application has a supply of them ([`Event::Offer`]), the driver keeps
//!   those that the endpoint names by number ([`Action::Take`], [`Action::Keep`], [`Action::Release`]), and the receiving
//!   application says for how many it has room ([`Event::Room`]), or how many it has not worked off ([`Event::Backlog`]). So
//!   the simulator can carry lengths where sockets carry bytes. Only the protocol knows which of its headers a payload
//!   follows, and any peer can leave the payload out: the driver then delivers an empty one.
//! - *Completeness.* A driver carries out every action. One that cannot be carried out, such as to send to a peer that does
//!   not exist, is an error of the run and never silence.
//!
//! An endpoint allocates when it is built, not per packet.

use alloc::boxed::Box;
use core::fmt::Debug;

use weir_units::{Bytes, Ecn, Rate, Time};

use crate::observation::Observation;

pub use weir_wire::{Header, Locator};

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
    /// Others can contact this party here. It is told right before [`Event::Start`], if at all.
    Reachable {
        /// What to tell others.
        at: Locator,
    },
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
    /// A new correspondent has proved its address. This comes before its first packet.
    PeerUp(PeerId),
    /// A party that the endpoint contacted has answered. One that does not answer for a while is forgotten without an event.
    Reached {
        /// Where.
        at: Locator,
        /// Its number. It may be that of a correspondent who was there before.
        peer: PeerId,
    },
    /// A correspondent has said goodbye, or has been silent for too long. Nothing more comes from it.
    PeerDown(PeerId),
    /// This host threw `packets` away after the network had delivered them (its receive buffer was full). They will be
    /// missing from the sequence, and are not the network's fault.
    HostDropped {
        /// How many, since the last such event.
        packets: u64,
    },
    /// The receiving application throws payloads away when it holds too many, and holds this many that it has not worked off. An
    /// application that limits its room instead ([`Event::Room`]) does not tell this.
    Backlog(Backlog),
    /// The sending application has this many more payloads; `u64::MAX` is a supply without end. A sender of channels whose
    /// application always has something to send is not told.
    Offer {
        /// How many, on top of those offered before.
        packets: u64,
    },
    /// The sending application will offer nothing more. What it has offered is still to be sent.
    End,
    /// The receiving application has room for this many payloads from here on. If it is limited at all, the endpoint is told
    /// for the first time right before [`Event::Start`]: one that has not been told by then has room for everything. Each
    /// payload that is delivered takes a place, so an endpoint is told again when a place is free again, and a delivery
    /// for which it has not been told of any room cannot be carried out.
    Room {
        /// How many, in place of what was said before.
        payloads: u64,
    },
    /// What this receiver of a layered session may take from here on, by a manager of several sessions. The first time it is
    /// told right before [`Event::Start`]: one that has not been told by then decides for itself.
    Allot(Allotment),
    /// The user gives one of the sessions that this party manages another priority; a higher number goes first.
    Priority {
        /// Which session, counted from 0.
        session: u16,
        /// Its priority from here on, above zero.
        priority: u32,
        /// Another one's follows: bandwidth is divided again after the last.
        more: bool,
    },
    /// The application has what it wanted of one of the sessions that this party manages, counted from 0.
    FinishSession(u16),
    /// The application has what it wanted: leave everything, send no more.
    Finish,
}

/// Payloads that a receiving application has been given and has not worked off yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// How many wait.
    pub waiting: u64,
    /// How many can wait: what comes beyond that is thrown away.
    pub most: u64,
}

/// What an endpoint can want.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send a packet.
    Send {
        /// Where to.
        to: Destination,
        /// The packet.
        packet: Packet,
        /// What follows its header.
        payload: Payload,
        /// The next packet to the same destination goes out right behind this one: the driver hands both to the system at
        /// once, so that the first link on the path sees a pair.
        with_next: bool,
    },
    /// Make a correspondent of the party that is reached here: [`Event::Reached`] tells when it is one.
    Contact {
        /// What that party has told of itself.
        at: Locator,
    },
    /// Say goodbye to a correspondent. Nothing more goes there or comes from there.
    Part {
        /// Its number.
        peer: PeerId,
    },
    /// Become a member of a channel. Takes effect when the network has acted on it: the first packet tells.
    Join(ChannelId),
    /// Stop being a member of a channel. Packets may still arrive for a while.
    Leave(ChannelId),
    /// Give the payload of the packet being handled to the application. `None` where payloads have no order, as the symbols
    /// of a fountain; else the payload's number.
    Deliver {
        /// The payload's number.
        number: Option<u64>,
    },
    /// Give a kept payload to the application. It stays kept.
    DeliverKept {
        /// The payload's number.
        number: u64,
    },
    /// Take the next payload that the sending application offers, and keep it under this number.
    Take {
        /// The number that it gets.
        number: u64,
    },
    /// Keep the payload of the packet being handled under this number.
    Keep {
        /// The number that it gets. A payload that is kept under it already stays.
        number: u64,
    },
    /// Forget all kept payloads with lower numbers.
    Release {
        /// The lowest number that stays.
        below: u64,
    },
    /// The protocol has done what the application wanted of it: a sender's stream is with everyone whom it serves, a receiver
    /// has delivered the last payload.
    Complete,
    /// Something an observer may want to know.
    Observe(Observation),
    /// The same of one of the sessions that this party manages, counted from 0.
    ObserveSession(u16, Observation),
}

/// The payload of a packet that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// None: the header is the whole packet.
    None,
    /// The application's next one for this destination. The driver does not keep it.
    Fresh,
    /// The one that is kept under this number.
    Kept(u64),
}

/// A packet as protocols see it: a typed header, and a payload that they do not look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The protocol's part.
    pub header: Header,
    /// Bytes of the whole packet on the network: IP and UDP headers, the encoding of `header`, payload.
    pub size: Bytes,
    /// The congestion field of its IP header: as sent, or as the network left it.
    pub ecn: Ecn,
}

/// What a receiver of a layered session may take of it. It joins nothing beyond that, and leaves at once what is beyond it;
/// packets that it misses for that are not lost. It tells what it would take with [`Observation::Wish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allotment {
    /// The highest level that it may have. The lowest one is always allowed.
    pub level: usize,
    /// The factor, in thousandths, by which it multiplies the share of the path that it finds.
    pub thousandths: u32,
}

/// A multicast channel that the driver knows. Channels of a session are numbered from 0, the base layer; those of several
/// sessions under one manager follow one another.
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
    /// To the unverified origin of the packet being handled. The reply must not be longer than that packet, so that nobody can
    /// use this host to send more to a third party than it spends itself.
    Reply,
}

/// Where a packet came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Over a channel.
    Channel(ChannelId),
    /// From one correspondent.
    Peer(PeerId),
    /// From an address that has not proved that it receives there. Nobody is remembered.
    Unverified,
}

impl Allotment {
    /// No limit, and the share as it is found.
    pub const EVERYTHING: Allotment = Allotment { level: usize::MAX, thousandths: 1000 };

    /// What a share counts as.
    pub fn of(&self, share: Rate) -> Rate {
        Rate::from_bps((u128::from(share.bps()) * u128::from(self.thousandths) / 1000) as u64)
    }
}

impl Action {
    /// Sends a header without a payload.
    pub const fn send(to: Destination, packet: Packet) -> Action {
        Action::Send { to, packet, payload: Payload::None, with_next: false }
    }

    /// Sends a packet with the application's next payload.
    pub const fn send_fresh(to: Destination, packet: Packet) -> Action {
        Action::Send { to, packet, payload: Payload::Fresh, with_next: false }
    }

    /// Sends a packet with a payload that is kept.
    pub const fn send_kept(to: Destination, packet: Packet, number: u64) -> Action {
        Action::Send { to, packet, payload: Payload::Kept(number), with_next: false }
    }
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
