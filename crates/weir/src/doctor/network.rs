//! Checks by packets: the group works on the interface, who else is there, whether somebody asks for memberships.

use std::net::IpAddr;
use std::time::Duration;

use weir_net::Interface;
use weir_net::diagnosis::{Echo, Heard, Hello, Seen, Watch};
use weir_net::socket::BufferSize;

use super::Subject;
use super::events::{Check, Outcome};
use crate::args::Doctor;
use crate::exit::Failure;
use crate::progress::seconds;
use crate::session;

/// Tries the group for as long as the user wants.
pub(super) fn check(args: &Doctor, subject: &Subject, interface: &Interface) -> Result<Vec<Check>, Failure> {
    let own = Hello(u64::from_be_bytes(session::random()?));
    let mut watch = Watch::start(interface, &[subject.group]).ok();
    let heard = Echo::start(interface, subject.group, subject.source, args.ttl, own)
        .and_then(|mut echo| Ok((echo.listen(args.duration)?.clone(), echo.buffer())));
    let (heard, buffer) = match heard {
        Ok(heard) => heard,
        Err(error) => return Ok(vec![Check::new("group", Outcome::Failed, error.to_string())]),
    };
    let seen = watch.as_mut().map(Watch::look);
    let mut checks = vec![group(subject, interface, &heard), others(args.duration, interface, &heard)];
    checks
        .extend(subject.description.as_ref().map(|about| of_session(about.tsi, args.duration, &heard, seen.as_ref())));
    checks.push(querier(args.duration, seen.as_ref()));
    checks.push(self::buffer(buffer));
    Ok(checks)
}

/// Own greetings come back by the system itself, and so tell of firewalls and sockets here, and of nothing beyond.
fn group(subject: &Subject, interface: &Interface, heard: &Heard) -> Check {
    let (group, name) = (subject.group, &interface.name);
    let is_own = |source: IpAddr| interface.addresses.contains(&source);
    match (heard.sent, heard.own) {
        (0, _) => Check::new("group", Outcome::Failed, format!("nothing can be sent to {group} from {name}"))
            .advise("a firewall on this host refuses it, or no route leads there"),
        // Of one source only, own greetings do not count.
        (_, 0) if subject.source.is_some_and(|source| !is_own(source)) => {
            Check::ok("group", format!("{group} was joined on {name}, for one source"))
        }
        (sent, 0) => {
            Check::new("group", Outcome::Failed, format!("of {sent} packets to {group} none came back to this host"))
                .advise(format!(
                    "a firewall on this host drops them: let UDP port {} in (nft list ruleset)",
                    group.port()
                ))
        }
        (sent, own) => Check::ok("group", format!("{group} was joined on {name}; {own} of {sent} packets came back")),
    }
}

fn others(span: Duration, interface: &Interface, heard: &Heard) -> Check {
    let others = heard.others.iter().filter(|other| !interface.addresses.contains(other));
    let others: Vec<String> = others.map(ToString::to_string).collect();
    match others.as_slice() {
        [] => Check::new(
            "others",
            Outcome::Note,
            format!("no other host has been heard for {}", seconds(span.as_secs_f64())),
        )
        .advise("run weir doctor on the sender and on a receiver at the same time: each should hear the other"),
        others => Check::ok("others", format!("heard weir doctor on {}", others.join(", "))),
    }
}

fn of_session(tsi: u16, span: Duration, heard: &Heard, seen: Option<&Seen>) -> Check {
    let span = seconds(span.as_secs_f64());
    let own: u64 = heard.sessions.iter().filter(|((of, _), _)| *of == u64::from(tsi)).map(|(_, packets)| packets).sum();
    if own > 0 {
        return Check::ok("session", format!("{own} packets of session {tsi} in {span}"));
    }
    let others: Vec<String> =
        heard.sessions.iter().map(|((tsi, from), packets)| format!("{packets} of session {tsi} from {from}")).collect();
    if !others.is_empty() {
        let found = format!("no packet of session {tsi} in {span}, but {}", others.join(", "));
        let advice = "the sender has been started again, or another one uses the group: get the new description";
        return Check::new("session", Outcome::Warning, found).advise(advice);
    }
    let found = format!("no packet of session {tsi} in {span}");
    match seen.filter(|seen| seen.first_channel > 0) {
        Some(seen) => {
            let found = format!("{found}, but {} reached the interface: this host drops them", seen.first_channel);
            Check::new("session", Outcome::Failed, found)
                .advise("a firewall, rp_filter, or the description's sender is another")
        }
        None => Check::new("session", Outcome::Warning, found).advise(
            "if the sender runs now: its --iface and --ttl, firewalls on the way, IGMP snooping without a querier",
        ),
    }
}

fn querier(span: Duration, seen: Option<&Seen>) -> Check {
    let span = seconds(span.as_secs_f64());
    match seen {
        Some(Seen { querier: Some(querier), queries, .. }) => {
            Check::ok("querier", format!("{querier} asked {queries} times in {span}"))
        }
        Some(_) => Check::new("querier", Outcome::Note, format!("none heard in {span}"))
            .advise("queriers ask about every two minutes: --for 130s is sure. A switch that snoops without one stops passing groups on"),
        None => Check::new("querier", Outcome::Note, "this user may not look at packets").advise("run weir doctor as root"),
    }
}

fn buffer(size: BufferSize) -> Check {
    if size.is_clamped() {
        let advice = format!("sysctl -w {}={}", size.limited_by, size.wanted.count());
        let found = format!("{} of {} wanted: fast sessions lose packets on a busy machine", size.granted, size.wanted);
        return Check::new("buffer", Outcome::Warning, found).advise(advice);
    }
    Check::ok("buffer", format!("{} to receive with", size.granted))
}
