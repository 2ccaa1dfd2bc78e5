//! Tells the user of a sender whose packets the system refuses: the interface is gone or has another address, or a firewall rejects them.
//!
//! Not here: trying again, which [`weir_net`] does as long as the session lasts.

use std::net::IpAddr;
use std::time::Duration;

use nix::errno::Errno;
use weir_net::Interface;
use weir_net::host::Statistics;
use weir_units::Time;

/// Since when nothing could be sent.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// As it was when the session began.
    interface: Interface,
    /// A group of the session.
    group: IpAddr,
    /// Packets that were sent, and refused, when it was last looked.
    seen: (u64, u64),
    since: Option<Time>,
    is_told: bool,
}

impl Unsent {
    /// Of a session that is sent from `interface` to `group`.
    pub(crate) fn new(interface: Interface, group: IpAddr) -> Unsent {
        Unsent { interface, group, seen: (0, 0), since: None, is_told: false }
    }

    /// Time passes; what to tell, if anything.
    pub(crate) fn on_time(&mut self, now: Time, statistics: &Statistics) -> Option<String> {
        let (sent, refused) = std::mem::replace(&mut self.seen, (statistics.sent.packets, statistics.refused));
        if statistics.sent.packets > sent {
            let since = self.since.take()?;
            let seconds = now.since(since).as_secs();
            return std::mem::take(&mut self.is_told).then(|| format!("packets go out again, after {seconds} s"));
        }
        let error = statistics.last_refusal.filter(|_| statistics.refused > refused);
        if error.is_some() {
            self.since.get_or_insert(now);
        }
        let is_long = self.since.is_some_and(|since| now.since(since) >= LONG);
        let error = error.filter(|_| is_long && !self.is_told)?;
        self.is_told = true;
        Some(format!(
            "nothing could be sent for {} s: {} ({}); the session goes on as soon as sending works again",
            LONG.as_secs(),
            error.desc(),
            advice(error, &self.interface, self.group)
        ))
    }
}

/// What may be why, by how the interface is now.
fn advice(error: Errno, was: &Interface, group: IpAddr) -> String {
    if matches!(error, Errno::EPERM | Errno::EACCES) {
        return "a firewall of this host rejects it".to_owned();
    }
    let name = &was.name;
    let now = Interface::all().unwrap_or_default().into_iter().find(|interface| interface.name == *name);
    match (now, was.source_address(group)) {
        (None, _) => format!("{name} is gone"),
        (Some(now), _) if !now.is_up => format!("{name} is down"),
        (Some(now), Ok(address)) if !now.addresses.contains(&address) => format!(
            "{name} has lost the address {address}, by which receivers know this session: give it back, or start again and give them the new \
             description"
        ),
        (Some(_), _) => format!("perhaps no route leads to {group}"),
    }
}

/// A cable that is plugged in again is not worth a word.
const LONG: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_whose_packets_are_refused_for_two_seconds_tells_it_once_and_when_it_is_over() {
        let gone =
            Interface { name: "none0".to_owned(), index: 99, addresses: Vec::new(), is_up: true, is_routed: false };
        let mut unsent = Unsent::new(gone, IpAddr::from([239, 255, 0, 1]));
        let mut at = |millis, sent, refused| {
            let mut statistics = Statistics { refused, last_refusal: Some(Errno::ENODEV), ..Statistics::default() };
            statistics.sent.packets = sent;
            unsent.on_time(Time::from_millis(millis), &statistics)
        };
        // Some are refused now and then, as by a switch that is busy.
        assert_eq!([at(0, 10, 0), at(1_000, 20, 5), at(9_000, 30, 9)], [None, None, None]);
        assert_eq!([at(9_500, 30, 20), at(11_400, 30, 50)], [None, None]);
        let told = at(11_600, 30, 60).expect("it is long");
        assert!(told.contains("none0 is gone"), "{told}");
        assert_eq!([at(13_000, 30, 90), at(14_000, 30, 99)], [None, None], "once");
        assert_eq!(at(15_500, 31, 99).expect("it is over"), "packets go out again, after 6 s");
        assert_eq!(
            [at(16_000, 40, 99), at(30_000, 40, 99)],
            [None, None],
            "nothing is refused while nothing is to be sent"
        );
    }
}
