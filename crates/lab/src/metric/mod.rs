//! What is measured in a run: each measure is a small function over recorded events ([`Record`]), defined as in AVMRC §4.4
//! where that section has it. Losses are in per cent of packets, rates in kbit/s, spans in seconds. Not here: recording.

mod client;
mod flow;
mod levels;
mod passage;
mod record;
mod trace;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_units::Time;

pub use record::{ClientRecord, Fate, FlowRecord, LinkRecord, Passage, Record, SessionRecord, TreeRecord, Windows};
pub use trace::{Quantity, Trace};

use crate::scenario::Text;

/// A number that a run gives. Which other keys a measure takes stands with its name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is measured.
    pub measure: Kind,
    /// Of which session.
    pub session: Option<String>,
    /// Of which tree.
    pub tree: Option<String>,
    /// Of which flow.
    pub flow: Option<String>,
    /// Divides by the same of this flow: the mean of the one group over that of the other, if `over` is mean.
    pub per: Option<String>,
    /// Of which client of the session, or member of the tree, from 0. Default: the mean of all.
    pub client: Option<Text<usize>>,
    /// With `client`: the mean of that one and of every so-manieth after it.
    pub every: Option<Text<usize>>,
    /// The level that is asked about.
    pub level: Option<Text<usize>>,
    /// How long something must hold, or what counts as together. Default 10s for convergence_time, else 1s.
    pub window: Option<Text<Duration>>,
    /// From when. Default: when all clients of all sessions have left their start-up phase.
    pub from: Option<Text<Duration>>,
    /// Until when. Default: the end of the run.
    pub to: Option<Text<Duration>>,
    /// What is taken of several sessions, trees or flows of one name. Default mean.
    #[serde(default)]
    pub over: Over,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Seconds from the last join of `session` to the first instant from which every client stays at or above `level` for
    /// `window` (§4.4). Absent if that never comes.
    ConvergenceTime,
    /// Per cent of the packets of `session` that the bottleneck dropped, from the first join until all its clients have
    /// left their start-up phase (§4.4).
    TransientLoss,
    /// How many packets that is.
    TransientLostPackets,
    /// Per cent of the packets of `session`, `tree` or `flow` that the bottleneck dropped between `from` and `to` (§4.4).
    SteadyLoss,
    /// kbit/s of `session`, `tree` or `flow` that left the bottleneck between `from` and `to` (§4.4).
    Throughput,
    /// Per cent of the bottleneck's rate that all sessions, trees and flows of the names given got together between `from` and `to`.
    Share,
    /// kbit/s that `client` of `session` received between `from` and `to`; `from` is by default when that client has left
    /// its start-up phase (§4.4). Of a `tree`, what `client` gave to its application, packets counted whole.
    ClientRate,
    /// kbit/s that the slowest member of `tree` gave to its application between `from` and `to`, packets counted whole.
    SlowestRate,
    /// The same, of payload only.
    Goodput,
    /// Per cent of the acknowledgements of `tree` that a link dropped, any link, over the whole run.
    AcknowledgementLoss,
    /// Milliseconds until the sender of `tree` follows when the window of `client` falls into slow start: until the least window
    /// that the sender knows has come half of the way down. The 95th percentile of all falls between `from` and `to` to at most half of
    /// what the sender knew.
    WindowReaction,
    /// The same for the fall that took longest.
    SlowestWindowReaction,
    /// How often that happened.
    WindowFalls,
    /// Per cent of the time between `from` (default: its join) and `to` that `client` of `session` spent at `level` or above.
    TimeAtLevel,
    /// The level of `client` of `session` between `from` and `to`, averaged over time.
    MeanLevel,
    /// How often the level of `client` of `session` changed between `from` and `to`: instants, however many layers were added or
    /// dropped in each.
    LevelChanges,
    /// Per cent of the time between `from` and `to` that all clients of `session` were at the same level.
    Agreement,
    /// Seconds from `from` until all clients of `session` are at `level` or below. Absent if not before `to`.
    FallTime,
    /// Seconds from `from` until all clients of `session` are at `level` or above. Absent if not before `to`.
    RiseTime,
    /// The largest share of the packets of `session`, in per cent, that was dropped in any `window` between `from` and `to`.
    WorstLoss,
    /// How often between `from` and `to` packets of `session` were dropped, drops less than `window` apart being one time.
    LossEpisodes,
    /// Packets that the TCP senders of `flow` had on the way between `from` and `to`, averaged over time.
    OutstandingPackets,
    /// How often a minute the sources of the stream `flow` backed off between `from` and `to`.
    BackOffs,
    /// Milliseconds between the 5th and the 95th percentile of the round trips that the sources of the stream `flow`
    /// measured between `from` and `to`.
    RoundTripRange,
    /// How often in 100 s the TCP senders of `flow` timed out between `from` and `to`.
    TimeOuts,
    /// How often a second `client` of `session` joined or left a channel between `from` and `to`.
    Memberships,
    /// What the bottleneck carried of `session` in the `window` between `from` and `to` in which that was the largest multiple
    /// of what the fastest client received in it (STAIR Definition 2). The clients are all behind the bottleneck.
    Dilation,
    /// Per cent of all packets that the bottleneck dropped over the whole run.
    LinkLoss,
    /// Per cent of the bottleneck's rate that was used over the whole run.
    LinkUse,
    /// kbit/s of all sessions together that left the bottleneck between `from` and `to`.
    AllSessions,
}

/// What is taken of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Their sum.
    Sum,
    /// The mean of those above 0: of those that were there at all.
    Present,
    /// Jain's fairness index: 1 if all are alike, one over their number if one has everything.
    Jain,
    /// The largest as a multiple of the smallest.
    Spread,
}

impl Over {
    fn of(self, values: &[f64]) -> Option<f64> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().sum();
        let count = values.len() as f64;
        let value = match self {
            _ if values.is_empty() => return None,
            Over::Mean => sum / count,
            Over::Min => least,
            Over::Max => most,
            Over::Sum => sum,
            Over::Present => sum / values.iter().filter(|value| **value > 0.0).count() as f64,
            Over::Jain => sum * sum / (count * values.iter().map(|value| value * value).sum::<f64>()),
            Over::Spread => most / least,
        };
        value.is_finite().then_some(value)
    }
}

impl Measure {
    /// Whether all keys are there that the measure cannot do without.
    pub(crate) fn check(&self) -> Result<(), String> {
        use Kind::*;
        let needs = |what: &str| Err(format!("this measure needs {what}"));
        let named = [&self.session, &self.tree, &self.flow].into_iter().flatten().count();
        match self.measure {
            LinkLoss | LinkUse | AllSessions => Ok(()),
            Share if named == 0 => needs("a session, a tree or a flow, or several of them"),
            SteadyLoss | Throughput if named != 1 => needs("either a session, a tree or a flow"),
            _ if self.per.is_some() && (self.flow.is_none() || self.measure == Share) => {
                needs("a flow to be compared with that in per")
            }
            SteadyLoss | Throughput | Share => Ok(()),
            OutstandingPackets | BackOffs | RoundTripRange | TimeOuts if self.flow.is_none() => needs("a flow"),
            OutstandingPackets | BackOffs | RoundTripRange | TimeOuts => Ok(()),
            ClientRate if self.session.is_some() == self.tree.is_some() => needs("either a session or a tree"),
            ClientRate => Ok(()),
            SlowestRate | Goodput | AcknowledgementLoss if self.tree.is_none() => needs("a tree"),
            SlowestRate | Goodput | AcknowledgementLoss => Ok(()),
            WindowReaction | SlowestWindowReaction | WindowFalls if self.tree.is_none() || self.client.is_none() => {
                needs("a tree and a client")
            }
            WindowReaction | SlowestWindowReaction | WindowFalls => Ok(()),
            _ if self.session.is_none() => needs("a session"),
            FallTime | RiseTime if self.from.is_none() => needs("from"),
            ConvergenceTime | TimeAtLevel | FallTime | RiseTime if self.level.is_none() => needs("a level"),
            _ => Ok(()),
        }
    }

    /// The names of the flows that it is of.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &String> {
        self.flow.iter().chain(&self.per)
    }

    /// Whether it is of what a run has to be stopped for and looked at.
    pub(crate) fn needs_samples(&self) -> bool {
        matches!(self.measure, Kind::OutstandingPackets | Kind::TimeOuts)
    }

    /// The value in a run; `None` if it has none there.
    pub fn value(&self, record: &Record) -> Option<f64> {
        let Some(per) = &self.per else { return self.plain_value(record) };
        let other = Measure { flow: Some(per.clone()), per: None, ..self.clone() };
        let ratio = self.plain_value(record)? / other.plain_value(record)?;
        ratio.is_finite().then_some(ratio)
    }

    fn plain_value(&self, record: &Record) -> Option<f64> {
        let window = |default| self.window.map_or(Duration::from_secs(default), |window| window.0);
        let sessions = self.session.as_ref().and_then(|name| record.sessions.get(name)).map_or(&[][..], |all| all);
        let each = |value: &dyn Fn(&SessionRecord) -> Option<f64>| {
            let values: Option<Vec<f64>> = sessions.iter().map(value).collect();
            self.over.of(&values?)
        };
        let (from, to) = (self.from(record), self.to(record));
        let level = self.level.map_or(0, |level| level.0);
        match self.measure {
            Kind::ConvergenceTime => {
                each(&|session| levels::convergence_secs(&session.clients, level, window(10), record.end))
            }
            Kind::TransientLoss => each(&|session| {
                let (from, to) = session.startup_phase()?;
                passage::loss_percent(&session.passages, from, to)
            }),
            Kind::TransientLostPackets => each(&|session| {
                let (from, to) = session.startup_phase()?;
                Some(passage::dropped(&session.passages, from, to) as f64)
            }),
            Kind::SteadyLoss => self.of_sources(record, |passages| passage::loss_percent(passages, from, to)),
            Kind::Throughput => self.of_sources(record, |passages| passage::kbps(passages, from, to)),
            Kind::Share => {
                let sum = Measure { over: Over::Sum, ..self.clone() };
                let kbps = sum.of_sources(record, |passages| passage::kbps(passages, from, to))?;
                Some(kbps / record.bottleneck.kbps()? * 100.0)
            }
            Kind::ClientRate if self.tree.is_some() => {
                self.of_trees(record, |tree| self.of_clients(&tree.members, |member| member.received_kbps(from, to)))
            }
            Kind::SlowestRate => self.of_trees(record, |tree| tree.slowest_kbps(from, to)),
            Kind::Goodput => self.of_trees(record, |tree| tree.goodput_kbps(from, to)),
            Kind::AcknowledgementLoss => self.of_trees(record, TreeRecord::acknowledgement_loss_percent),
            Kind::WindowReaction => self.of_trees(record, |tree| percentile(&self.reactions(tree, from, to), 0.95)),
            Kind::SlowestWindowReaction => {
                self.of_trees(record, |tree| percentile(&self.reactions(tree, from, to), 1.0))
            }
            Kind::WindowFalls => self.of_trees(record, |tree| Some(self.reactions(tree, from, to).len() as f64)),
            Kind::ClientRate => each(&|session| {
                self.of_clients(&session.clients, |client| {
                    let from = self.from.map_or_else(|| client.startup_end(session.startup), |from| at(from.0));
                    client.received_kbps(from, to)
                })
            }),
            Kind::TimeAtLevel => each(&|session| {
                self.of_clients(&session.clients, |client| {
                    let from = self.from.map_or(client.joined, |from| at(from.0));
                    levels::percent_at_or_above(&client.levels, level, from, to)
                })
            }),
            Kind::MeanLevel => each(&|session| {
                self.of_clients(&session.clients, |client| levels::mean_level(&client.levels, from, to))
            }),
            Kind::LevelChanges => each(&|session| {
                self.of_clients(&session.clients, |client| Some(levels::changes(&client.levels, from, to) as f64))
            }),
            Kind::Agreement => each(&|session| levels::agreement_percent(&session.clients, from, to)),
            Kind::FallTime => each(&|session| levels::reached(&session.clients, from, to, |now| now <= level)),
            Kind::RiseTime => each(&|session| levels::reached(&session.clients, from, to, |now| now >= level)),
            Kind::WorstLoss => each(&|session| passage::worst_loss_percent(&session.passages, window(1), from, to)),
            Kind::LossEpisodes => {
                each(&|session| Some(passage::episodes(&session.passages, window(1), from, to) as f64))
            }
            Kind::OutstandingPackets => self.of_flows(record, |each| flow::mean_outstanding(each, from, to)),
            Kind::BackOffs => self.of_flows(record, |each| flow::back_offs_per_minute(each, from, to)),
            Kind::RoundTripRange => self.of_flows(record, |each| flow::round_trip_range_ms(each, from, to)),
            Kind::TimeOuts => self.of_flows(record, |each| flow::time_outs_in_100_s(each, from, to)),
            Kind::Memberships => {
                each(&|session| self.of_clients(&session.clients, |one| client::memberships_per_sec(one, from, to)))
            }
            Kind::Dilation => each(&|session| client::worst_dilation(session, window(1), from, to)),
            Kind::LinkLoss => record.bottleneck.loss_percent(),
            Kind::AllSessions => {
                let sessions = record.sessions.values().flatten();
                sessions.map(|session| passage::kbps(&session.passages, from, to)).sum()
            }
            Kind::LinkUse => record.bottleneck.use_percent(record.end),
        }
    }

    fn reactions(&self, tree: &TreeRecord, from: Time, to: Time) -> Vec<f64> {
        let client = self.client.map_or(0, |client| client.0);
        tree.reactions_ms(client, from, to)
    }

    fn from(&self, record: &Record) -> Time {
        self.from.map_or_else(|| record.steady_from(), |from| at(from.0))
    }

    fn to(&self, record: &Record) -> Time {
        self.to.map_or(record.end, |to| at(to.0).min(record.end))
    }

    fn of_sources(&self, record: &Record, value: impl Fn(&[Passage]) -> Option<f64>) -> Option<f64> {
        let sessions = self.session.iter().filter_map(|name| record.sessions.get(name)).flatten();
        let trees = self.tree.iter().filter_map(|name| record.trees.get(name)).flatten();
        let flows = self.flow.iter().filter_map(|name| record.flows.get(name)).flatten();
        let passages = sessions.map(|session| &session.passages).chain(trees.map(|tree| &tree.passages));
        let passages = passages.chain(flows.map(|flow| &flow.passages));
        let values: Option<Vec<f64>> = passages.map(|passages| value(passages)).collect();
        self.over.of(&values?)
    }

    fn of_flows(&self, record: &Record, value: impl Fn(&FlowRecord) -> Option<f64>) -> Option<f64> {
        let flows = self.flow.iter().filter_map(|name| record.flows.get(name)).flatten();
        let values: Option<Vec<f64>> = flows.map(value).collect();
        self.over.of(&values?)
    }

    fn of_trees(&self, record: &Record, value: impl Fn(&TreeRecord) -> Option<f64>) -> Option<f64> {
        let trees = self.tree.iter().filter_map(|name| record.trees.get(name)).flatten();
        let values: Option<Vec<f64>> = trees.map(value).collect();
        self.over.of(&values?)
    }

    fn of_clients(&self, clients: &[ClientRecord], value: impl Fn(&ClientRecord) -> Option<f64>) -> Option<f64> {
        let (first, every) = match (self.client, self.every) {
            (Some(client), None) => return clients.get(client.0).and_then(value),
            (client, every) => (client.map_or(0, |client| client.0), every.map_or(1, |every| every.0.max(1))),
        };
        let values: Option<Vec<f64>> = clients.iter().skip(first).step_by(every).map(value).collect();
        Over::Mean.of(&values?)
    }
}

/// By nearest rank; `None` without any value.
fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((share * sorted.len() as f64).ceil() as usize).saturating_sub(1)).copied()
}

fn at(span: Duration) -> Time {
    Time::ZERO + span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_become_one() {
        let values = [2.0, 4.0, 3.0];
        let over = |over: Over| over.of(&values);
        assert_eq!(over(Over::Mean), Some(3.0));
        assert_eq!((over(Over::Min), over(Over::Max)), (Some(2.0), Some(4.0)));
        assert_eq!((over(Over::Sum), over(Over::Spread)), (Some(9.0), Some(2.0)));
        assert_eq!(over(Over::Jain), Some(81.0 / (3.0 * 29.0)));
        assert_eq!(Over::Present.of(&[2.0, 0.0, 4.0]), Some(3.0));
        assert_eq!((Over::Sum.of(&[]), Over::Present.of(&[0.0])), (None, None));
        assert_eq!(Over::Spread.of(&[0.0, 1.0]), None, "there is no multiple of nothing");
    }

    #[test]
    fn a_measure_without_what_it_is_of_is_refused() {
        let check = |text: &str| toml::from_str::<Measure>(text).expect("it has the right keys").check();
        assert!(check("measure = \"throughput\"\nsession = \"a\"").is_ok());
        assert!(check("measure = \"throughput\"\nsession = \"a\"\nflow = \"b\"").is_err());
        assert!(check("measure = \"time_at_level\"\nsession = \"a\"").is_err_and(|error| error.contains("a level")));
        assert!(
            check("measure = \"fall_time\"\nsession = \"a\"\nlevel = 3").is_err_and(|error| error.contains("from"))
        );
        assert!(check("measure = \"link_use\"").is_ok());
        assert!(check("measure = \"goodput\"\nsession = \"a\"").is_err_and(|error| error.contains("a tree")));
        assert!(check("measure = \"client_rate\"\ntree = \"a\"").is_ok());
        assert!(check("measure = \"mean_level\"\ntree = \"a\"").is_err_and(|error| error.contains("a session")));
    }
}
