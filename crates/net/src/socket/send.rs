//! The sender's socket: all channels, one interface, many packets a call.
//!
//! A batch is what goes to the kernel in one call: consecutive packets of one channel, all of one length but for a shorter
//! last one, lying behind one another in memory. With `UDP_SEGMENT` the kernel carries them as one to the edge of the
//! host; where it cannot, they go one by one through `sendmmsg`.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, setsockopt, sockopt};
use socket2::{SockAddr, Socket};
use weir_units::Bytes;

use super::{BufferSize, Capabilities, sockaddr, udp};
use crate::error::NetError;
use crate::interface::Interface;

/// How to send.
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

/// The socket of a sender.
#[derive(Debug)]
pub struct SendSocket {
    socket: Socket,
    channels: Vec<SockAddr>,
    local: SocketAddr,
    /// What `UDP_SEGMENT` is set to.
    segment: usize,
    capabilities: Capabilities,
}

/// Most packets in one batch. Kernels before 6.9 take no more than 64.
pub const MAX_BATCH_PACKETS: usize = 64;
/// Most bytes in one batch. With link, IP and UDP headers it must stay below a device's `gso_max_size` of 65 536, or the
/// kernel cuts it up before the device, at four times the cost; 65 000 leaves room for IPv6 and tunnels.
pub const MAX_BATCH_BYTES: usize = 65_000;

impl SendSocket {
    /// A socket that sends to `channels` from `interface`.
    pub fn new(interface: &Interface, channels: &[SocketAddr], config: &SendConfig) -> Result<SendSocket, NetError> {
        let first = *channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
        if channels.iter().any(|channel| channel.is_ipv4() != first.is_ipv4()) {
            return Err(NetError::Channels("all channels of a session must be IPv4, or all IPv6"));
        }
        let wanted = SocketAddr::new(interface.source_address(first.ip())?, 0);
        let socket = udp(wanted)?;
        let refused = |source| NetError::Socket { address: wanted, source };
        configure(&socket, interface, wanted.ip(), config).map_err(refused)?;
        socket.bind(&sockaddr(wanted, interface.index)).map_err(refused)?;
        let local = socket.local_addr().map_err(refused)?.as_socket().unwrap_or(wanted);
        let granted = socket.send_buffer_size().map_err(refused)? / 2;
        let buffer =
            BufferSize { wanted: config.buffer, granted: Bytes::new(granted as u64), limited_by: "net.core.wmem_max" };
        let offload = config.offload && setsockopt(&socket, sockopt::UdpGsoSegment, &0).is_ok();
        let capabilities =
            Capabilities { offload, kernel_timestamps: false, drop_counter: false, own_groups_only: true, buffer };
        let channels = channels.iter().map(|channel| sockaddr(*channel, interface.index)).collect();
        Ok(SendSocket { socket, channels, local, segment: 0, capabilities })
    }

    /// The address that packets come from.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What the system grants. `offload` turns false when an interface turns out not to take it.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Sends a batch to a channel: packets of `packet_len` bytes behind one another, the last one perhaps shorter.
    pub fn send(&mut self, channel: usize, batch: &[u8], packet_len: usize) -> SendOutcome {
        debug_assert!(batch.len() <= MAX_BATCH_BYTES && batch.len().div_ceil(packet_len) <= MAX_BATCH_PACKETS);
        let packets = batch.len().div_ceil(packet_len);
        if packets > 1 && !self.capabilities.offload {
            return self.send_singly(channel, batch, packet_len);
        }
        match self.send_segmented(channel, batch, packet_len, packets) {
            Ok(()) => SendOutcome::Sent(packets),
            // The interface, or a transformation on the way such as IPsec, does not take segments.
            Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP | Errno::ENOPROTOOPT)
                if packets > 1 && self.stop_offload() =>
            {
                self.send_singly(channel, batch, packet_len)
            }
            Err(error) => outcome(error),
        }
    }

    fn send_segmented(&mut self, channel: usize, batch: &[u8], packet_len: usize, packets: usize) -> Result<(), Errno> {
        // The option stands until it is changed, and a packet no longer than it goes out as it is.
        let fits =
            if packets > 1 { self.segment == packet_len } else { self.segment == 0 || batch.len() <= self.segment };
        if !fits {
            setsockopt(&self.socket, sockopt::UdpGsoSegment, &(packet_len as i32))?;
            self.segment = packet_len;
        }
        match self.socket.send_to(batch, &self.channels[channel]) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap_or(0))),
        }
    }

    fn stop_offload(&mut self) -> bool {
        self.capabilities.offload = false;
        self.segment = 0;
        setsockopt(&self.socket, sockopt::UdpGsoSegment, &0).is_ok()
    }

    fn send_singly(&mut self, channel: usize, batch: &[u8], packet_len: usize) -> SendOutcome {
        let address = self.channels[channel].as_socket().map(SockaddrStorage::from);
        let addresses = [address; MAX_BATCH_PACKETS];
        let packets: Vec<[IoSlice<'_>; 1]> = batch.chunks(packet_len).map(|packet| [IoSlice::new(packet)]).collect();
        let mut sent = 0;
        while sent < packets.len() {
            let left = &packets[sent..];
            let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(left.len(), None);
            let addresses = &addresses[..left.len()];
            match sendmmsg(self.socket.as_raw_fd(), &mut headers, left, addresses, [], MsgFlags::empty()) {
                Ok(results) => sent += results.count(),
                Err(Errno::EINTR) => {}
                Err(error) if sent == 0 => return outcome(error),
                Err(_) => break,
            }
        }
        SendOutcome::Sent(sent)
    }
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
