//! `weir recv --announced`: stays, and takes what pinned senders announce, several sessions at a time.
//!
//! Each session has a thread and a host of its own, as if a `weir recv` of its own took it (`running.rs`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use weir_net::announce::{Listener, USUAL};
use weir_net::clock::{Clock, wall_ntp_secs};
use weir_units::{Bytes, Time};

use super::account::Account;
use super::memory::{Id, Memory};
use super::running::Run;
use super::screen::{Believed, Screen, Verdict};
use crate::args::Recv;
use crate::console::Console;
use crate::events::{Announced, Listening, Outcome, ReceiverEvent, Trouble};
use crate::exit::{Exit, Failure};
use crate::observer::Observer;
use crate::recv::out_folder;
use crate::{session, trust};

/// Takes announced sessions until it is interrupted, or the time is up.
pub(crate) fn receive(args: &Recv) -> Result<Exit, Failure> {
    if args.output.pcap.is_some() {
        return Err(Failure::new(
            Exit::Usage,
            "--pcap writes the packets of one session, and --announced takes several",
        ));
    }
    let keys = trust::all_pinned(args)?;
    // On the main thread, before any other.
    let console = Console::new(&args.output)?;
    let asked = args.announced.as_deref().unwrap_or_default();
    let groups: Vec<SocketAddr> = if asked.is_empty() { USUAL.to_vec() } else { asked.to_vec() };
    let memory = Memory::open(out_folder(args))?;
    let choice = session::interface_choice(args.iface.as_deref());
    let mut listener =
        Listener::new(&choice, &groups).map_err(Failure::of(Exit::Network, "cannot listen for announcements"))?;
    let clock = Clock::new();
    let started = clock.now();
    let listening = Listening {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        groups: groups.iter().map(SocketAddr::to_string).collect(),
        sender_keys: keys.iter().map(ToString::to_string).collect(),
        out: out_folder(args).display().to_string(),
        at_once: args.at_once,
    };
    let mut station = Station {
        args,
        console,
        memory,
        screen: Screen::new(keys),
        account: Account::default(),
        sessions: BTreeMap::new(),
        started,
        now: started,
    };
    station.tell(&ReceiverEvent::Listening(listening));
    let ends = args.duration.map(|duration| started + duration);
    while !station.console_is_interrupted() && ends.is_none_or(|ends| station.now < ends) {
        let mut until = station.now + TURN;
        for _ in 0..MOST_A_TURN {
            let heard =
                listener.receive(until).map_err(Failure::of(Exit::Network, "cannot listen for announcements"))?;
            let Some((packet, from)) = heard else { break };
            station.now = clock.now();
            station.hear(packet, from);
            // What has come already, and then a look at the sessions.
            until = station.now;
        }
        station.now = clock.now();
        station.look_after_sessions();
    }
    station.end();
    Ok(Exit::Done)
}

/// An always-on receiver.
struct Station<'a> {
    args: &'a Recv,
    console: Console,
    memory: Memory,
    screen: Screen,
    account: Account,
    sessions: BTreeMap<Id, Session>,
    started: Time,
    now: Time,
}

/// A session that a sender has announced.
struct Session {
    announced: Believed,
    from: SocketAddr,
    state: State,
    /// How often it was received in part in a row.
    failures: u32,
}

enum State {
    /// It is received as soon as there is room, and not before this.
    Waiting(Time),
    Running(Box<Run>),
    /// It is here, or its sender has ended it.
    Over,
}

impl Station<'_> {
    fn hear(&mut self, packet: &[u8], from: SocketAddr) {
        match self.screen.look(self.now, wall_ntp_secs(), from, packet) {
            Verdict::Known => {}
            Verdict::Refused(reason) => self.account.note(reason, from),
            Verdict::Believed(believed) => self.believe(*believed, from),
        }
    }

    fn believe(&mut self, believed: Believed, from: SocketAddr) {
        let id = (believed.key.to_bytes(), believed.description.tsi);
        let epoch = believed.epoch;
        let last = self.sessions.get(&id).map(|session| session.announced.epoch);
        if last.max(self.memory.complete(&id)).is_some_and(|last| epoch < last) {
            let message = "an earlier start of the sender than was heard of before: somebody plays an old announcement again, or two senders \
                           use one key and one TSI";
            return self.report(Outcome::Old, &believed, from, message);
        }
        if believed.is_withdrawn {
            let is_waiting = |session: &&mut Session| matches!(session.state, State::Waiting(_));
            if let Some(session) = self.sessions.get_mut(&id).filter(is_waiting) {
                session.state = State::Over;
                self.report(Outcome::Withdrawn, &believed, from, "the sender has ended it before it was received");
            }
            return;
        }
        if self.memory.complete(&id) == Some(epoch) {
            if last != Some(epoch) {
                self.report(Outcome::Complete, &believed, from, "it is here already");
                self.sessions.insert(id, Session { announced: believed, from, state: State::Over, failures: 0 });
            }
            return;
        }
        let is_full = self.sessions.len() >= MOST_SESSIONS;
        match self.sessions.get_mut(&id) {
            Some(session) => {
                if let State::Running(run) = &session.state {
                    // The receiver follows a restart by itself, but not a session that is another than it was told.
                    if is_another(&run.announced, &believed) {
                        run.stop();
                    }
                } else if epoch > session.announced.epoch {
                    session.state = State::Waiting(self.now);
                    session.failures = 0;
                }
                (session.announced, session.from) = (believed, from);
            }
            None if is_full => {
                self.report(Outcome::Flood, &believed, from, "its senders announce more sessions than are remembered");
            }
            None => {
                if self.running() >= self.args.at_once as usize {
                    self.report(Outcome::Waiting, &believed, from, "it waits for others to be received");
                }
                let session = Session { announced: believed, from, state: State::Waiting(self.now), failures: 0 };
                self.sessions.insert(id, session);
            }
        }
    }

    fn running(&self) -> usize {
        self.sessions.values().filter(|session| matches!(session.state, State::Running(_))).count()
    }

    /// Puts away what has ended, begins what may begin, and tells what is to be told.
    fn look_after_sessions(&mut self) {
        let ended: Vec<Id> =
            self.sessions.iter().filter(|(_, session)| session.has_ended()).map(|(id, _)| *id).collect();
        ended.into_iter().for_each(|id| self.put_away(id));
        let date = wall_ntp_secs();
        while self.running() < self.args.at_once as usize {
            let due = |session: &Session| {
                let holds = session.announced.description.expires.is_some_and(|expires| expires > date);
                matches!(session.state, State::Waiting(since) if since <= self.now && holds)
            };
            // The session that has waited longest goes first.
            let due = self.sessions.iter().filter(|(_, session)| due(session));
            let next = due.min_by_key(|(_, session)| match session.state {
                State::Waiting(since) => since,
                State::Running(_) | State::Over => self.now,
            });
            let Some(id) = next.map(|(id, _)| *id) else { break };
            self.begin(id);
        }
        for announced in self.account.due(self.now) {
            let t_s = self.t_s();
            self.tell(&ReceiverEvent::Announced(Announced { t_s, ..announced }));
        }
    }

    fn begin(&mut self, id: Id) {
        let Some(session) = self.sessions.get(&id) else { return };
        let (announced, from) = (session.announced.clone(), session.from);
        let folder = self.memory.folder(id, &announced.key, &announced.description.name);
        let run = folder.and_then(|out| {
            let console = self.console.of_session(&announced.description.name);
            Run::begin(self.session_args(), announced.clone(), from, out, console)
        });
        match run {
            Ok(run) => {
                self.report(Outcome::Taken, &announced, from, "it is taken");
                self.set(id, State::Running(Box::new(run)));
            }
            Err(error) => {
                let message = format!("{} cannot be taken: {error}", announced.description.name);
                let (t_s, again) = (self.t_s(), self.now + FIRST_WAIT);
                self.tell(&ReceiverEvent::Error(Trouble { t_s, message, exit_code: None }));
                self.set(id, State::Waiting(again));
            }
        }
    }

    /// What one session is received with.
    fn session_args(&self) -> Recv {
        let args = self.args;
        Recv {
            announced: None,
            duration: None,
            idle_timeout: Some(args.idle_timeout.unwrap_or(PATIENCE)),
            memory: Bytes::new(args.memory.count() / u64::from(args.at_once)),
            ..args.clone()
        }
    }

    fn set(&mut self, id: Id, state: State) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.state = state;
        }
    }

    fn put_away(&mut self, id: Id) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let State::Running(run) = std::mem::replace(&mut session.state, State::Over) else { return };
        let is_replaced = run.is_stopped();
        match run.join() {
            Some(complete) => {
                session.failures = 0;
                if complete < session.announced.epoch {
                    session.state = State::Waiting(self.now);
                }
                let noted = self.memory.note_complete(&id, complete);
                if let Err(error) = noted {
                    let message = format!(
                        "what is complete cannot be noted, and will be looked at once more after a restart: {error}"
                    );
                    let t_s = self.t_s();
                    self.tell(&ReceiverEvent::Error(Trouble { t_s, message, exit_code: None }));
                }
            }
            None if is_replaced => session.state = State::Waiting(self.now),
            None => {
                let wait = FIRST_WAIT * 2_u32.pow(session.failures.min(MOST_DOUBLINGS));
                session.failures += 1;
                session.state = State::Waiting(self.now + wait);
            }
        }
    }

    /// Ends all sessions; what came is kept.
    fn end(&mut self) {
        for session in self.sessions.values() {
            if let State::Running(run) = &session.state {
                run.stop();
            }
        }
        let ids: Vec<Id> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.put_away(id));
    }

    fn report(&mut self, outcome: Outcome, believed: &Believed, from: SocketAddr, words: &str) {
        let description = &believed.description;
        let event = Announced {
            t_s: self.t_s(),
            outcome,
            name: Some(description.name.clone()),
            tsi: Some(u64::from(description.tsi)),
            epoch: Some(believed.epoch),
            sender_key: Some(believed.key.to_string()),
            from: from.to_string(),
            announcements: 1,
            message: format!("{} (session {}) is announced by {from}: {words}", description.name, description.tsi),
        };
        self.tell(&ReceiverEvent::Announced(event));
    }

    fn tell(&mut self, event: &ReceiverEvent) {
        // Nobody listening is no reason to end.
        let _ = self.console.event(event);
    }

    fn console_is_interrupted(&self) -> bool {
        Observer::<ReceiverEvent>::is_interrupted(&self.console)
    }

    fn t_s(&self) -> f64 {
        self.now.since(self.started).as_secs_f64()
    }
}

impl Session {
    fn has_ended(&self) -> bool {
        matches!(&self.state, State::Running(run) if run.has_ended())
    }
}

/// Whether a session has other groups, rates or keys than it was announced with before.
fn is_another(before: &Believed, now: &Believed) -> bool {
    let same = |believed: &Believed| {
        let mut description = believed.description.clone();
        (description.epoch, description.expires) = (None, None);
        description
    };
    same(before) != same(now)
}

/// How often the sessions are looked at.
const TURN: Duration = Duration::from_millis(100);
const MOST_A_TURN: usize = 256;
/// A session of which nothing comes for so long has ended, unless the user says how long.
const PATIENCE: Duration = Duration::from_secs(60);
/// A session that was received in part is tried again after this, and then after twice as long each time, up to some half an hour.
const FIRST_WAIT: Duration = Duration::from_secs(15);
const MOST_DOUBLINGS: u32 = 7;
/// Of all senders together.
const MOST_SESSIONS: usize = 1_024;
