//! What a party sends through: one socket, any number of destinations, many packets a call.
//!
//! A batch is what goes to the kernel in one call: consecutive packets to one destination, all of one length but for a shorter
//! last one, lying one behind the other in memory. With `UDP_SEGMENT` the kernel carries them as one to the edge of the
//! host; where it cannot, or must not, they go one by one through `sendmmsg`.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, setsockopt, sockopt};
use socket2::{SockAddr, Socket};
use weir_units::{Bytes, Ecn};

use super::{BufferSize, sockaddr, udp};
use crate::error::NetError;
use crate::interface::Interface;

/// How to send to channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendConfig {
    /// How many routers a packet may pass, plus one; 1 stays on the local network.
    pub ttl: u8,
    /// Whether receivers on this host get the packets.
    pub is_looped: bool,
    /// Send buffer wanted.
    pub buffer: Bytes,
    /// Use `UDP_SEGMENT` where the system has it.
    pub offload: bool,
}

impl Default for SendConfig {
    /// TTL 1, looped back, 4 MB of buffer, offload.
    fn default() -> SendConfig {
        SendConfig { ttl: 1, is_looped: true, buffer: Bytes::new(4_000_000), offload: true }
    }
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// This many packets are on their way: all of them, but where the batch went one by one and the kernel's queue filled up.
    Sent(usize),
    /// The kernel's queue is full; nothing was sent.
    Full,
    /// The system refused; nothing was sent.
    Refused(Errno),
}

/// Whom it sends to.
#[derive(Debug)]
enum To {
    /// Channels of this group's family, from the interface of this number.
    Channels { group: IpAddr, interface: u32, config: SendConfig },
    /// One host. The socket is connected, but while no way leads there from this host's addresses.
    Peer { address: SocketAddr, is_connected: bool },
    /// Whoever is named.
    Anyone,
}

/// A socket to send through.
#[derive(Debug)]
pub struct Output {
    socket: Socket,
    local: SocketAddr,
    to: To,
    /// What `UDP_SEGMENT` is set to.
    segment: usize,
    /// What the IP header's congestion field is set to.
    ecn: Ecn,
    /// Whether the kernel takes several packets as one.
    offload: bool,
    buffer: BufferSize,
}

/// Most packets in one batch. Kernels before 6.9 take no more than 64.
pub const MAX_BATCH_PACKETS: usize = 64;
/// Most bytes in one batch. With link, IP and UDP headers it must stay below a device's `gso_max_size` of 65 536, or the
/// kernel cuts it up before the device, at four times the cost; 65 000 leaves room for IPv6 and tunnels.
pub const MAX_BATCH_BYTES: usize = 65_000;

impl Output {
    /// A socket that sends from `interface` to channels of the family of `group`.
    pub fn to_channels(interface: &Interface, group: IpAddr, config: &SendConfig) -> Result<Output, NetError> {
        let wanted = SocketAddr::new(interface.source_address(group)?, 0);
        let socket = udp(wanted)?;
        let refused = |source| NetError::Socket { address: wanted, source };
        configure(&socket, interface, wanted.ip(), config).map_err(refused)?;
        socket.bind(&sockaddr(wanted, interface.index)).map_err(refused)?;
        let to = To::Channels { group, interface: interface.index, config: config.clone() };
        Output::new(socket, wanted, to, config.offload, config.buffer).map_err(refused)
    }

    /// Sends through a socket that receives, too, and hears only `peer`, if that is given. With `offload`, several packets may go as one to the edge
    /// of the host.
    pub(super) fn unicast(
        socket: Socket,
        address: SocketAddr,
        peer: Option<SocketAddr>,
        offload: bool,
        wanted: Bytes,
    ) -> io::Result<Output> {
        Output::new(
            socket,
            address,
            peer.map_or(To::Anyone, |address| To::Peer { address, is_connected: true }),
            offload,
            wanted,
        )
    }

    /// Sends to channels from `interface`, which has been made again, if it still has the address that it sent from: receivers know the sender
    /// by that.
    pub fn attach(&mut self, interface: &Interface) -> Result<(), NetError> {
        let To::Channels { group, interface: index, config } = &self.to else { return Ok(()) };
        if *index == interface.index {
            return Ok(());
        }
        let own = |address: &IpAddr| *address == self.local.ip();
        let addresses: Vec<IpAddr> = interface.addresses.iter().copied().filter(own).collect();
        *self = Output::to_channels(&Interface { addresses, ..interface.clone() }, *group, config)?;
        Ok(())
    }

    fn new(socket: Socket, address: SocketAddr, to: To, offload: bool, wanted: Bytes) -> io::Result<Output> {
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        let granted = Bytes::new(socket.send_buffer_size()? as u64 / 2);
        let buffer = BufferSize { wanted, granted, limited_by: "net.core.wmem_max" };
        let offload = offload && setsockopt(&socket, sockopt::UdpGsoSegment, &0).is_ok();
        Ok(Output { socket, local, to, segment: 0, ecn: Ecn::NotEct, offload, buffer })
    }

    /// The address that packets come from.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// An address as the socket's family has it.
    pub fn reachable(&self, to: SocketAddr) -> SocketAddr {
        match (to, self.local) {
            (SocketAddr::V4(v4), SocketAddr::V6(_)) => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            _ => to,
        }
    }

    /// The send buffer.
    pub fn buffer(&self) -> BufferSize {
        self.buffer
    }

    /// Sends a batch: packets of `packet_len` bytes one behind the other, the last one perhaps shorter. A connected socket
    /// sends to its peer, whatever `to` is.
    pub fn send(&mut self, to: Option<&SockAddr>, ecn: Ecn, batch: &[u8], packet_len: usize) -> SendOutcome {
        debug_assert!(batch.len() <= MAX_BATCH_BYTES && batch.len().div_ceil(packet_len) <= MAX_BATCH_PACKETS);
        if let Err(error) = self.mark(ecn) {
            return SendOutcome::Refused(error);
        }
        if matches!(self.to, To::Peer { is_connected: false, .. }) && !self.connect_again() {
            // Sent from such a socket, it would hear anyone.
            return SendOutcome::Refused(Errno::ENETUNREACH);
        }
        let packets = batch.len().div_ceil(packet_len);
        if packets > 1 && !self.offload {
            return self.send_singly(to, batch, packet_len);
        }
        match self.send_segmented(to, batch, packet_len, packets) {
            Ok(()) => SendOutcome::Sent(packets),
            // The interface, or a transformation on the way such as IPsec, does not take segments.
            Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP | Errno::ENOPROTOOPT)
                if packets > 1 && self.stop_offload() =>
            {
                self.send_singly(to, batch, packet_len)
            }
            Err(error) => outcome(error),
        }
    }

    /// Sets the congestion field for all that follows.
    fn mark(&mut self, ecn: Ecn) -> Result<(), Errno> {
        if self.ecn == ecn {
            return Ok(());
        }
        let bits = u32::from(ecn.bits());
        let both = match self.local {
            SocketAddr::V4(_) => self.socket.set_tos_v4(bits),
            // A socket for both families sends IPv4 too; one for IPv6 alone has no use for the option.
            SocketAddr::V6(_) => self.socket.set_tclass_v6(bits).map(|()| {
                let _ = self.socket.set_tos_v4(bits);
            }),
        };
        both.map_err(|error| errno(&error))?;
        self.ecn = ecn;
        Ok(())
    }

    fn send_segmented(
        &mut self,
        to: Option<&SockAddr>,
        batch: &[u8],
        packet_len: usize,
        packets: usize,
    ) -> Result<(), Errno> {
        // The option stands until it is changed, and a packet no longer than it goes out as it is.
        let fits =
            if packets > 1 { self.segment == packet_len } else { self.segment == 0 || batch.len() <= self.segment };
        if !fits {
            setsockopt(&self.socket, sockopt::UdpGsoSegment, &(packet_len as i32))?;
            self.segment = packet_len;
        }
        let once = |socket: &Socket| {
            let sent = to.map_or_else(|| socket.send(batch), |to| socket.send_to(batch, to));
            sent.map_err(|error| errno(&error))
        };
        match once(&self.socket) {
            // The system reports what became of an earlier packet; this one was not sent.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::EINTR) => once(&self.socket).map(drop),
            // This host has another address than when the socket was connected.
            Err(Errno::EINVAL | Errno::EADDRNOTAVAIL | Errno::ENETUNREACH) if packets == 1 && self.connect_again() => {
                once(&self.socket).map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Connects to the peer from the address that this host has now. Whether it could.
    fn connect_again(&mut self) -> bool {
        let To::Peer { address, is_connected } = &mut self.to else { return false };
        *is_connected = disconnect(&self.socket) && self.socket.connect(&sockaddr(*address, 0)).is_ok();
        *is_connected
    }

    fn stop_offload(&mut self) -> bool {
        self.offload = false;
        self.segment = 0;
        setsockopt(&self.socket, sockopt::UdpGsoSegment, &0).is_ok()
    }

    fn send_singly(&mut self, to: Option<&SockAddr>, batch: &[u8], packet_len: usize) -> SendOutcome {
        let address = to.and_then(SockAddr::as_socket).map(SockaddrStorage::from);
        let addresses = [address; MAX_BATCH_PACKETS];
        let packets: Vec<[IoSlice<'_>; 1]> = batch.chunks(packet_len).map(|packet| [IoSlice::new(packet)]).collect();
        let (mut sent, mut retried) = (0, false);
        while sent < packets.len() {
            let left = &packets[sent..];
            let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(left.len(), None);
            let addresses = &addresses[..left.len()];
            match sendmmsg(self.socket.as_raw_fd(), &mut headers, left, addresses, [], MsgFlags::empty()) {
                Ok(results) => sent += results.count(),
                Err(Errno::EINTR) => {}
                // The system reports what became of an earlier packet.
                Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH) if !std::mem::replace(&mut retried, true) => {}
                Err(error) if sent == 0 => return outcome(error),
                Err(_) => break,
            }
        }
        SendOutcome::Sent(sent)
    }
}

/// Undoes `connect`: without that, the socket keeps the address that the system gave it then.
#[expect(unsafe_code, reason = "an address of no family, which no safe wrapper takes")]
fn disconnect(socket: &Socket) -> bool {
    // SAFETY: zeroes are a valid socket address of the family AF_UNSPEC.
    let nothing: libc::sockaddr = unsafe { std::mem::zeroed() };
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the descriptor is that of a live socket, and the pointer and the length describe one initialised address, which the kernel only reads.
    unsafe { libc::connect(socket.as_raw_fd(), &raw const nothing, length) == 0 }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

fn outcome(error: Errno) -> SendOutcome {
    match error {
        Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR => SendOutcome::Full,
        error => SendOutcome::Refused(error),
    }
}

fn configure(socket: &Socket, interface: &Interface, local: IpAddr, config: &SendConfig) -> io::Result<()> {
    match local {
        IpAddr::V4(address) => {
            socket.set_multicast_if_v4(&address)?;
            socket.set_multicast_ttl_v4(config.ttl.into())?;
            socket.set_multicast_loop_v4(config.is_looped)?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_if_v6(interface.index)?;
            socket.set_multicast_hops_v6(config.ttl.into())?;
            socket.set_multicast_loop_v6(config.is_looped)?;
        }
    }
    let wanted = config.buffer.count() as usize;
    match setsockopt(socket, sockopt::SndBufForce, &wanted) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_send_buffer_size(wanted),
    }
}
