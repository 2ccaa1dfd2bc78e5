//! What a party receives through: channels spread over sockets, and unicast sockets besides. Packets are read many at a time
//! into memory that is used again, and come out in the order of their arrival over all sockets.
//!
//! Linux allows 20 IPv4 memberships a socket by default, so a session of many channels needs several sockets. All are
//! bound to the session's port, and by default each would get the packets of every group that anyone on this host has
//! joined; with `IP_MULTICAST_ALL` off it gets those of its own groups.

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, setsockopt, sockopt,
};
use socket2::Socket;
use weir_core::ChannelId;
use weir_units::{Bytes, Ecn, Time};

use super::reads::ReadSizes;
use super::unicast::{UnicastSocket, canonical, refusals};
use super::{BufferSize, Capabilities, membership, sockaddr, udp, unspecified};
use crate::clock::{self, Arrivals, Sample};
use crate::error::NetError;
use crate::interface::Interface;

/// How to receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveConfig {
    /// Most channels on one socket.
    pub memberships_per_socket: usize,
    /// Receive buffer wanted, for each socket of channels.
    pub buffer: Bytes,
    /// Use `UDP_GRO` where the system has it and the session's profile allows it: packets that come together are read
    /// together, and have one arrival time.
    pub offload: bool,
}

impl Default for ReceiveConfig {
    /// 20 memberships (the kernel's default limit), 8 MB of buffer, offload.
    fn default() -> ReceiveConfig {
        ReceiveConfig { memberships_per_socket: 20, buffer: Bytes::new(8_000_000), offload: true }
    }
}

/// How a packet came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over a channel.
    Channel(ChannelId),
    /// Through the unicast socket of this number.
    Unicast(usize),
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
    /// How it came; `None` if its destination is none of the party's groups.
    pub way: Option<Way>,
    /// The congestion field of its IP header.
    pub ecn: Ecn,
    /// Packets that the kernel dropped on this socket since the last read, because the buffer was full. An estimate where
    /// packets come several at a time: the kernel counts what it would have given in one read as one.
    pub dropped_before: u64,
    slot: usize,
    len: usize,
    packet_len: usize,
}

/// One of the sockets.
#[derive(Debug)]
struct InputSocket {
    socket: Socket,
    serves: Serves,
    arrivals: Arrivals,
    /// The kernel's count of drops when it was last told.
    dropped: u32,
    reads: ReadSizes,
    /// Whether there is something to read, as of the last wait.
    is_ready: bool,
    /// Whether the error queue has something.
    has_errors: bool,
}

/// What comes in through a socket.
#[derive(Debug)]
enum Serves {
    /// These groups, sorted by address.
    Groups(Vec<(IpAddr, ChannelId)>),
    /// Unicast, under this number.
    Unicast { number: usize, peer: Option<SocketAddr> },
}

/// All sockets of a party, and the memory that they read into.
#[derive(Debug)]
pub struct Input {
    sockets: Vec<InputSocket>,
    channels: Vec<Channel>,
    unicasts: usize,
    interface: Option<Interface>,
    config: ReceiveConfig,
    capabilities: Capabilities,
    memory: Memory,
    /// The socket to begin with, so that none starves.
    turn: usize,
    /// When the sockets that are not ready were seen empty.
    looked: Time,
}

/// Where a channel lives.
#[derive(Debug, Clone, Copy)]
struct Channel {
    address: SocketAddr,
    /// The only sender for which it is joined, if there is one.
    source: Option<IpAddr>,
    /// The only sender that counts, if there is one.
    sender: Option<IpAddr>,
    /// The socket that receives it, if one does.
    socket: Option<usize>,
    is_joined: bool,
}

/// What [`Input::receive`] read. It goes back to it with [`Input::recycle`].
#[derive(Debug)]
pub struct Reading {
    /// Everything that arrived before this has been read.
    pub complete_until: Option<Time>,
    memory: Memory,
}

/// Bytes, and where in them each arrival is. It is made at the first read, and again if it has been lost.
#[derive(Debug, Default)]
struct Memory {
    pool: Vec<u8>,
    arrivals: Vec<Arrival>,
}

impl Reading {
    /// What arrived, earliest first.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.memory.arrivals
    }

    /// Bytes read.
    pub fn bytes(&self) -> u64 {
        self.memory.arrivals.iter().map(|arrival| arrival.len as u64).sum()
    }

    /// The packets of an arrival, without their IP and UDP headers. One without any bytes is a packet too.
    pub fn packets(&self, arrival: &Arrival) -> impl Iterator<Item = &[u8]> {
        let start = arrival.slot * SLOT_LEN;
        let bytes = &self.memory.pool[start..start + arrival.len];
        bytes.is_empty().then_some(bytes).into_iter().chain(bytes.chunks(arrival.packet_len))
    }
}

impl Input {
    /// No socket yet.
    pub fn new(config: &ReceiveConfig) -> Input {
        let buffer =
            BufferSize { wanted: config.buffer, granted: Bytes::new(u64::MAX), limited_by: "net.core.rmem_max" };
        Input {
            sockets: Vec::new(),
            channels: Vec::new(),
            unicasts: 0,
            interface: None,
            config: config.clone(),
            capabilities: Capabilities {
                offload: config.offload,
                kernel_timestamps: true,
                drop_counter: true,
                own_groups_only: true,
                buffer,
            },
            memory: Memory::default(),
            turn: 0,
            looked: Time::ZERO,
        }
    }

    /// Adds the channels of a session, none of them joined; gives the numbers that they have here. Packets may be read
    /// together if the session `coalesces`. Unless the party `receives` from the channels they have no sockets, and cannot be
    /// joined.
    pub fn add_channels(
        &mut self,
        interface: &Interface,
        channels: &[SocketAddr],
        source: Option<IpAddr>,
        coalesces: bool,
        receives: bool,
    ) -> Result<Range<u16>, NetError> {
        check(channels, source)?;
        let first = self.channels.len();
        let mut shards: Vec<(u16, Vec<(IpAddr, ChannelId)>)> = Vec::new();
        for (number, channel) in (first..).zip(channels) {
            let number = u16::try_from(number);
            let id = ChannelId(number.map_err(|_| NetError::Channels("a party has at most 65535 channels"))?);
            let has_room = |shard: &(u16, Vec<_>)| {
                shard.0 == channel.port() && shard.1.len() < self.config.memberships_per_socket.max(1)
            };
            let shard = shards.iter().position(has_room).unwrap_or_else(|| {
                shards.push((channel.port(), Vec::new()));
                shards.len() - 1
            });
            shards[shard].1.push((channel.ip(), id));
            let socket = receives.then_some(self.sockets.len() + shard);
            self.channels.push(Channel { address: *channel, source, sender: source, socket, is_joined: false });
        }
        for (port, groups) in shards.into_iter().filter(|_| receives) {
            let config = ReceiveConfig { offload: self.config.offload && coalesces, ..self.config.clone() };
            let socket = InputSocket::of_groups(port, groups, &config, &mut self.capabilities)?;
            self.sockets.push(socket);
        }
        self.interface = Some(interface.clone());
        Ok(first as u16..self.channels.len() as u16)
    }

    /// Adds a unicast socket, of whose packets several may be read together if its session `coalesces`; gives the number that
    /// it has here.
    pub fn add_unicast(&mut self, unicast: UnicastSocket, coalesces: bool) -> usize {
        let number = self.unicasts;
        self.unicasts += 1;
        self.sockets.push(InputSocket::unicast(number, unicast, self.config.offload && coalesces));
        number
    }

    /// What the system grants for channels: the least that any of the sockets got.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether it receives from any channel.
    pub fn has_channels(&self) -> bool {
        self.channels.iter().any(|channel| channel.socket.is_some())
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The address of a channel.
    pub fn address(&self, channel: ChannelId) -> Option<SocketAddr> {
        self.channels.get(usize::from(channel.0)).map(|channel| channel.address)
    }

    /// Only packets of `sender` count on these channels, from whomever the network delivers them.
    pub fn take_only_from(&mut self, channels: Range<u16>, sender: IpAddr) {
        let channels = self.channels.get_mut(usize::from(channels.start)..usize::from(channels.end));
        channels.into_iter().flatten().for_each(|channel| channel.sender = Some(sender));
    }

    /// Whether packets of `from` on a channel count.
    pub fn is_source(&self, channel: ChannelId, from: IpAddr) -> bool {
        let sender = self.channels.get(usize::from(channel.0)).and_then(|channel| channel.sender);
        sender.is_none_or(|sender| sender == from)
    }

    /// Becomes a member of a channel.
    pub fn join(&mut self, channel: ChannelId) -> Result<(), NetError> {
        self.note_joined(channel, true);
        let (at, socket, interface) = self.place(channel)?;
        join(channel, &at, socket, interface)
    }

    /// Stops being a member of a channel.
    pub fn leave(&mut self, channel: ChannelId) -> Result<(), NetError> {
        self.note_joined(channel, false);
        let (at, socket, interface) = self.place(channel)?;
        membership::leave(socket, at.address.ip(), at.source, interface).map_err(|source| NetError::Leave {
            channel,
            address: at.address,
            source,
        })
    }

    fn note_joined(&mut self, channel: ChannelId, is_joined: bool) {
        self.channels.get_mut(usize::from(channel.0)).into_iter().for_each(|channel| channel.is_joined = is_joined);
    }

    /// The interface that it joins on.
    pub fn interface(&self) -> Option<&Interface> {
        self.interface.as_ref()
    }

    /// The interface has been made again: joins there what it was a member of. If that fails, it can be tried again.
    pub fn attach(&mut self, interface: &Interface) -> Result<(), NetError> {
        let channels = (0..self.channels.len()).map(|number| ChannelId(number as u16));
        for channel in channels.filter(|channel| self.channels[usize::from(channel.0)].is_joined) {
            let (at, socket, before) = self.place(channel)?;
            // The socket may still count the membership, which then takes room.
            let _ = membership::leave(socket, at.address.ip(), at.source, before);
            match join(channel, &at, socket, interface) {
                // From the last time that it was tried.
                Err(NetError::Join { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
                joined => joined?,
            }
        }
        self.interface = Some(interface.clone());
        Ok(())
    }

    fn place(&self, channel: ChannelId) -> Result<(Channel, &Socket, &Interface), NetError> {
        let at = self.channels.get(usize::from(channel.0)).zip(self.interface.as_ref());
        let unknown = || NetError::UnknownChannel { channel, channels: self.channels.len() };
        let (at, interface) = at.ok_or_else(unknown)?;
        let socket = at.socket.ok_or_else(unknown)?;
        Ok((*at, &self.sockets[socket].socket, interface))
    }

    /// The sockets to wait on.
    pub fn waiting(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.sockets.iter().map(|one| clock::readable(one.socket.as_fd()))
    }

    /// What a wait that ended at `at` found, in the order of [`Input::waiting`].
    pub fn set_ready(&mut self, found: impl Iterator<Item = PollFlags>, at: Time) {
        self.looked = at;
        for (socket, flags) in self.sockets.iter_mut().zip(found) {
            socket.is_ready = !flags.is_empty();
            socket.has_errors = flags.contains(PollFlags::POLLERR);
        }
    }

    /// Whether there is anything to read, or an error.
    pub fn is_ready(&self) -> bool {
        self.sockets.iter().any(|socket| socket.is_ready)
    }

    /// Whom hosts on the way said not to reach since the last call: nobody listens on the port, or no route leads there.
    pub fn refusals(&mut self) -> Vec<SocketAddr> {
        let mut refused = Vec::new();
        for one in self.sockets.iter_mut().filter(|one| one.has_errors) {
            one.has_errors = false;
            if let Serves::Unicast { peer, .. } = one.serves {
                refused.extend(refusals(&one.socket, peer));
            }
        }
        refused
    }

    /// Reads what [`Input::set_ready`] named, as far as memory reaches, and puts it in order of time.
    pub fn receive(&mut self) -> Result<Reading, NetError> {
        let horizon = self.looked;
        let mut memory = std::mem::take(&mut self.memory);
        memory.pool.resize(POOL_SLOTS * SLOT_LEN, 0);
        memory.arrivals.clear();
        let mut complete = true;
        for step in 0..self.sockets.len() {
            let number = (self.turn + step) % self.sockets.len();
            if !self.sockets[number].is_ready {
                self.sockets[number].arrivals.drained(horizon);
                continue;
            }
            let used = memory.arrivals.len();
            if used == POOL_SLOTS {
                complete = false;
                break;
            }
            let free = &mut memory.pool[used * SLOT_LEN..];
            let drained = self.sockets[number].receive(free, used, &mut memory.arrivals).map_err(NetError::Receive)?;
            if drained {
                self.sockets[number].arrivals.drained(horizon);
            }
            complete &= drained;
        }
        self.turn = (self.turn + 1) % self.sockets.len().max(1);
        memory.arrivals.sort_by_key(|arrival| arrival.time);
        Ok(Reading { complete_until: complete.then_some(horizon), memory })
    }

    /// The memory of a reading can be used again.
    pub fn recycle(&mut self, reading: Reading) {
        self.memory = reading.memory;
    }
}

fn check(channels: &[SocketAddr], source: Option<IpAddr>) -> Result<(), NetError> {
    let first = *channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
    let source = source.map(|ip| SocketAddr::new(ip, 0));
    if channels.iter().chain(source.iter()).any(|at| at.is_ipv4() != first.is_ipv4()) {
        return Err(NetError::Channels("all channels and the source of a session must be IPv4, or all IPv6"));
    }
    if channels.iter().collect::<BTreeSet<_>>().len() < channels.len() {
        return Err(NetError::Channels("two channels of a session have the same address and port"));
    }
    if channels.iter().any(|channel| !channel.ip().is_multicast()) {
        return Err(NetError::Channels("the channels of a session are multicast groups: 224.0.0.0/4 or ff00::/8"));
    }
    Ok(())
}

fn join(channel: ChannelId, at: &Channel, socket: &Socket, interface: &Interface) -> Result<(), NetError> {
    membership::join(socket, at.address.ip(), at.source, interface).map_err(|source| NetError::Join {
        channel,
        address: at.address,
        interface: interface.name.clone(),
        source,
    })
}

impl InputSocket {
    fn of_groups(
        port: u16,
        mut groups: Vec<(IpAddr, ChannelId)>,
        config: &ReceiveConfig,
        capabilities: &mut Capabilities,
    ) -> Result<InputSocket, NetError> {
        groups.sort_unstable();
        // A socket of one group is bound to it, and the system sorts out everything else. One of several cannot be.
        let address = match groups.as_slice() {
            [(only, _)] => SocketAddr::new(*only, port),
            several => SocketAddr::new(unspecified(several[0].0), port),
        };
        let socket = udp(address)?;
        let refused = |source| NetError::Socket { address, source };
        socket.set_reuse_address(true).map_err(refused)?;
        let (own_groups, ..) = match address {
            SocketAddr::V4(_) => (
                socket.set_multicast_all_v4(false),
                setsockopt(&socket, sockopt::Ipv4PacketInfo, &true),
                setsockopt(&socket, sockopt::IpRecvTos, &true),
            ),
            SocketAddr::V6(_) => (
                socket.set_multicast_all_v6(false),
                setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true),
                setsockopt(&socket, sockopt::Ipv6RecvTClass, &true),
            ),
        };
        capabilities.own_groups_only &= own_groups.is_ok();
        capabilities.kernel_timestamps &= setsockopt(&socket, sockopt::ReceiveTimestampns, &true).is_ok();
        capabilities.drop_counter &= setsockopt(&socket, sockopt::RxqOvfl, &1).is_ok();
        capabilities.offload &= config.offload && setsockopt(&socket, sockopt::UdpGroSegment, &true).is_ok();
        let granted = size_buffer(&socket, config.buffer).map_err(refused)?;
        capabilities.buffer.granted = capabilities.buffer.granted.min(granted);
        socket.bind(&sockaddr(address, 0)).map_err(refused)?;
        Ok(InputSocket::new(socket, Serves::Groups(groups)))
    }

    fn unicast(number: usize, unicast: UnicastSocket, offload: bool) -> InputSocket {
        let (socket, peer) = unicast.into_parts();
        // Without drop counter or coalescing things still work, less exactly or more slowly.
        let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
        if offload {
            let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        }
        InputSocket::new(socket, Serves::Unicast { number, peer })
    }

    fn new(socket: Socket, serves: Serves) -> InputSocket {
        InputSocket {
            socket,
            serves,
            arrivals: Arrivals::default(),
            dropped: 0,
            reads: ReadSizes::default(),
            is_ready: false,
            has_errors: false,
        }
    }

    /// Reads into `free`; `true` if the socket is empty now.
    fn receive(&mut self, free: &mut [u8], first_slot: usize, read: &mut Vec<Arrival>) -> io::Result<bool> {
        let mut slots = free.chunks_mut(SLOT_LEN).map(|slot| [IoSliceMut::new(slot)]);
        let mut buffers: [[IoSliceMut<'_>; 1]; READ_SLOTS] =
            std::array::from_fn(|_| slots.next().unwrap_or_else(|| [IoSliceMut::new(&mut [])]));
        let room = (free_slots(&buffers)).min(READ_SLOTS);
        // Made again for each read: the kernel shrinks the space for control messages to what it used, and nix does not
        // restore it when the headers are used again.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(room, Some(control_space()));
        let flags = MsgFlags::MSG_DONTWAIT;
        let messages = match recvmmsg(self.socket.as_raw_fd(), &mut headers, buffers[..room].iter_mut(), flags, None) {
            Ok(messages) => messages,
            Err(Errno::EAGAIN) => return Ok(true),
            Err(Errno::EINTR) => return Ok(false),
            // An ICMP error or the like about an earlier packet: the error queue says which.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EMSGSIZE) => return Ok(false),
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
        let (mut to, mut stamp_nanos, mut ecn) = (None, None, Ecn::NotEct);
        let (mut packet_len, mut dropped) = (message.bytes, self.dropped);
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
                ControlMessageOwned::Ipv4Tos(tos) => ecn = Ecn::from_bits(tos),
                ControlMessageOwned::Ipv6TClass(class) => ecn = Ecn::from_bits(class as u8),
                _ => {}
            }
        }
        let packet_len = packet_len.max(1);
        self.reads.note(message.bytes.div_ceil(packet_len) as u64);
        let dropped_before = self.reads.packets_in(dropped.wrapping_sub(self.dropped));
        self.dropped = dropped;
        let way = match &self.serves {
            Serves::Groups(groups) => to.and_then(|to| {
                let found = groups.binary_search_by_key(&to, |(group, _)| *group).ok()?;
                Some(Way::Channel(groups[found].1))
            }),
            Serves::Unicast { number, .. } => Some(Way::Unicast(*number)),
        };
        Some(Arrival {
            time: self.arrivals.place(stamp_nanos, sample),
            stamp_nanos,
            from: canonical(sender(message.address.as_ref()?)?),
            way,
            ecn,
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
    // A link-local address means nothing without its interface, which is part of it.
    address.as_sockaddr_in6().map(|v6| SocketAddrV6::new(v6.ip(), v6.port(), 0, v6.scope_id()).into())
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

/// Room for every control message that was asked for: time stamp, destination, segment length, drops, congestion field.
fn control_space() -> Vec<u8> {
    nix::cmsg_space!(libc::timespec, libc::in6_pktinfo, libc::c_int, u32, libc::c_int)
}

/// Bytes for one read: the largest UDP packet, or as much as the kernel leaves together.
const SLOT_LEN: usize = 65_536;
/// Reads from one socket in one system call. More would not stay in the processor's cache.
const READ_SLOTS: usize = 16;
/// Reads that are kept at a time, over all sockets.
const POOL_SLOTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_sender_is_known_with_its_interface() {
        let peer: SocketAddr = "[fe80::1%3]:5004".parse().expect("an address");
        assert_eq!(sender(&SockaddrStorage::from(peer)), Some(peer));
    }
}
