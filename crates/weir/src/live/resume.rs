//! A viewer whose sender goes and comes back: whether it asks again, what it has missed, and numbers of payloads that go on. A state
//! machine without clock or socket.

use std::time::Duration;

use weir_net::host::Departure;
use weir_units::{Seq, Time};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Resume {
    /// Since the sender has gone: why, and when its last packet came.
    gone: Option<(Departure, Time)>,
    /// How often the stream was taken again.
    pub(super) reconnects: u64,
    /// How long nothing had come before.
    pub(super) missed: Duration,
    numbers: Numbers,
}

/// Numbers of payloads that go on from one stream to the next.
#[derive(Debug, Default)]
struct Numbers {
    /// The first number of the stream that runs, and what is put in its place; `None` before its first payload.
    first: Option<(u64, u64)>,
    /// What is below was put out before that, or given up.
    lowest: u64,
    /// The highest so far.
    last: Option<u64>,
}

impl Resume {
    /// The sender has gone; says whether it is asked again.
    pub(super) fn on_gone(&mut self, why: Departure, last_packet: Time) -> bool {
        let is_asked = matches!(why, Departure::Silent | Departure::Refused | Departure::Forgotten);
        if is_asked {
            // A sender that went before a packet came went when it first did.
            let (_, last_packet) = self.gone.unwrap_or((why, last_packet));
            self.gone = Some((why, last_packet));
        }
        is_asked
    }

    /// Why the sender is asked again, if it is.
    pub(super) fn asks(&self) -> Option<Departure> {
        self.gone.map(|(why, _)| why)
    }

    /// A stream begins whose payloads are numbered in a way of its own.
    pub(super) fn on_offer(&mut self) {
        self.numbers.first = None;
    }

    /// The stream runs; says for how long nothing had come, if it ran before.
    pub(super) fn on_running(&mut self, now: Time) -> Option<Duration> {
        let missed = now.since(self.gone.take()?.1);
        self.reconnects += 1;
        self.missed += missed;
        Some(missed)
    }

    /// The number of a payload, whatever stream it is of: that of a stream's first payload follows the last before. `None` for one that was
    /// overtaken by the first.
    pub(super) fn number(&mut self, number: u64) -> Option<Seq> {
        let Numbers { first, lowest, last } = &mut self.numbers;
        let next = last.map(|last| last + 1);
        let (from, to) = *first.get_or_insert_with(|| {
            *lowest = next.unwrap_or(0);
            (number, next.unwrap_or(number))
        });
        let number = (to + number).checked_sub(from).filter(|number| *number >= *lowest)?;
        *last = (*last).max(Some(number));
        Some(Seq::new(number))
    }
}

/// How long a sender that is gone is asked again, if the user does not say.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(resume: &mut Resume, of: &[u64]) -> Vec<Option<u64>> {
        of.iter().map(|number| resume.number(*number).map(Seq::value)).collect()
    }

    #[test]
    fn numbers_go_on_from_one_stream_to_the_next() {
        let mut resume = Resume::default();
        assert_eq!(numbers(&mut resume, &[70_000, 69_999, 70_001]), [Some(70_000), Some(69_999), Some(70_001)]);
        resume.on_offer();
        let second = [65_600, 65_602, 65_601, 65_599];
        assert_eq!(numbers(&mut resume, &second), [Some(70_002), Some(70_004), Some(70_003), None]);
        resume.on_offer();
        assert_eq!(numbers(&mut resume, &[90_000]), [Some(70_005)]);
    }

    #[test]
    fn a_sender_that_says_goodbye_is_not_asked_again() {
        let mut resume = Resume::default();
        for why in [Departure::Bye, Departure::Declined, Departure::Stopped, Departure::Complete] {
            assert!(!resume.on_gone(why, Time::ZERO) && resume.asks().is_none(), "{why:?}");
        }
        assert_eq!(resume.on_running(Time::from_secs(1)), None);
    }

    #[test]
    fn what_was_missed_counts_from_the_last_packet_however_often_the_sender_went_since() {
        let mut resume = Resume::default();
        assert!(resume.on_gone(Departure::Forgotten, Time::from_secs(10)));
        assert!(resume.on_gone(Departure::Refused, Time::from_secs(12)));
        assert_eq!(resume.asks(), Some(Departure::Refused));
        assert_eq!(resume.on_running(Time::from_secs(15)), Some(Duration::from_secs(5)));
        assert!(resume.on_gone(Departure::Silent, Time::from_secs(20)));
        assert_eq!(resume.on_running(Time::from_secs(31)), Some(Duration::from_secs(11)));
        assert_eq!((resume.reconnects, resume.missed, resume.asks()), (2, Duration::from_secs(16), None));
    }
}
