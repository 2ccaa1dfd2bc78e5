//! Writes down what becomes of a receiver, and says when it is over.

use std::time::Duration;

use weir_core::Observation;
use weir_net::host::{Progress, Statistics};
use weir_units::Time;

use super::{TICK, Times};
use crate::conformance::{PACKET_SIZE, Record};

/// What a receiver's application keeps.
#[derive(Debug)]
pub(super) struct Watch {
    times: Times,
    end: Time,
    record: Record,
    ticked: Option<Time>,
    lateness: Duration,
}

impl Watch {
    /// For a receiver that runs until `end`.
    pub(super) fn new(times: Times, end: Time) -> Watch {
        Watch { times, end, record: Record::default(), ticked: None, lateness: Duration::ZERO }
    }

    pub(super) fn deliver(&mut self, now: Time) {
        self.record.delivered.push((self.times.in_scenario(now), PACKET_SIZE));
    }

    pub(super) fn observe(&mut self, now: Time, observation: &Observation) {
        self.record.observations.push((self.times.in_scenario(now), *observation));
    }

    pub(super) fn tick(&mut self, now: Time) -> Progress {
        let late = self.ticked.map_or(Duration::ZERO, |ticked| now.since(ticked).saturating_sub(TICK + REST));
        self.lateness = self.lateness.max(late);
        self.ticked = Some(now);
        if now >= self.end { Progress::Stop } else { Progress::Continue }
    }

    /// What became of the receiver, and how late it was at worst.
    pub(super) fn end(self, statistics: &Statistics) -> (Record, Duration) {
        assert_eq!(statistics.host_dropped, 0, "this machine was too busy to tell anything: {statistics:?}");
        (self.record, self.lateness)
    }
}

/// How long a host may rest between reads, during which no tick comes.
const REST: Duration = Duration::from_millis(5);
