//! Packets that the network delivered and this host threw away.

use core::time::Duration;

use weir_units::Time;

/// Tells the host's drops from the network's losses.
///
/// Both are missing from the sequence. As many missing packets as the host says it dropped are its own, and these come
/// first: the driver tells of drops before it hands over the packet behind them.
#[derive(Debug, Default)]
pub(crate) struct HostDrops {
    unattributed: u64,
    untold: u64,
    /// When the host last dropped something.
    latest: Time,
}

impl HostDrops {
    /// The host dropped `packets`.
    pub(crate) fn on_dropped(&mut self, now: Time, packets: u64) {
        self.unattributed = self.unattributed.saturating_add(packets);
        self.untold = self.untold.saturating_add(packets);
        self.latest = now;
    }

    /// `missing` packets are missing; returns how many of them the network lost.
    #[inline]
    pub(crate) fn attribute(&mut self, missing: u64) -> u64 {
        let own = missing.min(self.unattributed);
        self.unattributed -= own;
        missing - own
    }

    /// Returns the host's drops since the last call. Those of more than `memory` ago that nothing was found missing for were
    /// not of this session, and are forgotten.
    pub(crate) fn take(&mut self, now: Time, memory: Duration) -> u64 {
        if now.since(self.latest) > memory {
            self.unattributed = 0;
        }
        core::mem::take(&mut self.untold)
    }
}

/// Whether `dropped` is more than a host may drop of what came besides `received`: one in twenty.
pub(crate) fn is_too_much(dropped: u64, received: u64) -> bool {
    dropped.saturating_mul(19) > received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packets_are_the_host_s_first() {
        let mut host = HostDrops::default();
        host.on_dropped(Time::ZERO, 5);
        assert_eq!([host.attribute(3), host.attribute(3), host.attribute(3)], [0, 1, 3]);
    }

    #[test]
    fn drops_that_were_never_missed_are_forgotten() {
        let mut host = HostDrops::default();
        let take = |host: &mut HostDrops, millis| host.take(Time::from_millis(millis), Duration::from_secs(1));
        host.on_dropped(Time::from_millis(500), 5);
        assert_eq!([take(&mut host, 600), take(&mut host, 1500)], [5, 0]);
        assert_eq!(host.attribute(1), 0);
        take(&mut host, 1600);
        assert_eq!(host.attribute(3), 3);
    }

    #[test]
    fn one_packet_in_twenty_is_not_too_much() {
        assert!(!is_too_much(5, 95) && is_too_much(6, 95));
    }
}
