//! What tests have shown of the receivers that report full paths.

use alloc::collections::BTreeMap;

use weir_units::Time;

use super::pause::Pause;

/// Receivers by their numbers.
#[derive(Debug, Default)]
pub(super) struct Reporters(BTreeMap<u32, Shown>);

/// What fills a receiver's path.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// What the network floods, as a test showed then.
    Flood(Time),
    /// Other traffic. The receiver's reports count for nothing in this pause.
    Others(Pause),
}

impl Reporters {
    /// Whether what the receiver reports counts.
    pub(super) fn counts(&self, now: Time, receiver: u32) -> bool {
        !matches!(self.0.get(&receiver), Some(Shown::Others(pause)) if !pause.is_over(now))
    }

    /// When a test showed that the network floods the receiver's path, if the latest one did.
    pub(super) fn flooded(&self, receiver: u32) -> Option<Time> {
        match self.0.get(&receiver) {
            Some(Shown::Flood(at)) => Some(*at),
            _ => None,
        }
    }

    /// In a test the receiver found its path empty or not.
    pub(super) fn on_verdict(&mut self, now: Time, receiver: u32, is_empty: bool) {
        let shown = match self.0.get(&receiver).copied() {
            _ if is_empty => Shown::Flood(now),
            Some(Shown::Others(mut pause)) => {
                pause.begin(now);
                Shown::Others(pause)
            }
            _ => Shown::Others(Pause::first(now)),
        };
        if self.0.len() >= MOST && !self.0.contains_key(&receiver) {
            self.0.pop_first();
        }
        self.0.insert(receiver, shown);
    }
}

/// More are not remembered, and may be tested again.
const MOST: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn reports_of_a_path_that_others_fill_count_again_after_five_minutes_and_then_after_ten() {
        let mut reporters = Reporters::default();
        reporters.on_verdict(at(10), 1, false);
        assert_eq!([309, 310].map(|secs| reporters.counts(at(secs), 1)), [false, true]);
        assert!(reporters.counts(at(11), 2) && reporters.flooded(1).is_none(), "another one");
        reporters.on_verdict(at(310), 1, false);
        assert_eq!([909, 910].map(|secs| reporters.counts(at(secs), 1)), [false, true]);
        reporters.on_verdict(at(911), 1, true);
        assert_eq!((reporters.counts(at(911), 1), reporters.flooded(1)), (true, Some(at(911))));
    }

    #[test]
    fn a_few_thousand_are_remembered() {
        let mut reporters = Reporters::default();
        (0..10_000).for_each(|receiver| reporters.on_verdict(at(1), receiver, false));
        assert_eq!(reporters.0.len(), MOST);
        assert!(!reporters.counts(at(2), 9_999));
    }
}
