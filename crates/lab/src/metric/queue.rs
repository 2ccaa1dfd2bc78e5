//! Measures of what waits on a link. `from` belongs to the interval, `to` does not.

use std::time::Duration;

use weir_units::Time;

use super::{Wait, percentile};

/// Packets that wait, averaged over time.
pub(super) fn mean_length(waits: &[Wait], from: Time, to: Time) -> Option<f64> {
    let waited: Duration = waits.iter().map(|wait| wait.left.min(to).since(wait.came.max(from))).sum();
    (to > from).then(|| waited.as_secs_f64() / to.since(from).as_secs_f64())
}

/// The number of packets that no more than wait for this share of the time.
pub(super) fn length_percentile(waits: &[Wait], share: f64, from: Time, to: Time) -> Option<f64> {
    let mut steps: Vec<(Time, i64)> = Vec::new();
    for wait in waits.iter().filter(|wait| wait.came < to && wait.left > from) {
        steps.extend([(wait.came.max(from), 1), (wait.left.min(to), -1)]);
    }
    steps.sort_unstable();
    let mut spent: Vec<f64> = vec![0.0];
    let (mut since, mut length) = (from, 0i64);
    for (at, change) in steps.into_iter().chain([(to, 0)]) {
        let now = usize::try_from(length).unwrap_or(0);
        spent.resize(spent.len().max(now + 1), 0.0);
        spent[now] += at.since(since).as_secs_f64();
        (since, length) = (at, length + change);
    }
    let wanted = share * to.since(from).as_secs_f64();
    let mut sum = 0.0;
    let reached = |secs: &f64| {
        sum += secs;
        sum >= wanted
    };
    (to > from).then(|| spent.iter().position(reached).unwrap_or(spent.len() - 1) as f64)
}

/// Those of `waits`, in the order in which they left, that can have waited between two times, and some more.
pub(super) fn near(waits: &[Wait], from: Time, to: Time) -> &[Wait] {
    let start = waits.partition_point(|wait| wait.left < from);
    // What leaves long after `to` came after it: the queue would have to hold for a minute.
    let end = waits.partition_point(|wait| wait.left < to + LONGEST_WAIT);
    &waits[start..end]
}

/// Milliseconds that packets waited which came between two times and got through: of all, or of some sources.
pub(super) fn delays_ms(waits: &[Wait], sources: Option<&[u32]>, from: Time, to: Time) -> Vec<f64> {
    let is_meant = |wait: &&Wait| {
        wait.through && (from..to).contains(&wait.came) && sources.is_none_or(|sources| sources.contains(&wait.source))
    };
    waits.iter().filter(is_meant).map(|wait| wait.left.since(wait.came).as_secs_f64() * 1e3).collect()
}

/// The mean, or with a share the percentile; `None` without any value.
pub(super) fn mean_or_percentile(values: &[f64], share: Option<f64>) -> Option<f64> {
    match share {
        Some(share) => percentile(values, share),
        None => (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
    }
}

const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(came: u64, left: u64, source: u32) -> Wait {
        Wait { came: Time::from_millis(came), left: Time::from_millis(left), through: true, source }
    }

    #[test]
    fn the_mean_length_weighs_by_time() {
        let waits = [wait(0, 100, 0), wait(50, 100, 0), wait(300, 300, 1)];
        let mean = |from, to| mean_length(&waits, Time::from_millis(from), Time::from_millis(to));
        assert_eq!((mean(0, 1000), mean(50, 100), mean(200, 400)), (Some(0.15), Some(2.0), Some(0.0)));
        assert_eq!(mean(100, 100), None);
    }

    #[test]
    fn a_percentile_of_the_length_is_over_time_and_not_over_packets() {
        // Nothing for 100 ms, one packet for 300, two for 600.
        let waits = [wait(100, 1000, 0), wait(400, 1000, 1)];
        let at = |share| length_percentile(&waits, share, Time::ZERO, Time::from_secs(1));
        assert_eq!((at(0.05), at(0.3), at(0.5), at(1.0)), (Some(0.0), Some(1.0), Some(2.0), Some(2.0)));
        assert_eq!(length_percentile(&[], 0.9, Time::ZERO, Time::from_secs(1)), Some(0.0));
    }

    #[test]
    fn delays_are_of_those_who_came_within_and_got_through() {
        let dropped = Wait { through: false, ..wait(30, 90, 0) };
        let waits = [wait(10, 30, 0), wait(20, 70, 1), dropped, wait(200, 300, 0)];
        let delays = |sources| delays_ms(&waits, sources, Time::ZERO, Time::from_millis(200));
        assert_eq!((delays(None), delays(Some(&[1]))), (vec![20.0, 50.0], vec![50.0]));
        assert_eq!(mean_or_percentile(&delays(None), None), Some(35.0));
        assert_eq!((mean_or_percentile(&delays(None), Some(0.9)), mean_or_percentile(&[], None)), (Some(50.0), None));
    }
}
