//! How long the table of a session is good for, by the wall clock.

use std::time::Duration;

use weir_net::clock::wall_ntp_secs;

/// Seconds of the NTP era, which wrap, by the wall clock as it stands now.
pub(super) fn date() -> u32 {
    wall_ntp_secs() as u32
}

/// When a table expires that is signed now.
pub(super) fn expires(date: u32) -> u32 {
    date.wrapping_add(TABLE_LIFETIME.as_secs() as u32)
}

/// Whether a table that expires then is to be signed again: half of its time is over, or the clock was set since it was signed.
pub(super) fn is_due(expires: u32, date: u32) -> bool {
    // 32 bits that wrap, and never decades apart unless a clock was wrong.
    let left = i64::from(expires.wrapping_sub(date) as i32);
    let lifetime = TABLE_LIFETIME.as_secs() as i64;
    !(lifetime / 2..=lifetime + SMALL_STEP).contains(&left)
}

/// How long a table is good for. Clocks that differ by less do no harm; whoever plays a session again has no longer, before
/// receivers that have heard of no later one.
const TABLE_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// A clock that is set back by so many seconds, as clocks are that are kept right, is no reason to sign a table again.
const SMALL_STEP: i64 = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_signed_again_at_half_its_time_and_when_the_clock_is_set() {
        let (day, hour) = (86_400_u32, 3_600);
        // Also where the 32 bits of seconds wrap.
        for signed in [4_000_000_000, u32::MAX - 100] {
            let due = |since: i64| is_due(expires(signed), signed.wrapping_add(since as u32));
            let [day, hour] = [day, hour].map(i64::from);
            assert_eq!([0, hour, 12 * hour, 12 * hour + 1].map(due), [false, false, false, true]);
            // Set back by a little, by an hour, by years; ahead by years.
            assert_eq!([-60, -hour, -3_000 * day, 3_000 * day].map(due), [false, true, true, true]);
        }
    }
}
