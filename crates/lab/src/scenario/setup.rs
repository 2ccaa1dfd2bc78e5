//! One point of a scenario, with all parameters put in: the network, who is on it, and what is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_link::LinkConfig;
use weir_units::{Bytes, Rate};
use weir_wire::mtcp;

use super::defaults::{Hosts, Settings, UDP_OVER_IPV4};
use super::rate_trace::RateTrace;
use super::topology::Topology;
use super::traffic::Traffic;
use super::values::{Spans, Text};
use crate::metric::{Measure, Trace};

/// A run's set-up. Its keys stand at the top of a scenario file; any string in them may hold `{expression}`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// How long a run lasts, in simulated time.
    pub duration: Text<Duration>,
    /// Whose settings sessions, trees and streams have where nothing else is said: schemes' settings, headers, packet sizes, leave
    /// latencies. Default `deployed`.
    #[serde(default)]
    pub settings: Text<Settings>,
    /// On whose hosts TCPs run where nothing else is said. Default `today`.
    #[serde(default)]
    pub host: Text<Hosts>,
    /// The network.
    pub topology: Topology,
    /// Multicast sessions, by name.
    #[serde(default)]
    pub session: BTreeMap<String, Session>,
    /// Managers of several sessions that the same hosts receive, by name.
    #[serde(default)]
    pub manager: BTreeMap<String, Manager>,
    /// Reliable streams over trees, by name.
    #[serde(default)]
    pub tree: BTreeMap<String, TreeStream>,
    /// Unicast traffic, by name.
    #[serde(default)]
    pub flow: BTreeMap<String, Flow>,
    /// Changes of the network during a run.
    #[serde(default)]
    pub change: Vec<Change>,
    /// Routers and switches that are special, by the name of their node. In a dumbbell they are `left` and `right`.
    #[serde(default)]
    pub router: BTreeMap<String, Router>,
    /// Whether fair queues take each channel of a session for a flow of its own, as those do that tell flows apart by their addresses:
    /// a channel is a group. Default yes with deployed settings, and no in a paper: there a session is one flow.
    pub flow_per_channel: Option<Text<bool>>,
    /// What is measured: a number a run, by the name it gets in tables, claims and figures.
    pub metrics: BTreeMap<String, Measure>,
    /// What is recorded over time, by name.
    #[serde(default)]
    pub series: BTreeMap<String, Trace>,
}

/// Multicast sessions that are alike, each with one sender and receivers of its own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The scheme, by its registered name: `weir schemes` lists them with their settings.
    pub scheme: String,
    /// Settings of the scheme, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Text<String>>,
    /// How many such sessions there are. Default 1.
    #[serde(default = "one")]
    pub count: Text<usize>,
    /// On which node the sender is; several such sessions take the nodes of the list in turn. Not in a dumbbell.
    #[serde(default)]
    pub at: Vec<String>,
    /// What the channels send. Default: with deployed settings, what `weir send file` offers on an interface that states no speed.
    pub ladder: Option<LadderKeys>,
    /// Bytes of a full packet on the network. Default 1484 if it is deployed, and 1000 in a paper.
    pub packet_size: Option<Text<Bytes>>,
    /// When the sender starts. Default 0s.
    #[serde(default = "zero_spans")]
    pub start: Text<Spans>,
    /// Each of the sender's bursts starts late by a random time, uniform between 0 and this. Default 0s.
    #[serde(default = "zero")]
    pub burst_jitter: Text<Duration>,
    /// How long a join takes to act. Default 0s.
    #[serde(default = "zero")]
    pub join_latency: Text<Duration>,
    /// How long a leave takes to act, at routers that say nothing else. Default 2s if it is deployed, as switches do that have asked
    /// twice whether anybody is left, and 0s in a paper.
    pub leave_latency: Option<Text<Duration>>,
    /// How long, from its first packet, a receiver counts as starting up: transient metrics end there, steady ones begin.
    #[serde(default = "zero")]
    pub startup: Text<Duration>,
    /// The priority that a manager gives it: a higher number goes first. Default 1.
    #[serde(default = "one")]
    pub priority: Text<usize>,
    /// The receivers.
    pub receivers: Receivers,
    #[serde(skip)]
    pub(super) defaults: Settings,
}

/// Receivers of several sessions on the same hosts, under a manager each: the first receivers of all of them are on one host, the
/// second ones on another, and so on. Where each is, and how far from the senders, says the first session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manager {
    /// The sessions, by name; of each there is one, with as many receivers as the others have.
    pub sessions: Vec<String>,
    /// Settings of the manager, by name: `weir schemes` lists them.
    #[serde(default)]
    pub settings: BTreeMap<String, Text<String>>,
}

/// The cumulative rates of a session's levels: either `rates`, or `low`, `high` and `ratio`. For `stair` and `fglm`, `low` is
/// c0 = n0 or B0, `high` the highest rate without stairs, and `ratio` α, which `fglm` has not (docs/papers/stair.md). With deployed
/// settings `low`, `high` and `ratio` are by default what `weir send file` offers on an interface that states no speed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LadderKeys {
    /// Cumulative rates, lowest first.
    pub rates: Option<Vec<Text<Rate>>>,
    /// Rate of level 1.
    pub low: Option<Text<Rate>>,
    /// Rate of the highest level.
    pub high: Option<Text<Rate>>,
    /// Rate of a level as a multiple of the one below.
    pub ratio: Option<Text<f64>>,
}

/// The receivers of a session, or the members of a tree.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receivers {
    /// How many. Default 1.
    #[serde(default = "one")]
    pub count: Text<usize>,
    /// When each joins. Default 0s.
    #[serde(default = "zero_spans")]
    pub join: Text<Spans>,
    /// When each leaves. Default: at the end of the run.
    pub leave: Option<Text<Spans>>,
    /// On which nodes they are: they take those of the list, and those of one name, in turn. Not in a dumbbell.
    #[serde(default)]
    pub at: Vec<String>,
    /// Round-trip propagation delay between the sender and each receiver. Needed in a dumbbell, and only there.
    pub rtt: Option<Text<Spans>>,
    /// A setting of the scheme in which each receiver is told its own `rtt`, as if by an exchange with the sender before
    /// the session (AVMRC §6.2: `initial_rtt`). Default: none.
    pub rtt_setting: Option<String>,
    /// By how much each receiver's clock is ahead of the sender's. Default uniform(0s, 1000s): clocks do not agree.
    #[serde(default = "clocks")]
    pub clock_offset: Text<Spans>,
    /// By how many millionths each receiver's clock is faster than the sender's. Default 0.
    pub clock_drift: Option<Text<f64>>,
    /// The grain of each receiver's clock, and so of the times at which packets arrive. Default: none.
    #[serde(default = "zero")]
    pub clock_grain: Text<Duration>,
}

/// Reliable streams over trees that are alike, each with one sender and members of its own. The sender always has something to
/// send. With a degree each member is told how many are below it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeStream {
    /// The scheme, by its registered name: `weir schemes` lists them with their settings.
    pub scheme: String,
    /// Settings of the scheme, by name; `children` follows from `degree`.
    #[serde(default)]
    pub settings: BTreeMap<String, Text<String>>,
    /// How many such streams there are. Default 1.
    #[serde(default = "one")]
    pub count: Text<usize>,
    /// On which node the sender is; several such streams take the nodes of the list in turn. Not in a dumbbell.
    #[serde(default)]
    pub at: Vec<String>,
    /// When the sender starts. Default 0s.
    #[serde(default = "zero_spans")]
    pub start: Text<Spans>,
    /// The members.
    pub members: Receivers,
    /// Children of the sender and of each member: with a degree of 3, members 0 to 2 are below the sender, members 3 to 5 below
    /// member 0, and so on. A degree equal to the number of members makes a tree of one level. Default with deployed settings: members
    /// find their places themselves, and the sender waits for all of them.
    pub degree: Option<Text<usize>>,
    /// Bytes of a full packet on the network. Default 1484 if it is deployed, and 1000 in a paper.
    pub packet_size: Option<Text<Bytes>>,
    /// Bytes of a full packet that are not payload. Default 42: MTCP's header over UDP and IPv4.
    #[serde(default = "header_size")]
    pub header_size: Text<Bytes>,
    /// Bytes of an acknowledgement. Default 72: MTCP's over UDP and IPv4.
    #[serde(default = "acknowledgement_size")]
    pub feedback_size: Text<Bytes>,
    #[serde(skip)]
    pub(super) defaults: Settings,
}

/// Unicast flows that are alike.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What is sent.
    pub traffic: Traffic,
    /// How many such flows there are. Default 1.
    #[serde(default = "one")]
    pub count: Text<usize>,
    /// On which nodes the senders are: they take those of the list, and those of one name, in turn. Not in a dumbbell.
    #[serde(default)]
    pub from: Vec<String>,
    /// On which nodes the receivers are, likewise. Where that would be the sender's own node, it is the one half of the list
    /// further on.
    #[serde(default)]
    pub to: Vec<String>,
    /// Round-trip propagation delay of each. Needed in a dumbbell, and only there.
    pub rtt: Option<Text<Spans>>,
    /// When each starts. Default 0s.
    #[serde(default = "zero_spans")]
    pub start: Text<Spans>,
    /// When each stops. Default: at the end of the run.
    pub stop: Option<Text<Spans>>,
}

/// A router or switch and what it does with multicast.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// How long leaves take where it is the first router of a receiver, whatever the session says: 0 to 3 s in real networks.
    pub leave_latency: Option<Text<Duration>>,
    /// Whether it is a switch that does not snoop on joins and leaves, and so sends all that it gets of a session to all ports.
    /// Default no.
    #[serde(default = "no")]
    pub floods: Text<bool>,
}

/// A change of the bottleneck, or of another link: what it becomes, or the rate that it has over time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When; of a trace, when it begins. Default 0s.
    #[serde(default = "zero")]
    pub at: Text<Duration>,
    /// After what time it happens again, and again, until the end. Default: it happens once.
    pub every: Option<Text<Duration>>,
    /// From which node to which the link leads. Default: the bottleneck.
    pub between: Option<[String; 2]>,
    /// What the link becomes.
    pub link: Option<Text<LinkConfig>>,
    /// A file that says which rate the link has when, next to the scenario's own: lines of seconds and a rate, or Mahimahi's
    /// milliseconds at which a packet of 1500 bytes may leave.
    pub trace: Option<String>,
    #[serde(skip)]
    pub(crate) rates: RateTrace,
}

impl Setup {
    /// Whether fair queues take each channel of a session for a flow of its own.
    pub(crate) fn splits_sessions(&self) -> bool {
        self.flow_per_channel.map_or_else(|| self.settings.0.splits_sessions(), |split| split.0)
    }

    /// Tells every part what the scenario says for all that say nothing themselves.
    pub(super) fn spread_defaults(&mut self) {
        let (settings, host) = (self.settings.0, self.host.0);
        self.session.values_mut().for_each(|session| session.defaults = settings);
        self.tree.values_mut().for_each(|tree| tree.defaults = settings);
        self.flow.values_mut().for_each(|flow| flow.traffic.set_defaults(settings, host));
    }
}

fn one() -> Text<usize> {
    Text(1)
}

pub(super) fn no() -> Text<bool> {
    Text(false)
}

fn header_size() -> Text<Bytes> {
    Text(Bytes::new(UDP_OVER_IPV4 + mtcp::DATA_LEN as u64))
}

fn acknowledgement_size() -> Text<Bytes> {
    Text(Bytes::new(UDP_OVER_IPV4 + mtcp::ACK_LEN as u64))
}

pub(super) fn zero() -> Text<Duration> {
    Text(Duration::ZERO)
}

fn zero_spans() -> Text<Spans> {
    Text(Spans::fixed(Duration::ZERO))
}

fn clocks() -> Text<Spans> {
    Text(Spans::uniform(Duration::ZERO, Duration::from_secs(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_queues_tell_channels_apart_but_in_papers() {
        let setup = |keys: &str| {
            let text = format!("duration = \"1s\"\ntopology.chain.links = [\"rate=1M\"]\nmetrics = {{}}\n{keys}");
            toml::from_str::<Setup>(&text).expect("valid").splits_sessions()
        };
        assert!(setup("") && !setup("settings = \"paper\""));
        assert!(!setup("flow_per_channel = \"no\"") && setup("settings = \"paper\"\nflow_per_channel = \"yes\""));
    }
}
