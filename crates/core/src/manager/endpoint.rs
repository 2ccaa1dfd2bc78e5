//! The manager as an endpoint: what comes in goes to the session that it is for, what goes out comes from any of them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Rate, Time};

use super::sharing::Claim;
use super::stability::Wishes;
use super::{Config, Stability};
use crate::endpoint::{Action, Allotment, ChannelId, Destination, Endpoint, Event, Origin, PeerId};
use crate::layers::Ladder;
use crate::observation::{Observation, Wish};

/// A receiver that is to be managed.
#[derive(Debug)]
pub struct Managed {
    /// The receiver. Its channels follow those of the session before it, and the sender of its session is its only peer.
    pub receiver: Box<dyn Endpoint>,
    /// How many channels its session has.
    pub channels: u16,
    /// The rates between which it chooses.
    pub levels: Ladder,
    /// Its priority, above zero: a higher number goes first.
    pub priority: u32,
    /// The highest priority among the sessions that its sender announced, whether or not this host receives them; 0 if unknown.
    pub announced: u32,
    /// When it starts, after the manager.
    pub starts: Duration,
    /// When it is finished, after the manager's start, if not at the end.
    pub ends: Option<Duration>,
}

/// Receivers of several sessions on one host.
#[derive(Debug)]
pub struct Manager {
    config: Config,
    sessions: Vec<Session>,
    started: Option<Time>,
    actions: VecDeque<Action>,
}

#[derive(Debug)]
struct Session {
    receiver: Box<dyn Endpoint>,
    first_channel: u16,
    channels: u16,
    levels: Ladder,
    priority: u32,
    announced: u32,
    starts: Duration,
    ends: Option<Duration>,
    stage: Stage,
    level: usize,
    wish: Option<Wish>,
    /// Whether the wish has not been looked at.
    has_news: bool,
    /// Whether it has given layers up since it was told what it may have.
    has_dropped: bool,
    found: Found,
    wishes: Wishes,
    allotted: Option<Allotment>,
}

/// What a session has found lately. A single estimate is good for giving layers up, and not for handing out those of others.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// The last shares, the latest first.
    shares: [Option<Rate>; 3],
    /// The most that it could get through, on average.
    at_most: Option<Rate>,
}

impl Found {
    fn add(&mut self, wish: Wish) {
        let [latest, before, _] = self.shares;
        self.shares = [Some(wish.share), latest, before];
        if let Some(new) = wish.at_most {
            let old = self.at_most.unwrap_or(new).bps();
            self.at_most = Some(Rate::from_bps((old * 3 + new.bps()) / 4));
        }
    }

    /// The least of the last shares.
    fn share(&self) -> Option<Rate> {
        self.shares.iter().flatten().min().copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Running,
    Over,
}

impl Manager {
    /// A manager of these sessions.
    pub fn new(config: Config, managed: impl IntoIterator<Item = Managed>) -> Manager {
        let mut first_channel = 0;
        let session = |managed: Managed| {
            let Managed { receiver, channels, levels, priority, announced, starts, ends } = managed;
            let session = Session {
                receiver,
                first_channel,
                channels,
                wishes: Wishes::new(levels.levels()),
                levels,
                priority: priority.max(1),
                announced: config.sessions.map_or(announced, |sessions| u32::try_from(sessions).unwrap_or(u32::MAX)),
                starts,
                ends,
                stage: Stage::Waiting,
                level: 0,
                wish: None,
                has_news: false,
                has_dropped: false,
                found: Found::default(),
                allotted: None,
            };
            first_channel += channels;
            session
        };
        let sessions = managed.into_iter().map(session).collect();
        Manager { config, sessions, started: None, actions: VecDeque::new() }
    }

    /// Tells a session of an event, and takes what it wants.
    fn tell(&mut self, now: Time, number: usize, event: Event<'_>) {
        let session = &mut self.sessions[number];
        session.receiver.handle(now, event);
        while let Some(action) = session.receiver.poll(now) {
            let action = match action {
                Action::Observe(Observation::Wish(wish)) => {
                    (session.wish, session.has_news) = (Some(wish), true);
                    session.found.add(wish);
                    continue;
                }
                Action::Observe(observation) => {
                    session.on_observation(observation);
                    Action::ObserveSession(number as u16, observation)
                }
                Action::Join(ChannelId(channel)) => Action::Join(ChannelId(session.first_channel + channel)),
                Action::Leave(ChannelId(channel)) => Action::Leave(ChannelId(session.first_channel + channel)),
                Action::Send { to: Destination::Peer(_), packet, payload, with_next } => {
                    Action::Send { to: Destination::Peer(PeerId(number as u32)), packet, payload, with_next }
                }
                other => other,
            };
            self.actions.push_back(action);
        }
    }

    /// Divides what there is again, until nobody has anything new to say.
    fn rebalance(&mut self, now: Time) {
        for _ in 0..MOST_ROUNDS {
            if !self.sessions.iter_mut().any(Session::is_new) {
                return;
            }
            for number in 0..self.sessions.len() {
                if self.sessions[number].stage == Stage::Running {
                    self.allot(now, number);
                }
            }
        }
    }

    /// Tells a session what it may have, if that is not what it was told.
    fn allot(&mut self, now: Time, number: usize) {
        let rate = self.config.sharing.allot(&self.claims(), number, self.config.capped);
        let session = &mut self.sessions[number];
        let thousandths = match rate.zip(session.found.share()) {
            Some((rate, share)) => {
                (u128::from(rate.bps()) * 1000 / u128::from(share.bps().max(1))).min(MOST_THOUSANDTHS)
            }
            None => 1000,
        };
        let levels = &session.levels;
        let within = rate.map_or(levels.levels(), |rate| levels.levels_below(rate).max(1));
        let level = session.limit(now, &self.config, within);
        let allotment = Allotment { level, thousandths: thousandths as u32 };
        if session.allotted != Some(allotment) {
            session.allotted = Some(allotment);
            self.tell(now, number, Event::Allot(allotment));
        }
    }

    fn claims(&self) -> Vec<Claim<'_>> {
        self.sessions.iter().map(Session::claim).collect()
    }

    /// Starts and ends what is due.
    fn on_time(&mut self, now: Time) {
        let Some(started) = self.started else { return };
        for number in 0..self.sessions.len() {
            let session = &mut self.sessions[number];
            if session.stage == Stage::Waiting && started + session.starts <= now {
                session.stage = Stage::Running;
                session.allotted = Some(Allotment::EVERYTHING);
                self.tell(now, number, Event::Allot(Allotment::EVERYTHING));
                self.tell(now, number, Event::Start);
            }
            let session = &mut self.sessions[number];
            if session.stage == Stage::Running && session.ends.is_some_and(|ends| started + ends <= now) {
                self.end(now, number);
            }
        }
    }

    fn end(&mut self, now: Time, number: usize) {
        let session = &mut self.sessions[number];
        if core::mem::replace(&mut session.stage, Stage::Over) == Stage::Over {
            return;
        }
        (session.wish, session.has_news, session.found) = (None, true, Found::default());
        self.tell(now, number, Event::Finish);
    }

    fn on_deadlines(&mut self, now: Time) {
        for number in 0..self.sessions.len() {
            if self.sessions[number].receiver.deadline().is_some_and(|at| at <= now) {
                self.tell(now, number, Event::Deadline);
            }
        }
    }

    /// Which session has a channel, and what it calls it.
    fn locate(&self, ChannelId(channel): ChannelId) -> Option<(usize, ChannelId)> {
        let number = self.sessions.partition_point(|session| session.first_channel + session.channels <= channel);
        let session = self.sessions.get(number)?;
        Some((number, ChannelId(channel - session.first_channel)))
    }
}

impl Session {
    fn claim(&self) -> Claim<'_> {
        Claim {
            priority: self.priority,
            announced: self.announced,
            is_active: self.stage == Stage::Running,
            ladder: &self.levels,
            share: self.found.share(),
            tries: self.wish.is_some_and(|wish| wish.tries),
            at_most: self.found.at_most,
        }
    }

    fn on_observation(&mut self, observation: Observation) {
        if let Observation::Level { level, .. } = observation {
            if level < self.level {
                self.wishes.on_drop(level);
                (self.has_dropped, self.has_news) = (true, true);
            }
            self.level = level;
        }
    }

    /// Whether it has said something since it was last looked at.
    fn is_new(&mut self) -> bool {
        if self.stage == Stage::Running { self.has_news } else { core::mem::take(&mut self.has_news) }
    }

    /// The highest level that it may have from here on: `most`, or less until it has wished for more often enough. What it has given
    /// up it may not have again by itself.
    fn limit(&mut self, now: Time, config: &Config, most: usize) -> usize {
        if config.stability == Stability::None {
            self.has_news = false;
            return most;
        }
        let before = self.allotted.map_or(most, |allotted| allotted.level);
        let before = if core::mem::take(&mut self.has_dropped) { before.min(self.level) } else { before };
        let is_wish = core::mem::take(&mut self.has_news);
        let wished = self.wish.map_or(0, |wish| wish.level);
        let granted = if is_wish { self.wishes.grant(now, config, self.level, wished, most) } else { before };
        granted.min(most)
    }
}

impl Endpoint for Manager {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start => {
                self.started.get_or_insert(now);
                self.on_time(now);
            }
            Event::Deadline => {
                self.on_time(now);
                self.on_deadlines(now);
            }
            Event::Packet { from: Origin::Channel(channel), packet } => {
                if let Some((number, channel)) = self.locate(channel) {
                    self.tell(now, number, Event::Packet { from: Origin::Channel(channel), packet });
                }
            }
            Event::Packet { from: Origin::Peer(PeerId(peer)), packet } if (peer as usize) < self.sessions.len() => {
                self.tell(now, peer as usize, Event::Packet { from: Origin::Peer(PeerId(0)), packet });
            }
            Event::Priority { session, priority, more } => {
                if let Some(session) = self.sessions.get_mut(usize::from(session)) {
                    (session.priority, session.has_news) = (priority.max(1), true);
                }
                if more {
                    return;
                }
                // What comes of it the user wants now.
                self.sessions.iter_mut().for_each(|session| session.wishes = Wishes::new(session.levels.levels()));
            }
            Event::FinishSession(session) if usize::from(session) < self.sessions.len() => {
                self.end(now, usize::from(session));
            }
            Event::Finish => (0..self.sessions.len()).for_each(|number| self.end(now, number)),
            // Whose packets the host threw away, or holds, it does not know, so that all look for them.
            Event::HostDropped { .. } | Event::Backlog(_) => {
                (0..self.sessions.len()).for_each(|number| self.tell(now, number, event));
            }
            _ => {}
        }
        self.rebalance(now);
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        let started = self.started?;
        let due = self.sessions.iter().filter_map(|session| match session.stage {
            Stage::Waiting => Some(started + session.starts),
            Stage::Running => session.ends.map(|ends| started + ends),
            Stage::Over => None,
        });
        let own = self.sessions.iter().filter_map(|session| session.receiver.deadline());
        due.chain(own).min()
    }
}

/// An allotment to one session can change what another may have. The manager stops after this many rounds at one instant.
const MOST_ROUNDS: usize = 4;

/// Nobody gets more than so much of what it found to be its share.
const MOST_THOUSANDTHS: u128 = 1_000_000;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::endpoint::Event;
    use crate::observation::LevelCause;

    /// A receiver that finds the share that it is told with the number of a peer, in kbit/s, and goes to the level that it carries.
    #[derive(Debug, Default)]
    struct Told {
        level: usize,
        wished: usize,
        most: usize,
        actions: VecDeque<Action>,
    }

    impl Told {
        fn go_to(&mut self, level: usize) {
            while self.level < level {
                self.actions.push_back(Action::Join(ChannelId(self.level as u16)));
                self.level += 1;
            }
            while self.level > level {
                self.level -= 1;
                self.actions.push_back(Action::Leave(ChannelId(self.level as u16)));
            }
            let rate = Rate::ZERO;
            self.actions.push_back(Action::Observe(Observation::Level { level, rate, cause: LevelCause::Add }));
        }
    }

    impl Endpoint for Told {
        fn handle(&mut self, _now: Time, event: Event<'_>) {
            match event {
                Event::Start => self.go_to(1),
                Event::PeerUp(PeerId(kbps)) => {
                    let share = Rate::from_kbps(u64::from(kbps));
                    self.wished = ladder().levels_below(share).max(1);
                    let wish = Wish { level: self.wished, share, tries: false, at_most: None };
                    self.actions.push_back(Action::Observe(Observation::Wish(wish)));
                    self.go_to(self.wished.min(self.most));
                }
                Event::Allot(allotment) => {
                    self.most = allotment.level;
                    if self.level > 0 {
                        self.go_to(self.wished.max(1).min(self.most));
                    }
                }
                Event::Finish => self.go_to(0),
                _ => {}
            }
        }

        fn poll(&mut self, _now: Time) -> Option<Action> {
            self.actions.pop_front()
        }

        fn deadline(&self) -> Option<Time> {
            None
        }
    }

    fn ladder() -> Ladder {
        Ladder::from_rates((3..=12).map(|n| Rate::from_kbps(n * 50)).collect()).expect("rising")
    }

    fn managed(priority: u32, starts: u64, ends: Option<u64>) -> Managed {
        let (starts, ends) = (Duration::from_secs(starts), ends.map(Duration::from_secs));
        Managed {
            receiver: Box::new(Told::default()),
            channels: 10,
            levels: ladder(),
            priority,
            announced: 0,
            starts,
            ends,
        }
    }

    /// What the manager wants, and the levels that its sessions have after that.
    fn wanted(manager: &mut Manager) -> (Vec<Action>, Vec<usize>) {
        let actions = core::iter::from_fn(|| manager.poll(Time::ZERO)).collect();
        (actions, manager.sessions.iter().map(|session| session.level).collect())
    }

    fn find(manager: &mut Manager, secs: u64, session: usize, kbps: u32) -> Vec<usize> {
        manager.tell(Time::from_secs(secs), session, Event::PeerUp(PeerId(kbps)));
        manager.rebalance(Time::from_secs(secs));
        wanted(manager).1
    }

    #[test]
    fn channels_of_the_sessions_follow_one_another() {
        let mut manager = Manager::new(Config::default(), [managed(1, 0, None), managed(2, 0, None)]);
        manager.handle(Time::ZERO, Event::Start);
        let (actions, _) = wanted(&mut manager);
        let joins: Vec<&Action> = actions.iter().filter(|action| matches!(action, Action::Join(_))).collect();
        assert_eq!(joins, [&Action::Join(ChannelId(0)), &Action::Join(ChannelId(10))]);
        assert!(actions.iter().any(|action| matches!(action, Action::ObserveSession(1, Observation::Level { .. }))));
        assert_eq!(manager.locate(ChannelId(19)), Some((1, ChannelId(9))));
        assert_eq!(manager.locate(ChannelId(20)), None);
    }

    #[test]
    fn sessions_start_and_end_at_their_times_and_with_the_manager() {
        let mut manager = Manager::new(Config::default(), [managed(1, 0, None), managed(2, 5, Some(8))]);
        manager.handle(Time::from_secs(1), Event::Start);
        assert_eq!((wanted(&mut manager).1, manager.deadline()), (vec![1, 0], Some(Time::from_secs(6))));
        manager.handle(Time::from_secs(6), Event::Deadline);
        assert_eq!((wanted(&mut manager).1, manager.deadline()), (vec![1, 1], Some(Time::from_secs(9))));
        manager.handle(Time::from_secs(9), Event::Deadline);
        assert_eq!((wanted(&mut manager).1, manager.deadline()), (vec![1, 0], None));
        manager.handle(Time::from_secs(9), Event::FinishSession(0));
        assert_eq!(wanted(&mut manager).1, [0, 0]);
    }

    #[test]
    fn what_one_session_finds_changes_what_the_other_may_have_at_once() {
        let config = Config { stability: Stability::None, ..Config::default() };
        let mut manager = Manager::new(config, [managed(1, 0, None), managed(2, 0, None)]);
        manager.handle(Time::ZERO, Event::Start);
        assert_eq!(find(&mut manager, 1, 0, 450), [6, 1]);
        // 225 and 450 are 675: the higher one has room for 525, of which its wish takes 200, and the lower one for 150.
        assert_eq!(find(&mut manager, 2, 1, 225), [1, 2]);
    }

    #[test]
    fn priorities_are_changed_together() {
        let config = Config { stability: Stability::None, ..Config::default() };
        let mut manager = Manager::new(config, [managed(1, 0, None), managed(2, 0, None)]);
        manager.handle(Time::ZERO, Event::Start);
        find(&mut manager, 1, 0, 225);
        assert_eq!(find(&mut manager, 2, 1, 225), [1, 2]);
        let change = |session, priority, more| Event::Priority { session, priority, more };
        manager.handle(Time::from_secs(3), change(0, 3, true));
        assert_eq!(wanted(&mut manager).1, [1, 2], "more follows");
        manager.handle(Time::from_secs(3), change(1, 1, false));
        assert_eq!(wanted(&mut manager).1, [2, 1]);
    }
}
