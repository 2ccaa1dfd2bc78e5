//! An endpoint behind a tap, which sends some packets twice, as links do not, may set its clock ahead, and sees what comes and goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_core::{Action, Destination, Endpoint, Event, Header, Origin, Payload, PeerId};
use weir_units::{Random, Time};

/// What was seen of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// Packets that went out twice.
    pub(super) doubled: AtomicU64,
    /// What its clock showed at its start, nanoseconds.
    pub(super) start_nanos: AtomicU64,
    /// What its driver's showed then.
    pub(super) driver_nanos: AtomicU64,
    /// Packets that came behind later ones of their sender's.
    pub(super) overtaken: AtomicU64,
    /// Payloads that it sent to one peer.
    pub(super) repaired: AtomicU64,
}

/// Sends a share of its packets twice, one right behind the other.
#[derive(Debug)]
pub(super) struct Tapped {
    endpoint: Box<dyn Endpoint>,
    share: f64,
    random: Random,
    again: Option<Action>,
    /// Seconds, besides what the driver sets it ahead.
    ahead: i64,
    /// The newest packet of each origin, by its number.
    newest: BTreeMap<Option<PeerId>, u32>,
    tap: Arc<Tap>,
}

impl Tapped {
    /// Writes down what is seen in `tap`.
    pub(super) fn new(endpoint: Box<dyn Endpoint>, share: f64, random: Random, tap: &Arc<Tap>) -> Tapped {
        Tapped { endpoint, share, random, again: None, ahead: 0, newest: BTreeMap::new(), tap: Arc::clone(tap) }
    }

    /// Its clock is ahead by so many seconds.
    pub(super) fn set_ahead(self, ahead: i64) -> Tapped {
        Tapped { ahead, ..self }
    }

    fn watch(&mut self, from: Origin, header: &Header) {
        let number = match header {
            Header::TreeData(data) if !data.is_repair => data.number,
            Header::TreeAck(ack) => ack.start,
            _ => return,
        };
        let from = if let Origin::Peer(peer) = from { Some(peer) } else { None };
        let newest = self.newest.entry(from).or_insert(number);
        if number < *newest {
            self.tap.overtaken.fetch_add(1, Ordering::Relaxed);
        }
        *newest = number.max(*newest);
    }
}

/// A time by a clock that is so many seconds ahead.
fn ahead(now: Time, seconds: i64) -> Time {
    let span = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { Time::ZERO + now.since(Time::ZERO + span) } else { now + span }
}

impl Endpoint for Tapped {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        if event == Event::Start {
            self.tap.driver_nanos.store(now.as_nanos(), Ordering::Relaxed);
        }
        let now = ahead(now, self.ahead);
        match event {
            Event::Start => self.tap.start_nanos.store(now.as_nanos(), Ordering::Relaxed),
            Event::Packet { from, packet } => self.watch(from, &packet.header),
            _ => {}
        }
        self.endpoint.handle(now, event);
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        let action = self.endpoint.poll(ahead(now, self.ahead))?;
        if let Action::Send { to: Destination::Peer(_), payload: Payload::Kept(_), .. } = &action {
            self.tap.repaired.fetch_add(1, Ordering::Relaxed);
        }
        // The application would take a fresh payload for another packet.
        let is_packet = matches!(&action, Action::Send { payload, .. } if *payload != Payload::Fresh);
        if is_packet && self.random.unit() < self.share {
            self.tap.doubled.fetch_add(1, Ordering::Relaxed);
            self.again = Some(action.clone());
        }
        Some(action)
    }

    fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline().map(|deadline| ahead(deadline, -self.ahead))
    }
}
