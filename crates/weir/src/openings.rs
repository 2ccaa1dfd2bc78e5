//! Channels that a sender has just begun to send to. Receivers ask for a channel and join it in the same moment, and the network takes some
//! milliseconds to follow: what is sent meanwhile is lost. Were it new, each block would miss a few symbols, and have to be encoded and
//! decoded for them.

use std::time::Duration;

use weir_units::Time;

/// When each channel began, and when it was sent to last.
#[derive(Debug, Default)]
pub(crate) struct Openings(Vec<Option<(Time, Time)>>);

impl Openings {
    /// A packet goes to this channel. Whether its receivers may not be there yet. Channel 0 is the one that they have from the first.
    pub(crate) fn is_new(&mut self, now: Time, channel: u16) -> bool {
        let number = usize::from(channel);
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        let begun = self.0[number].filter(|(_, last)| now.since(*last) < PAUSE).map_or(now, |(begun, _)| begun);
        self.0[number] = Some((begun, now));
        number > 0 && now.since(begun) < JOIN
    }
}

/// What a join takes on a local network: Linux waits for up to two ticks of 4 ms before it tells the switch, and a busy receiver joins late.
const JOIN: Duration = Duration::from_millis(30);
/// A channel that was silent for so long has been given up and begins again. While it is sent, the longest pauses are those of bursts, a slot.
const PAUSE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_new_for_the_time_of_a_join_and_again_after_a_pause_and_the_base_never() {
        let mut openings = Openings::default();
        let mut is_new = |millis: u64, channel: u16| openings.is_new(Time::from_millis(millis), channel);
        assert!(is_new(1_000, 3) && is_new(1_029, 3));
        assert!(!is_new(1_030, 3) && !is_new(1_320, 3));
        assert!(is_new(1_320, 4), "each has its own time");
        assert!(is_new(1_620, 3), "it was given up");
        assert!(!is_new(1_000, 0));
    }
}
