//! Whether a programme is over: its sender has said so, and silence followed. Anybody can forge a goodbye, and what may follow a true one.

use std::time::Duration;

use weir_units::Time;

/// A goodbye that was heard.
#[derive(Debug, Default)]
pub(super) struct Goodbye {
    heard: Option<Time>,
    is_taken_back: bool,
}

impl Goodbye {
    /// The sender says that it ends.
    pub(super) fn hear(&mut self, now: Time) {
        *self = Goodbye { heard: Some(now), is_taken_back: false };
    }

    /// Something came behind it.
    pub(super) fn take_back(&mut self) {
        self.is_taken_back = true;
    }

    /// Whether nothing has come behind it.
    pub(super) fn stands(&self) -> bool {
        self.heard.is_some() && !self.is_taken_back
    }

    /// Whether it counts, so long after the last packet. What came behind it takes it back, unless a longer silence follows soon: that was
    /// on its way still, or of a stranger.
    pub(super) fn counts(&self, now: Time, last_packet: Time) -> bool {
        let silence = now.since(last_packet);
        let counts = |heard: Time| match self.is_taken_back {
            false => silence >= SILENCE,
            true => silence >= LONG_SILENCE && last_packet.since(heard) < SOON,
        };
        self.heard.is_some_and(counts)
    }
}

/// A goodbye counts if nothing comes for so long.
const SILENCE: Duration = Duration::from_secs(3);
/// The same if something followed, but not for longer than [`SOON`].
const LONG_SILENCE: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn silence_without_a_goodbye_is_no_end_and_behind_one_it_is() {
        let mut goodbye = Goodbye::default();
        assert!(!goodbye.counts(at(1000), at(1)) && !goodbye.stands());
        goodbye.hear(at(10));
        assert!(goodbye.stands() && !goodbye.counts(at(12), at(10)) && goodbye.counts(at(13), at(10)));
    }

    #[test]
    fn what_follows_takes_a_goodbye_back_unless_a_long_silence_follows_soon() {
        let mut goodbye = Goodbye::default();
        goodbye.hear(at(10));
        goodbye.take_back();
        assert!(!goodbye.stands() && !goodbye.counts(at(24), at(15)) && goodbye.counts(at(25), at(15)));
        // A forged one long before a pause of the sender.
        assert!(!goodbye.counts(at(70), at(45)));
        goodbye.hear(at(60));
        assert!(goodbye.stands() && goodbye.counts(at(63), at(60)));
    }
}
