//! Measures of what passes a link: loss and throughput between two times. `from` belongs to the interval, `to` does not.

use std::time::Duration;

use weir_units::Time;

use super::{Fate, Passage};

/// Per cent of the packets that came and were dropped; `None` if none came.
pub(super) fn loss_percent(passages: &[Passage], from: Time, to: Time) -> Option<f64> {
    let (mut came, mut dropped) = (0u64, 0u64);
    for passage in between(passages, from, to) {
        came += u64::from(passage.fate == Fate::Came);
        dropped += u64::from(passage.fate == Fate::Dropped);
    }
    (came > 0).then(|| dropped as f64 / came as f64 * 100.0)
}

/// Packets that were dropped.
pub(super) fn dropped(passages: &[Passage], from: Time, to: Time) -> u64 {
    between(passages, from, to).iter().filter(|passage| passage.fate == Fate::Dropped).count() as u64
}

/// Per cent of the packets that left, which were marked here: those marked that left, less those that came so; `None` if none left.
pub(super) fn marked_percent(passages: &[Passage], from: Time, to: Time) -> Option<f64> {
    let (mut left, mut marked) = (0u64, 0i64);
    for passage in between(passages, from, to) {
        match passage.fate {
            Fate::Left => (left, marked) = (left + 1, marked + i64::from(passage.marked)),
            Fate::Came => marked -= i64::from(passage.marked),
            Fate::Dropped => {}
        }
    }
    (left > 0).then(|| marked.max(0) as f64 / left as f64 * 100.0)
}

/// Rate of what left.
pub(super) fn kbps(passages: &[Passage], from: Time, to: Time) -> Option<f64> {
    let left = between(passages, from, to).iter().filter(|passage| passage.fate == Fate::Left);
    let bytes: u64 = left.map(|passage| u64::from(passage.bytes)).sum();
    (to > from).then(|| bytes as f64 * 8.0 / 1e3 / to.since(from).as_secs_f64())
}

/// The largest share of packets, in per cent, dropped in any span of `window` that begins with a packet; 0 without any.
///
/// A span in which only a packet or two came says nothing; they must be at least a quarter of what came in the busiest
/// span of all.
pub(super) fn worst_loss_percent(passages: &[Passage], window: Duration, from: Time, to: Time) -> Option<f64> {
    let passages: Vec<&Passage> = between(passages, from, to).iter().filter(|p| p.fate != Fate::Left).collect();
    let mut spans = Vec::new();
    let (mut end, mut came, mut dropped) = (0, 0u32, 0u32);
    for start in &passages {
        while end < passages.len() && passages[end].at < start.at + window {
            came += u32::from(passages[end].fate == Fate::Came);
            dropped += u32::from(passages[end].fate == Fate::Dropped);
            end += 1;
        }
        if start.fate == Fate::Came {
            spans.push((came, dropped));
        }
        came -= u32::from(start.fate == Fate::Came);
        dropped -= u32::from(start.fate == Fate::Dropped);
    }
    let busiest = spans.iter().map(|(came, _)| *came).max().unwrap_or(0);
    let telling = spans.iter().filter(|(came, _)| *came > 0 && *came >= busiest / 4);
    let worst = telling.map(|(came, dropped)| f64::from(*dropped) / f64::from(*came) * 100.0).fold(0.0, f64::max);
    Some(worst.min(100.0))
}

/// How often packets were dropped, drops less than `gap` apart being one time.
pub(super) fn episodes(passages: &[Passage], gap: Duration, from: Time, to: Time) -> usize {
    let mut last: Option<Time> = None;
    let drops = between(passages, from, to).iter().filter(|passage| passage.fate == Fate::Dropped);
    drops.filter(|drop| last.replace(drop.at).is_none_or(|last| drop.at.since(last) >= gap)).count()
}

pub(super) fn between(passages: &[Passage], from: Time, to: Time) -> &[Passage] {
    let start = passages.partition_point(|passage| passage.at < from);
    let end = passages.partition_point(|passage| passage.at < to);
    passages.get(start..end).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(millis: u64, fate: Fate) -> Passage {
        Passage { at: Time::from_millis(millis), bytes: 1000, fate, marked: false }
    }

    /// A packet every 100 ms; those at `lost` are dropped at once, the others leave 50 ms later.
    fn stream(count: u64, lost: &[u64]) -> Vec<Passage> {
        let one = |i: u64| {
            let rest =
                if lost.contains(&i) { passage(100 * i, Fate::Dropped) } else { passage(100 * i + 50, Fate::Left) };
            [passage(100 * i, Fate::Came), rest]
        };
        (0..count).flat_map(one).collect()
    }

    #[test]
    fn loss_is_the_share_of_what_came_within_the_time() {
        let passages = stream(20, &[3, 12, 13]);
        assert_eq!(loss_percent(&passages, Time::ZERO, Time::from_secs(2)), Some(15.0));
        assert_eq!(loss_percent(&passages, Time::from_secs(1), Time::from_secs(2)), Some(20.0));
        assert_eq!(loss_percent(&passages, Time::from_secs(2), Time::from_secs(3)), None);
        assert_eq!(dropped(&passages, Time::from_secs(1), Time::from_secs(2)), 2);
    }

    #[test]
    fn marks_are_those_of_this_link() {
        let mut passages = stream(20, &[]);
        passages.iter_mut().filter(|p| p.fate == Fate::Left).take(5).for_each(|p| p.marked = true);
        passages.iter_mut().filter(|p| p.fate == Fate::Came).take(1).for_each(|p| p.marked = true);
        assert_eq!(marked_percent(&passages, Time::ZERO, Time::from_secs(2)), Some(20.0), "one came with its mark");
    }

    #[test]
    fn throughput_is_what_left_per_time() {
        let passages = stream(20, &[3]);
        assert_eq!(kbps(&passages, Time::ZERO, Time::from_secs(1)), Some(72.0), "nine packets of 8 kbit");
        assert_eq!(kbps(&passages, Time::from_secs(1), Time::from_secs(1)), None);
    }

    #[test]
    fn the_worst_window_is_found_wherever_it_begins() {
        let passages = stream(40, &[18, 19, 20, 21]);
        let worst = worst_loss_percent(&passages, Duration::from_secs(1), Time::ZERO, Time::from_secs(4));
        assert_eq!(worst, Some(40.0));
        assert_eq!(worst_loss_percent(&[], Duration::from_secs(1), Time::ZERO, Time::from_secs(4)), Some(0.0));
    }

    #[test]
    fn a_window_with_hardly_a_packet_does_not_decide() {
        let mut passages = stream(20, &[]);
        passages.extend([passage(9000, Fate::Came), passage(9000, Fate::Dropped)]);
        assert_eq!(worst_loss_percent(&passages, Duration::from_secs(1), Time::ZERO, Time::from_secs(10)), Some(0.0));
    }

    #[test]
    fn drops_close_together_are_one_episode() {
        let passages = stream(60, &[3, 4, 12, 50]);
        let count = |gap| episodes(&passages, Duration::from_millis(gap), Time::ZERO, Time::from_secs(6));
        assert_eq!((count(1000), count(500), count(50)), (2, 3, 4));
    }
}
