//! From a set-up to a simulated network with everyone on it: the only place where the laboratory meets the simulator's
//! interface for building.

use std::time::Duration;

use weir_core::registry::{self, Setting};
use weir_link::LinkConfig;
use weir_sim::topology::dumbbell;
use weir_sim::traffic::{Distribution, HttpConfig, Pattern, UdpConfig};
use weir_sim::{EndpointConfig, LinkId, Membership, Network, NodeId, SessionConfig, Times, tcp};
use weir_units::{Random, Time};

use super::RunError;
use super::recorder::Recorder;
use crate::scenario::{Dumbbell, Flow, Http, Session, Setup, Spans, Tcp, Topology, Traffic, Udp};

/// A network ready to run, and who watches it.
pub(super) struct Built {
    pub(super) network: Network,
    pub(super) recorder: Recorder,
    /// The link that sessions and flows share.
    pub(super) bottleneck: LinkId,
}

/// Builds the network of `setup`; whatever is drawn comes from streams of `seed`.
pub(super) fn build(setup: &Setup, seed: u64) -> Result<Built, RunError> {
    let Topology::Dumbbell(shape) = &setup.topology;
    let mut network = Network::new(seed);
    let reverse = shape.reverse.as_ref().unwrap_or(&shape.bottleneck);
    let routers = dumbbell(&mut network, &shape.bottleneck.0, &reverse.0);
    let mut recorder = Recorder::new(routers.forward);
    recorder.record_mut().bottleneck.rate = shape.bottleneck.0.rate;
    for change in &setup.change {
        network.change_link(Time::ZERO + change.at.0, routers.forward, &change.bottleneck.0);
    }
    let mut place = Place { network, recorder, shape, left: routers.left, right: routers.right, seed };
    for (name, session) in &setup.session {
        for instance in 0..session.count.0 {
            place.session(name, session, instance)?;
        }
    }
    for (name, flow) in &setup.flow {
        let wanted = setup.metrics.values().any(|measure| measure.flow.as_ref() == Some(name))
            || setup.series.values().any(|trace| trace.flow.as_ref() == Some(name));
        for instance in 0..flow.count.0 {
            place.flow(name, flow, instance, wanted)?;
        }
    }
    Ok(Built { network: place.network, recorder: place.recorder, bottleneck: routers.forward })
}

/// A dumbbell that is being filled.
struct Place<'a> {
    network: Network,
    recorder: Recorder,
    shape: &'a Dumbbell,
    left: NodeId,
    right: NodeId,
    seed: u64,
}

impl Place<'_> {
    fn session(&mut self, name: &str, session: &Session, instance: usize) -> Result<(), RunError> {
        let scheme = registry::find(&session.scheme)?;
        let agreed = session.agreed().map_err(RunError::Setup)?;
        let settings = session.settings();
        let draw = |key: &str, spans: &Spans, index: usize| {
            let stream = format!("session.{name}.{key} {instance} {index}");
            spans.draw(index, &mut Random::new(self.seed, &stream))
        };
        let start = Time::ZERO + draw("start", &session.start.0, instance);
        let receivers = &session.receivers;
        let members: Vec<Member> = (0..receivers.count.0)
            .map(|i| Member {
                joined: Time::ZERO + draw("receivers.join", &receivers.join.0, i),
                rtt: draw("receivers.rtt", &receivers.rtt.0, i),
                clock_ahead: draw("receivers.clock_offset", &receivers.clock_offset.0, i),
            })
            .collect();
        let root = self.host(self.left, Duration::ZERO);
        let config = SessionConfig {
            channels: agreed.ladder.levels(),
            form: agreed.form,
            membership: Membership {
                join_latency: session.join_latency.0,
                leave_latency: session.leave_latency.0,
                ..Membership::default()
            },
        };
        let id = self.network.add_session(root, config)?;
        let sender = scheme.sender(&agreed, &settings)?;
        let timing =
            EndpointConfig { times: Times::from(start), lateness: session.burst_jitter.0, ..EndpointConfig::default() };
        let sender = self.network.add_sender(id, sender, timing);
        self.recorder.add_session(name, self.network.flow_of(sender), session.startup.0);
        for member in members {
            let node = self.host(self.right, self.one_way(member.rtt)?);
            let told = receivers.rtt_setting.iter().map(|key| Setting { key: key.clone(), value: nanos(member.rtt) });
            let receiver = scheme.receiver(&agreed, &settings.iter().cloned().chain(told).collect::<Vec<_>>())?;
            let timing = EndpointConfig {
                times: Times::from(member.joined),
                clock_ahead: member.clock_ahead,
                ..EndpointConfig::default()
            };
            let agent = self.network.add_receiver(id, node, receiver, timing)?;
            self.recorder.add_client(agent, member.joined);
        }
        Ok(())
    }

    fn flow(&mut self, name: &str, flow: &Flow, instance: usize, wanted: bool) -> Result<(), RunError> {
        let draw = |key: &str, spans: &Spans| {
            spans.draw(instance, &mut Random::new(self.seed, &format!("flow.{name}.{key} {instance}")))
        };
        let (start, rtt) = (Time::ZERO + draw("start", &flow.start.0), draw("rtt", &flow.rtt.0));
        let times = Times { start, stop: flow.stop.map(|stop| Time::ZERO + stop.0) };
        let from = self.host(self.left, Duration::ZERO);
        let to = self.host(self.right, self.one_way(rtt)?);
        let id = match &flow.traffic {
            Traffic::Ftp(tcp) => self.network.add_tcp(from, to, tcp_config(tcp)?, times)?.flow,
            Traffic::Http(http) => self.network.add_http(from, to, http_config(http)?, times)?.flow,
            Traffic::Udp(udp) => self.network.add_datagrams(from, to, udp_config(udp)?, times)?.flow,
        };
        if wanted {
            self.recorder.add_flow(name, id);
        }
        Ok(())
    }

    /// A host behind a router, whose access link has this delay each way.
    fn host(&mut self, router: NodeId, delay: Duration) -> NodeId {
        let link = LinkConfig { delay, ..self.shape.access.0.clone() };
        weir_sim::topology::add_host(&mut self.network, router, &link)
    }

    /// The delay of a receiver's access link, each way, that makes this round-trip propagation delay: all of it but the
    /// bottleneck's, so that the sender's side has none.
    fn one_way(&self, rtt: Duration) -> Result<Duration, RunError> {
        let reverse = self.shape.reverse.as_ref().unwrap_or(&self.shape.bottleneck);
        let between = self.shape.bottleneck.0.delay + reverse.0.delay;
        rtt.checked_sub(between).map(|rest| rest / 2).ok_or_else(|| {
            RunError::Setup(format!("a round-trip time of {rtt:?} is shorter than the bottleneck's own {between:?}"))
        })
    }
}

struct Member {
    joined: Time,
    rtt: Duration,
    clock_ahead: Duration,
}

fn nanos(span: Duration) -> String {
    format!("{}ns", span.as_nanos())
}

/// A TCP as ns-2 has it, whose simulations the papers ran.
fn tcp_config(keys: &Tcp) -> Result<tcp::Config, RunError> {
    let window = u32::try_from(keys.max_window.0).unwrap_or(u32::MAX).max(1);
    Ok(tcp::Config {
        segment_size: keys.packet_size.0,
        max_window: window,
        overhead: keys.overhead.0,
        ..tcp::Config::ns2(keys.flavour().map_err(RunError::Setup)?)
    })
}

fn http_config(keys: &Http) -> Result<HttpConfig, RunError> {
    Ok(HttpConfig {
        response: law(keys.response.0.distribution())?,
        think: law(keys.think.0.distribution())?,
        ..HttpConfig::avmrc(tcp_config(&keys.tcp)?)
    })
}

fn udp_config(keys: &Udp) -> Result<UdpConfig, RunError> {
    let pattern = match (&keys.on, &keys.off) {
        (Some(on), Some(off)) => Pattern::OnOff { on: law(on.0.distribution())?, off: law(off.0.distribution())? },
        _ => Pattern::Constant,
    };
    Ok(UdpConfig { packet_size: keys.packet_size.0, rate: keys.rate.0, pattern })
}

fn law(distribution: Option<Distribution>) -> Result<Distribution, RunError> {
    let unfit = "sizes of responses, and think, on and off times are fixed, exp(…) or pareto(…)";
    distribution.ok_or_else(|| RunError::Setup(unfit.to_owned()))
}
