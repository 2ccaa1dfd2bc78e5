//! Which network interface a session uses: by name, by address, or the one that the routing table leads to.

mod stated;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::{getsockopt, sockopt};
use weir_units::Bytes;

use crate::error::NetError;

pub use stated::LinkSpeed;

use stated::Stated;

/// What the user said about the interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum InterfaceChoice {
    /// Nothing: the routing table decides.
    #[default]
    Routed,
    /// The interface of this name.
    Name(String),
    /// The interface that has this address.
    Address(IpAddr),
}

impl FromStr for InterfaceChoice {
    type Err = std::convert::Infallible;

    /// An IP address, or else a name.
    fn from_str(text: &str) -> Result<InterfaceChoice, Self::Err> {
        Ok(match text.parse() {
            Ok(address) => InterfaceChoice::Address(address),
            Err(_) => InterfaceChoice::Name(text.to_owned()),
        })
    }
}

/// How often to look whether an interface has been made again ([`Interface::made_again`]).
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// An interface as it was when it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the kernel.
    pub index: u32,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether the routing table chose it, and not the user.
    pub is_routed: bool,
}

impl Interface {
    /// The interface for channels such as `group`. It exists, is up, and has an address of the group's family.
    pub fn choose(choice: &InterfaceChoice, group: IpAddr) -> Result<Interface, NetError> {
        let all = Interface::all()?;
        let has = |address: IpAddr| all.iter().find(|interface| interface.addresses.contains(&address));
        let mut chosen = match choice {
            InterfaceChoice::Name(name) => all
                .iter()
                .find(|interface| &interface.name == name)
                .ok_or_else(|| NetError::NoSuchInterface { name: name.clone(), available: names(&all) })?
                .clone(),
            InterfaceChoice::Address(address) => has(*address)
                .ok_or_else(|| NetError::NoSuchAddress { address: *address, available: listing(&all) })?
                .clone(),
            InterfaceChoice::Routed => {
                let source = routed_source(group).map_err(|source| no_route(group, source))?;
                let interface =
                    has(source).ok_or_else(|| NetError::NoSuchAddress { address: source, available: listing(&all) })?;
                Interface { is_routed: true, ..interface.clone() }
            }
        };
        if !chosen.is_up {
            return Err(NetError::InterfaceDown { name: chosen.name });
        }
        if let InterfaceChoice::Address(address) = choice {
            let wanted = chosen.addresses.iter().position(|own| own == address).expect("it was found by this address");
            chosen.addresses.swap(0, wanted);
        }
        chosen.source_address(group)?;
        Ok(chosen)
    }

    /// The interface of this name as it is now, if it has been made again: it has another number then, and neither sockets nor memberships follow.
    pub fn made_again(&self) -> Option<Interface> {
        let is_another = |index: u32| index != self.index;
        if_nametoindex(self.name.as_str()).is_ok_and(is_another).then(|| {
            let all = Interface::all().ok()?.into_iter();
            let now = all.filter(|one| one.is_up && is_another(one.index)).find(|one| one.name == self.name)?;
            Some(Interface { is_routed: self.is_routed, ..now })
        })?
    }

    /// All interfaces, each with all its addresses.
    pub fn all() -> Result<Vec<Interface>, NetError> {
        let mut all: Vec<Interface> = Vec::new();
        for entry in getifaddrs().map_err(|error| NetError::Interfaces(error.into()))? {
            let known = all.iter().position(|interface| interface.name == entry.interface_name);
            let interface = match known {
                Some(known) => &mut all[known],
                None => {
                    let index = if_nametoindex(entry.interface_name.as_str()).unwrap_or(0);
                    all.push(Interface {
                        name: entry.interface_name,
                        index,
                        addresses: Vec::new(),
                        is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
                        is_routed: false,
                    });
                    all.last_mut().expect("an interface was just pushed")
                }
            };
            let address = entry.address.as_ref();
            interface.addresses.extend(address.and_then(|at| Some(IpAddr::V4(at.as_sockaddr_in()?.ip()))));
            interface.addresses.extend(address.and_then(|at| Some(IpAddr::V6(at.as_sockaddr_in6()?.ip()))));
        }
        Ok(all)
    }

    /// The address that packets to `group` are sent from: the first of the group's family, link-local ones last.
    pub fn source_address(&self, group: IpAddr) -> Result<IpAddr, NetError> {
        let of_family = self.addresses.iter().filter(|address| address.is_ipv4() == group.is_ipv4());
        of_family.min_by_key(|address| is_link_local(**address)).copied().ok_or_else(|| NetError::NoAddress {
            name: self.name.clone(),
            family: if group.is_ipv4() { "IPv4" } else { "IPv6" },
            group,
        })
    }

    /// The first IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }

    /// The largest packet that the interface takes, IP header included; `None` where the system does not tell.
    pub fn mtu(&self) -> Option<Bytes> {
        self.ipv4().and_then(route_mtu).or_else(|| {
            let mtu = self.stated()?.number("mtu")?;
            Some(Bytes::new(mtu).min(MAX_PACKET))
        })
    }

    /// How fast its link is, as the system tells now.
    pub fn speed(&self) -> LinkSpeed {
        self.stated().map_or(LinkSpeed::Unknown, |stated| stated.speed())
    }

    fn stated(&self) -> Option<Stated> {
        Stated::of(Path::new(stated::ROOT), &self.name, self.index)
    }
}

/// The largest packet on the way from the interface of `source` to a group.
fn route_mtu(source: Ipv4Addr) -> Option<Bytes> {
    let socket = UdpSocket::bind((source, 0)).ok()?;
    socket2::SockRef::from(&socket).set_multicast_if_v4(&source).ok()?;
    socket.connect((ANY_GROUP, DISCARD_PORT)).ok()?;
    let mtu = getsockopt(&socket, sockopt::IpMtu).ok()?;
    u64::try_from(mtu).ok().map(Bytes::new)
}

impl fmt::Display for Interface {
    /// `eth0 (192.0.2.2)`, and how it was chosen if the user did not choose it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().take(2).map(ToString::to_string).collect();
        let chosen = if self.is_routed { ", by the routing table" } else { "" };
        write!(f, "{} ({}{chosen})", self.name, addresses.join(", "))
    }
}

/// The address from which the system would send to `group`. Nothing is sent.
fn routed_source(group: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = match group {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(SocketAddr::new(group, DISCARD_PORT))?;
    Ok(socket.local_addr()?.ip())
}

fn no_route(group: IpAddr, source: std::io::Error) -> NetError {
    NetError::NoRoute { group, prefix: if group.is_ipv4() { "224.0.0.0/4" } else { "ff00::/8" }, source }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn names(all: &[Interface]) -> String {
    let names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
    names.join(", ")
}

fn listing(all: &[Interface]) -> String {
    let with_addresses = all.iter().filter(|interface| !interface.addresses.is_empty());
    let lines: Vec<String> = with_addresses.map(Interface::to_string).collect();
    lines.join(", ")
}

/// The largest IPv4 packet; the loopback's MTU is a byte more.
const MAX_PACKET: Bytes = Bytes::new(65_535);
/// A group and a port to ask the routing table with.
const ANY_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 255);
const DISCARD_PORT: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1));

    #[test]
    fn an_address_or_a_name_is_a_choice() {
        assert_eq!("127.0.0.1".parse(), Ok(InterfaceChoice::Address(Ipv4Addr::LOCALHOST.into())));
        assert_eq!("eth0".parse(), Ok(InterfaceChoice::Name("eth0".to_owned())));
    }

    #[test]
    fn the_loopback_is_found_by_name_and_by_address() {
        let by_name = Interface::choose(&InterfaceChoice::Name("lo".to_owned()), GROUP).expect("lo is there");
        let by_address = Interface::choose(&InterfaceChoice::Address(Ipv4Addr::LOCALHOST.into()), GROUP);
        assert_eq!(by_address.expect("lo has 127.0.0.1").index, by_name.index);
        assert_eq!(by_name.source_address(GROUP).expect("lo has IPv4"), Ipv4Addr::LOCALHOST);
        assert!(by_name.mtu().is_some_and(|mtu| mtu >= Bytes::new(1280)), "{:?}", by_name.mtu());
        assert!(by_name.to_string().starts_with("lo (127.0.0.1"));
        assert!(!matches!(by_name.speed(), LinkSpeed::Stated(_)), "{:?}", by_name.speed());
    }

    #[test]
    fn both_ways_to_ask_for_the_mtu_agree() {
        for interface in Interface::all().expect("a list").into_iter().filter(|interface| interface.is_up) {
            let with_ipv4 = interface.mtu();
            let without = Interface { addresses: Vec::new(), ..interface }.mtu();
            assert!(with_ipv4.zip(without).is_none_or(|(one, other)| one == other), "{with_ipv4:?}, {without:?}");
        }
    }

    #[test]
    fn a_missing_interface_is_named_beside_those_that_exist() {
        let error = Interface::choose(&InterfaceChoice::Name("wan7".to_owned()), GROUP).expect_err("no such interface");
        let text = error.to_string();
        assert!(text.starts_with(r#"there is no interface "wan7"; this host has "#) && text.contains("lo"), "{text}");
    }

    #[test]
    fn a_missing_address_is_named_beside_those_that_exist() {
        let choice = InterfaceChoice::Address(Ipv4Addr::new(198, 51, 100, 77).into());
        let text = Interface::choose(&choice, GROUP).expect_err("a documentation address").to_string();
        assert!(text.contains("198.51.100.77") && text.contains("lo (127.0.0.1"), "{text}");
    }
}
