//! What the system says of its network, in the files of `/proc`.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use nix::libc;

use crate::interface::Interface;

/// What the system says. What it does not say, or not to this user, is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The version of IGMP that is spoken on the interface.
    pub igmp: Option<IgmpVersion>,
    /// How the interface checks where packets come from.
    pub reverse_path: Option<ReversePath>,
    /// Packets that this check has dropped since the system started.
    pub reverse_path_drops: Option<u64>,
    /// Groups that one socket may join.
    pub memberships_per_socket: Option<u64>,
    /// The largest receive buffer that a program may ask for.
    pub largest_buffer: Option<u64>,
    /// Whether the clock follows a time server.
    pub clock_is_synchronised: Option<bool>,
    /// Interfaces besides loopback that are up.
    pub other_interfaces_up: usize,
}

/// A version of IGMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IgmpVersion {
    /// Hosts cannot leave a group.
    V1,
    /// Groups of any source.
    V2,
    /// Groups of one source, too.
    V3,
}

/// How an interface checks where packets come from (`rp_filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReversePath {
    /// Not at all.
    Off,
    /// What comes in must come from where the answer would go out.
    Strict,
    /// There must be some route back.
    Loose,
}

/// Looks up what the system says of this interface.
pub fn facts(interface: &Interface) -> Facts {
    facts_at(Path::new("/proc"), interface)
}

fn facts_at(proc: &Path, interface: &Interface) -> Facts {
    let sys = |file: &str| number::<u64>(&proc.join("sys/net").join(file));
    let conf = |name: &str| sys(&format!("ipv4/conf/{name}/rp_filter"));
    let device = interface.name.split(':').next().unwrap_or(&interface.name);
    let text = |file: &str| fs::read_to_string(proc.join("net").join(file)).unwrap_or_default();
    let is_other = |other: &Interface| other.is_up && other.name != "lo" && other.name != interface.name;
    Facts {
        igmp: igmp_version(&text("igmp"), device),
        // The stricter number counts, and 1 is the strict one only if nothing says 2.
        reverse_path: conf("all").max(conf(device)).and_then(reverse_path),
        reverse_path_drops: counter(&text("netstat"), "TcpExt", "IPReversePathFilter"),
        memberships_per_socket: sys("ipv4/igmp_max_memberships"),
        largest_buffer: sys("core/rmem_max"),
        clock_is_synchronised: clock_is_synchronised(),
        other_interfaces_up: Interface::all().map_or(0, |all| all.iter().filter(|other| is_other(other)).count()),
    }
}

fn number<T: FromStr>(path: &Path) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn reverse_path(number: u64) -> Option<ReversePath> {
    match number {
        0 => Some(ReversePath::Off),
        1 => Some(ReversePath::Strict),
        2 => Some(ReversePath::Loose),
        _ => None,
    }
}

/// From `/proc/net/igmp`: a line an interface, with the version at its end, and below it a line a group.
fn igmp_version(table: &str, device: &str) -> Option<IgmpVersion> {
    let line = table.lines().find(|line| {
        let is_interface = line.starts_with(|c: char| c.is_ascii_digit());
        is_interface && line.split_ascii_whitespace().nth(1).is_some_and(|name| name.trim_end_matches(':') == device)
    })?;
    match line.split_ascii_whitespace().next_back()? {
        "V1" => Some(IgmpVersion::V1),
        "V2" => Some(IgmpVersion::V2),
        "V3" => Some(IgmpVersion::V3),
        _ => None,
    }
}

/// From `/proc/net/netstat`: a line of names and a line of numbers, each led by the group's name.
fn counter(table: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.split_once(':')).filter(|(led_by, _)| *led_by == group);
    let (names, numbers) = (lines.next()?.1, lines.next()?.1);
    let at = names.split_ascii_whitespace().position(|one| one == name)?;
    numbers.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// Whether the kernel's clock follows a time server, as `adjtimex` says.
#[expect(unsafe_code, reason = "a system call that no safe wrapper knows")]
fn clock_is_synchronised() -> Option<bool> {
    // SAFETY: zeroes are a valid `timex`, whose `modes` of 0 asks to change nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value of the type that the kernel fills in.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    match state {
        -1 => None,
        libc::TIME_ERROR => Some(false),
        _ => Some(timex.status & libc::STA_UNSYNC == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IGMP: &str = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
        1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
        4\teth0      :     1      V2\n\t\t\t\t010000E0     1 0:00000000\t\t0\n7\teth0.12: 1 V1\n";

    #[test]
    fn the_version_of_an_interface_is_its_own() {
        let version = |device| igmp_version(IGMP, device);
        assert_eq!([version("lo"), version("eth0")], [Some(IgmpVersion::V3), Some(IgmpVersion::V2)]);
        assert_eq!([version("eth0.12"), version("eth1")], [Some(IgmpVersion::V1), None]);
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let table = "TcpExt: A IPReversePathFilter B\nTcpExt: 1 22 3\nIpExt: A\nIpExt: 9\n";
        assert_eq!(counter(table, "TcpExt", "IPReversePathFilter"), Some(22));
        assert_eq!((counter(table, "IpExt", "A"), counter(table, "IpExt", "B")), (Some(9), None));
        assert_eq!(counter("", "TcpExt", "A"), None);
    }

    #[test]
    fn this_machine_says_something_and_a_machine_without_proc_nothing() {
        let interface =
            Interface { name: "lo".to_owned(), index: 1, addresses: Vec::new(), is_up: true, is_routed: false };
        let here = facts(&interface);
        assert!(here.memberships_per_socket.is_some() && here.largest_buffer.is_some(), "{here:?}");
        let nowhere = facts_at(Path::new("/nowhere"), &interface);
        assert_eq!((nowhere.igmp, nowhere.reverse_path, nowhere.reverse_path_drops), (None, None, None));
    }
}
