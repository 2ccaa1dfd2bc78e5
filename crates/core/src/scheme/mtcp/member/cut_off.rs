//! Where no multicast leads from the sender, the node above sends the data, and an agent sends it on to its own network, as the
//! paper's *mcast* process does (decision 24).

use core::time::Duration;

use weir_units::{Seq, Time};
use weir_wire::mtcp::Data;

use super::{CHANNEL, Member, data};
use crate::endpoint::{Action, Destination};
use crate::observation::{Observation, TreeReport};

/// Whether multicast leads here.
#[derive(Debug, Default)]
pub(super) struct CutOff {
    /// A packet has come over the channel.
    has_heard: bool,
    /// Packets since then that only the node above sent.
    missed: u32,
    /// Until when it waits for another one over the channel after these were enough.
    patience: Option<Time>,
    is_told: bool,
}

impl CutOff {
    /// Whether it is sure that none does.
    pub(super) fn is(&self, now: Time) -> bool {
        self.patience.is_some_and(|until| now >= until)
    }

    /// One more has been missed. Whether it begins to wait for another one.
    fn miss(&mut self) -> bool {
        let enough = if self.has_heard { ENOUGH } else { ENOUGH_AT_FIRST };
        self.missed = self.missed.saturating_add(1);
        self.missed == enough
    }
}

impl Member {
    /// A packet has come over the channel: multicast does lead here.
    pub(super) fn on_multicast(&mut self, now: Time) {
        let before = core::mem::replace(&mut self.cut_off, CutOff { has_heard: true, ..CutOff::default() });
        if before.is_told {
            self.out.push(Action::Observe(Observation::Tree(TreeReport::Multicast)));
            self.acknowledge_by(now);
        }
    }

    /// A packet has come from the node above. Whether it is one that should have come over the channel is not known yet.
    pub(super) fn on_unicast(&mut self, now: Time, data: &Data) {
        if self.arrivals.has(self.arrivals.start().extend(data.number, 32)) {
            return;
        }
        if self.cut_off.miss() {
            self.cut_off.patience = Some(now + PATIENCE.mul_f64(0.5 + self.random.unit()));
        }
        if self.cut_off.is(now) && !self.cut_off.is_told {
            self.cut_off.is_told = true;
            let forwards = self.forwards();
            self.out.push(Action::Observe(Observation::Tree(TreeReport::CutOff { forwards })));
            self.acknowledge_by(now);
        }
    }

    fn forwards(&self) -> bool {
        self.config.forwards && !self.reading.has_application
    }

    /// Sends on to all near it what the node above has sent for that.
    pub(super) fn forward(&mut self, now: Time, number: Seq, packet: &Data) {
        if !packet.is_repair && self.forwards() && self.cut_off.is(now) {
            let to = Destination::Channel(CHANNEL);
            self.out.push(data(&self.stream, to, number, packet.sent_micros, false, self.end));
        }
    }
}

/// Packets that only the node above has sent, after which multicast has ceased to lead here, and after which it never has. The
/// node above sends few before it knows that, as each costs it a time-out.
const ENOUGH: u32 = 16;
const ENOUGH_AT_FIRST: u32 = 4;
/// About how long it waits for a packet over the channel. Two agents on one network are not to begin together, since each
/// would hear the other and stop.
const PATIENCE: Duration = Duration::from_secs(1);
