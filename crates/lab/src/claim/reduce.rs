//! From several numbers to one: over seeds, over points, along a parameter.

use std::collections::BTreeMap;

use weir_units::math;

use super::{Band, Points, Seeds};
use crate::results::Value;

/// A number with the place that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) place: BTreeMap<String, Value>,
    /// What a rank correlation ranks it against; not-a-number if nothing is asked.
    pub(super) x: f64,
    /// If it is a share of points: how many, of how many.
    pub(super) share: Option<(usize, usize)>,
}

impl Sample {
    pub(super) fn new(value: f64, place: BTreeMap<String, Value>) -> Sample {
        Sample { value, place, x: f64::NAN, share: None }
    }
}

/// The mean; not-a-number of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The geometric mean; 0 if there is a 0.
fn geometric_mean(values: &[f64]) -> f64 {
    math::exp(mean(&values.iter().map(|value| math::ln(*value)).collect::<Vec<_>>()))
}

/// The median; not-a-number of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
    }
}

/// What `seeds` makes of the numbers of one point's runs.
pub(super) fn over_seeds(seeds: Seeds, values: &[f64], band: Option<Band>) -> Result<f64, String> {
    Ok(match seeds {
        Seeds::Mean => mean(values),
        Seeds::Median => median(values),
        Seeds::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Seeds::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Seeds::Every => values[by_margin(values, band)?.0],
    })
}

/// What `points` makes of `samples`, which are in the order of `along`. There is at least one.
pub(super) fn over_points(
    points: &Points,
    samples: &[Sample],
    along: Option<&str>,
    band: Option<Band>,
) -> Result<Sample, String> {
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    let all = |value: f64| Ok(Sample::new(value, common(samples)));
    let steps = || values.windows(2).map(|pair| pair[1] - pair[0]);
    match points {
        Points::Every => Ok(samples[by_margin(&values, band)?.0].clone()),
        Points::Some => Ok(samples[by_margin(&values, band)?.1].clone()),
        Points::Mean => all(mean(&values)),
        Points::GeometricMean => all(geometric_mean(&values)),
        Points::ShareWithin(wanted) => {
            let within = values.iter().filter(|value| wanted.contains(**value)).count();
            let share = Some((within, values.len()));
            all(within as f64 / values.len() as f64).map(|sample| Sample { share, ..sample })
        }
        Points::Median => all(median(&values)),
        Points::Min => Ok(extreme(samples, -1.0)),
        Points::Max => Ok(extreme(samples, 1.0)),
        Points::Spread => all(extreme(samples, 1.0).value / extreme(samples, -1.0).value),
        Points::Range => all(extreme(samples, 1.0).value - extreme(samples, -1.0).value),
        Points::Rising | Points::Falling | Points::Spearman(_) if values.len() < 2 => {
            Err("a trend needs two points or more".to_owned())
        }
        Points::Rising => all(steps().fold(f64::INFINITY, f64::min)),
        Points::Falling => all(steps().fold(f64::NEG_INFINITY, f64::max)),
        Points::Quotient { at, over } => {
            let along = along.ok_or("a quotient needs along")?;
            all(value_at(samples, along, *at)? / value_at(samples, along, *over)?)
        }
        Points::Spearman(_) => all(spearman(&samples.iter().map(|sample| sample.x).collect::<Vec<_>>(), &values)),
    }
}

/// The samples by what they have in common besides `along`, each group in the order of `along`, groups in the order in
/// which they begin.
pub(super) fn groups(samples: Vec<Sample>, along: &str) -> Vec<Vec<Sample>> {
    let mut groups: Vec<(BTreeMap<String, Value>, Vec<Sample>)> = Vec::new();
    for sample in samples {
        let mut rest = sample.place.clone();
        rest.remove(along);
        match groups.iter_mut().find(|(key, _)| *key == rest) {
            Some((_, group)) => group.push(sample),
            None => groups.push((rest, vec![sample])),
        }
    }
    let rank = |sample: &Sample| match sample.place.get(along) {
        Some(Value::Number(number)) => *number,
        _ => 0.0,
    };
    let ordered = groups.into_iter().map(|(_, mut group)| {
        group.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
        group
    });
    ordered.collect()
}

/// The samples by their values of `by`, in the order in which these begin.
pub(super) fn groups_by(samples: Vec<Sample>, by: &str) -> Vec<Vec<Sample>> {
    let mut groups: Vec<Vec<Sample>> = Vec::new();
    for sample in samples {
        match groups.iter_mut().find(|group| group[0].place.get(by) == sample.place.get(by)) {
            Some(group) => group.push(sample),
            None => groups.push(vec![sample]),
        }
    }
    groups
}

/// Where the value farthest from holding is, and the one deepest inside.
fn by_margin(values: &[f64], band: Option<Band>) -> Result<(usize, usize), String> {
    if values.len() == 1 {
        return Ok((0, 0));
    }
    let band = band.ok_or("there are several numbers and no band to choose one by: say mean, min, max …")?;
    let margins = || values.iter().map(|value| band.margin(*value)).enumerate();
    let worst = margins().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
    // Of equals the first: max_by would take the last.
    let best = margins().rev().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
    Ok((worst, best))
}

/// The first sample with the largest value times `sign`.
fn extreme(samples: &[Sample], sign: f64) -> Sample {
    let largest = samples.iter().rev().max_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    largest.expect("there is at least one sample").clone()
}

fn value_at(samples: &[Sample], along: &str, place: f64) -> Result<f64, String> {
    let wanted = Value::Number(place);
    let found = samples.iter().find(|sample| sample.place.get(along).is_some_and(|at| super::same(at, &wanted)));
    found.map(|sample| sample.value).ok_or_else(|| format!("there is no point with {along} = {place}"))
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values sharing the mean of theirs.
fn spearman(x: &[f64], y: &[f64]) -> f64 {
    if x.iter().chain(y).any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let (x, y) = (ranks(x), ranks(y));
    let (mx, my) = (mean(&x), mean(&y));
    let product =
        |a: &[f64], ma: f64, b: &[f64], mb: f64| a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum::<f64>();
    product(&x, mx, &y, my) / (product(&x, mx, &x, mx) * product(&y, my, &y, my)).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The coordinates that all samples share.
fn common(samples: &[Sample]) -> BTreeMap<String, Value> {
    let mut shared = samples[0].place.clone();
    shared.retain(|name, value| samples.iter().all(|sample| sample.place.get(name) == Some(value)));
    shared
}

/// A place in words: `clients = 64, variant = avmrc`.
pub(super) fn place_in_words(place: &BTreeMap<String, Value>) -> String {
    let parts: Vec<String> = place.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 3.0]), 3.0);
        assert!(median(&[]).is_nan() && mean(&[]).is_nan());
    }

    #[test]
    fn points_are_kept_apart_by_a_parameter_and_counted_within_a_band() {
        let place = |queue: &str, rate: f64| {
            let queue = ("queue".to_owned(), Value::Word(queue.to_owned()));
            BTreeMap::from([queue, ("rate".to_owned(), Value::Number(rate))])
        };
        let samples = [("a", 1.0, 1.0), ("b", 1.0, 0.5), ("a", 2.0, 4.0), ("b", 2.0, 0.0)];
        let samples: Vec<Sample> =
            samples.iter().map(|(queue, rate, value)| Sample::new(*value, place(queue, *rate))).collect();
        let within = Points::ShareWithin(Band { min: Some(0.5), max: Some(1.0), ..Band::default() });
        let of =
            |points: &Points, samples: &[Sample]| over_points(points, samples, None, None).expect("it is a number");
        let all = of(&within, &samples);
        assert_eq!((all.value, all.share, all.place.len()), (0.5, Some((2, 4)), 0));
        let groups = groups_by(samples, "queue");
        let means: Vec<f64> = groups.iter().map(|group| of(&Points::GeometricMean, group).value).collect();
        assert_eq!(means, [2.0, 0.0]);
        assert_eq!(of(&within, &groups[1]).place, BTreeMap::from([("queue".to_owned(), Value::Word("b".to_owned()))]));
    }

    #[test]
    fn rank_correlation_agrees_with_worked_examples() {
        // IQ against hours of television, the textbook's ten pairs: −29/165.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        assert!((spearman(&iq, &hours) + 29.0 / 165.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 100.0, 1000.0]), 1.0);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [2.5, 1.0, 2.5]);
        assert!(spearman(&[1.0, 2.0], &[3.0, 3.0]).is_nan(), "without any spread there is no trend");
    }
}
