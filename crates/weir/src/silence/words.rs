//! What a user who waits is told.

use std::net::IpAddr;
use std::time::Duration;

use weir_net::Interface;
use weir_net::description::Description;
use weir_net::diagnosis::{Facts, IgmpVersion, ReversePath};
use weir_object::keys::PublicKey;

use super::Lack;
use crate::events::{Seen, SeenWhat};

/// What is known of the session and its network.
pub(super) struct About<'a> {
    pub(super) description: &'a Description,
    pub(super) interface: &'a Interface,
    pub(super) facts: &'a Facts,
    /// Who asks for memberships, if that could be looked at.
    pub(super) querier: Option<Option<IpAddr>>,
    /// The system has dropped packets since the silence began because of where they come from.
    pub(super) has_reverse_path_drops: bool,
}

impl About<'_> {
    /// All of it, in lines.
    pub(super) fn message(&self, lack: Lack, waited: Duration, seen: &[Seen], check: &[String]) -> String {
        let (tsi, channel, interface) = (self.description.tsi, self.description.channels[0], &self.interface.name);
        let seconds = waited.as_secs();
        let mut text = match lack {
            Lack::Packets => format!("nothing of session {tsi} has come for {seconds} s, on {channel}, {interface}"),
            Lack::GoodTables | Lack::Tables => {
                format!("packets of session {tsi} have come for {seconds} s, and no table of files that can be used")
            }
        };
        seen.iter().for_each(|seen| text += &format!("\n  {}", self.in_words(seen)));
        if !check.is_empty() {
            text += ". Check:";
            check.iter().for_each(|check| text += &format!("\n  - {check}"));
        }
        text
    }

    fn in_words(&self, seen: &Seen) -> String {
        let Seen { packets, tsi, fec, .. } = seen;
        let from = seen.from.as_deref().unwrap_or("an unknown sender");
        let channel = self.description.channels[0];
        match seen.what {
            SeenWhat::OtherSession => format!(
                "session {} is there instead ({packets} packets from {from}): the sender has been started again, or another one uses \
                 the group; get the description of the session that is sent now",
                tsi.unwrap_or_default()
            ),
            SeenWhat::OtherSource => format!(
                "{packets} packets came from {from}, and the description takes only those of {}",
                self.description
                    .sender_address()
                    .map_or_else(|| "another sender".to_owned(), |sender| sender.to_string())
            ),
            SeenWhat::OtherChannel => format!(
                "{packets} packets from {from} say that they are of another channel: another session uses the same groups in another \
                 order, or the description is an old one"
            ),
            SeenWhat::UnknownFec => format!(
                "{packets} packets from {from} have FEC encoding id {}, which is not supported; have the sender use 6 (RaptorQ) or 0 \
                 (Compact No-Code)",
                fec.unwrap_or_default()
            ),
            SeenWhat::Unreadable => format!(
                "{packets} packets from {from} cannot be read: another program uses the group and port, or the description is an old one"
            ),
            SeenWhat::Unsealed => format!(
                "{packets} packets from {from} do not bear the session's seal: the sender has been started without --authenticate or --encrypt \
                 (then get its new description), or somebody forges"
            ),
            SeenWhat::Forged => format!(
                "{packets} packets from {from} bear a seal of another key: the sender has been started with another key or TSI (then get its new \
                 description), or somebody forges"
            ),
            SeenWhat::Replayed => format!(
                "{packets} packets from {from} are of an earlier start of the sender, or came before: somebody plays a session again, or two senders \
                 use one key and one TSI"
            ),
            SeenWhat::UnsignedTable => format!(
                "{packets} tables of files do not bear the signature of the sender's key{}: the sender has been started with \
                 another key (then get its new description), or somebody forges",
                self.key()
            ),
            SeenWhat::Flooded => format!(
                "{packets} packets from {from} to groups of the session that this host has not joined reach {}: the network floods; \
                 turn on IGMP snooping and an IGMP querier on the switch",
                self.interface.name
            ),
            SeenWhat::Blocked => {
                let why = if self.has_reverse_path_drops { self.reverse_path() } else { self.firewall() };
                format!(
                    "{packets} packets from {from} to {channel} reach {} and not this program: {why}",
                    self.interface.name
                )
            }
            SeenWhat::Other => format!("{packets} packets from {from} were not taken"),
        }
    }

    fn key(&self) -> String {
        let key = self.description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
        key.map_or_else(String::new, |key| format!(" {key}"))
    }

    fn firewall(&self) -> String {
        format!("a firewall on this host drops them (nft list ruleset); let UDP port {} in", self.port())
    }

    fn reverse_path(&self) -> String {
        let name = &self.interface.name;
        format!(
            "the system drops them because its route to their sender leads elsewhere; add a route, or turn the check off with \
             sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{name}.rp_filter=0"
        )
    }

    fn port(&self) -> u16 {
        self.description.channels[0].port()
    }

    /// What to check when nothing was seen, what is known to be wrong first.
    pub(super) fn check(&self, lack: Lack) -> Vec<String> {
        if lack == Lack::Tables {
            return vec![
                "the sender: the table goes on the lowest channel, and may be lost or late where that is crowded"
                    .to_owned(),
            ];
        }
        let name = &self.interface.name;
        let mut all = Vec::new();
        let is_v4 = self.description.channels[0].is_ipv4();
        if self.has_reverse_path_drops {
            all.push(format!("rp_filter: {}", self.reverse_path()));
        }
        if is_v4 && self.description.source.is_some() && self.facts.igmp.is_some_and(|igmp| igmp < IgmpVersion::V3) {
            all.push(format!(
                "the IGMP version: {name} speaks an old one, and groups of one source need 3: sysctl -w \
                 net.ipv4.conf.all.force_igmp_version=0 net.ipv4.conf.{name}.force_igmp_version=0"
            ));
        }
        all.push(format!("the sender: that it runs, and sends to {} (weir describe)", self.description.channels[0]));
        all.push(match self.facts.other_interfaces_up {
            0 => format!("the interface: {name} is the only one that is up here; the sender has its own --iface"),
            1 => format!("the interface: another one is up besides {name}; --iface chooses, here and at the sender"),
            more => {
                format!("the interface: {more} others are up besides {name}; --iface chooses, here and at the sender")
            }
        });
        all.push(match self.description.ttl {
            0 | 1 => "TTL: the sender's is 1, which passes no router; if one is between, it needs --ttl".to_owned(),
            ttl => format!("TTL: the sender's is {ttl}; each router takes one off, and has to route multicast"),
        });
        all.push(format!("firewalls: on this host and the sender's, for UDP port {} and for IGMP", self.port()));
        all.extend(self.about_querier());
        if self.facts.reverse_path == Some(ReversePath::Strict) && self.facts.other_interfaces_up > 0 && is_v4 {
            all.push(format!("rp_filter: {name} takes only packets whose sender is routed through it"));
        }
        all.push("weir doctor, here and on the sender, tries all this".to_owned());
        all
    }

    fn about_querier(&self) -> Option<String> {
        let name = &self.interface.name;
        if name == "lo" {
            return None;
        }
        match self.querier {
            Some(Some(_)) => None,
            Some(None) => Some(format!(
                "the querier: none has been heard on {name} yet (they speak about every two minutes); a switch that snoops IGMP \
                 without one stops passing groups on"
            )),
            None => Some("the querier: a switch that snoops IGMP without one stops passing groups on".to_owned()),
        }
    }
}
