//! What a receiver got and missed, for whoever watches. Nothing is decided by it.

use weir_units::{Bytes, Rate, Time};

use crate::estimate::QueuingDelay;
use crate::observation::SlotReport;

/// What came since the last report.
#[derive(Debug, Default)]
pub(super) struct Account {
    begun: Time,
    packets: u64,
    lost: u64,
    host_dropped: u64,
}

impl Account {
    pub(super) fn begin(&mut self, now: Time) {
        *self = Account { begun: now, ..Account::default() };
    }

    pub(super) fn on_packet(&mut self) {
        self.packets += 1;
    }

    /// So many packets are missing.
    pub(super) fn on_lost(&mut self, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
    }

    /// The host threw so many away. They will be missing too.
    pub(super) fn on_host_dropped(&mut self, packets: u64) {
        self.host_dropped = self.host_dropped.saturating_add(packets);
    }

    /// The report, of packets of this size at this level; the account begins anew.
    pub(super) fn report(&mut self, now: Time, level: usize, packet_size: Bytes, delay: &QueuingDelay) -> SlotReport {
        let bytes = Bytes::new(self.packets.saturating_mul(packet_size.count()));
        let span = now.since(self.begun);
        let report = SlotReport {
            level,
            received_rate: if span.is_zero() { Rate::ZERO } else { bytes.per(span) },
            received_packets: self.packets,
            lost_packets: self.lost.saturating_sub(self.host_dropped),
            host_dropped_packets: self.host_dropped,
            queuing_delay: [delay.short_term(), delay.long_term()],
            loss_event_rate: None,
            target_rate: None,
            vegas_beta_packets: None,
        };
        self.begin(now);
        report
    }
}
