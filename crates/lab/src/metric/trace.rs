//! What is recorded over time: AVMRC §4.4's session throughput and session packet loss over a moving window, and levels.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_core::observation::LayersReport;
use weir_units::Time;

use super::measure::passes_by;
use super::{ClientRecord, Delivery, Record, TreeRecord, flow, levels, passage, queue};
use crate::scenario::Text;

/// A value over time, of the first session, tree or flow of the name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// What is recorded.
    pub trace: Quantity,
    /// Of which session.
    pub session: Option<String>,
    /// Of which tree.
    pub tree: Option<String>,
    /// Of which flow.
    pub flow: Option<String>,
    /// On which link, from which node to which. Default: the bottleneck.
    pub link: Option<[String; 2]>,
    /// For levels, client rates and goodput: of which client, from 0. Default 0.
    pub client: Option<Text<usize>>,
    /// Over how long each value is taken. Default 1s (§4.4).
    pub window: Option<Text<Duration>>,
    /// How far the window moves from value to value. Default: half of it.
    pub step: Option<Text<Duration>>,
}

/// What is recorded over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// kbit/s of `session`, `tree` or `flow` that left the bottleneck in the window that ends there.
    Throughput,
    /// Per cent of the packets of `session`, `tree` or `flow` that were dropped in the window that ends there.
    Loss,
    /// kbit/s that `client` of `session` received in the window that ends there.
    ClientRate,
    /// kbit/s that the slowest member of `tree` gave to its application in the window that ends there, packets counted whole.
    SlowestRate,
    /// The level of `client` of `session`, at each of its changes.
    Level,
    /// How many layers the source of the stream `flow` sends, at each of its looks.
    Layers,
    /// Seconds that the base layer of the stream `flow` could play on if nothing more of it were sent, at each of its source's looks.
    BaseBuffer,
    /// Milliseconds: the round trips that the source of the stream `flow` measured, each when it was; of a TCP sender, what it takes
    /// for the round trip.
    RoundTrip,
    /// Packets: the congestion window of the TCP sender of `flow`.
    CongestionWindow,
    /// kbit/s of payload in the window that ends there: what `client` of `session` gave to its application, or the receiver of `flow` had
    /// in order.
    Goodput,
    /// Packets that waited on the link in the window that ends there, averaged over time.
    QueueLength,
    /// Milliseconds that packets waited which came to the link in the window that ends there, averaged; nothing where none came. Those
    /// of `session`, `tree` or `flow`, or all.
    QueuingDelay,
}

impl Trace {
    /// Whether it says of what it is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let named = [&self.session, &self.tree, &self.flow].into_iter().flatten().count();
        match self.trace {
            _ if self.link.is_some() && !self.is_of_link() => Err("this is not recorded of a link".to_owned()),
            Quantity::Level | Quantity::ClientRate if self.session.is_none() => {
                Err("a level or a client's rate needs a session".to_owned())
            }
            Quantity::SlowestRate if self.tree.is_none() => Err("the rate of a slowest member needs a tree".to_owned()),
            Quantity::RoundTrip | Quantity::CongestionWindow | Quantity::Layers | Quantity::BaseBuffer
                if self.flow.is_none() =>
            {
                Err("what the ends of a flow know needs a flow".to_owned())
            }
            Quantity::Goodput if self.session.is_none() == self.flow.is_none() => {
                Err("goodput needs either a session or a flow".to_owned())
            }
            Quantity::QueueLength | Quantity::QueuingDelay if named > 1 => {
                Err("this takes one of session, tree and flow, or none of them".to_owned())
            }
            Quantity::Level
            | Quantity::RoundTrip
            | Quantity::CongestionWindow
            | Quantity::Layers
            | Quantity::BaseBuffer => Ok(()),
            Quantity::Throughput | Quantity::Loss if named != 1 => {
                Err("this needs either a session, a tree or a flow".to_owned())
            }
            _ if self.window().is_zero() || self.step().is_zero() => Err("window and step must be above 0s".to_owned()),
            _ => Ok(()),
        }
    }

    fn is_of_link(&self) -> bool {
        matches!(self.trace, Quantity::Throughput | Quantity::Loss | Quantity::QueueLength | Quantity::QueuingDelay)
    }

    /// Whether it is of what a run has to be stopped for and looked at.
    pub(crate) fn needs_samples(&self) -> bool {
        matches!(self.trace, Quantity::RoundTrip | Quantity::CongestionWindow)
    }

    /// Whether it is of what waits on its link.
    pub(crate) fn needs_waits(&self) -> bool {
        matches!(self.trace, Quantity::QueueLength | Quantity::QueuingDelay)
    }

    /// Who of those that are recorded on the link has sent, but never over it.
    pub(crate) fn passes_by<'a>(&'a self, record: &Record) -> Option<&'a str> {
        let link = record.link(self.link.as_ref());
        let names = [&self.session, &self.tree, &self.flow].into_iter().flatten().filter(|_| self.is_of_link());
        names.map(String::as_str).find(|name| passes_by(record, name, link))
    }

    fn window(&self) -> Duration {
        self.window.map_or(Duration::from_secs(1), |window| window.0)
    }

    fn step(&self) -> Duration {
        self.step.map_or(self.window() / 2, |step| step.0)
    }

    /// Seconds since the start of the run, and the value.
    pub fn values(&self, record: &Record) -> Vec<(f64, f64)> {
        let session = self.session.as_ref().and_then(|name| record.sessions.get(name)?.first());
        let tree = self.tree.as_ref().and_then(|name| record.trees.get(name)?.first());
        let flow = self.flow.as_ref().and_then(|name| record.flows.get(name)?.first());
        let packets = session.map(|session| &session.packets).or_else(|| tree.map(|tree| &tree.packets));
        let packets = packets.or_else(|| flow.map(|flow| &flow.packets));
        let link = record.link(self.link.as_ref());
        let passages = packets.map_or(&[][..], |packets| packets.at(link));
        let client = session.and_then(|session| session.clients.get(self.client.map_or(0, |client| client.0)));
        let end = record.end;
        match self.trace {
            Quantity::Level => client.map_or(Vec::new(), |client| {
                let levels = levels::since(&client.levels, Time::ZERO);
                let last = levels.last().map(|(_, level)| (end, *level));
                levels.into_iter().chain(last).map(|(at, level)| (at.as_secs_f64(), level as f64)).collect()
            }),
            Quantity::RoundTrip => flow.map_or(Vec::new(), |flow| {
                flow.round_trips.iter().map(|(at, span)| (at.as_secs_f64(), span.as_secs_f64() * 1e3)).collect()
            }),
            Quantity::Layers => flow.map_or(Vec::new(), |flow| {
                let layers = flow::active_layers(flow);
                layers.into_iter().map(|(at, layers)| (at.as_secs_f64(), layers as f64)).collect()
            }),
            Quantity::BaseBuffer => flow.map_or(Vec::new(), |flow| {
                let buffer = |(at, report): &(Time, LayersReport)| (at.as_secs_f64(), report.base_buffer.as_secs_f64());
                flow.layers.iter().map(buffer).collect()
            }),
            Quantity::CongestionWindow => flow.map_or(Vec::new(), |flow| {
                flow.windows.iter().map(|(at, packets)| (at.as_secs_f64(), *packets)).collect()
            }),
            Quantity::ClientRate => {
                client.map_or(Vec::new(), |client| self.moving(client, end, ClientRecord::received_kbps))
            }
            Quantity::Goodput => {
                let delivered = client.map(|client| &client.delivered).or_else(|| flow.map(|flow| &flow.delivered));
                delivered.map_or(Vec::new(), |delivered| self.moving(delivered, end, Delivery::kbps))
            }
            Quantity::SlowestRate => tree.map_or(Vec::new(), |tree| self.moving(tree, end, TreeRecord::slowest_kbps)),
            Quantity::Throughput => self.moving(passages, end, passage::kbps),
            Quantity::Loss => self.moving(passages, end, |passages, from, to| {
                Some(passage::loss_percent(passages, from, to).unwrap_or(0.0))
            }),
            Quantity::QueueLength => self.moving(&record.links[link].waits[..], end, |waits, from, to| {
                queue::mean_length(queue::near(waits, from, to), from, to)
            }),
            Quantity::QueuingDelay => {
                let source = packets.map(|packets| [packets.number]);
                self.moving(&record.links[link].waits[..], end, |waits, from, to| {
                    let sources = source.as_ref().map(|source| &source[..]);
                    queue::mean_or_percentile(&queue::delays_ms(queue::near(waits, from, to), sources, from, to), None)
                })
            }
        }
    }

    fn moving<T: ?Sized>(&self, of: &T, end: Time, value: impl Fn(&T, Time, Time) -> Option<f64>) -> Vec<(f64, f64)> {
        let (window, step) = (self.window(), self.step());
        let mut to = Time::ZERO + window;
        let mut values = Vec::new();
        while to <= end {
            values.extend(value(of, to - window, to).map(|value| (to.as_secs_f64(), value)));
            to += step;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Fate, LinkRecord, Packets, Passage, SessionRecord};
    use super::*;

    fn trace(text: &str) -> Trace {
        toml::from_str(text).expect("valid")
    }

    fn record() -> Record {
        let passage = |millis, fate| Passage { at: Time::from_millis(millis), bytes: 1000, fate, marked: false };
        let passages = vec![
            passage(100, Fate::Came),
            passage(200, Fate::Left),
            passage(1100, Fate::Came),
            passage(1100, Fate::Dropped),
            passage(1200, Fate::Came),
            passage(1300, Fate::Left),
        ];
        let levels = vec![(Time::from_secs(1), 2)];
        let clients = vec![ClientRecord { levels, ..ClientRecord::default() }];
        let session = SessionRecord { packets: Packets::at_bottleneck(passages), clients, ..SessionRecord::default() };
        let sessions = BTreeMap::from([("main".to_owned(), vec![session])]);
        Record { end: Time::from_secs(2), links: vec![LinkRecord::default()], sessions, ..Record::default() }
    }

    #[test]
    fn a_window_moves_by_its_step_and_its_value_stands_at_its_end() {
        let throughput = trace("trace = \"throughput\"\nsession = \"main\"");
        assert_eq!(throughput.values(&record()), [(1.0, 8.0), (1.5, 8.0), (2.0, 8.0)]);
        let loss = trace("trace = \"loss\"\nsession = \"main\"\nstep = \"1s\"");
        assert_eq!(loss.values(&record()), [(1.0, 0.0), (2.0, 50.0)]);
    }

    #[test]
    fn a_level_is_given_from_the_start_of_the_run_to_its_end() {
        assert_eq!(
            trace("trace = \"level\"\nsession = \"main\"").values(&record()),
            [(0.0, 0.0), (1.0, 2.0), (2.0, 2.0)]
        );
    }
}
