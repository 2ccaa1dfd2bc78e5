//! From the results to the curves of a panel.

use std::collections::BTreeMap;

use super::{Figure, Panel};
use crate::claim::{NameError, Names, number};
use crate::interval;
use crate::results::{Results, Row, Value};

/// A curve, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// For the legend; empty if it is the only one.
    pub(super) name: String,
    /// What it shares with curves of other metrics at the same parameters, which look alike.
    pub(super) kin: String,
    /// Which of them it is, from 0.
    pub(super) order: usize,
    pub(super) points: Vec<Point>,
}

/// The runs at one place of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    /// Their mean.
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Point {
    /// Of at least one run: the mean and its 95 % confidence interval, or with bars of their own all of these.
    fn of_runs(runs: &[Point], has_bars: bool) -> Point {
        let mean = |of: fn(&Point) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (x, y) = (mean(|run| run.x), mean(|run| run.y));
        if has_bars {
            let low = runs.iter().map(|run| run.low).fold(f64::INFINITY, f64::min);
            return Point { x, y, low, high: runs.iter().map(|run| run.high).fold(f64::NEG_INFINITY, f64::max) };
        }
        let half = interval::of_mean(&runs.iter().map(|run| run.y).collect::<Vec<_>>()).unwrap_or(0.0);
        Point { x, y, low: y - half, high: y + half }
    }
}

/// A point of the sweep.
type Place = BTreeMap<String, Value>;

/// What x means where it is words: the word of each whole number.
pub(super) type Words = Vec<String>;

impl Figure {
    /// The first name in it that does not exist.
    pub fn check(&self, names: &Names) -> Result<(), NameError> {
        let panels = self.panels.iter().enumerate();
        panels.map(|(i, panel)| (i, panel.check(names))).try_for_each(|(i, checked)| {
            checked.map_err(|what| NameError { who: format!("figure, panel {}", i + 1), what })
        })
    }
}

impl Panel {
    fn check(&self, names: &Names) -> Result<(), String> {
        self.selection.0.keys().try_for_each(|name| names.parameter(name))?;
        if self.is_over_time() {
            return self.y.of.names().iter().try_for_each(|name| names.series(name));
        }
        let [x] = self.x.of.names() else { return Err("the x axis has one name".to_owned()) };
        names.parameter(x).or_else(|_| names.metric(x))?;
        self.curves.iter().flatten().try_for_each(|name| names.parameter(name))?;
        let bars = self.bars.iter().flat_map(|(metric, ends)| std::iter::once(metric).chain(ends));
        bars.into_iter().try_for_each(|name| names.metric(name))?;
        self.y.of.names().iter().try_for_each(|name| names.metric(name))
    }

    /// Whether it shows one run over time, and not all runs over a parameter.
    pub(super) fn is_over_time(&self) -> bool {
        self.x.of.names() == ["time"]
    }

    /// Its curves, in the order of the results, and the words of the x axis.
    pub(super) fn curves(&self, results: &Results) -> (Vec<Curve>, Words) {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| self.selection.takes(&row.point)).collect();
        let mut words = Words::new();
        let x = self.x.of.names().first().map_or("", String::as_str);
        let mut varying = varying(&rows);
        if let Some(curves) = &self.curves {
            varying.retain(|name| curves.iter().any(|wanted| wanted == name));
        } else if !self.is_over_time() && rows.iter().all(|row| !row.point.contains_key(x)) {
            // Over a metric, a sweep is a cloud of points: only words part it.
            varying.retain(|name| rows.iter().all(|row| row.point.get(*name).and_then(number).is_none()));
        }
        let mut curves: Vec<(BTreeMap<&str, &Value>, &str, Vec<Point>)> = Vec::new();
        for row in &rows {
            let key: BTreeMap<&str, &Value> = varying
                .iter()
                .filter(|name| **name != x)
                .filter_map(|name| row.point.get(*name).map(|value| (*name, value)))
                .collect();
            for y in self.y.of.names() {
                if !curves.iter().any(|(known, of, _)| *known == key && of == y) {
                    let points = self.points(&rows, &key, x, y, &mut words);
                    curves.push((key.clone(), y, points));
                }
            }
        }
        curves.retain(|(_, _, points)| !points.is_empty());
        let order = |i: usize| curves[..i].iter().filter(|(key, _, _)| *key == curves[i].0).count();
        let orders: Vec<usize> = (0..curves.len()).map(order).collect();
        // Where no two curves differ in their metric alone, its name would tell nothing.
        let by_parameters = orders.iter().all(|order| *order == 0) && curves.len() > 1;
        let curves = curves.into_iter().zip(orders).map(|((key, y, points), order)| {
            let (kin, of) = (self.words_of(&key), self.names.get(y).map_or(y, String::as_str));
            match (kin.is_empty(), self.y.of.names().len() > 1 && !by_parameters) {
                (_, false) => Curve { name: kin.clone(), kin, order, points },
                (true, true) => Curve { name: of.to_owned(), kin: of.to_owned(), order: 0, points },
                (false, true) => Curve { name: format!("{kin}, {of}"), kin, order, points },
            }
        });
        (curves.collect(), words)
    }

    fn points(&self, rows: &[&Row], key: &BTreeMap<&str, &Value>, x: &str, y: &str, words: &mut Words) -> Vec<Point> {
        let mine = rows.iter().filter(|row| key.iter().all(|(name, value)| row.point.get(*name) == Some(*value)));
        if self.is_over_time() {
            // One run is shown: over several, a mean over time would smooth away what the panel is there to show.
            let first = mine.min_by_key(|row| row.seed).and_then(|row| row.series.get(y));
            let point = |&(x, y): &(f64, f64)| Point { x, y, low: y, high: y };
            return first.into_iter().flatten().map(point).filter(|point| point.y.is_finite()).collect();
        }
        let mut places: Vec<(&Place, Vec<Point>)> = Vec::new();
        for row in mine {
            let at = match row.point.get(x) {
                Some(Value::Number(number)) => Some(*number),
                Some(Value::Word(word)) => Some(place_of(word, words)),
                None => row.metrics.get(x).copied(),
            };
            let value = |metric: &str| row.metrics.get(metric).copied().filter(|value| value.is_finite());
            let (Some(at), Some(y_value)) = (at.filter(|at| at.is_finite()), value(y)) else { continue };
            let [low, high] = match self.bars.get(y) {
                Some(ends) => ends.each_ref().map(|end| value(end).unwrap_or(y_value)),
                None => [y_value; 2],
            };
            let run = Point { x: at, y: y_value, low, high };
            match places.iter_mut().find(|(point, _)| **point == row.point) {
                Some((_, runs)) => runs.push(run),
                None => places.push((&row.point, vec![run])),
            }
        }
        let mut points: Vec<Point> =
            places.iter().map(|(_, runs)| Point::of_runs(runs, self.bars.contains_key(y))).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }

    /// The values that set a curve apart.
    fn words_of(&self, key: &BTreeMap<&str, &Value>) -> String {
        let named = |text: &str| self.names.get(text).cloned();
        let words = key.iter().map(|(name, value)| match value {
            Value::Word(word) => named(word).unwrap_or_else(|| word.clone()),
            Value::Number(number) => {
                named(&number.to_string()).unwrap_or_else(|| format!("{name} {}", super::scale::number(*number)))
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The parameters in which the rows differ.
fn varying<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    let names = rows.first().map(|row| row.point.keys()).into_iter().flatten();
    names
        .map(String::as_str)
        .filter(|name| rows.iter().any(|row| row.point.get(*name) != rows[0].point.get(*name)))
        .collect()
}

fn place_of(word: &str, words: &mut Words) -> f64 {
    let known = words.iter().position(|known| known == word);
    let place = known.unwrap_or_else(|| {
        words.push(word.to_owned());
        words.len() - 1
    });
    place as f64
}

/// The values that a swept parameter takes, rising; empty if `x` is something else.
pub(super) fn swept_values(results: &Results, panel: &Panel) -> Vec<f64> {
    let [x] = panel.x.of.names() else { return Vec::new() };
    let rows = results.rows.iter().filter(|row| panel.selection.takes(&row.point));
    let mut values: Vec<f64> = rows.filter_map(|row| row.point.get(x).and_then(number)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
