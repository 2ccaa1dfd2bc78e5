//! How long to wait before a layer is added again that had to be dropped.

use core::time::Duration;

use weir_units::Time;

/// When a layer may be added. Of a stored stream, the wait grows with each layer that was dropped soon after it was added, and shrinks with
/// each that lasted (decision 21). Of a live one, layers come back behind a picture that a decoder can begin with (decision 22).
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    wait: Duration,
    /// When a layer was added last, and when one was dropped.
    added: Option<Time>,
    dropped: Time,
    /// Nothing is added before.
    until: Time,
    is_live: bool,
}

impl Patience {
    /// Nothing was added.
    pub(super) fn new(is_live: bool) -> Patience {
        Patience { wait: LEAST, added: None, dropped: Time::ZERO, until: Time::ZERO, is_live }
    }

    /// Whether a layer may be added.
    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }

    /// When a layer may be added.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// A layer is added.
    pub(super) fn on_add(&mut self, now: Time) {
        self.added = Some(now);
    }

    /// A picture of the base that a decoder can begin with is on its way: a large one, and the next is far.
    pub(super) fn on_entry(&mut self, now: Time) {
        if self.is_live && now >= self.dropped + LEAST_LIVE {
            self.until = self.until.min(now);
        }
    }

    /// A layer is dropped. Of several that go for one reason, the first tells.
    pub(super) fn on_drop(&mut self, now: Time) {
        self.dropped = now;
        if self.is_live {
            self.until = now + MOST_LIVE;
            return;
        }
        if let Some(added) = self.added.take() {
            let has_lasted = now.since(added) >= 2 * self.wait;
            self.wait = if has_lasted { self.wait / 2 } else { self.wait * 2 }.clamp(LEAST, MOST);
        }
        self.until = now + self.wait;
    }
}

/// RAP needs some seconds after a back-off to find its rate again.
const LEAST: Duration = Duration::from_secs(2);
/// A viewer waits no longer for a better picture on a path that has become better.
const MOST: Duration = Duration::from_secs(60);
/// What was dropped for the large picture that is just going does not come back behind it.
const LEAST_LIVE: Duration = Duration::from_millis(500);
/// An encoder may set key pictures far apart.
const MOST_LIVE: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a layer as soon as it may, and drops it after this many seconds; gives when it was added.
    fn added_at(lasts: &[u64]) -> [u64; 8] {
        let (mut patience, mut now) = (Patience::new(false), Time::ZERO);
        let mut all = [0; 8];
        for (place, lasts) in lasts.iter().enumerate() {
            while !patience.is_over(now) {
                now += Duration::from_secs(1);
            }
            all[place] = now.as_micros() / 1_000_000;
            patience.on_add(now);
            now += Duration::from_secs(*lasts);
            patience.on_drop(now);
            patience.on_drop(now);
        }
        all
    }

    #[test]
    fn what_never_lasts_is_tried_less_and_less_often() {
        assert_eq!(added_at(&[1; 8]), [0, 5, 14, 31, 64, 125, 186, 247]);
    }

    #[test]
    fn what_lasts_is_tried_again_soon() {
        assert_eq!(added_at(&[1, 1, 1, 40, 40, 40, 40, 40]), [0, 5, 14, 31, 79, 123, 165, 207]);
    }
}
