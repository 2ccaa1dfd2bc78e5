//! What a sender tells its user of rates that it does not send.

use std::time::Duration;

use weir_core::observation::CeilingCause;
use weir_units::{Rate, Time};

/// Decides what is worth telling. A host that does not keep up for a moment, as at the end of a file's first pass, is not.
#[derive(Debug, Default)]
pub(crate) struct Ceilings {
    /// Since when the host does not keep up, and with what it does, until that is told.
    busy: Option<(Time, Rate)>,
}

impl Ceilings {
    /// No more than `rate` is sent from here on.
    pub(crate) fn on_ceiling(&mut self, now: Time, rate: Rate, cause: CeilingCause) -> Option<String> {
        match cause {
            CeilingCause::Busy => {
                let since = self.busy.map_or(now, |(since, _)| since);
                self.busy = Some((since, rate));
                None
            }
            CeilingCause::Retry => {
                self.busy = None;
                None
            }
            CeilingCause::Test => Some(format!(
                "a receiver's path is full whatever it leaves: only up to {rate} is sent for some seconds, to see whether the network floods"
            )),
            CeilingCause::Flooded => Some(format!(
                "the network floods: where a switch sends every channel to every port, the slowest port decides. No more than \
                 {rate} is sent from here on. Turn on IGMP snooping (for IPv6 MLD snooping) and an IGMP querier on the switch, or send with a lower --rates"
            )),
            CeilingCause::Futile => Some(format!(
                "the receiver's path is as full as before, so it is other traffic that fills it: up to {rate} is sent again"
            )),
            _ => Some(format!("up to {rate} is sent, to see whether the network still floods")),
        }
    }

    /// Time passes.
    pub(crate) fn on_time(&mut self, now: Time) -> Option<String> {
        let (_, rate) = self.busy.take_if(|(since, _)| now.since(*since) >= MOMENT)?;
        Some(format!("this host does not send more in time: only up to {rate} is sent for a while"))
    }
}

/// Less than it takes until more is tried.
const MOMENT: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ceilings: &mut Ceilings, millis: u64, mbps: u64, cause: CeilingCause) -> Option<String> {
        ceilings.on_ceiling(Time::from_millis(millis), Rate::from_mbps(mbps), cause)
    }

    #[test]
    fn a_host_that_does_not_keep_up_is_told_of_after_three_seconds_and_once() {
        let mut ceilings = Ceilings::default();
        assert_eq!(told(&mut ceilings, 1_000, 500, CeilingCause::Busy), None);
        assert_eq!(told(&mut ceilings, 2_000, 200, CeilingCause::Busy), None);
        let mut words: Vec<String> = (1_000..9_000).filter_map(|at| ceilings.on_time(Time::from_millis(at))).collect();
        let word = words.pop().expect("it is told");
        assert!(words.is_empty() && word.contains("200 Mbit/s"), "{word}");
    }

    #[test]
    fn a_moment_is_not_told_of_and_a_flood_and_its_test_are_at_once() {
        let mut ceilings = Ceilings::default();
        told(&mut ceilings, 1_000, 500, CeilingCause::Busy);
        assert_eq!(told(&mut ceilings, 2_000, 1_000, CeilingCause::Retry), None);
        assert_eq!(ceilings.on_time(Time::from_secs(60)), None);
        let of_test = told(&mut ceilings, 68_000, 1, CeilingCause::Test);
        assert!(
            of_test.is_some_and(|word| word.contains("1.00 Mbit/s") && word.contains("whether the network floods"))
        );
        assert!(told(&mut ceilings, 70_000, 9, CeilingCause::Flooded).is_some_and(|word| word.contains("9.00 Mbit/s")));
    }
}
