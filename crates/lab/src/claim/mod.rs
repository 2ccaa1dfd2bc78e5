//! What a paper says, as data: which rows of the results it is about, how they become one number, and the band in which
//! that number confirms it. Not here: running the experiment that gives the rows.
//!
//! A claim is read as `[[claim]]` from the scenario's file and judged in this order:
//!
//! 1. `where` selects the points of the sweep, `except` leaves some of them out.
//! 2. `metric` (over `per`, `distance_from`) gives a number a run, `seeds` makes it a number a point.
//! 3. `ratio_to` or `difference_to` compares it with that of another point or another metric; with `when`, only where that is in a band.
//! 4. `points` reduces the points to one number; with `along`, those of one parameter first, with `by` those of each of its values, then
//!    the `rest`.
//! 5. `holds` is the band that the number must be in. Without it the number is reported, and nothing is judged.
//!
//! Data that is missing or not a number makes a claim red, whatever its band. A claim about points that nobody asked to run is
//! not judged.

mod band;
mod check;
mod judge;
mod reduce;
mod select;
mod words;

use serde::{Deserialize, Serialize};

pub use band::Band;
pub use check::{NameError, Names};
pub use judge::{judge, judge_part};
pub use select::{Selection, Wanted};

pub(crate) use select::{number, same};

/// One statement of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name in its file; the whole id is `avmrc/fig02/convergence`.
    pub id: String,
    /// What the paper says, in our own words.
    pub says: String,
    /// What is measured: a metric of the scenario, by its name.
    pub metric: String,
    /// Divides by this metric of the same run.
    pub per: Option<String>,
    /// Takes the distance of what came out so far from this number: |value − number|.
    pub distance_from: Option<f64>,
    /// The points that it is about. Default: all.
    #[serde(default, rename = "where")]
    pub selection: Selection,
    /// Points that it is not about, though `where` takes them.
    #[serde(default)]
    pub except: Vec<Selection>,
    /// What becomes of the runs of a point. Default mean.
    #[serde(default)]
    pub seeds: Seeds,
    /// Divides by what the other side gives.
    pub ratio_to: Option<Other>,
    /// Subtracts what the other side gives.
    pub difference_to: Option<Other>,
    /// What becomes of the points. Default every.
    #[serde(default)]
    pub points: Points,
    /// The swept parameter along which `points` goes. Default: all points together, in the order of the sweep.
    pub along: Option<String>,
    /// The swept parameter whose values `points` keeps apart: one number for each of them.
    pub by: Option<String>,
    /// With `along`: what becomes of the numbers that the other parameters leave. With `by`: of its values' numbers. Default every.
    #[serde(default)]
    pub rest: Points,
    /// The band. Without it the number is reported only; `rising` and `falling` bring their own.
    pub holds: Option<Band>,
}

/// What becomes of the runs of a point, which differ in their seeds only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seeds {
    /// Their mean. Of two sides that are compared, each has its mean taken first.
    #[default]
    Mean,
    /// Their median, the mean of the two in the middle if their number is even. Of two sides, each by itself.
    Median,
    /// The smallest. Two sides are compared run by run, equal seeds with each other.
    Min,
    /// The largest, likewise.
    Max,
    /// Each must be in the band: the one that is farthest from holding, likewise.
    Every,
}

/// What becomes of several points.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Points {
    /// Each must be in the band: the one that is farthest from holding.
    #[default]
    Every,
    /// One must be in the band: the one that is nearest to holding, or deepest inside.
    Some,
    /// Their mean.
    Mean,
    /// Their geometric mean; not a number if one of them is below 0.
    GeometricMean,
    /// Their median.
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The share of them that is in this band, 0 to 1.
    ShareWithin(Band),
    /// The largest over the smallest.
    Spread,
    /// The largest minus the smallest.
    Range,
    /// The smallest step from a point to the next, which must be above 0 unless there is another band.
    Rising,
    /// The largest step from a point to the next, which must be below 0 unless there is another band.
    Falling,
    /// The value where `along` is one number over the value where it is another.
    Quotient {
        /// The numerator's place.
        at: f64,
        /// The denominator's place.
        over: f64,
    },
    /// Spearman's rank correlation with this swept parameter or metric, −1 to 1.
    Spearman(String),
}

/// The other side of a comparison.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// The parameters in which its point differs; all others are the same.
    #[serde(default, rename = "where")]
    pub at: std::collections::BTreeMap<String, crate::results::Value>,
    /// Its metric, if it is another one.
    pub metric: Option<String>,
    /// Leaves out the points at which this side is not in this band.
    pub when: Option<Band>,
    /// Compare after the points have been reduced on both sides, not point by point.
    #[serde(default)]
    pub reduced: bool,
}

/// What came of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Scenario and claim: `avmrc/fig02/convergence`.
    pub id: String,
    /// What the paper says.
    pub claim: String,
    /// What was measured; `None` (in JSON null) if data is missing or not a number.
    pub measured: Option<f64>,
    /// Half of the 95 % confidence interval around it: what other seeds would have made of it. `None` unless it is of means over seeds.
    pub uncertainty: Option<f64>,
    /// The band; `None` if the number is only reported.
    pub band: Option<Band>,
    /// Whether a part of the confidence interval is in the band, and another is not: other seeds might have turned the verdict.
    pub straddles: bool,
    /// Whether the claim holds; `None` if the number is there and only reported, or if nothing was judged.
    pub holds: Option<bool>,
    /// The same in a word, which also tells the two apart.
    pub verdict: Ruling,
    /// How it was measured, in words.
    pub how: String,
    /// What a reader should know besides: the point that decided, or what is missing.
    pub detail: String,
}

/// A verdict in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The claim holds.
    Holds,
    /// It was judged, or should have been, and does not hold.
    Fails,
    /// There is a number and no band.
    Reported,
    /// The runs that it needs were not asked for.
    NotJudged,
}

impl Verdict {
    /// True if the runs that the claim is about were not asked for, so that nothing can be said of it.
    pub fn is_not_judged(&self) -> bool {
        self.verdict == Ruling::NotJudged
    }

    /// True if the claim was judged, or should have been, and does not hold.
    pub fn is_red(&self) -> bool {
        self.holds == Some(false)
    }
}

impl Claim {
    /// The band that judges it: its own, or that of its trend.
    pub fn band(&self) -> Option<Band> {
        self.holds.or(match self.points {
            Points::Rising => Some(Band { above: Some(0.0), ..Band::default() }),
            Points::Falling => Some(Band { below: Some(0.0), ..Band::default() }),
            _ => None,
        })
    }

    /// Whether it is about this point.
    fn takes(&self, point: &std::collections::BTreeMap<String, crate::results::Value>) -> bool {
        self.selection.takes(point) && !self.except.iter().any(|left_out| left_out.takes(point))
    }

    /// The same about all points, whatever the other side is there.
    fn at_any_rate(&self) -> Claim {
        let mut claim = self.clone();
        claim.ratio_to.iter_mut().chain(&mut claim.difference_to).for_each(|other| other.when = None);
        claim
    }

    /// The other side of its comparison, and whether it divides (or else subtracts).
    fn other(&self) -> Option<(&Other, bool)> {
        let ratio = self.ratio_to.as_ref().map(|other| (other, true));
        ratio.or_else(|| self.difference_to.as_ref().map(|other| (other, false)))
    }
}

#[cfg(test)]
mod tests;
