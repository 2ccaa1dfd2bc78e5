//! Whether a claim can be measured at all: the names that it uses exist, and its parts go together.

use std::collections::{BTreeMap, BTreeSet};

use super::{Claim, Points, Seeds};
use crate::results::{Results, Row, Value};
use crate::scenario::{Scenario, ScenarioError, did_you_mean};

/// The names that claims and figures may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Names {
    /// Metrics.
    pub metrics: BTreeSet<String>,
    /// Series over time.
    pub series: BTreeSet<String>,
    /// Swept parameters, with `variant`, and the values that they take.
    pub parameters: BTreeMap<String, Vec<Value>>,
}

/// A claim or a figure that names what does not exist, or whose parts do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{who}: {what}")]
pub struct NameError {
    /// Which claim or figure.
    pub who: String,
    /// What is wrong with it, with what exists.
    pub what: String,
}

impl Names {
    /// All names that occur in `results`.
    pub fn of_results(results: &Results) -> Names {
        let mut names = Names::default();
        for Row { point, metrics, series, .. } in &results.rows {
            names.metrics.extend(metrics.keys().cloned());
            names.series.extend(series.keys().cloned());
            names.add_point(point);
        }
        names
    }

    /// All names that the runs of `scenario` will have.
    pub fn of_scenario(scenario: &Scenario) -> Result<Names, ScenarioError> {
        let mut names = Names::default();
        for point in scenario.points()? {
            names.metrics.extend(point.setup.metrics.into_keys());
            names.series.extend(point.setup.series.into_keys());
            names.add_point(&point.at);
        }
        Ok(names)
    }

    /// Takes the coordinates of a point of the sweep.
    fn add_point(&mut self, point: &BTreeMap<String, Value>) {
        for (name, value) in point {
            let values = self.parameters.entry(name.clone()).or_default();
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }

    pub(crate) fn metric(&self, name: &str) -> Result<(), String> {
        known("metric", name, self.metrics.iter())
    }

    pub(crate) fn series(&self, name: &str) -> Result<(), String> {
        known("series", name, self.series.iter())
    }

    pub(crate) fn parameter(&self, name: &str) -> Result<(), String> {
        known("swept parameter", name, self.parameters.keys())
    }
}

fn known<'a>(kind: &str, name: &str, names: impl Iterator<Item = &'a String> + Clone) -> Result<(), String> {
    if names.clone().any(|known| known == name) {
        return Ok(());
    }
    let suggestion = did_you_mean(name, names.clone().map(String::as_str));
    let list: Vec<&str> = names.map(String::as_str).collect();
    let list = if list.is_empty() { "there is none".to_owned() } else { format!("there are {}", list.join(", ")) };
    Err(format!("there is no {kind} {name:?}; {list}{suggestion}"))
}

impl Claim {
    /// The first thing that is wrong with it.
    pub fn check(&self, names: &Names) -> Result<(), NameError> {
        let names_exist = || {
            names.metric(&self.metric)?;
            self.per.iter().try_for_each(|name| names.metric(name))?;
            let left_out = self.except.iter().flat_map(|except| except.0.keys());
            let parameters = self.selection.0.keys().chain(left_out).chain(&self.along).chain(&self.by);
            parameters.into_iter().try_for_each(|name| names.parameter(name))?;
            if let Points::Spearman(name) = &self.points {
                names.parameter(name).or_else(|_| names.metric(name))?;
            }
            let others = self.ratio_to.iter().chain(&self.difference_to);
            others.clone().flat_map(|other| &other.metric).try_for_each(|name| names.metric(name))?;
            others.clone().flat_map(|other| other.at.keys()).try_for_each(|name| names.parameter(name))
        };
        let what = names_exist().and_then(|()| self.parts_fit().map_err(str::to_owned));
        what.map_err(|what| NameError { who: format!("claim {:?}", self.id), what })
    }

    fn parts_fit(&self) -> Result<(), &'static str> {
        let trend = matches!(self.points, Points::Rising | Points::Falling | Points::Quotient { .. });
        let rest =
            matches!(self.rest, Points::Rising | Points::Falling | Points::Quotient { .. } | Points::Spearman(_));
        let other = self.other().map(|(other, _)| other);
        let judges = matches!(self.points, Points::Every | Points::Some | Points::Rising | Points::Falling);
        let shares = [&self.points, &self.rest].into_iter().filter_map(|points| match points {
            Points::ShareWithin(band) => Some(*band),
            _ => None,
        });
        match self {
            _ if self.ratio_to.is_some() && self.difference_to.is_some() => {
                Err("ratio_to and difference_to exclude each other")
            }
            _ if trend && self.along.is_none() => {
                Err("rising, falling and quotient need along, the parameter that they go by")
            }
            _ if rest => {
                Err("rest is one of every, some, mean, geometric_mean, median, min, max, share_within, spread, range")
            }
            _ if self.along.is_some() && self.by.is_some() => Err("along and by exclude each other"),
            _ if self.rest != Points::Every && self.along.is_none() && self.by.is_none() => {
                Err("rest needs along or by")
            }
            _ if self.band().is_some_and(|band| !band.is_sound()) => {
                Err("its band bounds nothing, or no number is in it")
            }
            _ if other.is_some_and(|other| other.reduced && other.when.is_some()) => {
                Err("with reduced, points are not compared one by one: leave out when")
            }
            _ if shares.into_iter().chain(other.and_then(|other| other.when)).any(|band| !band.is_sound()) => {
                Err("a band of share_within or when bounds nothing, or no number is in it")
            }
            _ if self.holds.is_none() && self.seeds == Seeds::Every => Err("seeds = \"every\" needs a band"),
            _ if other.is_some_and(|other| other.at.is_empty() && other.metric.is_none()) => {
                Err("it is compared with itself: ratio_to and difference_to need where or metric")
            }
            _ if other.is_some_and(|other| other.reduced) && (judges || self.seeds == Seeds::Every) => Err(
                "a comparison that comes after the reduction needs one that does not look at the band, such as mean",
            ),
            _ => Ok(()),
        }
    }
}
