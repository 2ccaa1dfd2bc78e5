//! What can go wrong between a driver and the system, said so that the user can mend it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use weir_capture::CaptureError;
use weir_core::{ChannelId, Destination, Header, PeerId};

/// What can go wrong here.
pub(crate) type Result<T> = std::result::Result<T, NetError>;

/// Why a driver cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// No interface has this name.
    #[error("there is no interface {name:?}; this host has {available}")]
    NoSuchInterface {
        /// The name asked for.
        name: String,
        /// The names that exist.
        available: String,
    },
    /// No interface has this address.
    #[error("no interface has the address {address}; this host has {available}")]
    NoSuchAddress {
        /// The address asked for.
        address: IpAddr,
        /// Interfaces and addresses that exist.
        available: String,
    },
    /// The interface exists and is not up.
    #[error("interface {name} is down; bring it up with: ip link set {name} up")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// The interface has no address of the family that the channels need.
    #[error(
        "interface {name} has no {family} address, which channels such as {group} need; give it one, or choose another interface"
    )]
    NoAddress {
        /// Its name.
        name: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// A channel.
        group: IpAddr,
    },
    /// The routing table does not say which interface leads to the channels.
    #[error(
        "no route leads to {group}: name an interface, or add a route, such as: ip route add {prefix} dev INTERFACE ({source})"
    )]
    NoRoute {
        /// A channel.
        group: IpAddr,
        /// All multicast addresses of its family.
        prefix: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The interfaces cannot be listed.
    #[error("the interfaces of this host cannot be listed: {0}")]
    Interfaces(io::Error),
    /// A packet of the session is larger than what the interface takes.
    #[error(
        "packets of {packet} bytes do not fit the MTU of {mtu} bytes of interface {name}: send packets of {mtu} bytes at most"
    )]
    PacketTooLarge {
        /// Bytes of a packet, IP header included.
        packet: u64,
        /// Largest packet of the interface.
        mtu: u64,
        /// The interface.
        name: String,
    },
    /// The channels cannot be used together.
    #[error("{0}")]
    Channels(&'static str),
    /// A socket cannot be made.
    #[error("a socket on {address} cannot be made: {source}{}", hint(.source))]
    Socket {
        /// What it was to be bound to.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A channel cannot be joined.
    #[error("channel {} ({address}) cannot be joined on {interface}: {source}{}", channel.0, join_hint(.source))]
    Join {
        /// The channel.
        channel: ChannelId,
        /// Its address.
        address: SocketAddr,
        /// The interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// A channel cannot be left.
    #[error("channel {} ({address}) cannot be left: {source}", channel.0)]
    Leave {
        /// The channel.
        channel: ChannelId,
        /// Its address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The endpoint asked for a channel that the session does not have.
    #[error("channel {} does not exist: the session has {channels}", channel.0)]
    UnknownChannel {
        /// The channel.
        channel: ChannelId,
        /// How many there are.
        channels: usize,
    },
    /// The endpoint asked for something that cannot be done.
    #[error("this is an error in Weir, please report it: {0}")]
    Impossible(#[from] Impossible),
    /// Receiving failed for good.
    #[error("receiving failed: {0}")]
    Receive(io::Error),
    /// Waiting for packets failed.
    #[error("waiting for packets failed: {0}")]
    Wait(io::Error),
    /// The packet capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// What an endpoint asked for and no driver can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// A payload that is not kept.
    #[error("the endpoint names payload {number}, which is not kept")]
    NotKept {
        /// Its number.
        number: u64,
    },
    /// To take a payload under the number of one that is kept.
    #[error("the endpoint takes a payload as number {number}, under which another is kept")]
    IsKept {
        /// The number.
        number: u64,
    },
    /// To deliver more payloads than the application has room for.
    #[error("the endpoint delivers a payload, and knows of no room for it")]
    NoRoom,
    /// To take a payload when the application has none.
    #[error("the endpoint takes a payload, and the application has none")]
    NothingOffered,
    /// To deliver or keep the payload of a packet that has none.
    #[error("the endpoint wants the payload of a packet, and no packet with a payload is being handled")]
    NoPayload,
    /// To send to a peer that never was.
    #[error("the endpoint sends to peer {}, which does not exist", peer.0)]
    NoPeer {
        /// The peer.
        peer: PeerId,
    },
    /// To contact a party without a socket for it.
    #[error("the endpoint contacts others, and has no socket for that")]
    NoCalls,
    /// To reply when nobody unverified has sent anything.
    #[error("the endpoint replies, and no packet of an unverified origin is being handled")]
    NobodyToReplyTo,
    /// To reply with more than was asked.
    #[error("the endpoint replies with more bytes than came")]
    LongReply,
    /// To send where this tenant has no socket for.
    #[error("the endpoint sends to {to:?}, and this tenant has no socket for that")]
    NoOutput {
        /// Where to.
        to: Destination,
    },
    /// To send a header that the session's packets do not carry.
    #[error("the session's packets do not carry {header:?}")]
    Header {
        /// The header.
        header: Header,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; ports below 1024 need root or CAP_NET_BIND_SERVICE, others should not",
        io::ErrorKind::AddrInUse => "; another program holds this port for itself, choose another port",
        io::ErrorKind::AddrNotAvailable => "; the interface has lost this address",
        _ => "",
    }
}

fn join_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(nix::libc::ENOBUFS) => {
            "; the kernel allows fewer memberships a socket than are wanted: raise net.ipv4.igmp_max_memberships with \
             sysctl -w net.ipv4.igmp_max_memberships=100 (sources: net.ipv4.igmp_max_msf), or take fewer memberships a socket"
        }
        Some(nix::libc::ENOMEM) => "; raise net.core.optmem_max with sysctl -w net.core.optmem_max=1048576",
        Some(nix::libc::ENODEV) => "; the interface is gone or has no address of this family",
        _ => "",
    }
}
