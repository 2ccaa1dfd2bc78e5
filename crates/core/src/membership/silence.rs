//! Channels that should bring packets and do not.

use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// When a channel was last heard, and when to join it again: a join may be lost on its way, and routers forget.
#[derive(Debug, Clone)]
#[repr(C)] // `heard` is all that a packet touches.
pub(super) struct Silence {
    /// When it was last heard, or joined for a reason of the protocol's.
    heard: Time,
    /// When it was last joined again; means nothing if it was heard since.
    asked: Time,
    /// How long after `asked` it is joined the next time.
    back_off: Duration,
    /// How long the channel may be silent: a second, or eight of its packets if they take longer.
    allowance: Duration,
}

impl Silence {
    pub(super) fn new(rate: Rate, size: Bytes) -> Silence {
        let packet_time = (size / rate).min(LONGEST_BACK_OFF);
        let allowance = FIRST_BACK_OFF.max(packet_time * 8);
        Silence { allowance, heard: Time::ZERO, asked: Time::ZERO, back_off: allowance }
    }

    /// The channel was joined for a reason of the protocol's.
    pub(super) fn on_join(&mut self, now: Time) {
        self.on_heard(now);
    }

    #[inline]
    pub(super) fn on_heard(&mut self, now: Time) {
        self.heard = now;
    }

    pub(super) fn is_silent(&self, now: Time) -> bool {
        now.since(self.heard) >= self.allowance
    }

    /// Whether to join the channel again now; if so, the next time is twice as far off, up to 15 s.
    pub(super) fn wants_rejoin(&mut self, now: Time) -> bool {
        if self.heard >= self.asked {
            self.asked = self.heard;
            self.back_off = self.allowance;
        }
        if now.since(self.asked) < self.back_off {
            return false;
        }
        self.asked = now;
        self.back_off = (self.back_off * 2).min(LONGEST_BACK_OFF.max(self.allowance));
        true
    }
}

const FIRST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn rejoins(silence: &mut Silence, seconds: u64) -> Vec<u64> {
        (0..seconds * 10).filter(|tenth| silence.wants_rejoin(Time::from_millis(tenth * 100))).map(|t| t / 10).collect()
    }

    #[test]
    fn a_silent_channel_is_joined_again_after_1_2_4_8_and_then_every_15_seconds() {
        let mut silence = Silence::new(Rate::from_mbps(1), Bytes::new(1000));
        silence.on_join(Time::ZERO);
        assert_eq!(rejoins(&mut silence, 50), [1, 3, 7, 15, 30, 45]);
    }

    #[test]
    fn a_channel_stays_silent_until_it_is_heard_however_often_it_is_joined() {
        let mut silence = Silence::new(Rate::from_mbps(1), Bytes::new(1000));
        silence.on_join(Time::ZERO);
        assert!(silence.wants_rejoin(Time::from_secs(1)) && silence.is_silent(Time::from_secs(1)));
        silence.on_heard(Time::from_secs(2));
        assert!(!silence.is_silent(Time::from_secs(2)));
    }

    #[test]
    fn a_slow_channel_may_be_silent_for_eight_of_its_packets() {
        let mut silence = Silence::new(Rate::from_kbps(16), Bytes::new(1000));
        silence.on_join(Time::ZERO);
        assert_eq!(rejoins(&mut silence, 10), [4]);
    }
}
