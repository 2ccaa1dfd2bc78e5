//! Where sessions are announced: the groups, and sockets to hear and to say announcements (RFC 2974 §3).
//!
//! Not here: what an announcement says, who is believed, and how often one is sent.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use weir_units::{Ecn, Time};

use crate::clock;
use crate::error::{NetError, Result};
use crate::interface::{Interface, InterfaceChoice, LOOK_INTERVAL};
use crate::socket::{Output, SendConfig, SendOutcome, join, sockaddr, udp};

/// The port of announcements.
pub const PORT: u16 = 9875;

/// The groups of announcements over IPv4: of sessions within a site, within an organisation, and of all others.
pub const USUAL: [SocketAddr; 3] = [
    SocketAddr::new(IpAddr::V4(SITE), PORT),
    SocketAddr::new(IpAddr::V4(ORGANISATION), PORT),
    SocketAddr::new(IpAddr::V4(GLOBAL), PORT),
];

const SITE: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 255);
const ORGANISATION: Ipv4Addr = Ipv4Addr::new(239, 195, 255, 255);
const GLOBAL: Ipv4Addr = Ipv4Addr::new(224, 2, 127, 254);

/// Where a session of this group is announced: at the highest address of its scope, or at the group for all others
/// (RFC 2974 §3, RFC 2365 §6); over IPv6 at ff0x::2:7ffe of its scope.
pub fn group_for(session: IpAddr) -> SocketAddr {
    let group = match session {
        IpAddr::V4(group) => IpAddr::V4(match group.octets() {
            [239, 255, ..] => SITE,
            [239, 192..=195, ..] => ORGANISATION,
            _ => GLOBAL,
        }),
        IpAddr::V6(group) => {
            let scope = u16::from(group.octets()[1] & 0x0f);
            IpAddr::V6(Ipv6Addr::new(0xff00 | scope, 0, 0, 0, 0, 0, 2, 0x7ffe))
        }
    };
    SocketAddr::new(group, PORT)
}

/// Says announcements.
#[derive(Debug)]
pub struct Announcer {
    output: Output,
    to: SocketAddr,
    interface: Interface,
}

impl Announcer {
    /// One that sends from `interface` to `group`, over as many routers as the session itself.
    pub fn new(interface: &Interface, group: SocketAddr, ttl: u8) -> Result<Announcer> {
        let config = SendConfig { ttl, offload: false, ..SendConfig::default() };
        let output = Output::to_channels(interface, group.ip(), &config)?;
        Ok(Announcer { output, to: group, interface: interface.clone() })
    }

    /// The address that announcements come from.
    pub fn local(&self) -> IpAddr {
        self.output.local().ip()
    }

    /// Sends an announcement. One that the kernel has no room for is as lost as one that the network drops: it is sent again.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let sent = self.send_once(packet);
        if sent.is_err()
            && let Some(interface) = self.interface.made_again()
            && self.output.attach(&interface).is_ok()
        {
            self.interface = interface;
            return self.send_once(packet);
        }
        sent
    }

    fn send_once(&mut self, packet: &[u8]) -> io::Result<()> {
        let to = sockaddr(self.to, self.interface.index);
        match self.output.send(Some(&to), Ecn::NotEct, packet, packet.len().max(1)) {
            SendOutcome::Sent(_) | SendOutcome::Full => Ok(()),
            SendOutcome::Refused(error) => Err(error.into()),
        }
    }
}

/// Hears announcements.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<UdpSocket>,
    /// The group of each, and the interface on which it is a member.
    members: Vec<(SocketAddr, Interface)>,
    clock: clock::Clock,
    /// When it is looked again whether these are still the same.
    next_look: Time,
    /// The socket to begin with, so that none starves.
    turn: usize,
    buffer: Vec<u8>,
}

impl Listener {
    /// One that is a member of all these groups.
    pub fn new(choice: &InterfaceChoice, groups: &[SocketAddr]) -> Result<Listener> {
        let (mut sockets, mut members) = (Vec::new(), Vec::new());
        for group in groups {
            let interface = Interface::choose(choice, group.ip())?;
            sockets.push(open(&interface, *group)?);
            members.push((*group, interface));
        }
        let (clock, next_look) = (clock::Clock::new(), Time::ZERO);
        Ok(Listener { sockets, members, clock, next_look, turn: 0, buffer: vec![0; LARGEST] })
    }

    /// Becomes a member again where an interface has been made again. What cannot be done now is tried at the next look.
    fn attach(&mut self) {
        for (socket, (group, interface)) in self.sockets.iter_mut().zip(&mut self.members) {
            let Some(now) = interface.made_again() else { continue };
            if let Ok(new) = open(&now, *group) {
                (*socket, *interface) = (new, now);
            }
        }
    }

    /// The next announcement and who sent it, if one comes before the steady clock reaches `until`.
    pub fn receive(&mut self, until: Time) -> io::Result<Option<(&[u8], SocketAddr)>> {
        loop {
            let now = self.clock.now();
            if now >= self.next_look {
                self.next_look = now + LOOK_INTERVAL;
                self.attach();
            }
            let look = until.min(self.next_look);
            let mut waits: Vec<_> = self.sockets.iter().map(|socket| clock::readable(socket.as_fd())).collect();
            if clock::wait(&mut waits, look).map_err(io::Error::from)? {
                break;
            }
            drop(waits);
            if look == until {
                return Ok(None);
            }
        }
        for _ in 0..self.sockets.len() {
            self.turn = (self.turn + 1) % self.sockets.len();
            match self.sockets[self.turn].recv_from(&mut self.buffer) {
                Ok((length, from)) => return Ok(Some((&self.buffer[..length], from))),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

fn open(interface: &Interface, group: SocketAddr) -> Result<UdpSocket> {
    let refused = |source| NetError::Socket { address: group, source };
    let socket = udp(group)?;
    socket.set_reuse_address(true).map_err(refused)?;
    // Bound to the group, it gets what is sent there and nothing else.
    socket.bind(&sockaddr(group, interface.index)).map_err(refused)?;
    join(&socket, group.ip(), None, interface).map_err(refused)?;
    Ok(socket.into())
}

/// A datagram's most bytes.
const LARGEST: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_announced_in_its_own_scope() {
        let group = |text: &str| group_for(text.parse().expect("an address")).to_string();
        assert_eq!(group("239.255.0.1"), "239.255.255.255:9875");
        assert_eq!(group("239.193.0.1"), "239.195.255.255:9875");
        assert_eq!([group("232.1.2.3"), group("224.2.200.1")], ["224.2.127.254:9875"; 2]);
        assert_eq!([group("ff15::77"), group("ff3e::8000:1")], ["[ff05::2:7ffe]:9875", "[ff0e::2:7ffe]:9875"]);
    }

    #[test]
    fn what_is_announced_on_a_host_is_heard_there_and_other_groups_are_not() {
        let loopback = InterfaceChoice::Name("lo".to_owned());
        let [heard, other] = ["239.255.99.1:29875", "239.255.99.2:29875"].map(|text| text.parse().expect("a group"));
        let mut listener = Listener::new(&loopback, &[heard]).expect("loopback takes groups");
        let lo = Interface::choose(&loopback, heard.ip()).expect("there is a loopback");
        for (group, packet) in [(other, b"not this"), (heard, b"but that")] {
            let mut announcer = Announcer::new(&lo, group, 1).expect("loopback sends");
            announcer.send(packet).expect("there is room");
        }
        let now = clock::Clock::new().now();
        let (packet, from) = listener.receive(now + TEN).expect("it works").expect("one comes");
        assert_eq!((packet, from.ip()), (&b"but that"[..], IpAddr::from([127, 0, 0, 1])));
        let now = clock::Clock::new().now();
        assert_eq!(listener.receive(now).expect("it works"), None);
    }

    const TEN: std::time::Duration = std::time::Duration::from_secs(10);
}
