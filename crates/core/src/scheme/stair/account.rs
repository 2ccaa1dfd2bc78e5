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
}

impl Account {
    pub(super) fn begin(&mut self, now: Time) {
        *self = Account { begun: now, ..Account::default() };
    }

    pub(super) fn on_packet(&mut self) {
        self.packets += 1;
    }

    /// Counts `lost` packets that the network lost.
    pub(super) fn on_lost(&mut self, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
    }

    /// The report, of packets of this size at this level, of which the host threw `host_dropped` away; the account begins
    /// again.
    pub(super) fn report(
        &mut self,
        now: Time,
        level: usize,
        host_dropped: u64,
        packet_size: Bytes,
        delay: &QueuingDelay,
    ) -> SlotReport {
        let bytes = Bytes::new(self.packets.saturating_mul(packet_size.count()));
        let span = now.since(self.begun);
        let report = SlotReport {
            level,
            received_rate: if span.is_zero() { Rate::ZERO } else { bytes.per(span) },
            received_packets: self.packets,
            lost_packets: self.lost,
            host_dropped_packets: host_dropped,
            queuing_delay: [delay.short_term(), delay.long_term()],
            loss_event_rate: None,
            target_rate: None,
            vegas_beta_packets: None,
        };
        self.begin(now);
        report
    }
}
