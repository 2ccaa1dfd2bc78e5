//! Packets that the network delivered and this host threw away.

/// Tells the host's drops from the network's losses.
///
/// Both are missing from the sequence. As many missing packets as the host says it dropped are its own, and these come
/// first: the driver tells of drops before it hands over the packet behind them. What is not found missing within ten slots
/// was not of this session.
#[derive(Debug, Default)]
pub(super) struct HostDrops {
    unattributed: u64,
    in_slot: u64,
    quiet_slots: u32,
}

impl HostDrops {
    /// The host dropped `packets`.
    pub(super) fn on_dropped(&mut self, packets: u64) {
        self.unattributed = self.unattributed.saturating_add(packets);
        self.in_slot = self.in_slot.saturating_add(packets);
        self.quiet_slots = 0;
    }

    /// `missing` packets are missing; returns how many of them the network lost.
    pub(super) fn attribute(&mut self, missing: u64) -> u64 {
        let own = missing.min(self.unattributed);
        self.unattributed -= own;
        missing - own
    }

    /// A slot ended; returns the host's drops in it.
    pub(super) fn on_slot(&mut self) -> u64 {
        self.quiet_slots = self.quiet_slots.saturating_add(1);
        if self.quiet_slots > FORGET_AFTER_SLOTS {
            self.unattributed = 0;
        }
        core::mem::take(&mut self.in_slot)
    }
}

/// Whether `dropped` is more than a host may drop of what came beside `received`: one in twenty.
pub(super) fn is_too_much(dropped: u64, received: u64) -> bool {
    dropped.saturating_mul(19) > received
}

const FORGET_AFTER_SLOTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packets_are_the_host_s_first() {
        let mut host = HostDrops::default();
        host.on_dropped(5);
        assert_eq!([host.attribute(3), host.attribute(3), host.attribute(3)], [0, 1, 3]);
    }

    #[test]
    fn drops_that_were_never_missed_are_forgotten() {
        let mut host = HostDrops::default();
        host.on_dropped(5);
        assert_eq!([host.on_slot(), host.on_slot()], [5, 0]);
        (0..9).for_each(|_| {
            host.on_slot();
        });
        assert_eq!(host.attribute(3), 3);
    }

    #[test]
    fn one_packet_in_twenty_is_not_too_much() {
        assert!(!is_too_much(5, 95) && is_too_much(6, 95));
    }
}
