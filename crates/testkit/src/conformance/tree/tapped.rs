//! An endpoint behind a tap, which sends some packets twice, as links do not, and reads the clock that the endpoint sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_core::{Action, Endpoint, Event, Payload};
use weir_units::{Random, Time};

/// What was seen of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// Packets that went out twice.
    pub(super) doubled: AtomicU64,
    /// What its clock showed at its start, nanoseconds.
    pub(super) start_nanos: AtomicU64,
}

/// Sends a share of its packets twice, one right behind the other.
#[derive(Debug)]
pub(super) struct Tapped {
    endpoint: Box<dyn Endpoint>,
    share: f64,
    random: Random,
    again: Option<Action>,
    tap: Arc<Tap>,
}

impl Tapped {
    /// Writes down what is seen in `tap`.
    pub(super) fn new(endpoint: Box<dyn Endpoint>, share: f64, random: Random, tap: &Arc<Tap>) -> Tapped {
        Tapped { endpoint, share, random, again: None, tap: Arc::clone(tap) }
    }
}

impl Endpoint for Tapped {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        if event == Event::Start {
            self.tap.start_nanos.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.endpoint.handle(now, event);
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        let action = self.endpoint.poll(now)?;
        // The application would take a fresh payload for another packet.
        let is_packet = matches!(&action, Action::Send { payload, .. } if *payload != Payload::Fresh);
        if is_packet && self.random.unit() < self.share {
            self.tap.doubled.fetch_add(1, Ordering::Relaxed);
            self.again = Some(action.clone());
        }
        Some(action)
    }

    fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline()
    }
}
