//! `weir doctor`: checks what Weir needs of this host and its network, before anybody waits for a packet.

pub mod events;
mod host;
mod network;
mod words;

use std::net::{IpAddr, SocketAddr};

use weir_net::Interface;
use weir_net::description::Description;

use crate::args::Doctor;
use crate::exit::{Exit, Failure};
use crate::progress::{Stdout, print};
use crate::{fetch, session};
use events::{Check, DoctorEnd, DoctorEvent, Outcome};

/// Makes every check, prints what came out, and ends with 4 if one failed.
pub(crate) fn run(args: &Doctor) -> Result<Exit, Failure> {
    let subject = Subject::of(args)?;
    let mut printed = Printed { json: args.json, checks: Vec::new() };
    let choice = session::interface_choice(args.iface.as_deref());
    match Interface::choose(&choice, subject.group.ip()) {
        Ok(interface) => {
            printed.show(host::interface(&interface, &subject));
            printed.show(host::route(&subject, &interface));
            network::check(args, &subject, &interface)?.into_iter().for_each(|check| printed.show(check));
            host::check(&subject, &interface).into_iter().for_each(|check| printed.show(check));
        }
        Err(error) => printed.show(Check::new("interface", Outcome::Failed, error.to_string())),
    }
    Ok(printed.end())
}

/// What the host and the network are checked for.
struct Subject {
    group: SocketAddr,
    source: Option<IpAddr>,
    description: Option<Description>,
}

impl Subject {
    fn of(args: &Doctor) -> Result<Subject, Failure> {
        let Some(source) = &args.session else {
            return Ok(Subject { group: args.to, source: None, description: None });
        };
        let text = fetch::session(source)?;
        let description: Description = text.parse().map_err(Failure::of(Exit::Session, source.to_string()))?;
        // It sends there, too.
        description.check_groups().map_err(Failure::of(Exit::Session, source.to_string()))?;
        let (group, source) = (description.channels[0], description.source);
        Ok(Subject { group, source, description: Some(description) })
    }
}

/// The checks so far, as they are shown.
struct Printed {
    json: bool,
    checks: Vec<Outcome>,
}

impl Printed {
    fn show(&mut self, check: Check) {
        self.checks.push(check.outcome);
        say(&if self.json { line(&DoctorEvent::Check(check)) } else { words::check(&check) });
    }

    fn end(self) -> Exit {
        let count = |outcome| self.checks.iter().filter(|one| **one == outcome).count() as u64;
        let failed = count(Outcome::Failed);
        let exit = if failed > 0 { Exit::Network } else { Exit::Done };
        let end = DoctorEnd {
            ok: count(Outcome::Ok),
            notes: count(Outcome::Note),
            warnings: count(Outcome::Warning),
            failed,
            exit_code: exit.code(),
        };
        say(&if self.json { line(&DoctorEvent::End(end)) } else { words::end(&end) });
        exit
    }
}

/// A reader that stops reading has seen enough.
fn say(text: &str) {
    match print(text) {
        Stdout::Open | Stdout::Closed => {}
    }
}

fn line(event: &DoctorEvent) -> String {
    serde_json::to_string(event).expect("events are plain data") + "\n"
}

#[cfg(test)]
pub(crate) use events::samples;
