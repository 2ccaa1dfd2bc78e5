//! The least or the greatest of what was seen of late.

use core::time::Duration;

use weir_units::Time;

/// The least or the greatest sample of the last one to two spans of time, so that what is long past does not count for ever. The
/// span before a silence counts during the one after it: samples that are further apart than a span are not judged one by one.
#[derive(Debug, Clone, Copy)]
pub struct Extreme<T> {
    choose: fn(T, T) -> T,
    /// When the current span began, with its first sample.
    began: Option<Time>,
    before: Option<T>,
    current: Option<T>,
}

impl<T: Copy> Extreme<T> {
    /// Nothing was seen. Of two samples, `choose` gives the one that counts.
    pub const fn new(choose: fn(T, T) -> T) -> Extreme<T> {
        Extreme { choose, began: None, before: None, current: None }
    }

    /// Takes a sample; a new span begins if the current one is longer than `span`.
    pub fn take(&mut self, now: Time, span: Duration, sample: T) {
        if now.since(*self.began.get_or_insert(now)) > span {
            self.before = self.current.take();
            self.began = Some(now);
        }
        self.current = Some(self.current.map_or(sample, |current| (self.choose)(current, sample)));
    }

    /// The least or the greatest; `None` before the first sample.
    pub fn value(&self) -> Option<T> {
        let both = self.current.zip(self.before).map(|(current, before)| (self.choose)(current, before));
        both.or(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_forgotten_after_one_to_two_spans() {
        let mut least = Extreme::new(u64::min);
        assert_eq!(least.value(), None);
        for (second, sample, wanted) in [(0, 3, 3), (5, 7, 3), (11, 8, 3), (20, 9, 3), (22, 9, 8), (33, 9, 9)] {
            least.take(Time::from_secs(second), Duration::from_secs(10), sample);
            assert_eq!(least.value(), Some(wanted), "after {second} s");
        }
    }

    #[test]
    fn after_a_silence_the_span_before_it_counts_for_one_span_more() {
        let mut least = Extreme::new(u64::min);
        for (second, sample, wanted) in [(0, 2, 2), (50, 9, 2), (60, 7, 2), (61, 8, 7)] {
            least.take(Time::from_secs(second), Duration::from_secs(10), sample);
            assert_eq!(least.value(), Some(wanted), "after {second} s");
        }
    }
}
