//! Sockets: as many to receive through as the memberships need, one to send to channels, one for unicast both ways.
//!
//! Not here: what the packets mean.

mod input;
mod membership;
mod output;
mod reads;
mod unicast;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_core::Locator;
use weir_units::Bytes;

use crate::error::NetError;

pub(crate) use membership::join;

pub use input::{Arrival, Input, Reading, ReceiveConfig, Way};
pub use output::{MAX_BATCH_BYTES, MAX_BATCH_PACKETS, Output, SendConfig, SendOutcome};
pub use unicast::UnicastSocket;

/// What the system granted. Where something is missing, things still work, slower or less exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Packets are handed to the kernel many at a time (`UDP_SEGMENT`), or come from it so (`UDP_GRO`).
    pub offload: bool,
    /// Arrivals are stamped by the kernel, not when the driver gets round to them.
    pub kernel_timestamps: bool,
    /// The kernel tells how many packets it dropped because the receive buffer was full.
    pub drop_counter: bool,
    /// Sockets get only the groups that they joined. Without it, packets of other programs' groups are sorted out here.
    pub own_groups_only: bool,
    /// The socket buffer.
    pub buffer: BufferSize,
}

/// How large a socket buffer is, next to what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSize {
    /// Asked for.
    pub wanted: Bytes,
    /// Granted. The kernel keeps its own records in as much again.
    pub granted: Bytes,
    /// The sysctl that limits it.
    pub limited_by: &'static str,
}

impl BufferSize {
    /// Whether the system granted less than asked for.
    pub fn is_clamped(&self) -> bool {
        self.granted < self.wanted
    }
}

impl fmt::Display for BufferSize {
    /// The size, and if it is less than wanted, what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.granted)?;
        if self.is_clamped() {
            let (wanted, sysctl) = (self.wanted, self.limited_by);
            write!(f, " of {wanted} wanted; allow it with: sysctl -w {sysctl}={}", wanted.count())?;
        }
        Ok(())
    }
}

/// Two addresses for one thing: the kind that is compared and shown, and the kind that the system takes.
pub(crate) fn sockaddr(address: SocketAddr, interface: u32) -> SockAddr {
    SockAddr::from(scoped(address, interface))
}

/// What protocols carry of an address.
pub fn locator(address: SocketAddr) -> Locator {
    let mut at = Locator::default();
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    at.0[..16].copy_from_slice(&ip.octets());
    at.0[16..].copy_from_slice(&address.port().to_be_bytes());
    at
}

/// The address in a locator.
pub fn address_at(at: Locator) -> SocketAddr {
    let [ip @ .., high, low] = at.0;
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), u16::from_be_bytes([high, low]))
}

/// The address on this interface, where it means nothing without one.
pub(crate) fn scoped(address: SocketAddr, interface: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() == 0 && needs_scope(*v6.ip()) => {
            SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), interface).into()
        }
        _ => address,
    }
}

/// The same where the interface has another number than before.
pub(crate) fn rescoped(address: SocketAddr, interface: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), interface).into()
        }
        _ => address,
    }
}

/// Link-local and interface-local addresses mean nothing without an interface (RFC 4007 §6).
fn needs_scope(address: Ipv6Addr) -> bool {
    let scope = address.octets()[1] & 0x0f;
    address.is_unicast_link_local() || (address.is_multicast() && matches!(scope, 1 | 2))
}

/// A UDP socket that never blocks.
pub(crate) fn udp(address: SocketAddr) -> Result<Socket, NetError> {
    let make = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        io::Result::Ok(socket)
    };
    make().map_err(|source| NetError::Socket { address, source })
}

/// Any address of the family of `address`.
pub(crate) fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Bytes of the IP and UDP headers before a payload that goes to `address`: 28 for IPv4, 48 for IPv6.
pub fn header_len(address: IpAddr) -> u64 {
    if address.is_ipv4() { 28 } else { 48 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_comes_back_from_its_locator() {
        for text in ["192.0.2.7:5005", "[2001:db8::7]:65535"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(address_at(locator(address)), address);
        }
    }

    use super::*;

    #[test]
    fn a_clamped_buffer_says_which_sysctl_to_set() {
        let size =
            BufferSize { wanted: Bytes::new(8_000_000), granted: Bytes::new(212_992), limited_by: "net.core.rmem_max" };
        assert_eq!(size.to_string(), "213 kB of 8.00 MB wanted; allow it with: sysctl -w net.core.rmem_max=8000000");
        assert_eq!(BufferSize { granted: size.wanted, ..size }.to_string(), "8.00 MB");
    }

    #[test]
    fn link_local_groups_get_the_interface_s_scope() {
        let scope = |text: &str| {
            let address = sockaddr(text.parse().expect("an address"), 7);
            address.as_socket_ipv6().map(|v6| v6.scope_id())
        };
        assert_eq!(scope("[ff02::1234]:5004"), Some(7));
        assert_eq!(scope("[ff15::1234]:5004"), Some(0));
        assert_eq!(scope("239.0.0.1:5004"), None);
    }
}
