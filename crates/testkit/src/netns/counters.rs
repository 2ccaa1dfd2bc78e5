//! What passed where: bytes on a port of the bridge, and the group membership messages that the bridge saw.

use serde_json::Value;

/// What a host has sent and received, link-layer headers included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes to the host.
    pub received_bytes: u64,
    /// Packets to the host.
    pub received_packets: u64,
    /// Bytes from the host.
    pub sent_bytes: u64,
    /// Packets from the host.
    pub sent_packets: u64,
}

impl Traffic {
    /// From `ip -j -s link show`, seen from the bridge's end of the cable, where what the host sends arrives.
    pub(super) fn from_json(text: &str) -> Option<Traffic> {
        let list: Value = serde_json::from_str(text).ok()?;
        let counters = &list.as_array()?.first()?["stats64"];
        Some(Traffic {
            received_bytes: counters["tx"]["bytes"].as_u64()?,
            received_packets: counters["tx"]["packets"].as_u64()?,
            sent_bytes: counters["rx"]["bytes"].as_u64()?,
            sent_packets: counters["rx"]["packets"].as_u64()?,
        })
    }
}

/// Group membership messages (IGMP and MLD together) that the bridge has seen and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snooping {
    /// Queries that the bridge sent.
    pub queries_sent: u64,
    /// Reports received: IGMPv3 and MLDv2 joins and leaves, and answers to queries.
    pub reports: u64,
    /// Leave messages of older versions received.
    pub leaves: u64,
    /// Messages that could not be read.
    pub errors: u64,
}

impl Snooping {
    /// From `ip -j -s link xstats type bridge`.
    pub(super) fn from_json(text: &str) -> Option<Snooping> {
        let list: Value = serde_json::from_str(text).ok()?;
        let counters = list.as_array()?.iter().find_map(|bridge| bridge["multicast"].as_object())?;
        let sum = |keys: [&str; 2], prefix: &str| {
            let versions = keys.iter().filter_map(|key| counters.get(*key)?.as_object()).flatten();
            versions.filter(|(name, _)| name.starts_with(prefix)).filter_map(|(_, count)| count.as_u64()).sum()
        };
        let errors =
            ["igmp_parse_errors", "mld_parse_errors"].iter().filter_map(|key| counters.get(*key)?.as_u64()).sum();
        Some(Snooping {
            queries_sent: sum(["igmp_queries", "mld_queries"], "tx"),
            reports: sum(["igmp_reports", "mld_reports"], "rx"),
            leaves: sum(["igmp_leaves", "mld_leaves"], "rx"),
            errors,
        })
    }
}

/// The ports that `bridge -j mdb show` lists for a group, by name.
pub(super) fn member_ports(text: &str, group: &str) -> Option<Vec<String>> {
    let list: Value = serde_json::from_str(text).ok()?;
    let entries = list.as_array()?.iter().filter_map(|table| table["mdb"].as_array()).flatten();
    let members = entries.filter(|entry| entry["grp"] == group);
    let mut ports: Vec<String> = members.filter_map(|entry| Some(entry["port"].as_str()?.to_owned())).collect();
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_messages_of_all_versions_are_added_up() {
        let text = r#"[{"ifname":"br0","multicast":{"igmp_queries":{"rx_v3":9,"tx_v2":1,"tx_v3":2},
            "igmp_reports":{"rx_v2":1,"rx_v3":3,"tx_v3":9},"igmp_leaves":{"rx":4,"tx":0},"igmp_parse_errors":1,
            "mld_queries":{"tx_v1":5},"mld_reports":{"rx_v1":0,"rx_v2":6},"mld_leaves":{"rx":7,"tx":0},"mld_parse_errors":1}}]"#;
        let expected = Snooping { queries_sent: 8, reports: 10, leaves: 11, errors: 2 };
        assert_eq!(Snooping::from_json(text), Some(expected));
    }

    #[test]
    fn a_cable_is_counted_from_the_host_s_side() {
        let text = r#"[{"ifname":"p1","stats64":{"rx":{"bytes":1,"packets":2},"tx":{"bytes":3,"packets":4}}}]"#;
        let traffic = Traffic { received_bytes: 3, received_packets: 4, sent_bytes: 1, sent_packets: 2 };
        assert_eq!(Traffic::from_json(text), Some(traffic));
    }

    #[test]
    fn members_are_ports_of_any_source() {
        let text = r#"[{"mdb":[{"port":"p2","grp":"239.1.1.1"},{"port":"p1","grp":"239.1.1.2"},
            {"port":"p2","grp":"239.1.1.1","src":"10.0.0.1"}],"router":{}}]"#;
        assert_eq!(member_ports(text, "239.1.1.1"), Some(vec!["p2".to_owned()]));
    }
}
