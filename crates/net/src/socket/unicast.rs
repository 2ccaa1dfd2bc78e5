//! A UDP socket that talks to hosts by their addresses: with the kernel's arrival times, with congestion marks both ways,
//! and with reports about ports that nobody listens on.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_units::Bytes;

use super::input::{sender, size_buffer};
use super::output::Output;
use super::{sockaddr, unspecified};
use crate::error::NetError;

/// The socket, before a party receives and sends through it.
#[derive(Debug)]
pub struct UnicastSocket {
    socket: Socket,
    local: SocketAddr,
    /// Where everything goes; `None` if each datagram has a destination of its own.
    peer: Option<SocketAddr>,
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
        Ok(UnicastSocket { socket, local: bound, peer })
    }

    /// The address that it has.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What sends through the same socket. With `offload`, several packets may go as one to the edge of the host.
    pub fn output(&self, offload: bool) -> Result<Output, NetError> {
        let output =
            self.socket.try_clone().and_then(|socket| Output::unicast(socket, self.local, self.peer, offload, BUFFER));
        output.map_err(|source| NetError::Socket { address: self.local, source })
    }

    pub(super) fn into_parts(self) -> (Socket, Option<SocketAddr>) {
        (self.socket, self.peer)
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

/// Whom hosts on the way said not to reach since the last call, through a socket whose peer, if it has one, is `peer`.
pub(super) fn refusals(socket: &Socket, peer: Option<SocketAddr>) -> Vec<SocketAddr> {
    let mut refused = Vec::new();
    let mut nothing = [0; 1];
    for _ in 0..REFUSALS_A_CALL {
        let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::timespec, libc::c_int);
        let mut into = [IoSliceMut::new(&mut nothing)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let Ok(message) = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) else {
            break;
        };
        let is_refusal = message.cmsgs().into_iter().flatten().any(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                is_unreachable(&error)
            }
            _ => false,
        });
        if is_refusal {
            refused.extend(message.address.as_ref().and_then(sender).map(canonical).or(peer));
        }
    }
    refused
}

/// An IPv4 address that came through an IPv6 socket is one of IPv4 nevertheless.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
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

/// At 100 Mbit/s this is a third of a second.
const BUFFER: Bytes = Bytes::new(4_000_000);
const REFUSALS_A_CALL: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use weir_units::Ecn;

    use super::super::{Arrival, Input, ReceiveConfig, SendOutcome};
    use super::*;
    use crate::clock::{self, Clock};

    /// A socket at both ends of the loopback, with what receives and what sends through it.
    fn pair(any: &str, host: IpAddr) -> [(Input, Output); 2] {
        let listener = UnicastSocket::listen(any.parse().expect("an address")).expect("a socket");
        let caller = UnicastSocket::connect(SocketAddr::new(host, listener.local().port())).expect("a socket");
        [listener, caller].map(|socket| {
            let output = socket.output(false).expect("a descriptor");
            let mut input = Input::new(&ReceiveConfig::default());
            input.add_unicast(socket, false);
            (input, output)
        })
    }

    fn wait(input: &mut Input) {
        let until = Clock::new().now() + Duration::from_secs(5);
        let mut waiting: Vec<_> = input.waiting().collect();
        assert_eq!(clock::wait(&mut waiting, until), Ok(true), "nothing came");
        let flags: Vec<_> = waiting.iter().map(clock::found).collect();
        input.set_ready(flags.into_iter(), Clock::new().now());
    }

    fn read(input: &mut Input) -> Vec<(Arrival, Vec<u8>)> {
        wait(input);
        let reading = input.receive().expect("it reads");
        let one = |arrival: &Arrival| (*arrival, reading.packets(arrival).flatten().copied().collect());
        reading.arrivals().iter().map(one).collect()
    }

    #[test]
    fn marks_and_times_come_with_datagrams_of_both_families_through_one_socket() {
        let clock = Clock::new();
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let [mut listener, mut caller] = pair("[::]:0", host);
            let before = clock.now();
            assert_eq!(caller.1.send(None, Ecn::Ect, b"onetwo", 3), SendOutcome::Sent(2));
            let got = read(&mut listener.0);
            assert_eq!(got.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>(), [b"one", b"two"]);
            for (one, _) in &got {
                assert_eq!((one.from.ip(), one.ecn), (host, Ecn::Ect));
                assert!(one.stamp_nanos.is_some() && (before..=clock.now()).contains(&one.time), "{one:?}");
            }
            let back = SockAddr::from(listener.1.reachable(got[0].0.from));
            assert_eq!(listener.1.send(Some(&back), Ecn::Ce, b"back", 4), SendOutcome::Sent(1));
            let back = read(&mut caller.0);
            assert_eq!((back[0].0.ecn, &back[0].1[..]), (Ecn::Ce, &b"back"[..]));
        }
    }

    #[test]
    fn a_port_that_nobody_listens_on_is_reported_by_its_address() {
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let [mut listener, caller] = pair("[::]:0", host);
            let gone = SocketAddr::new(host, caller.1.local().port());
            drop(caller);
            let to = SockAddr::from(listener.1.reachable(gone));
            assert_eq!(listener.1.send(Some(&to), Ecn::NotEct, b"anyone?", 7), SendOutcome::Sent(1));
            wait(&mut listener.0);
            assert_eq!(listener.0.refusals(), [gone]);
            assert_eq!(listener.0.refusals(), []);
        }
    }
}
