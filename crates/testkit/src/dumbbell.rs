//! One sender, one bottleneck, any number of receivers: a plan for the simulator, and a record of what became of it.
//!
//! Not here: the simulation, which is [`weir_sim::Network`]'s, other traffic, and more than one session.

use std::time::Duration;

use weir_core::registry::{Scheme, Session, Setting};
use weir_link::{Counters, DropReason, LinkConfig};
use weir_sim::{EndpointConfig, LinkId, Membership, Monitor, Network, NodeId, Packet, SessionConfig, SessionId, Times};
use weir_units::Time;

pub use crate::record::Record;
use crate::record::Recorder;

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
    /// Which members get a packet: `false`, those of the time at which it leaves the bottleneck (a router behind it); `true`, those of the
    /// time at which it entered (an emulated link, which stands in front of a single receiver).
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

/// What came to the bottleneck: packets that somebody behind it was a member for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bottleneck {
    link: LinkId,
    came: Vec<Time>,
    dropped: Vec<Time>,
}

/// A run in progress.
#[derive(Debug)]
pub struct Dumbbell {
    network: Network,
    watch: (Recorder, Bottleneck),
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

    fn membership(&self) -> Membership {
        Membership {
            join_latency: self.join_latency,
            leave_latency: self.leave_latency,
            stragglers: self.members_at_entry,
            ..Membership::default()
        }
    }
}

impl Dumbbell {
    /// Sets a run up. Panics if the plan's settings cannot be used, or if several receivers are to share an emulated link.
    #[expect(clippy::needless_pass_by_value, reason = "a plan is written down for its run")]
    pub fn new(plan: Plan) -> Dumbbell {
        let mut network = Network::new(plan.seed);
        network.send_through_the_wire(plan.through_the_wire);
        let (root, far) = (network.add_node(), network.add_node());
        let link = network.add_link(root, far, &plan.link);
        network.add_link(far, root, &LinkConfig::default());
        let channels =
            plan.scheme.channels(&plan.session, &plan.settings).expect("the plan's settings are valid").len();
        let config = SessionConfig { channels, form: plan.session.form, membership: plan.membership() };
        let session = network.add_session(root, config).expect("schemes have 1 to 256 channels");
        let sender = plan
            .scheme
            .sender(&plan.session, &plan.settings, network.random_for("sender"))
            .expect("the plan's settings are valid");
        network.add_sender(
            session,
            sender,
            EndpointConfig { lateness: plan.sender_jitter, ..EndpointConfig::default() },
        );
        let hosts = hosts(&mut network, far, &plan);
        let receivers: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(number, host)| add_receiver(&mut network, session, *host, number, &plan))
            .collect();
        let recorder = Recorder::new(receivers.first().copied(), receivers.len());
        Dumbbell { network, watch: (recorder, Bottleneck { link, came: Vec::new(), dropped: Vec::new() }) }
    }

    /// Goes on until `end`.
    pub fn run_until(&mut self, end: Time) {
        self.network.run_until(end, &mut self.watch);
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// What happened at receiver `index`.
    pub fn record(&self, index: usize) -> &Record {
        self.watch.0.record(index)
    }

    /// What came to the bottleneck.
    pub fn bottleneck(&self) -> &Bottleneck {
        &self.watch.1
    }

    /// The bottleneck's own account.
    pub fn link_counters(&self) -> Counters {
        self.network.link_counters(self.watch.1.link)
    }

    /// From now on the bottleneck is another; what waits in it stays.
    pub fn change_link(&mut self, link: &LinkConfig) {
        self.network.change_link(self.now(), self.watch.1.link, link);
    }
}

/// The receivers' hosts: behind access links that only delay, or right behind the bottleneck.
fn hosts(network: &mut Network, far: NodeId, plan: &Plan) -> Vec<NodeId> {
    if plan.members_at_entry {
        let is_alone = plan.receivers.len() == 1 && plan.receivers[0].delay.is_zero();
        assert!(is_alone, "an emulated link is in front of one receiver, which adds no delay");
        return vec![far];
    }
    let access = |member: &Member| LinkConfig { delay: member.delay, ..LinkConfig::default() };
    plan.receivers
        .iter()
        .map(|member| {
            let host = network.add_node();
            network.connect(far, host, &access(member), &access(member));
            host
        })
        .collect()
}

fn add_receiver(
    network: &mut Network,
    session: SessionId,
    host: NodeId,
    number: usize,
    plan: &Plan,
) -> weir_sim::AgentId {
    let member = &plan.receivers[number];
    let random = network.random_for(&format!("receiver {number}"));
    let receiver = plan.scheme.receiver(&plan.session, &plan.settings, random).expect("the plan's settings are valid");
    let config = EndpointConfig {
        times: Times::from(member.joins),
        clock_ahead: member.clock_ahead,
        ..EndpointConfig::default()
    };
    network.add_receiver(session, host, receiver, config).expect("all hosts are behind the bottleneck")
}

impl Bottleneck {
    /// What the queue dropped in each second from `from` to `until`, as a share of what came in that second.
    pub fn loss_by_second(&self, from: Time, until: Time) -> Vec<f64> {
        let seconds = until.since(from).as_secs();
        let second = |number| from + Duration::from_secs(number);
        (0..seconds).map(|number| self.loss_share(second(number), second(number + 1))).collect()
    }

    /// What the queue dropped from `from` to `until`, as a share of what came.
    pub fn loss_share(&self, from: Time, until: Time) -> f64 {
        // Both lists are in order of time.
        let within = |times: &[Time]| times.partition_point(|at| *at < until) - times.partition_point(|at| *at < from);
        within(&self.dropped) as f64 / within(&self.came).max(1) as f64
    }
}

impl Monitor for Bottleneck {
    fn enqueue(&mut self, now: Time, link: LinkId, _packet: &Packet) {
        if link == self.link {
            self.came.push(now);
        }
    }

    fn drop(&mut self, at: Time, link: LinkId, _packet: &Packet, reason: DropReason) {
        if link == self.link && reason != DropReason::Lost {
            self.dropped.push(at);
        }
    }
}
