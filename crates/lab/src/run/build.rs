//! From a set-up to a simulated network with everyone on it: the only place where the laboratory meets the simulator's
//! interface for building.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_core::Endpoint;
use weir_core::layers::Ladder;
use weir_core::manager::{self, Managed, Manager};
use weir_core::registry::{self, Scheme, Setting};
use weir_sim::traffic::{Distribution, HttpConfig, Pattern, Supply, UdpConfig};
use weir_sim::{
    EndpointConfig, LinkId, Membership, Network, NodeId, SessionConfig, SessionId, StreamConfig, TcpConnection, Times,
};
use weir_units::{Bytes, Random, Rate, Time};
use weir_wire::CciForm;

use super::RunError;
use super::links::{changes, recorder};
use super::names::Labels;
use super::recorded::{Ends, Sender};
use super::recorder::Recorder;
use super::site::Site;
use crate::scenario::{self, Flow, Http, Receivers, Session, Setup, Spans, Stream, Text, Traffic, TreeStream, Udp};

/// A network ready to run, and who watches it.
pub(super) struct Built {
    pub(super) network: Network,
    pub(super) recorder: Recorder,
    /// The link that sessions and flows share.
    pub(super) bottleneck: LinkId,
    /// What the nodes are called.
    pub(super) nodes: BTreeMap<String, Vec<NodeId>>,
    /// What flows are called.
    pub(super) labels: Labels,
}

/// Builds the network of `setup`; whatever is drawn comes from streams of `seed`.
pub(super) fn build(setup: &Setup, seed: u64) -> Result<Built, RunError> {
    let mut network = Network::new(seed);
    let site = Site::build(&mut network, &setup.topology, seed)?;
    let changes = changes(setup, &site, &network)?;
    for becoming in &changes {
        network.change_link(becoming.at, becoming.link, &becoming.config);
    }
    for (name, router) in &setup.router {
        for node in site.routers(name) {
            router.leave_latency.iter().for_each(|latency| network.set_leave_latency(node, latency.0));
            if router.floods.0 {
                network.flood(node);
            }
        }
    }
    // What is deployed has been through bytes: sequence numbers and clocks are as wide as these make them.
    network.send_through_the_wire(setup.settings.0 == scenario::Settings::Deployed);
    if setup.splits_sessions() {
        network.split_sessions_by_channel();
    }
    let bottleneck = site.bottleneck;
    let recorder = recorder(setup, &site, &network, &changes)?;
    let mut place = Place { network, recorder, site, seed, labels: Labels::default() };
    let manager_of = |name: &String| setup.manager.values().find(|manager| manager.sessions.contains(name));
    for (name, session) in setup.session.iter().filter(|(name, _)| manager_of(name).is_none()) {
        for instance in 0..session.count.0 {
            let opened = place.session(name, session, instance)?;
            place.receivers(session, opened)?;
        }
    }
    for manager in setup.manager.values() {
        let sessions = manager.sessions.iter().map(|name| (name.as_str(), &setup.session[name]));
        place.managed(manager, &sessions.collect::<Vec<_>>())?;
    }
    for (name, tree) in &setup.tree {
        for instance in 0..tree.count.0 {
            place.tree(name, tree, instance)?;
        }
    }
    for (name, flow) in &setup.flow {
        let wanted = setup.metrics.values().any(|measure| measure.flows().any(|flow| flow == name))
            || setup.series.values().any(|trace| trace.flow.as_ref() == Some(name));
        for instance in 0..flow.count.0 {
            place.flow(name, flow, instance, wanted)?;
        }
    }
    let Place { network, recorder, site, labels, .. } = place;
    Ok(Built { network, recorder, bottleneck, nodes: site.into_nodes(), labels })
}

/// A network that is being filled.
struct Place<'a> {
    network: Network,
    recorder: Recorder,
    site: Site<'a>,
    seed: u64,
    labels: Labels,
}

/// A session that has a sender.
struct Opened {
    id: SessionId,
    /// Its number among those that are recorded.
    recorded: usize,
    members: Vec<Member>,
    /// What the random streams of its receivers are called.
    stream: String,
}

impl Place<'_> {
    fn session(&mut self, name: &str, session: &Session, instance: usize) -> Result<Opened, RunError> {
        let scheme = registry::find(&session.scheme)?;
        let agreed = session.agreed().map_err(RunError::Setup)?;
        let settings = session.settings();
        let draw = |key: &str, spans: &Spans, index: usize| {
            let stream = format!("session.{name}.{key} {instance} {index}");
            spans.draw(index, &mut Random::new(self.seed, &stream))
        };
        let start = Time::ZERO + draw("start", &session.start.0, instance);
        let receivers = &session.receivers;
        let members = receivers.members(|key, spans, index| draw(&format!("receivers.{key}"), spans, index));
        let root = self.site.sender(&mut self.network, &session.at, instance)?;
        let config = SessionConfig {
            channels: scheme.channels(&agreed, &settings)?.len(),
            form: agreed.form,
            membership: Membership {
                join_latency: session.join_latency.0,
                leave_latency: session.leave_latency(),
                ..Membership::default()
            },
        };
        let id = self.network.add_session(root, config)?;
        let random = self.network.random_for(&format!("session.{name}.sender {instance}"));
        let sender = scheme.sender(&agreed, &settings, random)?;
        let timing =
            EndpointConfig { times: Times::from(start), lateness: session.burst_jitter.0, ..EndpointConfig::default() };
        let sender = self.network.add_sender(id, sender, timing);
        let flow = self.network.flow_of(sender);
        self.labels.group("session", name, instance, flow);
        let recorded = self.recorder.add_session(name, flow, session.startup.0, session.header(agreed.form));
        Ok(Opened { id, recorded, members, stream: format!("session.{name}.receiver {instance}") })
    }

    fn receiver(
        &self,
        session: &Session,
        member: &Member,
        stream: &str,
        number: usize,
    ) -> Result<Box<dyn Endpoint>, RunError> {
        let agreed = session.agreed().map_err(RunError::Setup)?;
        let settings: Vec<Setting> = session.settings().into_iter().chain(session.receivers.told(member)).collect();
        let random = self.network.random_for(&format!("{stream} {number}"));
        Ok(registry::find(&session.scheme)?.receiver(&agreed, &settings, random)?)
    }

    /// The receivers of a session, each on its own.
    fn receivers(&mut self, session: &Session, opened: Opened) -> Result<(), RunError> {
        let Opened { id, recorded, members, stream } = opened;
        for (i, member) in members.into_iter().enumerate() {
            let node = self.site.receiver(&mut self.network, &session.receivers.at, member.rtt, i)?;
            let receiver = self.receiver(session, &member, &stream, i)?;
            let timing = EndpointConfig {
                times: Times { start: member.joined, stop: member.leaves },
                ..session.receivers.clock(&member)
            };
            let agent = self.network.add_receiver(id, node, receiver, timing)?;
            self.recorder.add_client(recorded, agent, member.joined);
        }
        Ok(())
    }

    /// Hosts that receive several sessions, under a manager each.
    fn managed(&mut self, keys: &scenario::Manager, sessions: &[(&str, &Session)]) -> Result<(), RunError> {
        let config = manager::read(&keys.settings())?;
        let mut opened = Vec::new();
        for (name, session) in sessions {
            opened.push((*session, self.session(name, session, 0)?));
        }
        let Some((first, Opened { id: first_id, members, .. })) = opened.first() else { return Ok(()) };
        for (number, member) in members.iter().enumerate() {
            let mut managed = Vec::new();
            for (session, opened) in &opened {
                let own = &opened.members[number];
                let agreed = session.agreed().map_err(RunError::Setup)?;
                let scheme = registry::find(&session.scheme)?;
                managed.push(Managed {
                    receiver: self.receiver(session, own, &opened.stream, number)?,
                    channels: u16::try_from(scheme.channels(&agreed, &session.settings())?.len()).unwrap_or(u16::MAX),
                    levels: levels(scheme, &agreed, session)?,
                    priority: u32::try_from(session.priority.0).unwrap_or(u32::MAX),
                    announced: 0,
                    starts: own.joined.since(Time::ZERO),
                    ends: own.leaves.map(|leaves| leaves.since(Time::ZERO)),
                });
            }
            let node = self.site.receiver(&mut self.network, &first.receivers.at, member.rtt, number)?;
            let timing = first.receivers.clock(member);
            let agent = self.network.add_receiver(*first_id, node, Box::new(Manager::new(config, managed)), timing)?;
            for (session, (_, opened)) in (0..).zip(&opened) {
                let first_channel = self.network.attach(agent, opened.id)?;
                let flow = self.network.session_flow(opened.id);
                let joined = opened.members[number].joined;
                self.labels.manages(agent, flow);
                self.recorder.add_managed(opened.recorded, (agent, session), flow, first_channel.0, joined);
            }
        }
        Ok(())
    }

    fn tree(&mut self, name: &str, tree: &TreeStream, instance: usize) -> Result<(), RunError> {
        let parties = registry::find(&tree.scheme)?.tree()?;
        let agreed = tree.agreed();
        let draw = |key: &str, spans: &Spans, index: usize| {
            spans.draw(index, &mut Random::new(self.seed, &format!("tree.{name}.{key} {instance} {index}")))
        };
        let start = Time::ZERO + draw("start", &tree.start.0, instance);
        let members = tree.members.members(|key, spans, index| draw(&format!("members.{key}"), spans, index));
        let root = self.site.sender(&mut self.network, &tree.at, instance)?;
        let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
        let id = self.network.add_session(root, config)?;
        let random = self.network.random_for(&format!("tree.{name}.sender {instance}"));
        let sender = (parties.sender)(&agreed, &tree.settings(0), random)?;
        let times = Times::from(start);
        let supply = Some(Supply::Endless);
        let config = EndpointConfig { times, supply, accepts_peers: true, ..EndpointConfig::default() };
        let mut nodes = vec![self.network.add_sender(id, sender, config)];
        let flow = self.network.flow_of(nodes[0]);
        self.labels.group("tree", name, instance, flow);
        self.recorder.add_tree(name, flow, nodes[0], tree.payload_share(), tree.header_size.0.count());
        for (i, member) in members.into_iter().enumerate() {
            let node = self.site.receiver(&mut self.network, &tree.members.at, member.rtt, i)?;
            let settings: Vec<Setting> = tree.settings(i + 1).into_iter().chain(tree.members.told(&member)).collect();
            let random = self.network.random_for(&format!("tree.{name}.member {instance} {i}"));
            let receiver = (parties.receiver)(&agreed, &settings, random)?;
            let config = EndpointConfig {
                times: Times { start: member.joined, stop: member.leaves },
                accepts_peers: true,
                ..tree.members.clock(&member)
            };
            let agent = self.network.add_receiver(id, node, receiver, config)?;
            self.network.introduce(agent, nodes[tree.above(i)])?;
            self.recorder.add_member(agent, member.joined);
            nodes.push(agent);
        }
        if nodes.iter().all(|agent| self.network.node_of(*agent) == root) {
            return Err(RunError::Setup(scenario::ALL_ON_ONE_NODE.to_owned()));
        }
        Ok(())
    }

    fn flow(&mut self, name: &str, flow: &Flow, instance: usize, wanted: bool) -> Result<(), RunError> {
        let draw = |key: &str, spans: &Spans| {
            spans.draw(instance, &mut Random::new(self.seed, &format!("flow.{name}.{key} {instance}")))
        };
        let start = Time::ZERO + draw("start", &flow.start.0);
        let rtt = flow.rtt.as_ref().map(|rtt| draw("rtt", &rtt.0));
        let times = Times { start, stop: flow.stop.as_ref().map(|stop| Time::ZERO + draw("stop", &stop.0)) };
        let [from, to] = self.site.ends(&mut self.network, [&flow.from, &flow.to], rtt, instance)?;
        let net = &mut self.network;
        let connection = |connection: TcpConnection| (connection.flow, Sender::Tcp(connection.sender), connection.sink);
        let (id, sender, receiver) = match &flow.traffic {
            Traffic::Ftp(tcp) => connection(net.add_tcp(from, to, tcp.config(), times)?),
            Traffic::Http(http) => connection(net.add_http(from, to, http_config(http)?, times)?),
            Traffic::Udp(Udp { packet_size, rate, on, off }) => {
                let config = datagrams(packet_size.0, rate.0, on.as_ref(), off.as_ref())?;
                let stream = net.add_datagrams(from, to, config, times)?;
                (stream.flow, Sender::Datagrams, stream.counter)
            }
            Traffic::Stream(stream) => {
                let (scheme, agreed, settings) = (registry::find(&stream.scheme)?, stream.agreed(), stream.settings());
                let random = |end: &str| net.random_for(&format!("flow.{name}.{end} {instance}"));
                let source = scheme.source(&agreed, &settings, random("source"))?;
                let sink = scheme.sink(&agreed, &settings, random("sink"))?;
                let stream = net.add_stream(from, to, source, sink, stream_config(stream, times)?)?;
                (stream.flow, Sender::Source(stream.source), stream.sink)
            }
        };
        self.labels.unicast(name, instance, id, from);
        if wanted {
            let (header, size) = flow.traffic.header_and_size();
            self.recorder.add_flow(name, &Ends { flow: id, sender, receiver, header, started: start, size });
        }
        Ok(())
    }
}

impl Receivers {
    /// When and how each takes part; `draw` gives the span of a key and a receiver.
    fn members(&self, draw: impl Fn(&str, &Spans, usize) -> Duration) -> Vec<Member> {
        let member = |i| Member {
            joined: Time::ZERO + draw("join", &self.join.0, i),
            leaves: self.leave.as_ref().map(|leave| Time::ZERO + draw("leave", &leave.0, i)),
            rtt: self.rtt.as_ref().map(|rtt| draw("rtt", &rtt.0, i)),
            clock_ahead: draw("clock_offset", &self.clock_offset.0, i),
        };
        (0..self.count.0).map(member).collect()
    }

    /// A receiver's clock, and a host that is else like most.
    fn clock(&self, member: &Member) -> EndpointConfig {
        let clock_drift_ppm = self.clock_drift.map_or(0, |drift| weir_units::math::round(drift.0) as i32);
        let clock_grain = self.clock_grain.0;
        EndpointConfig { clock_ahead: member.clock_ahead, clock_drift_ppm, clock_grain, ..EndpointConfig::default() }
    }

    /// What a receiver is told of its own, if anything.
    fn told(&self, member: &Member) -> Option<Setting> {
        let (key, rtt) = self.rtt_setting.as_ref().zip(member.rtt)?;
        Some(Setting { key: key.clone(), value: nanos(rtt) })
    }
}

struct Member {
    joined: Time,
    leaves: Option<Time>,
    rtt: Option<Duration>,
    clock_ahead: Duration,
}

/// The rates between which the receivers of a session choose.
fn levels(scheme: &Scheme, agreed: &registry::Session, session: &Session) -> Result<Ladder, RunError> {
    let levels = scheme.levels(agreed, &session.settings())?;
    Ladder::from_rates(levels).ok_or_else(|| RunError::Setup(format!("{}: its levels do not rise", scheme.name)))
}

fn nanos(span: Duration) -> String {
    format!("{}ns", span.as_nanos())
}

fn http_config(keys: &Http) -> Result<HttpConfig, RunError> {
    Ok(HttpConfig {
        response: law(keys.response.0.distribution())?,
        think: law(keys.think.0.distribution())?,
        ..HttpConfig::avmrc(keys.tcp.config())
    })
}

fn stream_config(keys: &Stream, times: Times) -> Result<StreamConfig, RunError> {
    let supply = match &keys.supply {
        Some(supply) => {
            let (on, off) = (supply.on.as_ref(), supply.off.as_ref());
            let source = datagrams(keys.packet_size(), supply.rate.0, on, off)?;
            Supply::Payloads { source, count: None }
        }
        None => Supply::Endless,
    };
    Ok(StreamConfig { times, lateness: keys.overhead.0, supply })
}

fn datagrams(
    packet_size: Bytes,
    rate: Rate,
    on: Option<&Text<Spans>>,
    off: Option<&Text<Spans>>,
) -> Result<UdpConfig, RunError> {
    let pattern = match (on, off) {
        (Some(on), Some(off)) => Pattern::OnOff { on: law(on.0.distribution())?, off: law(off.0.distribution())? },
        _ => Pattern::Constant,
    };
    Ok(UdpConfig { packet_size, rate, pattern })
}

fn law(distribution: Option<Distribution>) -> Result<Distribution, RunError> {
    let unfit = "sizes of responses, and think, on and off times are fixed, exp(…) or pareto(…)";
    distribution.ok_or_else(|| RunError::Setup(unfit.to_owned()))
}
