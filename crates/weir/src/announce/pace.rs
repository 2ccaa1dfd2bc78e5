//! How often a session is announced: so that all announcements of a group together stay within a bandwidth (RFC 2974 §3.1).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use weir_units::Time;

/// What was announced lately in a group, by all.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Who announced which version of what: when, and in how many bytes.
    heard: BTreeMap<(IpAddr, u16), (Time, usize)>,
}

impl Pace {
    /// An announcement was heard. Of more than can be remembered none is: then the pace is the slowest already.
    pub(super) fn hear(&mut self, now: Time, origin: IpAddr, hash: u16, bytes: usize) {
        if self.heard.len() < MOST || self.heard.contains_key(&(origin, hash)) {
            self.heard.insert((origin, hash), (now, bytes));
        }
    }

    /// How long to wait after an announcement of `own` bytes. `chance`, of 256, spreads announcers that began together over a third
    /// to either side.
    ///
    /// Example: alone, 800 bytes at 4000 bit/s take 1.6 s, so that the least interval counts, 5 s; next to nine others of
    /// as many bytes it is 16 s.
    pub(super) fn interval(&mut self, now: Time, own: usize, chance: u8) -> Duration {
        self.heard.retain(|_, (at, _)| now.since(*at) < REMEMBERED);
        // One's own is among those that were heard where the host hears itself.
        let heard: usize = self.heard.values().map(|(_, bytes)| bytes).sum();
        let all = heard.max(own) as u64;
        let interval = Duration::from_millis(all * 8 * 1_000 / LIMIT_BPS).clamp(LEAST, LARGEST);
        interval * 2 / 3 + interval * 2 / 3 * u32::from(chance) / 255
    }
}

/// All announcements of a group together (RFC 2974 §3.1).
const LIMIT_BPS: u64 = 4_000;
/// The RFC's least interval is 300 s. Sessions of files may be over by then, and receivers wait.
const LEAST: Duration = Duration::from_secs(5);
/// Whoever fills the group with announcements makes those of others rare, and no rarer than this.
const LARGEST: Duration = Duration::from_secs(300);
/// What has not been heard for so long is gone.
const REMEMBERED: Duration = Duration::from_secs(900);
const MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_announcements_together_stay_within_the_bandwidth() {
        let mut pace = Pace::default();
        let now = Time::from_secs(1_000);
        assert_eq!(pace.interval(now, 800, 128).as_secs(), 5);
        for other in 0..10 {
            pace.hear(now, IpAddr::from([192, 0, 2, other]), 7, 800);
            pace.hear(now, IpAddr::from([192, 0, 2, other]), 7, 800);
        }
        assert_eq!(pace.interval(now, 800, 128).as_secs(), 16);
        assert_eq!([0, 255].map(|chance| pace.interval(now, 800, chance).as_millis()), [10_666, 21_333]);
        let later = now + Duration::from_secs(901);
        assert_eq!(pace.interval(later, 800, 128).as_secs(), 5, "the others have gone");
    }

    #[test]
    fn a_flood_makes_announcements_rarer_up_to_a_limit_and_takes_no_memory() {
        let mut pace = Pace::default();
        for forged in 0..100_000_u32 {
            pace.hear(Time::ZERO, IpAddr::from(forged.to_be_bytes()), 7, 65_000);
        }
        assert_eq!((pace.heard.len(), pace.interval(Time::ZERO, 800, 128).as_secs()), (MOST, 300));
    }
}
