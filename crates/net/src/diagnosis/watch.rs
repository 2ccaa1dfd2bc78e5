//! Looks at what reaches an interface before the system sorts it: packets of groups that nobody here has joined, packets that
//! a firewall drops afterwards, and the queries that keep memberships alive. Needs the right to see packets (`CAP_NET_RAW`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{LinkAddr, recvfrom};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::interface::Interface;

/// A look at an interface that goes on until this is dropped.
#[derive(Debug)]
pub struct Watch {
    socket: Socket,
    interface: u32,
    channels: Vec<SocketAddr>,
    seen: Seen,
}

/// What has reached an interface since the look began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Queries of IGMP or MLD.
    pub queries: u64,
    /// Who asked last.
    pub querier: Option<IpAddr>,
    /// Packets to the session's first channel, and who sent the last.
    pub first_channel: u64,
    /// Packets to its other channels.
    pub other_channels: u64,
    /// Who sent the last of either.
    pub sender: Option<IpAddr>,
}

impl Watch {
    /// Looks for packets to these channels, which have one port, and for queries.
    ///
    /// # Errors
    /// What the system says, mostly that this user may not look.
    pub fn start(interface: &Interface, channels: &[SocketAddr]) -> io::Result<Watch> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(i32::from(all))))?;
        let port = channels.first().map_or(0, SocketAddr::port);
        socket.attach_filter(&filter(port))?;
        socket.set_nonblocking(true)?;
        let channels = channels.to_vec();
        Ok(Watch { socket, interface: interface.index, channels, seen: Seen::default() })
    }

    /// What has been seen so far.
    pub fn look(&mut self) -> Seen {
        let mut packet = [0; SNAPPED];
        for _ in 0..MOST_AT_ONCE {
            let Ok((length, from)) = receive(&self.socket, &mut packet) else { break };
            let is_here = from.is_some_and(|from| {
                from.ifindex() == self.interface as usize && from.pkttype() != libc::PACKET_OUTGOING
            });
            if is_here {
                self.take(&packet[..length]);
            }
        }
        self.seen
    }

    fn take(&mut self, packet: &[u8]) {
        match Packet::read(packet) {
            Some(Packet::Query { from }) => {
                self.seen.queries += 1;
                self.seen.querier = Some(from);
            }
            Some(Packet::Data { from, to }) => {
                let Some(channel) = self.channels.iter().position(|channel| *channel == to) else { return };
                let count = if channel == 0 { &mut self.seen.first_channel } else { &mut self.seen.other_channels };
                *count += 1;
                self.seen.sender = Some(from);
            }
            None => {}
        }
    }
}

fn receive(socket: &Socket, packet: &mut [u8]) -> nix::Result<(usize, Option<LinkAddr>)> {
    let (length, from) = recvfrom::<LinkAddr>(socket.as_raw_fd(), packet)?;
    Ok((length.min(packet.len()), from))
}

/// A packet that matters here.
#[derive(Debug, PartialEq, Eq)]
enum Packet {
    Query { from: IpAddr },
    Data { from: IpAddr, to: SocketAddr },
}

impl Packet {
    /// Reads an IP packet, the end of which may be cut off.
    fn read(packet: &[u8]) -> Option<Packet> {
        match packet.first()? >> 4 {
            4 => Packet::read_v4(packet),
            6 => Packet::read_v6(packet),
            _ => None,
        }
    }

    fn read_v4(packet: &[u8]) -> Option<Packet> {
        let address = |at: usize| Some(IpAddr::from(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?)));
        let (from, to) = (address(12)?, address(16)?);
        let rest = packet.get((usize::from(packet[0] & 0x0f) * 4).max(20)..)?;
        match packet[9] {
            IGMP => (*rest.first()? == IGMP_QUERY).then_some(Packet::Query { from }),
            UDP => Some(Packet::Data { from, to: SocketAddr::new(to, port(rest)?) }),
            _ => None,
        }
    }

    fn read_v6(packet: &[u8]) -> Option<Packet> {
        let address = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?)));
        let (from, to) = (address(8)?, address(24)?);
        let rest = packet.get(40..)?;
        match packet[6] {
            UDP => Some(Packet::Data { from, to: SocketAddr::new(to, port(rest)?) }),
            // MLD messages have a router alert in a hop-by-hop header of eight bytes.
            HOP_BY_HOP => {
                let is_query = *rest.first()? == ICMPV6 && *rest.get(8)? == MLD_QUERY;
                is_query.then_some(Packet::Query { from })
            }
            _ => None,
        }
    }
}

/// The destination port of a UDP header.
fn port(udp: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*udp.get(2..)?.first_chunk()?))
}

/// Of IP packets, the first bytes of IGMP, of UDP to this port in one piece, and of what follows an IPv6 hop-by-hop header.
fn filter(port: u16) -> [SockFilter; 19] {
    let port = u32::from(port);
    let program: [(u16, u8, u8, u32); 19] = [
        // The version of IP.
        (LOAD_BYTE, 0, 0, 0),
        (AND, 0, 0, 0xf0),
        (IF_EQUAL, 0, 8, 0x40),
        // IPv4: its protocol; if that is UDP, that it is no later fragment, and the port behind the header.
        (LOAD_BYTE, 0, 0, 9),
        (IF_EQUAL, 13, 0, IGMP as u32),
        (IF_EQUAL, 0, 11, UDP as u32),
        (LOAD_HALF, 0, 0, 6),
        (IF_ANY_BIT, 9, 0, 0x1fff),
        (LOAD_HEADER_LEN, 0, 0, 0),
        (LOAD_HALF_BEHIND, 0, 0, 2),
        (IF_EQUAL, 7, 6, port),
        // IPv6: the next header; if that is UDP, the port.
        (IF_EQUAL, 0, 5, 0x60),
        (LOAD_BYTE, 0, 0, 6),
        (IF_EQUAL, 4, 0, HOP_BY_HOP as u32),
        (IF_EQUAL, 0, 2, UDP as u32),
        (LOAD_HALF, 0, 0, 42),
        (IF_EQUAL, 1, 0, port),
        (RETURN, 0, 0, 0),
        (RETURN, 0, 0, SNAPPED as u32),
    ];
    program.map(|(code, when, otherwise, k)| SockFilter::new(code, when, otherwise, k))
}

const IGMP: u8 = 2;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ICMPV6: u8 = 58;
/// RFC 2236 §2.1, RFC 3376 §4.1.
const IGMP_QUERY: u8 = 0x11;
/// RFC 3810 §5.1.
const MLD_QUERY: u8 = 130;

/// Classic BPF, as `linux/bpf_common.h` has it.
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_HALF_BEHIND: u16 = 0x48;
const LOAD_HEADER_LEN: u16 = 0xb1;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Headers fit.
const SNAPPED: usize = 128;
/// On a network that floods there is no end of packets; the rest is not needed to say so.
const MOST_AT_ONCE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = [0; 20];
        (header[0], header[9]) = (0x45, protocol);
        header[12..].copy_from_slice(&[10, 77, 0, 1, 239, 255, 0, 1]);
        [&header, rest].concat()
    }

    #[test]
    fn queries_and_packets_to_groups_are_told_apart() {
        let from = IpAddr::from([10, 77, 0, 1]);
        let to = "239.255.0.1:5004".parse().expect("an address");
        assert_eq!(Packet::read(&v4(UDP, &[0, 9, 0x13, 0x8c])), Some(Packet::Data { from, to }));
        assert_eq!(Packet::read(&v4(IGMP, &[IGMP_QUERY, 0])), Some(Packet::Query { from }));
        assert_eq!(Packet::read(&v4(IGMP, &[0x16, 0])), None, "a report is a host's");
        let mut v6 = vec![0x60, 0, 0, 0, 0, 0, HOP_BY_HOP, 1];
        v6.extend([0; 32]);
        v6.extend([ICMPV6, 0, 5, 2, 0, 0, 0, 0, MLD_QUERY]);
        assert!(matches!(Packet::read(&v6), Some(Packet::Query { .. })));
    }

    #[test]
    fn a_packet_cut_anywhere_is_read_or_refused_without_panic() {
        for whole in [v4(UDP, &[0, 9, 0x13, 0x8c]), v4(IGMP, &[IGMP_QUERY, 0]), vec![0x60; 60], vec![0x4f; 60]] {
            for cut in 0..whole.len() {
                let _ = Packet::read(&whole[..cut]);
            }
        }
    }
}
