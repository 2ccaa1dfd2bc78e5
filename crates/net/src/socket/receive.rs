//! The receiver's sockets: channels spread over them, packets read many at a time into memory that is used again.
//!
//! Linux allows 20 IPv4 memberships a socket by default, so a session of many channels needs several sockets. All are
//! bound to the session's port, and by default each would get the packets of every group that anyone on this host has
//! joined; with `IP_MULTICAST_ALL` off it gets those of its own groups.

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::PollFd;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, setsockopt, sockopt,
};
use socket2::Socket;
use weir_core::ChannelId;
use weir_units::{Bytes, Time};

use super::{BufferSize, Capabilities, membership, sockaddr, udp, unspecified};
use crate::clock::{self, Arrivals, Clock, Sample};
use crate::error::NetError;
use crate::interface::Interface;

/// How to receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveConfig {
    /// Most channels on one socket.
    pub memberships_per_socket: usize,
    /// Receive buffer wanted, for each socket.
    pub buffer: Bytes,
    /// Use `UDP_GRO` where the system has it.
    pub offload: bool,
}

impl Default for ReceiveConfig {
    /// 20 memberships (the kernel's default limit), 8 MB of buffer, offload.
    fn default() -> ReceiveConfig {
        ReceiveConfig { memberships_per_socket: 20, buffer: Bytes::new(8_000_000), offload: true }
    }
}

/// One read: one packet, or several that the kernel left together.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When it arrived.
    pub time: Time,
    /// The kernel's own stamp, nanoseconds since 1970.
    pub stamp_nanos: Option<u64>,
    /// Who sent it.
    pub from: SocketAddr,
    /// The channel that it came over; `None` if its destination is none of the session's groups.
    pub channel: Option<ChannelId>,
    /// Packets that the kernel dropped on this socket since the last read, because the buffer was full. An estimate where
    /// packets come several at a time: the kernel counts what it would have given in one read as one.
    pub dropped_before: u64,
    slot: usize,
    len: usize,
    packet_len: usize,
}

/// One of the sockets.
#[derive(Debug)]
struct ReceiveSocket {
    socket: Socket,
    /// The groups of this socket's channels, sorted by address.
    groups: Vec<(IpAddr, ChannelId)>,
    arrivals: Arrivals,
    /// The kernel's count of drops when it was last told.
    dropped: u32,
    company: Company,
}

/// How many packets come in one read, as a packet sees it: the mean over packets, not over reads.
///
/// The kernel drops reads, and the large ones first. Example: after reads of 1, 1 and 40 packets a packet came in a read of
/// (1 + 1 + 1600) / 42 = 38 packets on average, so ten drops were 381 packets.
#[derive(Debug, Clone, Copy, Default)]
struct Company {
    packets: u64,
    squares: u64,
}

impl Company {
    fn note(&mut self, packets: u64) {
        self.packets += packets;
        self.squares += packets * packets;
        if self.packets > FORGET_AFTER_PACKETS {
            self.packets /= 2;
            self.squares /= 2;
        }
    }

    fn packets_in(&self, reads: u32) -> u64 {
        match self.packets {
            0 => u64::from(reads),
            packets => (u64::from(reads) * self.squares + packets / 2) / packets,
        }
    }
}

/// All sockets of a receiver, and the memory that they read into.
#[derive(Debug)]
pub struct ReceiveSockets {
    sockets: Vec<ReceiveSocket>,
    /// Where each channel lives: address and socket.
    channels: Vec<(SocketAddr, usize)>,
    source: Option<IpAddr>,
    interface: Interface,
    capabilities: Capabilities,
    pool: Vec<u8>,
    read: Vec<Arrival>,
    /// Which sockets have something to read, as of the last wait.
    is_ready: Vec<bool>,
    /// The socket to begin with, so that none starves.
    turn: usize,
}

/// What [`ReceiveSockets::receive`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Everything that arrived before this has been read.
    pub complete_until: Option<Time>,
    /// Bytes read.
    pub bytes: usize,
}

impl ReceiveSockets {
    /// Sockets for `channels`, none joined yet.
    pub fn new(
        interface: Interface,
        channels: &[SocketAddr],
        source: Option<IpAddr>,
        config: &ReceiveConfig,
    ) -> Result<ReceiveSockets, NetError> {
        let first = *channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
        if channels
            .iter()
            .chain(source.map(|ip| SocketAddr::new(ip, 0)).iter())
            .any(|at| at.is_ipv4() != first.is_ipv4())
        {
            return Err(NetError::Channels("all channels and the source of a session must be IPv4, or all IPv6"));
        }
        let distinct: BTreeSet<&SocketAddr> = channels.iter().collect();
        if distinct.len() < channels.len() {
            return Err(NetError::Channels("two channels of a session have the same address and port"));
        }
        if channels.iter().any(|channel| !channel.ip().is_multicast()) {
            return Err(NetError::Channels("the channels of a session are multicast groups: 224.0.0.0/4 or ff00::/8"));
        }
        let mut placed = Vec::with_capacity(channels.len());
        let mut shards: Vec<(u16, Vec<(IpAddr, ChannelId)>)> = Vec::new();
        for (number, channel) in channels.iter().enumerate() {
            let id = ChannelId(
                u16::try_from(number).map_err(|_| NetError::Channels("a session has at most 65536 channels"))?,
            );
            let has_room = |shard: &(u16, Vec<_>)| {
                shard.0 == channel.port() && shard.1.len() < config.memberships_per_socket.max(1)
            };
            let shard = shards.iter().position(has_room).unwrap_or_else(|| {
                shards.push((channel.port(), Vec::new()));
                shards.len() - 1
            });
            shards[shard].1.push((channel.ip(), id));
            placed.push((*channel, shard));
        }
        let mut capabilities = Capabilities {
            offload: config.offload,
            kernel_timestamps: true,
            drop_counter: true,
            own_groups_only: true,
            buffer: BufferSize {
                wanted: config.buffer,
                granted: Bytes::new(u64::MAX),
                limited_by: "net.core.rmem_max",
            },
        };
        let mut sockets = Vec::with_capacity(shards.len());
        for (port, groups) in shards {
            sockets.push(ReceiveSocket::new(port, groups, config, &mut capabilities)?);
        }
        Ok(ReceiveSockets {
            is_ready: vec![false; sockets.len()],
            sockets,
            channels: placed,
            source,
            interface,
            capabilities,
            pool: vec![0; POOL_SLOTS * SLOT_LEN],
            read: Vec::with_capacity(POOL_SLOTS),
            turn: 0,
        })
    }

    /// What the system grants: the least that any of the sockets got.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The interface on which channels are joined.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The address of a channel.
    pub fn address(&self, channel: ChannelId) -> Option<SocketAddr> {
        self.channels.get(usize::from(channel.0)).map(|(address, _)| *address)
    }

    /// Becomes a member of a channel.
    pub fn join(&self, channel: ChannelId) -> Result<(), NetError> {
        let (address, socket) = self.place(channel)?;
        membership::join(&socket.socket, address.ip(), self.source, &self.interface).map_err(|source| NetError::Join {
            channel,
            address,
            interface: self.interface.name.clone(),
            source,
        })
    }

    /// Stops being a member of a channel.
    pub fn leave(&self, channel: ChannelId) -> Result<(), NetError> {
        let (address, socket) = self.place(channel)?;
        membership::leave(&socket.socket, address.ip(), self.source, &self.interface)
            .map_err(|source| NetError::Leave { channel, address, source })
    }

    fn place(&self, channel: ChannelId) -> Result<(SocketAddr, &ReceiveSocket), NetError> {
        let unknown = || NetError::UnknownChannel { channel, channels: self.channels.len() };
        let (address, socket) = self.channels.get(usize::from(channel.0)).copied().ok_or_else(unknown)?;
        Ok((address, &self.sockets[socket]))
    }

    /// Waits until a packet can be read, `other` can be, or it is `until`; `true` if there is something to read.
    pub fn wait(&mut self, other: Option<BorrowedFd<'_>>, until: Time) -> Result<bool, NetError> {
        let own = self.sockets.iter().map(|one| one.socket.as_fd());
        let mut waiting: Vec<PollFd<'_>> = own.chain(other).map(clock::readable).collect();
        let is_any_ready = clock::wait(&mut waiting, until).map_err(|error| NetError::Wait(error.into()))?;
        for (is_ready, socket) in self.is_ready.iter_mut().zip(&waiting) {
            *is_ready = socket.any().unwrap_or(true);
        }
        Ok(is_any_ready)
    }

    /// Reads what the last [`ReceiveSockets::wait`] found, as far as memory reaches; [`ReceiveSockets::arrivals`] then has it in order of time.
    pub fn receive(&mut self, clock: &Clock) -> Result<Reading, NetError> {
        self.read.clear();
        let horizon = clock.now();
        let mut complete = true;
        for step in 0..self.sockets.len() {
            let number = (self.turn + step) % self.sockets.len();
            if !self.is_ready[number] {
                self.sockets[number].arrivals.drained(horizon);
                continue;
            }
            let used = self.read.len();
            if used == POOL_SLOTS {
                complete = false;
                break;
            }
            let free = &mut self.pool[used * SLOT_LEN..];
            let drained = self.sockets[number].receive(free, used, &mut self.read).map_err(NetError::Receive)?;
            if drained {
                self.sockets[number].arrivals.drained(horizon);
            }
            complete &= drained;
        }
        self.turn = (self.turn + 1) % self.sockets.len();
        self.read.sort_by_key(|arrival| arrival.time);
        let bytes = self.read.iter().map(|arrival| arrival.len).sum();
        Ok(Reading { complete_until: complete.then_some(horizon), bytes })
    }

    /// What the last [`ReceiveSockets::receive`] read, earliest first.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.read
    }

    /// The packets of an arrival, without their IP and UDP headers.
    pub fn packets(&self, arrival: &Arrival) -> impl Iterator<Item = &[u8]> {
        let start = arrival.slot * SLOT_LEN;
        self.pool[start..start + arrival.len].chunks(arrival.packet_len)
    }
}

impl ReceiveSocket {
    fn new(
        port: u16,
        mut groups: Vec<(IpAddr, ChannelId)>,
        config: &ReceiveConfig,
        capabilities: &mut Capabilities,
    ) -> Result<ReceiveSocket, NetError> {
        groups.sort_unstable();
        // A socket of one group is bound to it, and the system sorts out everything else. One of several cannot be.
        let address = match groups.as_slice() {
            [(only, _)] => SocketAddr::new(*only, port),
            several => SocketAddr::new(unspecified(several[0].0), port),
        };
        let socket = udp(address)?;
        let refused = |source| NetError::Socket { address, source };
        socket.set_reuse_address(true).map_err(refused)?;
        let (own_groups, _) = match address {
            SocketAddr::V4(_) => {
                (socket.set_multicast_all_v4(false), setsockopt(&socket, sockopt::Ipv4PacketInfo, &true))
            }
            SocketAddr::V6(_) => {
                (socket.set_multicast_all_v6(false), setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true))
            }
        };
        capabilities.own_groups_only &= own_groups.is_ok();
        capabilities.kernel_timestamps &= setsockopt(&socket, sockopt::ReceiveTimestampns, &true).is_ok();
        capabilities.drop_counter &= setsockopt(&socket, sockopt::RxqOvfl, &1).is_ok();
        capabilities.offload &= config.offload && setsockopt(&socket, sockopt::UdpGroSegment, &true).is_ok();
        let granted = size_buffer(&socket, config.buffer).map_err(refused)?;
        capabilities.buffer.granted = capabilities.buffer.granted.min(granted);
        socket.bind(&sockaddr(address, 0)).map_err(refused)?;
        Ok(ReceiveSocket { socket, groups, arrivals: Arrivals::default(), dropped: 0, company: Company::default() })
    }

    /// Reads into `free`; `true` if the socket is empty now.
    fn receive(&mut self, free: &mut [u8], first_slot: usize, read: &mut Vec<Arrival>) -> io::Result<bool> {
        let mut slots = free.chunks_mut(SLOT_LEN).map(|slot| [IoSliceMut::new(slot)]);
        let mut buffers: [[IoSliceMut<'_>; 1]; READ_SLOTS] =
            std::array::from_fn(|_| slots.next().unwrap_or_else(|| [IoSliceMut::new(&mut [])]));
        let room = (free_slots(&buffers)).min(READ_SLOTS);
        // Made anew for each read: the kernel shrinks the space for control messages to what it used, and nix does not
        // restore it when the headers are used again.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(room, Some(control_space()));
        let flags = MsgFlags::MSG_DONTWAIT;
        let messages = match recvmmsg(self.socket.as_raw_fd(), &mut headers, buffers[..room].iter_mut(), flags, None) {
            Ok(messages) => messages,
            Err(Errno::EAGAIN) => return Ok(true),
            Err(Errno::EINTR) => return Ok(false),
            // An ICMP error or the like about an earlier packet: it is told once and means nothing here.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let sample = Sample::take();
        let mut count = 0;
        for message in messages {
            if let Some(arrival) = self.arrival(&message, first_slot + count, sample) {
                read.push(arrival);
            }
            count += 1;
        }
        Ok(count < room)
    }

    fn arrival(&mut self, message: &RecvMsg<'_, '_, SockaddrStorage>, slot: usize, sample: Sample) -> Option<Arrival> {
        let (mut to, mut stamp_nanos, mut packet_len, mut dropped) = (None, None, message.bytes, self.dropped);
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    to = Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()));
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => to = Some(IpAddr::from(info.ipi6_addr.s6_addr)),
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    stamp_nanos = Some(stamp.tv_sec().max(0) as u64 * 1_000_000_000 + stamp.tv_nsec() as u64);
                }
                ControlMessageOwned::UdpGroSegments(len) => packet_len = usize::try_from(len).unwrap_or(0),
                ControlMessageOwned::RxqOvfl(total) => dropped = total,
                _ => {}
            }
        }
        let packet_len = packet_len.max(1);
        self.company.note(message.bytes.div_ceil(packet_len) as u64);
        let dropped_before = self.company.packets_in(dropped.wrapping_sub(self.dropped));
        self.dropped = dropped;
        let channel = to.and_then(|to| {
            let found = self.groups.binary_search_by_key(&to, |(group, _)| *group).ok()?;
            Some(self.groups[found].1)
        });
        Some(Arrival {
            time: self.arrivals.place(stamp_nanos, sample),
            stamp_nanos,
            from: sender(message.address.as_ref()?)?,
            channel,
            dropped_before,
            slot,
            len: message.bytes,
            packet_len,
        })
    }
}

fn free_slots(buffers: &[[IoSliceMut<'_>; 1]]) -> usize {
    buffers.iter().filter(|[buffer]| !buffer.is_empty()).count()
}

pub(super) fn sender(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    address.as_sockaddr_in6().map(|v6| SocketAddr::new(v6.ip().into(), v6.port()))
}

/// Asks for `wanted` bytes of receive buffer, by privilege if there is one, and returns what was granted.
pub(super) fn size_buffer(socket: &Socket, wanted: Bytes) -> io::Result<Bytes> {
    let size = wanted.count() as usize;
    if setsockopt(socket, sockopt::RcvBufForce, &size).is_err() {
        socket.set_recv_buffer_size(size)?;
    }
    // The kernel doubles what is asked for, to keep its records in.
    Ok(Bytes::new(socket.recv_buffer_size()? as u64 / 2))
}

/// Room for every control message that was asked for: time stamp, destination, segment length, drops.
fn control_space() -> Vec<u8> {
    nix::cmsg_space!(libc::timespec, libc::in6_pktinfo, libc::c_int, u32)
}

/// Bytes for one read: the largest UDP packet, or as much as the kernel leaves together.
const SLOT_LEN: usize = 65_536;
/// Reads from one socket in one system call. More would not stay in the processor's cache.
const READ_SLOTS: usize = 16;
/// Reads that are kept at a time, over all sockets.
const POOL_SLOTS: usize = 32;
/// How many packets [`Company`] remembers.
const FORGET_AFTER_PACKETS: u64 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_reads_are_counted_in_packets() {
        let mut company = Company::default();
        assert_eq!(company.packets_in(3), 3);
        [1, 1, 40].into_iter().for_each(|packets| company.note(packets));
        assert_eq!(company.packets_in(10), 381);
        (0..100_000).for_each(|_| company.note(1));
        assert_eq!(company.packets_in(10), 10, "old company is forgotten");
    }
}
