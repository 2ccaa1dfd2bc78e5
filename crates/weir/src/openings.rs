//! Channels that a sender has just begun to send to. Receivers ask for a channel and join it in the same moment, and the network takes some
//! milliseconds to follow: what is sent meanwhile is lost. Were it new, each block would miss a few symbols, and have to be encoded and
//! decoded for them.

use std::time::Duration;

use weir_units::{Bytes, Rate, Time};

/// When each channel began.
#[derive(Debug)]
pub(crate) struct Openings(Vec<Channel>);

#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    /// Whether something may be lost in the time of a join. Channel 0 is joined before any other is asked for, and a slow one has its first
    /// packet later.
    is_looked_at: bool,
    /// When it began, and when it was sent to last.
    sent: Option<(Time, Time)>,
}

impl Openings {
    /// None of these channels has begun.
    pub(crate) fn new(rates: &[Rate], packet_size: Bytes) -> Openings {
        let channel = |(number, rate): (usize, &Rate)| Channel {
            is_looked_at: number > 0 && packet_size / *rate <= JOIN,
            ..Channel::default()
        };
        Openings(rates.iter().enumerate().map(channel).collect())
    }

    /// A packet goes to this channel. Whether its receivers may not be there yet.
    pub(crate) fn is_new(&mut self, now: Time, channel: u16) -> bool {
        let Some(channel) = self.0.get_mut(usize::from(channel)).filter(|channel| channel.is_looked_at) else {
            return false;
        };
        let begun = channel.sent.filter(|(_, last)| now.since(*last) < PAUSE).map_or(now, |(begun, _)| begun);
        channel.sent = Some((begun, now));
        now.since(begun) < JOIN
    }

    /// All receivers get the channels below this level: they are new no more.
    pub(crate) fn on_reached(&mut self, level: usize) {
        for (begun, _) in self.0.iter_mut().take(level).filter_map(|channel| channel.sent.as_mut()) {
            *begun = Time::ZERO;
        }
    }
}

/// What a join takes on a local network: Linux waits for up to two ticks of 4 ms before it tells the switch, and a busy receiver joins late.
const JOIN: Duration = Duration::from_millis(30);
/// A channel that was silent for so long has been given up and begins again. While it is sent, the longest pauses are those of bursts, a slot.
const PAUSE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1400);

    #[test]
    fn a_channel_is_new_for_the_time_of_a_join_and_again_after_a_pause() {
        let mut openings = Openings::new(&[Rate::from_mbps(1); 5], SIZE);
        let mut is_new = |millis: u64, channel: u16| openings.is_new(Time::from_millis(millis), channel);
        assert!(is_new(1_000, 3) && is_new(1_029, 3));
        assert!(!is_new(1_030, 3) && !is_new(1_320, 3));
        assert!(is_new(1_320, 4), "each has its own time");
        assert!(is_new(1_620, 3), "it was given up");
    }

    #[test]
    fn a_channel_that_has_reached_its_receivers_is_new_no_more_until_it_was_given_up() {
        let mut openings = Openings::new(&[Rate::from_mbps(1); 5], SIZE);
        assert!(openings.is_new(Time::from_millis(1_000), 2) && openings.is_new(Time::from_millis(1_000), 3));
        openings.on_reached(3);
        let mut is_new = |millis: u64, channel: u16| openings.is_new(Time::from_millis(millis), channel);
        assert!(!is_new(1_005, 2) && is_new(1_005, 3));
        assert!(is_new(1_005, 1), "nothing was sent there");
        assert!(is_new(1_305, 2));
    }

    #[test]
    fn the_base_and_slow_channels_are_never_new() {
        let rates = [1000, 38, 370, 400].map(Rate::from_kbps);
        let mut openings = Openings::new(&rates, SIZE);
        let mut is_new = |channel: u16| (1..10).any(|packet| openings.is_new(Time::from_secs(packet), channel));
        assert_eq!(
            [0, 1, 2, 3, 4].map(&mut is_new),
            [false, false, false, true, false],
            "a packet takes 30 ms at 373 kbit/s"
        );
    }
}
