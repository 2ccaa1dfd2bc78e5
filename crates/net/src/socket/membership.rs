//! Joining and leaving groups: IPv4 and IPv6, from any source or from one.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::libc;
use socket2::{InterfaceIndexOrAddress, SockAddr, Socket};

use crate::interface::Interface;

/// Makes `socket` a member of `group` on `interface`; of what `source` sends there, if one is given.
pub(crate) fn join(socket: &Socket, group: IpAddr, source: Option<IpAddr>, interface: &Interface) -> io::Result<()> {
    match (group, source) {
        (IpAddr::V4(group), None) => {
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface.index))
        }
        (IpAddr::V4(group), Some(IpAddr::V4(source))) => {
            socket.join_ssm_v4(&source, &group, &interface.ipv4().ok_or_else(no_address)?)
        }
        (IpAddr::V6(group), None) => socket.join_multicast_v6(&group, interface.index),
        (IpAddr::V6(group), Some(IpAddr::V6(source))) => {
            source_group(socket, libc::MCAST_JOIN_SOURCE_GROUP, group, source, interface.index)
        }
        _ => Err(mixed_families()),
    }
}

/// Undoes [`join`].
pub(super) fn leave(socket: &Socket, group: IpAddr, source: Option<IpAddr>, interface: &Interface) -> io::Result<()> {
    match (group, source) {
        (IpAddr::V4(group), None) => {
            socket.leave_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface.index))
        }
        (IpAddr::V4(group), Some(IpAddr::V4(source))) => {
            socket.leave_ssm_v4(&source, &group, &interface.ipv4().ok_or_else(no_address)?)
        }
        (IpAddr::V6(group), None) => socket.leave_multicast_v6(&group, interface.index),
        (IpAddr::V6(group), Some(IpAddr::V6(source))) => {
            source_group(socket, libc::MCAST_LEAVE_SOURCE_GROUP, group, source, interface.index)
        }
        _ => Err(mixed_families()),
    }
}

/// A source-specific membership over IPv6 (RFC 3678 §5.1), which neither socket2 nor nix offers.
#[expect(unsafe_code, reason = "setsockopt with a structure that no safe wrapper knows")]
fn source_group(
    socket: &Socket,
    option: libc::c_int,
    group: Ipv6Addr,
    source: Ipv6Addr,
    interface: u32,
) -> io::Result<()> {
    let request = libc::group_source_req {
        gsr_interface: interface,
        gsr_group: storage(group, interface),
        gsr_source: storage(source, interface),
    };
    // SAFETY: the descriptor is that of a live socket for the whole call; the pointer and the length describe one
    // initialised value of the type that the kernel expects for this option, and the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            option,
            (&raw const request).cast(),
            size_of::<libc::group_source_req>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "one C view of a socket address has to become the other")]
fn storage(address: Ipv6Addr, interface: u32) -> libc::sockaddr_storage {
    let scope = if super::needs_scope(address) { interface } else { 0 };
    let address = SockAddr::from(SocketAddr::V6(SocketAddrV6::new(address, 0, 0, scope)));
    // SAFETY: zeroes are a valid socket address storage (family unspecified).
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: `SockAddr` is valid for reads of its own `len` bytes, which is at most the size of a storage, and the two
    // places do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(
            address.as_ptr().cast::<u8>(),
            (&raw mut storage).cast::<u8>(),
            (address.len() as usize).min(size_of::<libc::sockaddr_storage>()),
        );
    }
    storage
}

fn no_address() -> io::Error {
    io::Error::from_raw_os_error(libc::ENODEV)
}

fn mixed_families() -> io::Error {
    io::Error::from_raw_os_error(libc::EAFNOSUPPORT)
}
