//! An endpoint whose packets the network doubles at times: links lose packets and let them overtake, but do not repeat them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_core::{Action, Endpoint, Event, Payload};
use weir_units::{Random, Time};

/// Sends a share of its packets twice, one right behind the other.
#[derive(Debug)]
pub(super) struct Doubling {
    endpoint: Box<dyn Endpoint>,
    share: f64,
    random: Random,
    again: Option<Action>,
    doubled: Arc<AtomicU64>,
}

impl Doubling {
    /// Counts in `doubled`.
    pub(super) fn new(endpoint: Box<dyn Endpoint>, share: f64, random: Random, doubled: &Arc<AtomicU64>) -> Doubling {
        Doubling { endpoint, share, random, again: None, doubled: Arc::clone(doubled) }
    }
}

impl Endpoint for Doubling {
    fn handle(&mut self, now: Time, event: Event<'_>) {
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
            self.doubled.fetch_add(1, Ordering::Relaxed);
            self.again = Some(action.clone());
        }
        Some(action)
    }

    fn deadline(&self) -> Option<Time> {
        self.endpoint.deadline()
    }
}
