//! What became of a receiver, told the same way by whatever ran it.
//!
//! Not here: claims about it.

use std::time::Duration;

use weir_core::Observation;
use weir_core::observation::SlotReport;
use weir_sim::{AgentId, Monitor};
use weir_units::Time;

/// What happened at one receiver.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What the receiver told, with the time.
    pub observations: Vec<(Time, Observation)>,
    /// Packets that it gave to the application, with the time and their bytes.
    pub delivered: Vec<(Time, u64)>,
}

impl Record {
    /// Mean rate of what was delivered between two times, in bits per second.
    pub fn mean_bps(&self, from: Time, until: Time) -> f64 {
        let within = self.delivered.iter().filter(|(at, _)| (from..until).contains(at));
        within.map(|(_, bytes)| bytes * 8).sum::<u64>() as f64 / until.since(from).as_secs_f64()
    }

    /// Packets that were delivered between two times.
    pub fn delivered_packets(&self, from: Time, until: Time) -> u64 {
        self.delivered.iter().filter(|(at, _)| (from..until).contains(at)).count() as u64
    }

    /// Packets that the network lost, as was told between two times: by a receiver's slots, or by a stream's sink.
    pub fn lost_packets(&self, from: Time, until: Time) -> u64 {
        let within = self.observations.iter().filter(|(at, _)| (from..until).contains(at));
        let lost = within.map(|(_, observation)| match observation {
            Observation::Slot(slot) => slot.lost_packets,
            Observation::Missing { packets } => *packets,
            _ => 0,
        });
        lost.sum()
    }

    /// This record and another in one, in order of time.
    pub(crate) fn merged(mut self, other: Record) -> Record {
        self.observations.extend(other.observations);
        self.observations.sort_by_key(|(at, _)| *at);
        self.delivered.extend(other.delivered);
        self.delivered.sort_by_key(|(at, _)| *at);
        self
    }

    /// The level over time: each change with its time.
    pub fn levels(&self) -> impl Iterator<Item = (Time, usize)> + '_ {
        self.observations.iter().filter_map(|(at, observation)| match observation {
            Observation::Level { level, .. } => Some((*at, *level)),
            _ => None,
        })
    }

    /// The slots that ended between two times.
    pub fn slots(&self, from: Time, until: Time) -> impl Iterator<Item = &SlotReport> + '_ {
        self.observations.iter().filter_map(move |(at, observation)| match observation {
            Observation::Slot(slot) if (from..until).contains(at) => Some(slot),
            _ => None,
        })
    }

    /// The share of the time between `from` and `until` that was spent at a level that `wanted` accepts. Before the first
    /// observation the level is 0.
    pub fn share_of_time(&self, from: Time, until: Time, wanted: impl Fn(usize) -> bool) -> f64 {
        let changes: Vec<(Time, usize)> =
            [(Time::ZERO, 0)].into_iter().chain(self.levels()).chain([(until, 0)]).collect();
        let spent = changes.windows(2).filter(|pair| wanted(pair[0].1));
        let spent: Duration = spent.map(|pair| pair[1].0.min(until).since(pair[0].0.max(from))).sum();
        spent.as_secs_f64() / until.since(from).as_secs_f64()
    }

    /// The share of the time between `from` and `until` that was spent at `level` or above.
    pub fn share_at_or_above(&self, level: usize, from: Time, until: Time) -> f64 {
        self.share_of_time(from, until, |at| at >= level)
    }

    /// Loss events.
    pub fn loss_events(&self) -> usize {
        self.observations.iter().filter(|(_, observation)| *observation == Observation::LossEvent).count()
    }
}

/// Writes down what happens at agents that were made one after the other.
#[derive(Debug)]
pub(crate) struct Recorder {
    first: Option<AgentId>,
    records: Vec<Record>,
}

impl Recorder {
    /// For `count` agents, of which `first` was made first.
    pub(crate) fn new(first: Option<AgentId>, count: usize) -> Recorder {
        Recorder { first, records: vec![Record::default(); count] }
    }

    pub(crate) fn record(&self, index: usize) -> &Record {
        &self.records[index]
    }

    pub(crate) fn into_records(self) -> Vec<Record> {
        self.records
    }

    fn of(&mut self, agent: AgentId) -> Option<&mut Record> {
        let index = agent.index().checked_sub(self.first?.index())?;
        self.records.get_mut(index)
    }
}

impl Monitor for Recorder {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        if let Some(record) = self.of(agent) {
            record.observations.push((now, *observation));
        }
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, _number: Option<u64>) {
        if let Some(record) = self.of(agent) {
            record.delivered.push((now, bytes));
        }
    }
}
