//! Which multicast groups a session may use: not those that belong to others.
//!
//! Blocks are IANA's: RFC 5771 for IPv4 with RFC 2365 for 239/8, RFC 4291 §2.7 and RFC 4607 for IPv6. Not here: whether the network
//! carries a group.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a session may not use a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// It belongs to others.
    #[error("{group} is not free: {block}; take groups of 239.255.0.0/16 within a site, or [ff15::]")]
    Taken {
        /// The group.
        group: IpAddr,
        /// Whose it is.
        block: &'static str,
    },
    /// It is for one source, and the session has any.
    #[error(
        "{group} is for source-specific multicast, which nobody receives without the sender's address: send files with \
         --source-specific, or take another group"
    )]
    OneSource {
        /// The group.
        group: IpAddr,
    },
    /// It is no group.
    #[error("{group} is not a multicast address")]
    Unicast {
        /// The address.
        group: IpAddr,
    },
}

/// Says why a session may not use `group`, if it may not. Groups for one source need a session that has one.
pub fn check(group: IpAddr, has_source: bool) -> Result<(), GroupError> {
    if !group.is_multicast() {
        return Err(GroupError::Unicast { group });
    }
    let block = match group {
        IpAddr::V4(group) => block_v4(group),
        IpAddr::V6(group) => block_v6(group),
    };
    match block {
        Some(block) => Err(GroupError::Taken { group, block }),
        None if is_for_one_source(group) && !has_source => Err(GroupError::OneSource { group }),
        None => Ok(()),
    }
}

/// Whether a group is for source-specific multicast: 232.0.0.0/8 and ff3x::/32.
pub fn is_for_one_source(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => {
            let [first, second, ..] = group.segments();
            first & 0xfff0 == 0xff30 && second == 0
        }
    }
}

fn block_v4(group: Ipv4Addr) -> Option<&'static str> {
    match group.octets() {
        [224, 0, 0, _] => {
            Some("224.0.0.0/24 is for routing protocols and the like, and every switch sends it everywhere")
        }
        [224, 0, 1, _] => Some("224.0.1.0/24 is for protocols that control the network, one address each"),
        [224, 0, ..] => Some("224.0.2.0 to 224.0.255.255 are assigned to their owners one by one"),
        [232, 0, 0, _] => Some("232.0.0.0/24 is reserved"),
        [239, 255, 255, _] => Some("239.255.255.0/24 is for services within a site, such as SSDP and SLP"),
        _ => None,
    }
}

fn block_v6(group: Ipv6Addr) -> Option<&'static str> {
    let [_, second, ..] = group.octets();
    match (second >> 4, second & 0x0f) {
        (_, 0 | 0x0f) => Some("its scope is reserved"),
        (0, _) => Some("ff00::/12 is assigned to its owners one by one, such as ff02::1 to all nodes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(group: &str, has_source: bool) -> bool {
        check(group.parse().expect("an address"), has_source).is_err()
    }

    #[test]
    fn groups_of_others_are_refused_with_and_without_a_source() {
        let taken = ["224.0.0.1", "224.0.0.251", "224.0.1.1", "224.0.2.1", "232.0.0.7", "239.255.255.250", "10.0.0.1"];
        for group in taken.into_iter().chain(["ff02::1", "ff05::101", "ff0e::1", "ff1f::1", "ff10::1", "fd00::1"]) {
            assert!(refused(group, false) && refused(group, true), "{group}");
        }
        for group in ["224.1.0.1", "233.252.0.1", "239.255.0.1", "239.1.2.3", "ff12::7", "ff15::7", "ff35:40:fd77::1"] {
            assert!(!refused(group, false) && !refused(group, true), "{group}");
        }
    }

    #[test]
    fn groups_of_one_source_need_one() {
        for group in ["232.1.1.1", "ff3e::4000:1", "ff35::8000:1"] {
            assert!(refused(group, false) && !refused(group, true), "{group}");
        }
        let text = check("232.1.1.1".parse().expect("an address"), false).expect_err("it has none").to_string();
        assert!(text.contains("--source-specific"), "{text}");
    }
}
