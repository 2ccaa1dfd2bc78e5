//! Checks of what the system says of itself.

use weir_net::diagnosis::{self, Facts, IgmpVersion, ReversePath};
use weir_net::{Interface, InterfaceChoice, LinkSpeed};
use weir_units::Bytes;

use super::Subject;
use super::events::{Check, Outcome};
use crate::session;

/// The interface, which exists, is up and has an address.
pub(super) fn interface(interface: &Interface, subject: &Subject) -> Check {
    let mtu = interface.mtu();
    let speed = match interface.speed() {
        LinkSpeed::Stated(speed) => speed.to_string(),
        LinkSpeed::Virtual => "virtual".to_owned(),
        LinkSpeed::Unknown => "states no speed".to_owned(),
    };
    let mtu_words = mtu.map_or_else(|| "MTU not known".to_owned(), |mtu| format!("MTU {} bytes", mtu.count()));
    let found = format!("{interface}, {mtu_words}, {speed}");
    let control = subject.description.as_ref().and_then(|description| description.control.as_ref());
    let packet = control.map_or(Bytes::new(session::USUAL_PACKET.into()), |control| control.packet_size);
    match mtu {
        Some(mtu) if mtu < packet => Check::new("interface", Outcome::Warning, found).advise(format!(
            "packets of {} bytes do not fit: the sender needs --packet-size {}",
            packet.count(),
            mtu.count()
        )),
        _ => Check::ok("interface", found),
    }
}

/// Where the routing table leads.
pub(super) fn route(subject: &Subject, interface: &Interface) -> Check {
    let group = subject.group.ip();
    match Interface::choose(&InterfaceChoice::Routed, group) {
        Ok(routed) if routed.index == interface.index => {
            Check::ok("route", format!("{group} is routed through {}", interface.name))
        }
        Ok(routed) => Check::new("route", Outcome::Note, format!("{group} is routed through {}", routed.name))
            .advise(format!("give --iface {} to every command", interface.name)),
        Err(error) => Check::new("route", Outcome::Note, error.to_string())
            .advise(format!("give --iface {} to every command", interface.name)),
    }
}

/// What the system says in `/proc`.
pub(super) fn check(subject: &Subject, interface: &Interface) -> Vec<Check> {
    let facts = diagnosis::facts(interface);
    let is_v4 = subject.group.is_ipv4();
    let v4 = is_v4.then(|| [igmp(&facts, subject, interface), reverse_path(&facts, interface)]);
    v4.into_iter().flatten().chain([memberships(&facts), clock(&facts)]).collect()
}

fn igmp(facts: &Facts, subject: &Subject, interface: &Interface) -> Check {
    let name = &interface.name;
    let advice = format!(
        "sysctl -w net.ipv4.conf.all.force_igmp_version=0 net.ipv4.conf.{name}.force_igmp_version=0; or it is the querier of the network that \
         speaks the old version"
    );
    match facts.igmp {
        Some(IgmpVersion::V3) => Check::ok("igmp", "version 3"),
        Some(IgmpVersion::V2) if subject.source.is_some() => {
            Check::new("igmp", Outcome::Failed, "version 2; groups of one source need 3").advise(advice)
        }
        Some(IgmpVersion::V2) => {
            Check::new("igmp", Outcome::Note, "version 2; --source-specific needs 3").advise(advice)
        }
        Some(IgmpVersion::V1) => {
            Check::new("igmp", Outcome::Warning, "version 1, in which nobody can leave a group").advise(advice)
        }
        None => Check::new("igmp", Outcome::Note, format!("the system does not say which version {name} speaks")),
    }
}

fn reverse_path(facts: &Facts, interface: &Interface) -> Check {
    let (all, name) = ("net.ipv4.conf.all.rp_filter", &interface.name);
    match facts.reverse_path {
        Some(ReversePath::Off) => Check::ok("rp_filter", "off"),
        Some(ReversePath::Loose) => Check::ok("rp_filter", "loose"),
        Some(ReversePath::Strict) if facts.other_interfaces_up == 0 => {
            Check::ok("rp_filter", format!("strict, and {name} is the only interface that is up"))
        }
        Some(ReversePath::Strict) => Check::new(
            "rp_filter",
            Outcome::Warning,
            format!("strict: packets whose sender is routed through another interface than {name} are dropped"),
        )
        .advise(format!("sysctl -w {all}=2 net.ipv4.conf.{name}.rp_filter=2, or a route to the sender through {name}")),
        None => Check::new("rp_filter", Outcome::Note, "the system does not say"),
    }
}

fn memberships(facts: &Facts) -> Check {
    match facts.memberships_per_socket {
        Some(most) if most < USUAL_MEMBERSHIPS => Check::new(
            "memberships",
            Outcome::Failed,
            format!("a socket may join {most} groups, and we join up to {USUAL_MEMBERSHIPS}"),
        )
        .advise(format!("sysctl -w net.ipv4.igmp_max_memberships={USUAL_MEMBERSHIPS}")),
        Some(most) => Check::ok("memberships", format!("{most} groups a socket; we take as many sockets as we need")),
        None => Check::new("memberships", Outcome::Note, "the system does not say"),
    }
}

fn clock(facts: &Facts) -> Check {
    match facts.clock_is_synchronised {
        Some(true) => Check::ok("clock", "follows a time server"),
        Some(false) => Check::new("clock", Outcome::Warning, "does not follow a time server").advise(
            "what a sender signs is good for a day: clocks that are further apart refuse it (timedatectl set-ntp true)",
        ),
        None => Check::new("clock", Outcome::Note, "the system does not say whether it follows a time server"),
    }
}

/// Groups that we join through one socket.
const USUAL_MEMBERSHIPS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn about(facts: &Facts) -> [Outcome; 4] {
        let lo =
            Interface::choose(&InterfaceChoice::Name("lo".to_owned()), [239, 255, 0, 1].into()).expect("lo is there");
        let source = Some([192, 0, 2, 1].into());
        let subject = Subject { group: "232.1.1.1:5004".parse().expect("a group"), source, description: None };
        [igmp(facts, &subject, &lo), reverse_path(facts, &lo), memberships(facts), clock(facts)].map(|check| {
            assert_eq!(
                check.advice.is_some(),
                matches!(check.outcome, Outcome::Warning | Outcome::Failed),
                "{check:?}"
            );
            check.outcome
        })
    }

    #[test]
    fn what_will_not_work_fails_and_what_is_not_known_is_a_note() {
        let good = Facts {
            igmp: Some(IgmpVersion::V3),
            reverse_path: Some(ReversePath::Strict),
            memberships_per_socket: Some(20),
            clock_is_synchronised: Some(true),
            ..Facts::default()
        };
        let bad = Facts {
            igmp: Some(IgmpVersion::V2),
            other_interfaces_up: 1,
            memberships_per_socket: Some(19),
            clock_is_synchronised: Some(false),
            ..good
        };
        assert_eq!(about(&good), [Outcome::Ok; 4]);
        assert_eq!(about(&bad), [Outcome::Failed, Outcome::Warning, Outcome::Failed, Outcome::Warning]);
        assert_eq!(about(&Facts::default()), [Outcome::Note; 4]);
    }
}
