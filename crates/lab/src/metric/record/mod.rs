//! What a run leaves behind for the measures: who joined when, who was at which level, what passed the links that are watched.

mod client;
mod delivery;
mod link;
mod packets;
mod tree;

use std::collections::BTreeMap;
use std::time::Duration;

use weir_core::observation::LayersReport;
use weir_units::{Bytes, Time};

pub use client::ClientRecord;
pub use delivery::Delivery;
pub use link::{Capacity, LinkRecord, Wait};
pub use packets::{Fate, Packets, Passage};
pub use tree::{TreeRecord, Windows};

/// A run's events.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// When the run ended.
    pub end: Time,
    /// The links that are watched; the first is the bottleneck.
    pub links: Vec<LinkRecord>,
    /// Which of them is called what, by the nodes between which it leads.
    pub link_names: BTreeMap<[String; 2], usize>,
    /// Sessions by name; several if the scenario has several alike.
    pub sessions: BTreeMap<String, Vec<SessionRecord>>,
    /// Streams over trees by name.
    pub trees: BTreeMap<String, Vec<TreeRecord>>,
    /// Flows by name.
    pub flows: BTreeMap<String, Vec<FlowRecord>>,
}

/// A session.
#[derive(Debug, Clone, Default)]
pub struct SessionRecord {
    /// How long, from its first packet, a client counts as starting up.
    pub startup: Duration,
    /// Its clients.
    pub clients: Vec<ClientRecord>,
    /// Its packets.
    pub packets: Packets,
}

/// A unicast flow.
#[derive(Debug, Clone, Default)]
pub struct FlowRecord {
    /// Its packets.
    pub packets: Packets,
    /// The round trips that its source measured; of a TCP connection what it took for the round trip, looked up every
    /// [`FlowRecord::SAMPLING`].
    pub round_trips: Vec<(Time, Duration)>,
    /// Of a paced stream: when its source backed off.
    pub back_offs: Vec<Time>,
    /// Of a paced stream of layers: how these stood, whenever its source looked.
    pub layers: Vec<(Time, LayersReport)>,
    /// Of a TCP connection: how many packets it had on the way, looked up every [`FlowRecord::SAMPLING`].
    pub outstanding: Vec<(Time, u64)>,
    /// Of a TCP connection: how often its sender had timed out, looked up as often.
    pub time_outs: Vec<(Time, u64)>,
    /// Of a TCP connection: its congestion window in packets, looked up as often.
    pub windows: Vec<(Time, f64)>,
    /// When it started.
    pub started: Time,
    /// How much payload it has to send, if it ends.
    pub size: Option<Bytes>,
    /// Payload that its receiver had in order.
    pub delivered: Delivery,
}

impl Record {
    /// The bottleneck.
    pub fn bottleneck(&self) -> &LinkRecord {
        &self.links[BOTTLENECK]
    }

    /// Which of the watched links is called this; without a name, the bottleneck.
    pub(super) fn link(&self, name: Option<&[String; 2]>) -> usize {
        name.and_then(|name| self.link_names.get(name)).copied().unwrap_or(BOTTLENECK)
    }

    /// When all clients of all sessions have left their start-up phase; the start of the run if there are none.
    pub fn steady_from(&self) -> Time {
        let clients = self
            .sessions
            .values()
            .flatten()
            .flat_map(|session| session.clients.iter().map(|client| client.startup_end(session.startup)));
        clients.max().unwrap_or(Time::ZERO)
    }
}

impl FlowRecord {
    /// How often what has no events is looked up.
    pub const SAMPLING: Duration = Duration::from_millis(100);
}

impl SessionRecord {
    /// From the first join until all clients have left their start-up phase.
    pub(super) fn startup_phase(&self) -> Option<(Time, Time)> {
        let first = self.clients.iter().map(|client| client.joined).min()?;
        let last = self.clients.iter().map(|client| client.startup_end(self.startup)).max()?;
        Some((first, last))
    }
}

/// The bottleneck's place among the links that are watched.
const BOTTLENECK: usize = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_state_begins_when_the_last_client_has_left_its_start_up_phase() {
        let startup = Duration::from_secs(5);
        let client = |joined: u64, first_packet: Option<u64>| ClientRecord {
            joined: Time::from_millis(joined),
            first_packet: first_packet.map(Time::from_millis),
            ..ClientRecord::default()
        };
        let clients = vec![client(0, Some(80)), client(4000, Some(4100)), client(1000, None)];
        let session = SessionRecord { startup, clients, ..SessionRecord::default() };
        assert_eq!(session.startup_phase(), Some((Time::ZERO, Time::from_millis(9100))));
        let record = Record { sessions: BTreeMap::from([("a".to_owned(), vec![session])]), ..Record::default() };
        assert_eq!(record.steady_from(), Time::from_millis(9100));
        assert_eq!(Record::default().steady_from(), Time::ZERO);
    }
}
