//! From a run's record to the number of a measure.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_units::Time;

use super::record::{ClientRecord, FlowRecord, LinkRecord, Packets, Passage, Record, SessionRecord, TreeRecord};
use super::{Kind, Measure, NameList, Over, client, flow, levels, passage, percentile, queue};

impl Measure {
    /// Whether all keys are there that the measure cannot do without, and none that it would ignore.
    pub(crate) fn check(&self) -> Result<(), String> {
        use Kind::*;
        let needs = |what: &str| Err(format!("this measure needs {what}"));
        let nobody = self.session.is_empty() && self.tree.is_empty() && self.flow.is_empty();
        let takes_percentile = matches!(self.measure, QueueLength | QueuingDelay | CongestionWindow | RoundTrip);
        match self.measure {
            _ if self.percentile.is_some() && !takes_percentile => Err("this measure has no percentile".to_owned()),
            _ if self.percentile.is_some_and(|p| !(0.0..=100.0).contains(&p.0)) => needs("a percentile of 0 to 100"),
            _ if self.link.is_some() && !self.is_of_link() => Err("this measure is not of a link".to_owned()),
            _ if self.size.is_some() && !matches!(self.measure, CompletionTime | CompletionRatio) => {
                Err("this measure takes no size".to_owned())
            }
            _ if !self.per.is_empty() && (nobody || !self.is_of_flows()) => {
                Err("per compares flows with what else is named, in measures that there are of flows".to_owned())
            }
            LinkLoss | LinkUse | LinkRate | AllSessions | QueueLength | QueuingDelay => Ok(()),
            SteadyLoss | Throughput | Share | Marks | Goodput | CompletionTime | CompletionRatio if nobody => {
                needs("a session, a tree or a flow, or several of them")
            }
            CompletionRatio if self.size.is_none() => needs("a size"),
            CompletionTime if self.size.is_none() && !(self.session.is_empty() && self.tree.is_empty()) => {
                needs("a size")
            }
            SteadyLoss | Throughput | Share | Marks | Goodput | CompletionTime | CompletionRatio => Ok(()),
            _ if self.is_of_ends() => {
                if self.flow.is_empty() {
                    needs("a flow")
                } else {
                    Ok(())
                }
            }
            ClientRate if self.session.is_empty() == self.tree.is_empty() => needs("either a session or a tree"),
            ClientRate => Ok(()),
            SlowestRate | AcknowledgementLoss if self.tree.is_empty() => needs("a tree"),
            SlowestRate | AcknowledgementLoss => Ok(()),
            WindowReaction | SlowestWindowReaction | WindowFalls if self.tree.is_empty() || self.client.is_none() => {
                needs("a tree and a client")
            }
            WindowReaction | SlowestWindowReaction | WindowFalls => Ok(()),
            _ if self.session.is_empty() => needs("a session"),
            FallTime | RiseTime if self.from.is_none() => needs("from"),
            ConvergenceTime | TimeAtLevel | FallTime | RiseTime if self.level.is_none() => needs("a level"),
            _ => Ok(()),
        }
    }

    /// The names of the flows that it is of.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &String> {
        self.flow.iter().chain(self.per.iter())
    }

    /// Whether it is of what a run has to be stopped for and looked at.
    pub(crate) fn needs_samples(&self) -> bool {
        use Kind::*;
        matches!(self.measure, OutstandingPackets | TimeOuts | CongestionWindow | RoundTrip)
    }

    /// Whether it is of what waits on its link.
    pub(crate) fn needs_waits(&self) -> bool {
        matches!(self.measure, Kind::QueueLength | Kind::QueuingDelay)
    }

    fn is_of_link(&self) -> bool {
        use Kind::*;
        let of_packets = matches!(self.measure, SteadyLoss | Throughput | Share | Marks | QueuingDelay | QueueLength);
        let of_session =
            matches!(self.measure, TransientLoss | TransientLostPackets | WorstLoss | LossEpisodes | Dilation);
        of_packets
            || of_session
            || matches!(self.measure, LinkLoss | LinkUse | LinkRate | CompletionRatio | AllSessions)
    }

    fn is_of_flows(&self) -> bool {
        use Kind::*;
        let of_packets = matches!(self.measure, SteadyLoss | Throughput | Marks | QueuingDelay);
        let of_transfers = matches!(self.measure, Goodput | CompletionTime | CompletionRatio);
        of_packets || of_transfers || self.is_of_ends()
    }

    /// Whether it is of what the ends of a flow know, and of flows only.
    fn is_of_ends(&self) -> bool {
        use Kind::*;
        let of_tcp = matches!(self.measure, OutstandingPackets | CongestionWindow | TimeOuts);
        let of_layers = matches!(self.measure, StreamLayerChanges | MeanLayers | BaseUnderflows | BaseMissing);
        of_tcp || of_layers || matches!(self.measure, RoundTrip | BackOffs | RoundTripRange)
    }

    /// Who of those that are measured on the link has sent, but never over it.
    pub(crate) fn passes_by<'a>(&'a self, record: &Record) -> Option<&'a str> {
        let link = record.link(self.link.as_ref());
        let names = self.session.iter().chain(self.tree.iter()).chain(self.flows()).filter(|_| self.is_of_link());
        names.map(String::as_str).find(|name| passes_by(record, name, link))
    }

    /// The value in a run; `None` if it has none there.
    pub fn value(&self, record: &Record) -> Option<f64> {
        if self.per.is_empty() {
            return self.plain_value(record);
        }
        let nobody = NameList::default();
        let other = Measure {
            session: nobody.clone(),
            tree: nobody.clone(),
            flow: self.per.clone(),
            per: nobody,
            client: None,
            ..self.clone()
        };
        let ratio = self.plain_value(record)? / other.plain_value(record)?;
        ratio.is_finite().then_some(ratio)
    }

    fn plain_value(&self, record: &Record) -> Option<f64> {
        let window = |default| self.window.map_or(Duration::from_secs(default), |window| window.0);
        let sessions: Vec<&SessionRecord> = named(&self.session, &record.sessions).collect();
        let each = |value: &dyn Fn(&SessionRecord) -> Option<f64>| {
            let values: Option<Vec<f64>> = sessions.iter().map(|session| value(session)).collect();
            self.over.of(&values?)
        };
        let link = record.link(self.link.as_ref());
        let (from, to) = (self.from(record), self.to(record));
        let level = self.level.map_or(0, |level| level.0);
        match self.measure {
            Kind::ConvergenceTime => {
                each(&|session| levels::convergence_secs(&session.clients, level, window(10), record.end))
            }
            Kind::TransientLoss => each(&|session| {
                let (from, to) = session.startup_phase()?;
                passage::loss_percent(session.packets.at(link), from, to)
            }),
            Kind::TransientLostPackets => each(&|session| {
                let (from, to) = session.startup_phase()?;
                Some(passage::dropped(session.packets.at(link), from, to) as f64)
            }),
            Kind::SteadyLoss => self.of_sources(record, |passages| passage::loss_percent(passages, from, to)),
            Kind::Throughput => self.of_sources(record, |passages| passage::kbps(passages, from, to)),
            Kind::Marks => self.of_sources(record, |passages| passage::marked_percent(passages, from, to)),
            Kind::Share => {
                let sum = Measure { over: Over::Sum, ..self.clone() };
                let kbps = sum.of_sources(record, |passages| passage::kbps(passages, from, to))?;
                Some(kbps / record.links[link].kbps(from, to)? * 100.0)
            }
            Kind::ClientRate if !self.tree.is_empty() => {
                self.of_trees(record, |tree| self.of_clients(&tree.members, |member| member.received_kbps(from, to)))
            }
            Kind::SlowestRate => self.of_trees(record, |tree| tree.slowest_kbps(from, to)),
            Kind::Goodput => self.goodput_kbps(record, from, to),
            Kind::CompletionTime => self.completion_secs(record),
            Kind::CompletionRatio => self.completion_ratio(record, &record.links[link]),
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
            Kind::WorstLoss => {
                each(&|session| passage::worst_loss_percent(session.packets.at(link), window(1), from, to))
            }
            Kind::LossEpisodes => {
                each(&|session| Some(passage::episodes(session.packets.at(link), window(1), from, to) as f64))
            }
            Kind::OutstandingPackets => self.of_flows(record, |each| flow::mean_outstanding(each, from, to)),
            Kind::CongestionWindow => {
                self.of_flows(record, |each| self.mean_or_percentile(&flow::windows(each, from, to)))
            }
            Kind::RoundTrip => {
                self.of_flows(record, |each| self.mean_or_percentile(&flow::round_trips_ms(each, from, to)))
            }
            Kind::BackOffs => self.of_flows(record, |each| flow::back_offs_per_minute(each, from, to)),
            Kind::StreamLayerChanges => self.of_flows(record, |each| flow::layer_changes_per_minute(each, from, to)),
            Kind::MeanLayers => self.of_flows(record, |each| flow::mean_layers(each, from, to)),
            Kind::BaseUnderflows => {
                self.of_flows(record, |each| flow::layers_growth(each, from, to, |report| report.underflows as f64))
            }
            Kind::BaseMissing => {
                self.of_flows(record, |each| flow::layers_growth(each, from, to, |now| now.missing.as_secs_f64()))
            }
            Kind::RoundTripRange => self.of_flows(record, |each| flow::round_trip_range_ms(each, from, to)),
            Kind::TimeOuts => self.of_flows(record, |each| flow::time_outs_in_100_s(each, from, to)),
            Kind::Memberships => {
                each(&|session| self.of_clients(&session.clients, |one| client::memberships_per_sec(one, from, to)))
            }
            Kind::Dilation => each(&|session| client::worst_dilation(session, link, window(1), from, to)),
            Kind::LinkLoss => record.links[link].loss_percent(self.start_of_all(), to),
            Kind::LinkRate => record.links[link].kbps(from, to),
            Kind::LinkUse => record.links[link].use_percent(self.start_of_all(), to),
            Kind::QueueLength => self.queue_length(&record.links[link], from, to),
            Kind::QueuingDelay => self.queuing_delay_ms(record, from, to),
            Kind::AllSessions => {
                let sessions = record.sessions.values().flatten();
                sessions.map(|session| passage::kbps(session.packets.at(link), from, to)).sum()
            }
        }
    }

    fn goodput_kbps(&self, record: &Record, from: Time, to: Time) -> Option<f64> {
        let sessions = named(&self.session, &record.sessions)
            .map(|session| self.of_clients(&session.clients, |client| client.delivered.kbps(from, to)));
        let trees = named(&self.tree, &record.trees).map(|tree| tree.goodput_kbps(from, to));
        let flows = named(&self.flow, &record.flows).map(|flow| flow.delivered.kbps(from, to));
        let values: Option<Vec<f64>> = sessions.chain(trees).chain(flows).collect();
        self.over.of(&values?)
    }

    fn completion_secs(&self, record: &Record) -> Option<f64> {
        let size = self.size.map(|size| size.0);
        let of_clients = |clients: &[ClientRecord]| {
            self.of_clients(clients, |client| client.delivered.secs_until(size?, client.joined))
        };
        let sessions = named(&self.session, &record.sessions).map(|session| of_clients(&session.clients));
        let trees = named(&self.tree, &record.trees).map(|tree| of_clients(&tree.members));
        let flows =
            named(&self.flow, &record.flows).map(|flow| flow.delivered.secs_until(size.or(flow.size)?, flow.started));
        let values: Option<Vec<f64>> = sessions.chain(trees).chain(flows).collect();
        self.over.of(&values?)
    }

    /// How many times as long it took as the link takes for the same.
    fn completion_ratio(&self, record: &Record, link: &LinkRecord) -> Option<f64> {
        let kbits = self.size?.0.count() as f64 * 8.0 / 1e3;
        Some(self.completion_secs(record)? * link.kbps(self.start_of_all(), self.to(record))? / kbits)
    }

    fn queue_length(&self, link: &LinkRecord, from: Time, to: Time) -> Option<f64> {
        match self.share() {
            Some(share) => queue::length_percentile(&link.waits, share, from, to),
            None => queue::mean_length(&link.waits, from, to),
        }
    }

    fn queuing_delay_ms(&self, record: &Record, from: Time, to: Time) -> Option<f64> {
        let sources: Vec<u32> = self.packets(record).map(|packets| packets.number).collect();
        let of = (!sources.is_empty()).then_some(&sources[..]);
        let waits = &record.links[record.link(self.link.as_ref())].waits;
        self.mean_or_percentile(&queue::delays_ms(waits, of, from, to))
    }

    fn mean_or_percentile(&self, values: &[f64]) -> Option<f64> {
        queue::mean_or_percentile(values, self.share())
    }

    fn share(&self) -> Option<f64> {
        self.percentile.map(|percentile| percentile.0 / 100.0)
    }

    fn reactions(&self, tree: &TreeRecord, from: Time, to: Time) -> Vec<f64> {
        let client = self.client.map_or(0, |client| client.0);
        tree.reactions_ms(client, from, to)
    }

    fn from(&self, record: &Record) -> Time {
        self.from.map_or_else(|| record.steady_from(), |from| at(from.0))
    }

    /// From when links count as a whole.
    fn start_of_all(&self) -> Time {
        self.from.map_or(Time::ZERO, |from| at(from.0))
    }

    fn to(&self, record: &Record) -> Time {
        self.to.map_or(record.end, |to| at(to.0).min(record.end))
    }

    fn packets<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = &'a Packets> {
        let sessions = named(&self.session, &record.sessions).map(|session| &session.packets);
        let trees = named(&self.tree, &record.trees).map(|tree| &tree.packets);
        sessions.chain(trees).chain(named(&self.flow, &record.flows).map(|flow| &flow.packets))
    }

    fn of_sources(&self, record: &Record, value: impl Fn(&[Passage]) -> Option<f64>) -> Option<f64> {
        let link = record.link(self.link.as_ref());
        let values: Option<Vec<f64>> = self.packets(record).map(|packets| value(packets.at(link))).collect();
        self.over.of(&values?)
    }

    fn of_flows(&self, record: &Record, value: impl Fn(&FlowRecord) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = named(&self.flow, &record.flows).map(value).collect();
        self.over.of(&values?)
    }

    fn of_trees(&self, record: &Record, value: impl Fn(&TreeRecord) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = named(&self.tree, &record.trees).map(value).collect();
        self.over.of(&values?)
    }

    fn of_clients(&self, clients: &[ClientRecord], value: impl Fn(&ClientRecord) -> Option<f64>) -> Option<f64> {
        let (first, every) = match (self.client, self.every) {
            (Some(client), None) => return clients.get(client.0).and_then(value),
            (client, every) => (client.map_or(0, |client| client.0), every.map_or(1, |every| every.0.max(1))),
        };
        let values: Option<Vec<f64>> = clients.iter().skip(first).step_by(every).map(value).collect();
        self.over_clients.of(&values?)
    }
}

/// All records of these names.
fn named<'a, T>(names: &'a NameList, records: &'a BTreeMap<String, Vec<T>>) -> impl Iterator<Item = &'a T> {
    names.iter().filter_map(|name| records.get(name)).flatten()
}

/// Whether all of those of a name have sent, and none of them over this link.
pub(super) fn passes_by(record: &Record, name: &str, link: usize) -> bool {
    let sessions = record.sessions.get(name).into_iter().flatten().map(|session| &session.packets);
    let trees = record.trees.get(name).into_iter().flatten().map(|tree| &tree.packets);
    let flows = record.flows.get(name).into_iter().flatten().map(|flow| &flow.packets);
    let all: Vec<&Packets> = sessions.chain(trees).chain(flows).collect();
    !all.is_empty() && all.iter().all(|packets| packets.passes_by(link))
}

fn at(span: Duration) -> Time {
    Time::ZERO + span
}

#[cfg(test)]
mod tests {
    use super::super::Fate;
    use super::*;

    #[test]
    fn a_measure_without_what_it_is_of_is_refused() {
        let check = |text: &str| toml::from_str::<Measure>(text).expect("it has the right keys").check();
        assert!(check("measure = \"throughput\"\nsession = \"a\"").is_ok());
        assert!(check("measure = \"throughput\"\nsession = \"a\"\nflow = [\"b\", \"c\"]\nover = \"jain\"").is_ok());
        assert!(check("measure = \"throughput\"").is_err_and(|error| error.contains("a session, a tree or a flow")));
        assert!(check("measure = \"time_at_level\"\nsession = \"a\"").is_err_and(|error| error.contains("a level")));
        assert!(
            check("measure = \"fall_time\"\nsession = \"a\"\nlevel = 3").is_err_and(|error| error.contains("from"))
        );
        assert!(check("measure = \"link_use\"").is_ok());
        assert!(check("measure = \"slowest_rate\"\nsession = \"a\"").is_err_and(|error| error.contains("a tree")));
        assert!(check("measure = \"client_rate\"\ntree = \"a\"").is_ok());
        assert!(check("measure = \"mean_level\"\ntree = \"a\"").is_err_and(|error| error.contains("a session")));
    }

    #[test]
    fn keys_that_would_be_ignored_are_refused() {
        let check = |text: &str| toml::from_str::<Measure>(text).expect("it has the right keys").check();
        for (text, key) in [
            ("measure = \"goodput\"\nflow = \"a\"\nlink = [\"b\", \"c\"]", "link"),
            ("measure = \"throughput\"\nflow = \"a\"\npercentile = 90", "percentile"),
            ("measure = \"throughput\"\nflow = \"a\"\nsize = \"1MB\"", "size"),
            ("measure = \"queue_length\"\npercentile = 900", "percentile"),
            ("measure = \"link_use\"\nper = \"a\"", "per"),
        ] {
            assert!(check(text).is_err_and(|error| error.contains(key)), "{text}");
        }
        assert!(check("measure = \"queuing_delay\"\nlink = [\"a\", \"b\"]\npercentile = 99").is_ok());
        assert!(check("measure = \"goodput\"\nsession = \"a\"\nper = \"tcp\"").is_ok());
    }

    #[test]
    fn who_never_comes_to_the_link_is_named() {
        let flow = |passages: Vec<Passage>| FlowRecord {
            packets: Packets { sent: true, ..Packets::at_bottleneck(passages) },
            ..FlowRecord::default()
        };
        let there = Passage { at: Time::ZERO, bytes: 1, fate: Fate::Came, marked: false };
        let flows =
            [("here".to_owned(), vec![flow(vec![there]), flow(vec![])]), ("elsewhere".to_owned(), vec![flow(vec![])])];
        let record = Record { flows: flows.into(), links: vec![LinkRecord::default()], ..Record::default() };
        let measure = |text: &str| toml::from_str::<Measure>(text).expect("valid");
        let throughput = measure("measure = \"throughput\"\nflow = [\"here\", \"elsewhere\"]");
        assert_eq!(throughput.passes_by(&record), Some("elsewhere"));
        assert_eq!(measure("measure = \"throughput\"\nflow = \"here\"").passes_by(&record), None, "some of them come");
        assert_eq!(measure("measure = \"goodput\"\nflow = \"elsewhere\"").passes_by(&record), None, "no link is meant");
    }
}
