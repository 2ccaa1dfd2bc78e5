//! `weir recv` of several sessions at once: one host, one manager, and a receiver of files for each session.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weir_core::layers::Ladder;
use weir_core::manager::{self, Managed, Manager};
use weir_core::registry::Setting;
use weir_core::{Backlog, Event, Observation, Origin, PeerId};
use weir_net::clock::Clock;
use weir_net::description::Description;
use weir_net::host::{Application, Delivery, Host, Progress, Statistics};
use weir_net::{NetError, session};
use weir_units::Time;
use weir_wire::alc::Content;

use crate::args::{Recv, SessionSource};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::hook::{Hook, Hooked};
use crate::recv::{FileReceiver, Wanted, open_store, out_folder, receive_buffer, session_config};
use crate::sealing;
use crate::trust::Trust;

/// Joins several sessions, and leaves each when its files are in their places, verified.
pub(crate) fn files(args: &Recv) -> Result<Exit, Failure> {
    let usage = |message: &str| Failure::new(Exit::Usage, message.to_owned());
    if args.sessions.iter().any(|source| matches!(source, SessionSource::Sender(_) | SessionSource::Stream(_))) {
        return Err(usage(
            "several sessions at once are sessions of files: a live stream or a stream over a tree is received alone",
        ));
    }
    if args.via.is_some() || args.from_now || args.leaf || args.sdp.is_some() {
        return Err(usage("--via, --from-now, --leaf and --sdp are for streams, which are received alone"));
    }
    if !args.priority.is_empty() && args.priority.len() != args.sessions.len() {
        let (given, sessions) = (args.priority.len(), args.sessions.len());
        return Err(usage(&format!("--priority takes one number for each session: {given} were given for {sessions}")));
    }
    // On the main thread, before any other.
    let console = Console::new(&args.output)?;
    let wanted = fetch(args)?;
    let mut priorities = Priorities::new(args, &wanted);
    priorities.read()?;
    let manager = Box::new(Manager::new(config(args, &wanted)?, managed(&wanted, &priorities.now)?));
    let buffer = wanted.iter().map(|wanted| receive_buffer(&wanted.description)).max().unwrap_or_default();
    let network = |error| Failure::of(Exit::Network, "cannot receive")(error);
    let descriptions = wanted.iter().map(|wanted| &wanted.description);
    let mut tenant = session::managed(descriptions, manager, &session_config(args, buffer)?).map_err(network)?;
    let mut stores = Vec::new();
    for (number, wanted) in wanted.iter().enumerate() {
        let store = open_store(args, wanted)?;
        sealing::open(&mut tenant, number, &wanted.description, store.least_epoch(), args.name.as_deref())?;
        stores.push(store);
    }

    let clock = Clock::new();
    let mut consoles: Vec<Console> = wanted.iter().map(|wanted| console.of_session(&wanted.description.name)).collect();
    let mut hooked: Vec<Hooked<'_>> = consoles.iter_mut().map(|console| Hooked::new(Hook::of(args), console)).collect();
    let mut first_channel = 0;
    let mut members = Vec::new();
    for (number, ((wanted, console), store)) in wanted.iter().zip(&mut hooked).zip(stores).enumerate() {
        first_channel += u16::try_from(wanted.description.channels.len()).unwrap_or(u16::MAX);
        members.push(Member {
            run: FileReceiver::begin(args, wanted, store, console, number, clock.now())?,
            channels_end: first_channel,
            control: wanted.description.control_address,
            progress: Progress::Continue,
        });
    }
    let mut group = Group { members, priorities, events: VecDeque::new(), next_look: clock.now() };
    Host::run_one(tenant, &mut group).map_err(network)?;
    let ends = group.members.into_iter().map(|mut member| {
        member.run.drain_store(clock.now());
        member.run.end(clock.now())
    });
    Ok(ends.fold(Exit::Done, |worst, exit| if worst == Exit::Done { exit } else { worst }))
}

/// The sessions, each with a folder of its own.
fn fetch(args: &Recv) -> Result<Vec<Wanted>, Failure> {
    let mut all: Vec<Wanted> = Vec::new();
    let trust = Trust::of(args)?;
    for source in &args.sessions {
        let mut wanted = Wanted::fetch(source, &trust, args.iface.as_deref(), out_folder(args).to_owned())?;
        let Description { name, tsi, channels, .. } = &wanted.description;
        let is_same = |other: &&Wanted| other.description.tsi == *tsi && other.description.channels[0] == channels[0];
        if all.iter().any(|other| is_same(&other)) {
            return Err(Failure::new(Exit::Usage, format!("{name} (session {tsi}) is given twice")));
        }
        let folder = folder(name);
        let is_free = |folder: &PathBuf| all.iter().all(|other| other.out != *folder);
        let numbered = (2..).map(|number| wanted.out.join(format!("{folder}-{number}")));
        let free = std::iter::once(wanted.out.join(&folder)).chain(numbered).find(is_free);
        wanted.out = free.expect("one of all numbers is free");
        all.push(wanted);
    }
    Ok(all)
}

/// The name of a session as that of a folder. It comes from the network.
pub(crate) fn folder(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    if plain.trim().is_empty() { "session".to_owned() } else { plain.trim().to_owned() }
}

/// The manager's settings: its defaults, and on top what the user says. The layer manager is for receivers whose level stays where it
/// is while the path does: those that try for more all the time it holds down (docs/papers/pslm.md, decision 13).
fn config(args: &Recv, wanted: &[Wanted]) -> Result<manager::Config, Failure> {
    let is_plm = |wanted: &Wanted| wanted.description.control.as_ref().is_some_and(|control| control.scheme == "plm");
    let stability = if wanted.iter().all(is_plm) { "by_level" } else { "none" };
    let default = Setting { key: "stability".to_owned(), value: stability.to_owned() };
    let settings: Vec<Setting> = std::iter::once(default).chain(args.manager_settings.iter().cloned()).collect();
    manager::read(&settings).map_err(Failure::of(Exit::Usage, "--manager-set"))
}

fn managed(wanted: &[Wanted], priorities: &[u32]) -> Result<Vec<Managed>, Failure> {
    let mut all = Vec::new();
    for (wanted, priority) in wanted.iter().zip(priorities) {
        let random = crate::session::random_stream("receiver")?;
        let receiver = wanted.description.receiver_endpoint(random).map_err(|error| wanted.refuse(error))?;
        let name = &wanted.description.name;
        let without = || {
            let message = format!("{name} has no congestion control, so that it cannot be received next to others");
            Failure::new(Exit::Session, message)
        };
        all.push(Managed {
            receiver: receiver.ok_or_else(without)?,
            channels: u16::try_from(wanted.description.channels.len()).unwrap_or(u16::MAX),
            levels: Ladder::from_rates(wanted.levels.clone()).ok_or_else(without)?,
            priority: *priority,
            announced: wanted.description.sessions.map_or(0, u32::from),
            starts: Duration::ZERO,
            ends: None,
        });
    }
    Ok(all)
}

/// The priorities of the sessions, and the file that they are in, if they are in one.
struct Priorities {
    file: Option<PathBuf>,
    read_at: Option<SystemTime>,
    now: Vec<u32>,
}

impl Priorities {
    /// Those that the user gives, or else those of the senders.
    fn new(args: &Recv, wanted: &[Wanted]) -> Priorities {
        let announced = |wanted: &Wanted| wanted.description.priority.map_or(1, u32::from);
        let now = if args.priority.is_empty() { wanted.iter().map(announced).collect() } else { args.priority.clone() };
        Priorities { file: args.priorities.clone(), read_at: None, now }
    }

    /// Reads the file if it has changed; whether priorities have.
    fn read(&mut self) -> Result<bool, Failure> {
        let Some(file) = &self.file else { return Ok(false) };
        let refused = |error: std::io::Error| Failure::new(Exit::Usage, format!("{}: {error}", file.display()));
        let changed = std::fs::metadata(file).and_then(|metadata| metadata.modified()).map_err(refused)?;
        if self.read_at == Some(changed) {
            return Ok(false);
        }
        self.read_at = Some(changed);
        let text = std::fs::read_to_string(file).map_err(refused)?;
        let new = parse(file, &text, self.now.len())?;
        Ok(std::mem::replace(&mut self.now, new) != self.now)
    }
}

fn parse(file: &Path, text: &str, sessions: usize) -> Result<Vec<u32>, Failure> {
    let numbers = text.split_whitespace().map(|word| word.parse().ok().filter(|n| (1..=1000).contains(n)));
    let numbers: Option<Vec<u32>> = numbers.collect();
    numbers.filter(|numbers| numbers.len() == sessions).ok_or_else(|| {
        let message = format!("{}: expected {sessions} priorities from 1 to 1000, one a line", file.display());
        Failure::new(Exit::Usage, message)
    })
}

/// The receivers of files of all sessions, which one host serves.
struct Group<'a> {
    members: Vec<Member<'a>>,
    priorities: Priorities,
    /// What the manager is to be told.
    events: VecDeque<Event<'static>>,
    /// When the file of priorities is looked at next.
    next_look: Time,
}

struct Member<'a> {
    run: FileReceiver<'a>,
    /// The manager's number for the channel after its last one.
    channels_end: u16,
    control: Option<SocketAddr>,
    progress: Progress,
}

impl Group<'_> {
    fn look_at_priorities(&mut self, now: Time) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        match self.priorities.read() {
            Ok(true) => {
                let last = self.members.len() - 1;
                let all = self.priorities.now.iter().enumerate();
                self.events.extend(all.map(|(session, priority)| Event::Priority {
                    session: session as u16,
                    priority: *priority,
                    more: session < last,
                }));
            }
            Ok(false) => {}
            // A file that is being written; the priorities stay.
            Err(failure) => {
                if let Some(member) = self.members.first_mut() {
                    member.run.trouble(now, failure.to_string(), None);
                }
            }
        }
    }
}

impl Application<Content> for Group<'_> {
    fn deliver(&mut self, now: Time, delivery: Delivery<'_, Content>) {
        let Some(Origin::Channel(channel)) = delivery.from else { return };
        let number = self.members.partition_point(|member| member.channels_end <= channel.0);
        if let Some(member) = self.members.get_mut(number) {
            member.run.deliver(now, delivery);
        }
    }

    /// The longest one, for the room that there is: all share the host.
    fn backlog(&self) -> Option<Backlog> {
        let part = |backlog: &Backlog| backlog.waiting.saturating_mul(1000) / backlog.most.max(1);
        self.members.iter().filter_map(|member| member.run.backlog()).max_by_key(part)
    }

    fn observe_session(&mut self, now: Time, session: u16, observation: &Observation) {
        if let Some(member) = self.members.get_mut(usize::from(session)) {
            member.run.observe(now, observation);
        }
    }

    fn message(&mut self, now: Time, from: SocketAddr, message: &[u8]) -> Option<Vec<u8>> {
        let member = self.members.iter_mut().find(|member| member.control == Some(from))?;
        member.run.message(now, from, message)
    }

    fn next_message(&mut self, now: Time) -> Option<(PeerId, Vec<u8>)> {
        let mut all = (0..).zip(&mut self.members);
        all.find_map(|(peer, member)| member.run.next_message(now).map(|(_, message)| (PeerId(peer), message)))
    }

    fn next_event(&mut self, _now: Time) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        self.members.iter().filter_map(|member| member.run.deadline()).min()
    }

    fn tick(&mut self, now: Time, statistics: &Statistics) -> Progress {
        self.look_at_priorities(now);
        for (number, member) in self.members.iter_mut().enumerate() {
            if member.progress == Progress::Stop {
                continue;
            }
            let received = statistics.sessions.get(number).copied().unwrap_or_default();
            let before = member.progress;
            member.progress = match member.run.tick(now, &Statistics { received, ..statistics.clone() }) {
                // It goes on: a manager cannot begin a session again that it has finished.
                Progress::Rest => Progress::Continue,
                progress => progress,
            };
            if before == Progress::Continue && member.progress != Progress::Continue {
                self.events.push_back(Event::FinishSession(number as u16));
            }
        }
        let all = |progress| self.members.iter().all(|member| member.progress == progress);
        if all(Progress::Stop) { Progress::Stop } else { Progress::Continue }
    }

    fn problem(&mut self, now: Time, problem: &NetError) {
        if let Some(member) = self.members.first_mut() {
            member.run.problem(now, problem);
        }
    }

    fn closed(&mut self, now: Time, session: usize) {
        if let Some(member) = self.members.get_mut(session) {
            member.run.closed(now, session);
        }
    }

    fn reopened(&mut self, now: Time, session: usize) {
        if let Some(member) = self.members.get_mut(session) {
            member.run.reopened(now, session);
        }
    }
}

/// How often the file of priorities is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Of a session's name, in a folder's.
const LONGEST_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_s_folder_stays_in_the_folder_that_was_asked_for() {
        assert_eq!(folder("../../etc/passwd"), "______etc_passwd");
        assert_eq!(folder("Nightly images"), "Nightly images");
        assert_eq!([folder(""), folder("  ")], ["session", "session"]);
    }

    #[test]
    fn priorities_are_as_many_numbers_as_there_are_sessions() {
        let parse = |text: &str| parse(Path::new("p"), text, 2);
        assert_eq!(parse("1\n2\n").expect("two"), [1, 2]);
        for wrong in ["1", "1 2 3", "0 1", "1 x", ""] {
            let message = parse(wrong).expect_err(wrong).to_string();
            assert_eq!(message, "p: expected 2 priorities from 1 to 1000, one a line");
        }
    }
}
