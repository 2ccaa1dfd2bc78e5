//! Measures of what the ends of a flow know: round trips, back-offs, packets on the way. `from` belongs to the interval, `to`
//! does not.

use weir_core::observation::LayersReport;
use weir_units::Time;

use super::{FlowRecord, levels, percentile};

/// Packets on the way, averaged over the samples; `None` without any.
pub(super) fn mean_outstanding(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    let samples = between(&flow.outstanding, from, to);
    let sum: u64 = samples.iter().map(|(_, packets)| packets).sum();
    (!samples.is_empty()).then(|| sum as f64 / samples.len() as f64)
}

/// Congestion windows, in packets.
pub(super) fn windows(flow: &FlowRecord, from: Time, to: Time) -> Vec<f64> {
    between(&flow.windows, from, to).iter().map(|(_, packets)| *packets).collect()
}

/// Round trips, in milliseconds.
pub(super) fn round_trips_ms(flow: &FlowRecord, from: Time, to: Time) -> Vec<f64> {
    between(&flow.round_trips, from, to).iter().map(|(_, span)| span.as_secs_f64() * 1e3).collect()
}

/// Time-outs in 100 s; `None` without samples.
pub(super) fn time_outs_in_100_s(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    let samples = between(&flow.time_outs, from, to);
    let ((from, before), (to, after)) = (samples.first()?, samples.last()?);
    (to > from).then(|| (after - before) as f64 * 100.0 / to.since(*from).as_secs_f64())
}

/// Back-offs a minute.
pub(super) fn back_offs_per_minute(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    let count = flow.back_offs.iter().filter(|at| (from..to).contains(*at)).count();
    (to > from).then(|| count as f64 * 60.0 / to.since(from).as_secs_f64())
}

/// Layers that were added or dropped, a minute.
pub(super) fn layer_changes_per_minute(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    let changes: usize = levels::since(&active_layers(flow), from)
        .windows(2)
        .filter(|pair| pair[1].0 < to)
        .map(|pair| pair[0].1.abs_diff(pair[1].1))
        .sum();
    (to > from && !flow.layers.is_empty()).then(|| changes as f64 * 60.0 / to.since(from).as_secs_f64())
}

/// Active layers, averaged over time.
pub(super) fn mean_layers(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    levels::mean_level(&active_layers(flow), from, to).filter(|_| !flow.layers.is_empty())
}

/// The active layers at each report; a stream begins with its base.
pub(super) fn active_layers(flow: &FlowRecord) -> Vec<(Time, usize)> {
    let reports = flow.layers.iter().map(|(at, report)| (*at, report.layers));
    std::iter::once((flow.started, 1)).chain(reports).collect()
}

/// How much a count that never falls has grown; `None` for a stream without layers.
pub(super) fn layers_growth(
    flow: &FlowRecord,
    from: Time,
    to: Time,
    count: impl Fn(&LayersReport) -> f64,
) -> Option<f64> {
    let until = |end: Time| {
        let past = flow.layers.partition_point(|(at, _)| *at < end);
        past.checked_sub(1).map_or(0.0, |last| count(&flow.layers[last].1))
    };
    (!flow.layers.is_empty()).then(|| until(to) - until(from))
}

/// Milliseconds between the 5th and the 95th percentile of the round trips, by nearest rank; `None` without any.
pub(super) fn round_trip_range_ms(flow: &FlowRecord, from: Time, to: Time) -> Option<f64> {
    let all = round_trips_ms(flow, from, to);
    Some(percentile(&all, 0.95)? - percentile(&all, 0.05)?)
}

pub(super) fn between<T>(samples: &[(Time, T)], from: Time, to: Time) -> &[(Time, T)] {
    let start = samples.partition_point(|(at, _)| *at < from);
    let end = samples.partition_point(|(at, _)| *at < to);
    samples.get(start..end).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_core::observation::LayersCause;
    use weir_units::{Bytes, Rate};

    use super::*;

    fn secs(at: u64) -> Time {
        Time::from_secs(at)
    }

    #[test]
    fn packets_on_the_way_are_averaged_over_the_interval() {
        let outstanding = vec![(secs(0), 90), (secs(1), 4), (secs(2), 8), (secs(3), 90)];
        let flow = FlowRecord { outstanding, ..FlowRecord::default() };
        assert_eq!(mean_outstanding(&flow, secs(1), secs(3)), Some(6.0));
        assert_eq!(mean_outstanding(&flow, secs(4), secs(9)), None);
    }

    #[test]
    fn time_outs_are_those_between_the_first_and_the_last_sample() {
        let time_outs = vec![(secs(0), 0), (secs(10), 1), (secs(30), 2), (secs(60), 3)];
        let flow = FlowRecord { time_outs, ..FlowRecord::default() };
        assert_eq!(time_outs_in_100_s(&flow, secs(10), secs(61)), Some(4.0));
        assert_eq!(time_outs_in_100_s(&flow, secs(61), secs(70)), None);
    }

    #[test]
    fn back_offs_are_counted_a_minute() {
        let flow = FlowRecord { back_offs: vec![secs(1), secs(30), secs(40)], ..FlowRecord::default() };
        assert_eq!(back_offs_per_minute(&flow, secs(30), secs(60)), Some(4.0));
        assert_eq!(back_offs_per_minute(&flow, secs(30), secs(30)), None);
    }

    #[test]
    fn each_layer_that_is_added_or_dropped_is_a_change_and_underflows_are_those_between() {
        let report = |at: u64, layers: usize, underflows: u64| {
            let (base_buffer, missing) = (Duration::ZERO, Duration::from_secs(underflows));
            let cause = LayersCause::Pace;
            let (rate, buffered) = (Rate::ZERO, Bytes::ZERO);
            (secs(at), LayersReport { layers, rate, base_buffer, buffered, underflows, missing, cause })
        };
        let layers = vec![report(10, 3, 0), report(20, 3, 1), report(30, 1, 3), report(40, 2, 3)];
        let flow = FlowRecord { layers, ..FlowRecord::default() };
        assert_eq!(layer_changes_per_minute(&flow, secs(0), secs(40)), Some(6.0), "two added, two dropped");
        assert_eq!(mean_layers(&flow, secs(0), secs(40)), Some(2.0));
        assert_eq!(layers_growth(&flow, secs(20), secs(60), |report| report.underflows as f64), Some(3.0));
        assert_eq!(layers_growth(&FlowRecord::default(), secs(0), secs(9), |_| 1.0), None, "it has no layers");
    }

    #[test]
    fn the_range_of_round_trips_leaves_out_the_extreme_twentieths() {
        let round_trips = (1..=100).map(|i| (secs(i), Duration::from_millis(10 * i))).collect();
        let flow = FlowRecord { round_trips, ..FlowRecord::default() };
        let range = round_trip_range_ms(&flow, secs(0), secs(101)).expect("there are samples");
        assert!((range - 900.0).abs() < 1e-9, "from 50 to 950 ms: {range}");
        assert_eq!(round_trip_range_ms(&flow, secs(200), secs(300)), None);
    }
}
