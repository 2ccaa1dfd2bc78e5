//! From the results and a claim to its verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::reduce::{Sample, groups, groups_by, over_points, over_seeds, place_in_words};
use super::{Band, Claim, Other, Points, Ruling, Seeds, Verdict};
use crate::interval;
use crate::results::{Results, Row, Value};

type Place = BTreeMap<String, Value>;

/// Judges `claim` by `results`. What cannot be measured does not hold, and the verdict says why.
pub fn judge(claim: &Claim, results: &Results) -> Verdict {
    let band = claim.band();
    let rows: Vec<&Row> = results.rows.iter().collect();
    let (measured, mut detail) = match measure(claim, &rows) {
        Ok(sample) if sample.value.is_finite() => (Some(sample.value), where_it_was_decided(claim, &sample, results)),
        Ok(_) => (None, "what came out is not a finite number: all values are equal, or one is 0".to_owned()),
        Err(missing) => (None, missing),
    };
    let holds = match (measured, band) {
        (None, _) => Some(false),
        (Some(value), Some(band)) => Some(band.contains(value)),
        (Some(_), None) => None,
    };
    let verdict = match holds {
        Some(true) => Ruling::Holds,
        Some(false) => Ruling::Fails,
        None => Ruling::Reported,
    };
    let uncertainty = measured.and_then(|_| uncertainty(claim, &rows));
    let turns = |value: f64, half: f64, band: Band| {
        [value - half, value + half].iter().any(|end| band.contains(*end) != band.contains(value))
    };
    let straddles = measured.zip(uncertainty).zip(band).is_some_and(|((value, half), band)| turns(value, half, band));
    if straddles {
        detail += if detail.is_empty() { "" } else { ", " };
        detail += "the 95 % interval straddles the band";
    }
    let (id, how) = (format!("{}/{}", results.scenario, claim.id), claim.in_words());
    Verdict { id, claim: claim.says.clone(), measured, uncertainty, band, straddles, holds, verdict, how, detail }
}

/// How sure the number of a claim about means over seeds is.
fn uncertainty(claim: &Claim, rows: &[&Row]) -> Option<f64> {
    if claim.seeds != Seeds::Mean {
        return None;
    }
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let without = |seed: &u64| {
        let others: Vec<&Row> = rows.iter().copied().filter(|row| row.seed != *seed).collect();
        measure(claim, &others).ok().map(|sample| sample.value).filter(|value| value.is_finite())
    };
    let left_out: Option<Vec<f64>> = if seeds.len() > 1 { seeds.iter().map(without).collect() } else { None };
    interval::by_leaving_out(&left_out?)
}

/// Judges `claim` by the results of a part of its sweep, of which `whole` has all points. It is not judged if it lacks points that
/// the part leaves out, and the detail tells how many points it was judged by.
pub fn judge_part(claim: &Claim, results: &Results, whole: &[BTreeMap<String, Value>]) -> Verdict {
    let verdict = judge(claim, results);
    let run: Vec<Place> =
        by_point(&results.rows.iter().collect::<Vec<_>>()).into_iter().map(|(place, _)| place.clone()).collect();
    if let (Err(missing), Ok(())) = (has_its_points(claim, &run), has_its_points(claim, whole)) {
        let verdict = Verdict { measured: None, uncertainty: None, straddles: false, ..verdict };
        return Verdict { holds: None, verdict: Ruling::NotJudged, detail: missing, ..verdict };
    }
    let taken: Vec<&Place> = whole.iter().filter(|place| claim.takes(place)).collect();
    let made = taken.iter().filter(|place| run.contains(place)).count();
    match (made, verdict.detail.as_str()) {
        (made, _) if made == 0 || made == taken.len() => verdict,
        (made, "") => Verdict { detail: format!("by {made} of {} points", taken.len()), ..verdict },
        (made, detail) => Verdict { detail: format!("{detail}, by {made} of {} points", taken.len()), ..verdict },
    }
}

/// Whether a sweep of these points has those that the claim needs; else what is missing.
fn has_its_points(claim: &Claim, points: &[Place]) -> Result<(), String> {
    let by = match &claim.points {
        Points::Spearman(name) => Some(name),
        _ => None,
    };
    let other = claim.other().and_then(|(other, _)| other.metric.as_ref());
    let names = [Some(&claim.metric), claim.per.as_ref(), other, by].into_iter().flatten();
    // Every metric has a value in every run: what cannot be measured then lacks a point.
    let metrics: BTreeMap<String, f64> = names.map(|name| (name.clone(), 1.0)).collect();
    let row = |point: &Place| Row { point: point.clone(), seed: 1, metrics: metrics.clone(), series: BTreeMap::new() };
    let rows: Vec<Row> = points.iter().map(row).collect();
    measure(&claim.at_any_rate(), &rows.iter().collect::<Vec<_>>()).map(drop)
}

fn measure(claim: &Claim, rows: &[&Row]) -> Result<Sample, String> {
    let sides = Sides { claim, points: by_point(rows) };
    let mut places: Vec<&Place> = sides.points.iter().map(|(place, _)| *place).collect();
    places.retain(|place| claim.takes(place));
    if places.is_empty() {
        return Err(format!("no run has {}", claim.selection));
    }
    places.retain(|place| sides.counts(place));
    if places.is_empty() {
        return Err("at no point is the other side what it must be".to_owned());
    }
    let band = claim.band();
    let reduce = |samples: Vec<Sample>| -> Result<Vec<Sample>, String> {
        let parts = match (&claim.along, &claim.by) {
            (Some(along), _) => groups(samples, along),
            (None, Some(by)) => groups_by(samples, by),
            (None, None) => vec![samples],
        };
        parts.iter().map(|part| over_points(&claim.points, part, claim.along.as_deref(), band)).collect()
    };
    let each = |value: &dyn Fn(&Place) -> Result<f64, String>| -> Result<Vec<Sample>, String> {
        let sample =
            |place: &&Place| Ok(Sample { x: sides.rank_by(place)?, ..Sample::new(value(place)?, (*place).clone()) });
        places.iter().map(sample).collect()
    };
    let reduced = match claim.other() {
        Some((other, divides)) if other.reduced => {
            let ours = reduce(each(&|place| sides.point(place, &claim.metric))?)?;
            let theirs = reduce(each(&|place| sides.point(&moved(place, other), other_metric(claim, other)))?)?;
            let pairs = ours.into_iter().zip(theirs);
            pairs.map(|(a, b)| Sample { value: compare(a.value, b.value, divides), ..a }).collect()
        }
        Some((other, divides)) => reduce(each(&|place| sides.compared(place, other, divides))?)?,
        None => reduce(each(&|place| sides.point(place, &claim.metric))?)?,
    };
    match &reduced[..] {
        [one] => Ok(one.clone()),
        several => over_points(&claim.rest, several, None, band),
    }
}

/// The runs by point, in the order of the sweep.
fn by_point<'a>(rows: &[&'a Row]) -> Vec<(&'a Place, Vec<&'a Row>)> {
    let mut points: Vec<(&Place, Vec<&Row>)> = Vec::new();
    for row in rows.iter().copied() {
        match points.iter_mut().find(|(place, _)| **place == row.point) {
            Some((_, rows)) => rows.push(row),
            None => points.push((&row.point, vec![row])),
        }
    }
    points
}

/// Gives the number of a point, or of a point compared with another.
struct Sides<'a> {
    claim: &'a Claim,
    points: Vec<(&'a Place, Vec<&'a Row>)>,
}

impl Sides<'_> {
    /// The number of one point, its seeds reduced.
    fn point(&self, place: &Place, metric: &str) -> Result<f64, String> {
        let values: Vec<f64> = self.runs(place, metric)?.into_values().collect();
        over_seeds(self.claim.seeds, &values, self.claim.band())
    }

    /// Whether the other side is there what it must be. Where it is missing the comparison tells.
    fn counts(&self, place: &Place) -> bool {
        let when = self.claim.other().and_then(|(other, _)| Some((other, other.when?)));
        when.is_none_or(|(other, band)| {
            let value = self.point(&moved(place, other), other_metric(self.claim, other));
            value.map_or(true, |value| band.contains(value))
        })
    }

    /// The number of one point compared with its other side.
    fn compared(&self, place: &Place, other: &Other, divides: bool) -> Result<f64, String> {
        let (place_b, metric_b) = (moved(place, other), other_metric(self.claim, other));
        if matches!(self.claim.seeds, Seeds::Mean | Seeds::Median) {
            let (a, b) = (self.point(place, &self.claim.metric)?, self.point(&place_b, metric_b)?);
            return finite(compare(a, b, divides), metric_b, &place_b);
        }
        let (a, b) = (self.runs(place, &self.claim.metric)?, self.runs(&place_b, metric_b)?);
        if !a.keys().eq(b.keys()) {
            return Err(format!("{} and {} have different seeds", words(place), words(&place_b)));
        }
        let pairs = a.values().zip(b.values());
        let values: Result<Vec<f64>, String> =
            pairs.map(|(a, b)| finite(compare(*a, *b, divides), metric_b, &place_b)).collect();
        over_seeds(self.claim.seeds, &values?, self.claim.band())
    }

    /// What a rank correlation ranks the point against.
    fn rank_by(&self, place: &Place) -> Result<f64, String> {
        let Points::Spearman(name) = &self.claim.points else { return Ok(f64::NAN) };
        if let Some(value) = place.get(name) {
            return super::number(value).ok_or_else(|| format!("{name} is not a number at {}", words(place)));
        }
        let (_, rows) = self.find(place)?;
        let values: Vec<f64> = rows.iter().filter_map(|row| row.metrics.get(name).copied()).collect();
        if values.len() < rows.len() { Err(missing(name, place, rows)) } else { Ok(super::reduce::mean(&values)) }
    }

    /// The numbers of one point's runs, by seed.
    fn runs(&self, place: &Place, metric: &str) -> Result<BTreeMap<u64, f64>, String> {
        let (_, rows) = self.find(place)?;
        let value = |row: &&Row| {
            let number = |name: &str| row.metrics.get(name).copied().filter(|value| value.is_finite());
            let value = number(metric).ok_or_else(|| missing(metric, place, rows))?;
            let value = match &self.claim.per {
                Some(per) => {
                    let divisor = number(per).ok_or_else(|| missing(per, place, rows))?;
                    finite(value / divisor, per, place)?
                }
                None => value,
            };
            Ok((row.seed, self.claim.distance_from.map_or(value, |from| (value - from).abs())))
        };
        rows.iter().map(value).collect()
    }

    fn find(&self, place: &Place) -> Result<&(&Place, Vec<&Row>), String> {
        let agrees = |at: &Place| {
            at.len() == place.len()
                && at.iter().all(|(name, value)| place.get(name).is_some_and(|p| super::same(p, value)))
        };
        self.points.iter().find(|(at, _)| agrees(at)).ok_or_else(|| format!("there is no run at {}", words(place)))
    }
}

/// A ratio, if it is one.
fn finite(value: f64, divisor: &str, place: &Place) -> Result<f64, String> {
    let at = if place.is_empty() { String::new() } else { format!(" at {}", words(place)) };
    if value.is_finite() { Ok(value) } else { Err(format!("{divisor} is 0{at}: nothing can be divided by it")) }
}

fn compare(a: f64, b: f64, divides: bool) -> f64 {
    if divides { a / b } else { a - b }
}

/// The other side's point.
fn moved(place: &Place, other: &Other) -> Place {
    let mut moved = place.clone();
    moved.extend(other.at.clone());
    moved
}

fn other_metric<'a>(claim: &'a Claim, other: &'a Other) -> &'a str {
    other.metric.as_deref().unwrap_or(&claim.metric)
}

fn missing(metric: &str, place: &Place, rows: &[&Row]) -> String {
    let without = rows.iter().filter(|row| !row.metrics.get(metric).is_some_and(|value| value.is_finite())).count();
    let place = if place.is_empty() { String::new() } else { format!(" at {}", words(place)) };
    format!("{without} of {} runs have no value of {metric}{place}", rows.len())
}

fn words(place: &Place) -> String {
    place_in_words(place)
}

/// The point that decided, if the claim is about several: only the coordinates in which they differ.
fn where_it_was_decided(claim: &Claim, sample: &Sample, results: &Results) -> String {
    let mut place = sample.place.clone();
    place.retain(|name, value| {
        let selected = results.rows.iter().filter(|row| claim.selection.takes(&row.point));
        selected.filter_map(|row| row.point.get(name)).any(|other| other != value)
    });
    let at = if place.is_empty() { String::new() } else { format!("at {}", words(&place)) };
    match sample.share {
        Some((within, all)) if at.is_empty() => format!("{within} of {all} points"),
        Some((within, all)) => format!("{within} of {all} points {at}"),
        None => at,
    }
}
