//! One sender, one bottleneck, any number of receivers, in virtual time.
//!
//! A harness for tests of layered schemes, and not the simulator: one session, one shared link, no other traffic. The
//! same seed gives the same run.

use std::collections::VecDeque;
use std::time::Duration;

use weir_core::registry::{Scheme, Session, Setting};
use weir_core::{Action, ChannelId, Destination, Endpoint, Event, Header, Observation, Origin, Packet};
use weir_link::{Counters, Label, Link, LinkConfig};
use weir_units::{Random, Time};
use weir_wire::alc::{Alc, Content, MAX_OVERHEAD, Profile};
use weir_wire::fec::PayloadId;
use weir_wire::{CciForm, Layered};

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scheme.
    pub scheme: &'static Scheme,
    /// The session.
    pub session: Session,
    /// Settings of the scheme, for both ends.
    pub settings: Vec<Setting>,
    /// The bottleneck that all receivers are behind.
    pub link: LinkConfig,
    /// The receivers.
    pub receivers: Vec<Member>,
    /// How late the sender's deadlines come at most, uniformly distributed.
    pub sender_jitter: Duration,
    /// How long after a leave its channel still comes.
    pub leave_latency: Duration,
    /// How long after a join its channel comes.
    pub join_latency: Duration,
    /// Who gets a packet: `false` whoever is a member when it leaves the bottleneck (a router behind it), `true` who was
    /// when it entered (the bottleneck stands before the receiver itself).
    pub members_at_entry: bool,
    /// Whether every header goes through its encoding and back.
    pub through_the_wire: bool,
    /// Seed of all randomness.
    pub seed: u64,
}

/// One receiver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member {
    /// When it starts.
    pub joins: Time,
    /// One-way delay from the bottleneck's far end to it.
    pub delay: Duration,
    /// How far its clock is ahead of the sender's.
    pub clock_ahead: Duration,
}

/// A packet that went into the bottleneck, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// Whether the queue dropped it.
    pub dropped: bool,
}

/// What happened at one receiver.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What the receiver told, with the time.
    pub observations: Vec<(Time, Observation)>,
    /// Packets that it gave to the application, with the time and their bytes.
    pub delivered: Vec<(Time, u64)>,
}

/// A run in progress.
pub struct Dumbbell {
    plan: Plan,
    now: Time,
    sender: Box<dyn Endpoint>,
    sender_wakes: Option<Time>,
    jitter: Random,
    link: Link<(Packet, u64)>,
    receivers: Vec<Host>,
    entries: Vec<Entry>,
}

struct Host {
    member: Member,
    endpoint: Box<dyn Endpoint>,
    started: bool,
    /// By channel: from when it is a member, and from when no longer.
    membership: Vec<(Option<Time>, Option<Time>)>,
    arriving: VecDeque<(Time, Packet)>,
    record: Record,
}

impl Plan {
    /// One receiver without delay of its own; settings, jitter and latencies none; headers through the wire.
    pub fn new(scheme: &'static Scheme, session: Session, link: LinkConfig) -> Plan {
        Plan {
            scheme,
            session,
            settings: Vec::new(),
            link,
            receivers: vec![Member::default()],
            sender_jitter: Duration::ZERO,
            leave_latency: Duration::ZERO,
            join_latency: Duration::ZERO,
            members_at_entry: false,
            through_the_wire: true,
            seed: 1,
        }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Plan {
        self.settings.push(Setting { key: key.to_owned(), value: value.to_owned() });
        self
    }
}

impl Dumbbell {
    /// Sets a run up and starts its sender. Panics if the plan's settings cannot be used, or for more than 64 receivers.
    pub fn new(plan: Plan) -> Dumbbell {
        assert!(plan.receivers.len() <= 64, "a run has at most 64 receivers");
        let receiver = |member: &Member| Host {
            member: *member,
            endpoint: (plan.scheme.receiver)(&plan.session, &plan.settings).expect("the plan's settings are valid"),
            started: false,
            membership: vec![(None, None); plan.session.ladder.levels()],
            arriving: VecDeque::new(),
            record: Record::default(),
        };
        let mut run = Dumbbell {
            sender: (plan.scheme.sender)(&plan.session, &plan.settings).expect("the plan's settings are valid"),
            receivers: plan.receivers.iter().map(receiver).collect(),
            link: Link::new(plan.link.clone(), Random::new(plan.seed, "link")),
            jitter: Random::new(plan.seed, "sender jitter"),
            now: Time::ZERO,
            sender_wakes: None,
            entries: Vec::new(),
            plan,
        };
        run.sender_does(Event::Start);
        run
    }

    /// Goes on until `end`.
    pub fn run_until(&mut self, end: Time) {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What happened at receiver `index`.
    pub fn record(&self, index: usize) -> &Record {
        &self.receivers[index].record
    }

    /// What came to the bottleneck while somebody behind it was a member, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bottleneck's own account.
    pub fn link_counters(&self) -> Counters {
        self.link.counters()
    }

    /// Replaces the bottleneck by an idle one; what was in it is gone.
    pub fn replace_link(&mut self, link: LinkConfig) {
        self.link = Link::new(link, Random::new(self.plan.seed, "another link"));
    }

    fn next_event(&self) -> Option<Time> {
        let receivers = self.receivers.iter().flat_map(|host| {
            let arrival = host.arriving.front().map(|(at, _)| *at);
            let start = (!host.started).then_some(host.member.joins);
            [arrival, start, host.deadline()]
        });
        receivers.chain([self.sender_wakes, self.link.next_arrival()]).flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        if self.sender_wakes.is_some_and(|at| at <= now) {
            self.sender_does(Event::Deadline);
        }
        while self.link.next_arrival().is_some_and(|at| at <= now) {
            let Some(out) = self.link.dequeue(now, &mut |_| {}) else { continue };
            let (packet, members_at_entry) = out.packet;
            self.fan_out(packet, members_at_entry);
        }
        for host in &mut self.receivers {
            if !host.started && host.member.joins <= now {
                host.started = true;
                host.does(now, Event::Start, &self.plan);
            }
            while host.arriving.front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = host.arriving.pop_front().expect("there is a first packet");
                let Header::Layered(header) = packet.header else { continue };
                let from = Origin::Channel(ChannelId(header.channel));
                host.does(now, Event::Packet { from, packet: &packet }, &self.plan);
            }
            if host.deadline().is_some_and(|at| at <= now) {
                host.does(now, Event::Deadline, &self.plan);
            }
        }
    }

    fn sender_does(&mut self, event: Event<'_>) {
        self.sender.handle(self.now, event);
        while let Some(action) = self.sender.poll(self.now) {
            if let Action::Send { to: Destination::Channel(channel), packet } = action {
                self.enter_link(channel, packet);
            }
        }
        let late = self.plan.sender_jitter.mul_f64(self.jitter.unit());
        self.sender_wakes = self.sender.deadline().map(|at| at + late);
    }

    fn enter_link(&mut self, channel: ChannelId, packet: Packet) {
        let members = self.receivers.iter().enumerate().filter(|(_, host)| host.is_member(channel, self.now));
        let members = members.fold(0u64, |set, (index, _)| set | 1 << index);
        if members == 0 {
            return;
        }
        let mut dropped = false;
        self.link.enqueue(self.now, packet.size, Label::default(), (packet, members), &mut |_| dropped = true);
        self.entries.push(Entry { at: self.now, dropped });
    }

    fn fan_out(&mut self, mut packet: Packet, members_at_entry: u64) {
        let Header::Layered(header) = packet.header else { return };
        let channel = ChannelId(header.channel);
        if self.plan.through_the_wire {
            packet.header = Header::Layered(over_the_wire(self.plan.session.form, &header));
        }
        for (index, host) in self.receivers.iter_mut().enumerate() {
            let is_member = match self.plan.members_at_entry {
                true => members_at_entry & 1 << index != 0,
                false => host.is_member(channel, self.now),
            };
            if is_member {
                host.arriving.push_back((self.now + host.member.delay, packet));
            }
        }
    }
}

impl Host {
    fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline().map(|at| at - self.member.clock_ahead)
    }

    fn is_member(&self, channel: ChannelId, now: Time) -> bool {
        let (from, until) = self.membership[usize::from(channel.0)];
        from.is_some_and(|from| from <= now) && until.is_none_or(|until| now < until)
    }

    fn does(&mut self, now: Time, event: Event<'_>, plan: &Plan) {
        let bytes = match event {
            Event::Packet { packet, .. } => packet.size.count(),
            _ => 0,
        };
        let local = now + self.member.clock_ahead;
        self.endpoint.handle(local, event);
        while let Some(action) = self.endpoint.poll(local) {
            match action {
                Action::Join(ChannelId(channel)) => {
                    let was = self.is_member(ChannelId(channel), now);
                    let from = if was { now } else { now + plan.join_latency };
                    self.membership[usize::from(channel)] = (Some(from), None);
                }
                Action::Leave(ChannelId(channel)) => {
                    self.membership[usize::from(channel)].1 = Some(now + plan.leave_latency);
                }
                Action::Deliver => self.record.delivered.push((now, bytes)),
                Action::Observe(observation) => self.record.observations.push((now, observation)),
                other => panic!("a receiver of a layered scheme does not ask for {other:?}"),
            }
        }
    }
}

/// The header as a receiver reads it from the bytes of a packet.
fn over_the_wire(form: CciForm, header: &Layered) -> Layered {
    let profile = Profile { tsi: 1, form };
    let content =
        Content { toi: 1, encoding_id: 6, payload_id: PayloadId { block: 0, symbol: 1 }, fdt: None, oti: None };
    let mut bytes = [0; MAX_OVERHEAD + 1];
    let len = profile.encode(header, &content, &mut bytes);
    let decoded = Alc::decode(&bytes[..len + 1]).and_then(|alc| alc.layered(form));
    decoded.expect("what the encoder wrote can be read")
}

impl Record {
    /// Mean rate of what was delivered between two times, in bits per second.
    pub fn mean_bps(&self, from: Time, until: Time) -> f64 {
        let within = self.delivered.iter().filter(|(at, _)| (from..until).contains(at));
        within.map(|(_, bytes)| bytes * 8).sum::<u64>() as f64 / until.since(from).as_secs_f64()
    }

    /// The level over time: each change with its time.
    pub fn levels(&self) -> impl Iterator<Item = (Time, usize)> + '_ {
        self.observations.iter().filter_map(|(at, observation)| match observation {
            Observation::Level { level, .. } => Some((*at, *level)),
            _ => None,
        })
    }

    /// The share of the time between `from` and `until` that was spent at `level` or above.
    pub fn share_at_or_above(&self, level: usize, from: Time, until: Time) -> f64 {
        let changes: Vec<(Time, usize)> = self.levels().chain([(until, 0)]).collect();
        let spent = changes.windows(2).filter(|pair| pair[0].1 >= level);
        let spent: Duration = spent.map(|pair| pair[1].0.min(until).since(pair[0].0.max(from))).sum();
        spent.as_secs_f64() / until.since(from).as_secs_f64()
    }

    /// Loss events.
    pub fn loss_events(&self) -> usize {
        self.observations.iter().filter(|(_, observation)| *observation == Observation::LossEvent).count()
    }
}

/// Losses at the bottleneck in each second from `from` to `until`, as a share of what came in that second.
pub fn loss_by_second(entries: &[Entry], from: Time, until: Time) -> Vec<f64> {
    let seconds = until.since(from).as_secs() as usize;
    let mut counts = vec![(0u32, 0u32); seconds];
    for entry in entries.iter().filter(|entry| (from..until).contains(&entry.at)) {
        if let Some((came, dropped)) = counts.get_mut(entry.at.since(from).as_secs() as usize) {
            *came += 1;
            *dropped += u32::from(entry.dropped);
        }
    }
    counts.iter().map(|(came, dropped)| f64::from(*dropped) / f64::from((*came).max(1))).collect()
}

/// Losses at the bottleneck from `from` to `until`, as a share of what came.
pub fn loss_share(entries: &[Entry], from: Time, until: Time) -> f64 {
    let within = || entries.iter().filter(|entry| (from..until).contains(&entry.at));
    within().filter(|entry| entry.dropped).count() as f64 / within().count().max(1) as f64
}
