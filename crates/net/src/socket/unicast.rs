//! One UDP socket that talks to hosts by their addresses: with the kernel's arrival times, with congestion marks both ways,
//! and with word of ports that nobody listens on.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::PollFlags;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, recvmsg, sendmsg,
    setsockopt, sockopt,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_units::{Bytes, Ecn, Time};

use super::receive::{sender, size_buffer};
use super::{sockaddr, unspecified};
use crate::clock::{self, Arrivals, Clock, Sample};
use crate::error::NetError;

/// A datagram that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// When it arrived.
    pub time: Time,
    /// The kernel's own stamp, nanoseconds since 1970.
    pub stamp_nanos: Option<u64>,
    /// Who sent it.
    pub from: SocketAddr,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    slot: usize,
    len: usize,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// Datagrams, or word of refusals, can be read.
    pub socket: bool,
    /// So can what was waited for beside the socket.
    pub other: bool,
}

/// The socket, and the memory that it reads into.
#[derive(Debug)]
pub struct UnicastSocket {
    socket: Socket,
    local: SocketAddr,
    /// Where everything goes; `None` if each datagram has a destination of its own.
    peer: Option<SocketAddr>,
    arrivals: Arrivals,
    pool: Vec<u8>,
    read: Vec<Received>,
}

impl UnicastSocket {
    /// A socket that anyone can send to. With an IPv6 address of `::` it takes IPv4 as well.
    pub fn listen(address: SocketAddr) -> Result<UnicastSocket, NetError> {
        UnicastSocket::new(address, None)
    }

    /// A socket that hears only `peer`.
    pub fn connect(peer: SocketAddr) -> Result<UnicastSocket, NetError> {
        UnicastSocket::new(SocketAddr::new(unspecified(peer.ip()), 0), Some(peer))
    }

    fn new(local: SocketAddr, peer: Option<SocketAddr>) -> Result<UnicastSocket, NetError> {
        let failed = |address| move |source| NetError::Socket { address, source };
        let socket = make(local).map_err(failed(local))?;
        if let Some(peer) = peer {
            socket.connect(&sockaddr(peer, 0)).map_err(failed(peer))?;
        }
        let bound = socket.local_addr().map_err(failed(local))?.as_socket().unwrap_or(local);
        Ok(UnicastSocket {
            socket,
            local: bound,
            peer,
            arrivals: Arrivals::default(),
            pool: vec![0; READ_SLOTS * SLOT_LEN],
            read: Vec::with_capacity(READ_SLOTS),
        })
    }

    /// The address that it has.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// To wait on together with others.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits until a datagram or word of a refusal can be read, `other` can be, or it is `until`.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, until: Time) -> Result<Ready, NetError> {
        let mut waiting = vec![clock::readable(self.socket.as_fd())];
        waiting.extend(other.map(clock::readable));
        clock::wait(&mut waiting, until).map_err(|error| NetError::Wait(error.into()))?;
        let is_ready = |at: usize| waiting.get(at).is_some_and(|one| one.revents() != Some(PollFlags::empty()));
        Ok(Ready { socket: is_ready(0), other: is_ready(1) })
    }

    /// Reads what is there, as far as memory reaches; [`UnicastSocket::received`] then has it.
    pub fn receive(&mut self, clock: &Clock) -> Result<(), NetError> {
        self.read.clear();
        let horizon = clock.now();
        let mut slots = self.pool.chunks_mut(SLOT_LEN).map(|slot| [IoSliceMut::new(slot)]);
        let mut buffers: [[IoSliceMut<'_>; 1]; READ_SLOTS] =
            std::array::from_fn(|_| slots.next().unwrap_or_else(|| [IoSliceMut::new(&mut [])]));
        // Made anew for each read, as the kernel shrinks the space for control messages to what it used.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(READ_SLOTS, Some(control_space()));
        let flags = MsgFlags::MSG_DONTWAIT;
        let messages = match recvmmsg(self.socket.as_raw_fd(), &mut headers, buffers.iter_mut(), flags, None) {
            Ok(messages) => messages,
            Err(Errno::EAGAIN) => {
                self.arrivals.drained(horizon);
                return Ok(());
            }
            // Of an earlier datagram; the error queue says which.
            Err(Errno::EINTR | Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EMSGSIZE) => {
                return Ok(());
            }
            Err(error) => return Err(NetError::Receive(error.into())),
        };
        let sample = Sample::take();
        for (slot, message) in messages.enumerate() {
            // A slot holds whatever an Ethernet carries; longer ones are none of ours.
            if let Some(received) = received(&message, slot, sample, &mut self.arrivals).filter(|it| it.len < SLOT_LEN)
            {
                self.read.push(received);
            }
        }
        Ok(())
    }

    /// What the last [`UnicastSocket::receive`] read.
    pub fn received(&self) -> &[Received] {
        &self.read
    }

    /// What a datagram of the last read holds.
    pub fn payload(&self, received: &Received) -> &[u8] {
        let start = received.slot * SLOT_LEN;
        &self.pool[start..start + received.len]
    }

    /// Whom hosts on the way said not to reach since the last call: nobody listens on the port, or no route leads there.
    pub fn refusals(&self) -> Vec<SocketAddr> {
        let mut refused = Vec::new();
        let mut nothing = [0; 1];
        for _ in 0..REFUSALS_A_CALL {
            let mut control =
                nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::timespec, libc::c_int);
            let mut into = [IoSliceMut::new(&mut nothing)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let Ok(message) = recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut into, Some(&mut control), flags)
            else {
                break;
            };
            let is_refusal = message.cmsgs().into_iter().flatten().any(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                    is_unreachable(&error)
                }
                _ => false,
            });
            if is_refusal {
                refused.extend(message.address.as_ref().and_then(sender).map(canonical).or(self.peer));
            }
        }
        refused
    }

    /// Sends datagrams one behind the other; how many are on their way, or why none is. `to` counts only where the socket is
    /// not connected.
    pub fn send(&self, to: SocketAddr, ecn: Ecn, datagrams: &[&[u8]]) -> Result<usize, Errno> {
        let address = self.peer.is_none().then(|| SockaddrStorage::from(self.reachable(to)));
        for (sent, datagram) in datagrams.iter().enumerate() {
            match self.send_one(to, address.as_ref(), ecn, datagram) {
                Ok(()) => {}
                Err(error) if sent == 0 => return Err(error),
                Err(_) => return Ok(sent),
            }
        }
        Ok(datagrams.len())
    }

    fn send_one(
        &self,
        to: SocketAddr,
        address: Option<&SockaddrStorage>,
        ecn: Ecn,
        datagram: &[u8],
    ) -> Result<(), Errno> {
        let (tos, class) = (ecn.bits(), i32::from(ecn.bits()));
        let control = match to {
            SocketAddr::V4(_) => [ControlMessage::Ipv4Tos(&tos)],
            SocketAddr::V6(_) => [ControlMessage::Ipv6TClass(&class)],
        };
        let once = || {
            sendmsg(self.socket.as_raw_fd(), &[IoSlice::new(datagram)], &control, MsgFlags::empty(), address)
                .map(|_| ())
        };
        match once() {
            // Word of an earlier datagram: this one was not sent.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::EINTR) => once(),
            other => other,
        }
    }

    /// An address as the socket's family has it.
    fn reachable(&self, to: SocketAddr) -> SocketAddr {
        match (to, self.local) {
            (SocketAddr::V4(v4), SocketAddr::V6(_)) => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            _ => to,
        }
    }
}

fn make(local: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let IpAddr::V6(ip) = local.ip() {
        socket.set_only_v6(ip != Ipv6Addr::UNSPECIFIED)?;
        setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
    }
    // On a socket that takes both families these are for IPv4; on others of IPv6 they do nothing.
    setsockopt(&socket, sockopt::IpRecvTos, &true)?;
    setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
    // Without stamps, arrivals are taken to be when they are read.
    let _ = setsockopt(&socket, sockopt::ReceiveTimestampns, &true);
    size_buffer(&socket, BUFFER)?;
    socket.bind(&SockAddr::from(local))?;
    Ok(socket)
}

fn received(
    message: &RecvMsg<'_, '_, SockaddrStorage>,
    slot: usize,
    sample: Sample,
    arrivals: &mut Arrivals,
) -> Option<Received> {
    let (mut stamp_nanos, mut ecn) = (None, Ecn::NotEct);
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::ScmTimestampns(stamp) => {
                stamp_nanos = Some(stamp.tv_sec().max(0) as u64 * 1_000_000_000 + stamp.tv_nsec() as u64);
            }
            ControlMessageOwned::Ipv4Tos(tos) => ecn = Ecn::from_bits(tos),
            ControlMessageOwned::Ipv6TClass(class) => ecn = Ecn::from_bits(class as u8),
            _ => {}
        }
    }
    let from = canonical(sender(message.address.as_ref()?)?);
    Some(Received { time: arrivals.place(stamp_nanos, sample), stamp_nanos, from, ecn, slot, len: message.bytes })
}

/// An IPv4 address that came through an IPv6 socket is one of IPv4 nevertheless.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

fn is_unreachable(error: &libc::sock_extended_err) -> bool {
    let errno = Errno::from_raw(error.ee_errno as i32);
    matches!(errno, Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH)
}

fn control_space() -> Vec<u8> {
    nix::cmsg_space!(libc::timespec, libc::c_int, u8)
}

/// Longer than any Ethernet frame that is in use.
const SLOT_LEN: usize = 16_384;
/// Datagrams read in one system call.
const READ_SLOTS: usize = 32;
/// At 100 Mbit/s this is a third of a second.
const BUFFER: Bytes = Bytes::new(4_000_000);
const REFUSALS_A_CALL: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn pair(any: &str, host: IpAddr) -> (UnicastSocket, UnicastSocket) {
        let listener = UnicastSocket::listen(any.parse().expect("an address")).expect("a socket");
        let caller = UnicastSocket::connect(SocketAddr::new(host, listener.local().port())).expect("a socket");
        (listener, caller)
    }

    fn read(socket: &mut UnicastSocket, clock: &Clock) -> Vec<(Received, Vec<u8>)> {
        assert!(socket.wait(None, clock.now() + Duration::from_secs(5)).expect("it waits").socket);
        socket.receive(clock).expect("it reads");
        socket.received().iter().map(|one| (*one, socket.payload(one).to_vec())).collect()
    }

    #[test]
    fn marks_and_times_come_with_datagrams_of_both_families_through_one_socket() {
        let clock = Clock::new();
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let (mut listener, mut caller) = pair("[::]:0", host);
            let before = clock.now();
            assert_eq!(caller.send(SocketAddr::new(host, 1), Ecn::Ect, &[b"one", b"two"]), Ok(2));
            let got = read(&mut listener, &clock);
            assert_eq!(got.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>(), [b"one", b"two"]);
            for (one, _) in &got {
                assert_eq!((one.from.ip(), one.ecn), (host, Ecn::Ect));
                assert!(one.stamp_nanos.is_some() && (before..=clock.now()).contains(&one.time), "{one:?}");
            }
            assert_eq!(listener.send(got[0].0.from, Ecn::Ce, &[b"back"]), Ok(1));
            let back = read(&mut caller, &clock);
            assert_eq!((back[0].0.ecn, &back[0].1[..]), (Ecn::Ce, &b"back"[..]));
        }
    }

    #[test]
    fn a_port_that_nobody_listens_on_is_told_whose_it_is() {
        let clock = Clock::new();
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let (listener, caller) = pair("[::]:0", host);
            let gone = SocketAddr::new(host, caller.local().port());
            drop(caller);
            assert_eq!(listener.send(gone, Ecn::NotEct, &[b"anyone?"]), Ok(1));
            assert!(listener.wait(None, clock.now() + Duration::from_secs(5)).expect("it waits").socket);
            assert_eq!(listener.refusals(), [gone]);
            assert_eq!(listener.refusals(), []);
        }
    }
}
