//! Profiles: how headers, payloads and what is said about both become datagrams, and what a datagram says.
//!
//! A profile is a pure function. It holds what stays the same for a session, and neither socket, clock nor state. A new
//! protocol family adds a profile here and never a loop: [`crate::host`] is the only one.

mod alc;
mod experimental;
mod media;
mod mtcp;
mod rtp;

use std::fmt::Debug;
use std::time::Duration;

use weir_wire::Header;
use weir_wire::rtcp::handshake::Message;
use weir_wire::rtcp::{self, App, Bye};

use crate::host::Strange;

pub use alc::AlcProfile;
pub use experimental::ExperimentalProfile;
pub use media::MediaProfile;
pub use mtcp::MtcpProfile;
pub use rtp::{RtpAssociation, RtpProfile};

/// How a session's packets look on the network.
pub trait Profile: Debug + Copy {
    /// What a packet says about its payload: which symbol of which object it is, or its timestamp.
    type Label: Copy + Debug;
    /// What the packets to and from one peer need besides the header: SSRCs, first sequence numbers.
    type Association: Copy + Debug;

    /// What two hosts have agreed on in their handshake.
    fn associate(&self, ids: &Ids) -> Self::Association;

    /// Writes all that stands before the payload to the front of `out`, and returns how many bytes that is, at most
    /// [`MAX_HEADER`]. `None` if packets of this profile do not carry such a header.
    fn encode(
        &self,
        header: &Header,
        label: Option<&Self::Label>,
        sending: Sending<'_, Self::Association>,
        out: &mut [u8],
    ) -> Option<usize>;

    /// Reads a datagram, and gives all that it says to `found`.
    fn decode<'d>(
        &self,
        datagram: &'d [u8],
        from: Sender<Self::Association>,
        found: impl FnMut(Found<'d, Self::Label>),
    );

    /// Writes the packet that tells the members of a channel that the session ends; returns its length. `last` is the last
    /// header that was sent there. `None` if the profile has no such packet.
    fn close(&self, _channel: u16, _last: Option<&Header>, _ntp_micros: u64, _out: &mut [u8]) -> Option<usize> {
        None
    }

    /// How the host treats the profile's datagrams.
    fn handling(&self) -> Handling;

    /// The label of the empty payload that goes out where the application had less than it said. `None` where such a packet
    /// is left out.
    fn empty(&self) -> Option<Self::Label> {
        None
    }
}

/// How a host treats datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling {
    /// Several packets may pass this host's kernel as one, in both directions. It is fast, and packets that are read together
    /// share their arrival time.
    pub coalesces: bool,
    /// How long the host rests after a read that brought little: each wake-up costs, and the kernel keeps packets with their
    /// times. Zero for a protocol that has to answer at once.
    pub rest: Duration,
}

/// What goes into a datagram besides header, label and payload.
#[derive(Debug)]
pub struct Sending<'a, A> {
    /// The wall clock, in microseconds since the NTP epoch.
    pub ntp_micros: u64,
    /// How long ago the event was that the endpoint answers.
    pub waited: Duration,
    /// With whom, if the packet goes to a peer.
    pub association: Option<&'a mut A>,
}

/// Where a datagram came from.
#[derive(Debug, Clone, Copy)]
pub enum Sender<A> {
    /// Over a channel, by its number within the session.
    Channel(u16),
    /// From a peer.
    Peer(A),
    /// From a peer that is configured and needs no handshake, or from a host that is no peer.
    Unassociated,
}

/// Something that a datagram says.
#[derive(Debug, Clone, Copy)]
pub enum Found<'d, L> {
    /// A packet for the endpoint. Nothing follows a header whose label is `None`.
    Packet {
        /// The protocol's part.
        header: Header,
        /// What is said about the payload.
        label: Option<L>,
        /// The payload.
        payload: &'d [u8],
    },
    /// A message of one application to the other, such as a receipt.
    Message(&'d [u8]),
    /// A step of the handshake.
    Handshake(Message),
    /// A peer leaves.
    Bye(Bye),
    /// The sender of a channel says that the session is over.
    Closed,
    /// It cannot be read.
    Undecodable,
    /// It is of another session, channel or stream.
    Foreign,
    /// It came over a channel, and why it is not taken can be told.
    Strange(Strange),
    /// It is about packets that were never sent.
    Impossible,
}

/// The numbers by which two peers know each other's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// SSRC of this host's packets.
    pub local_ssrc: u32,
    /// SSRC of the peer's packets.
    pub remote_ssrc: u32,
    /// What the endpoint calls 0 has this number on the network, so that nobody can acknowledge blindly.
    pub first_sequence: u16,
}

/// The most bytes before a payload, over all profiles.
pub const MAX_HEADER: usize = 128;

/// What an RTCP packet says to every profile whose peers meet by handshake; `None` if it is none of these.
fn control<'d, L>(packet: &rtcp::Packet<'d>) -> Option<Found<'d, L>> {
    let found = match packet.packet_type {
        App::TYPE => Message::decode(packet).map(Found::Handshake),
        Bye::TYPE => Bye::decode(packet).map(Found::Bye),
        _ => return None,
    };
    Some(found.unwrap_or(Found::Undecodable))
}
