//! Figures as data: what a scenario's figure shows on which axes, and its drawing as SVG and PNG.
//!
//! A figure is read as `[figure]` from the scenario's file. A point on a curve is the mean of its runs; the bar through it
//! is its 95 % confidence interval. Each combination of the swept parameters that are not on the x axis is a curve.

mod data;
mod draw;
mod font;
mod render;
mod scale;
pub(crate) mod style;
pub mod svg;

use serde::Deserialize;

use crate::claim::Selection;

/// A figure of one or several panels.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What stands above it. Default: the scenario's title.
    #[serde(default)]
    pub title: String,
    /// Its panels, in the order of reading.
    #[serde(rename = "panel")]
    pub panels: Vec<Panel>,
}

/// One pair of axes with its curves.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// What stands above it.
    #[serde(default)]
    pub title: String,
    /// The points that it shows. Default: all.
    #[serde(default, rename = "where")]
    pub selection: Selection,
    /// A swept parameter, a metric, or `time`.
    pub x: Axis,
    /// One or several metrics; series if x is `time`.
    pub y: Axis,
    /// How points are joined. Default line.
    #[serde(default)]
    pub style: Style,
    /// The parameters that set curves apart. Default: all that vary and are not on the x axis; over a metric, those of them
    /// that are words.
    pub curves: Option<Vec<String>>,
    /// By a metric on the y axis: the two metrics between which its bars go, such as the smallest and the largest of several
    /// flows. Default: the 95 % confidence interval of its mean.
    #[serde(default)]
    pub bars: std::collections::BTreeMap<String, [String; 2]>,
    /// Names for the legend, by a curve's parameter value, metric or series. Default: as they are.
    #[serde(default)]
    pub names: std::collections::BTreeMap<String, String>,
    /// Lines across the panel at a value that matters, such as a fair share.
    #[serde(default, rename = "guide")]
    pub guides: Vec<Guide>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it measures; a list makes a curve of each.
    pub of: OneOrMore,
    /// Its name in words.
    pub label: String,
    /// Its unit, if it has one.
    #[serde(default)]
    pub unit: String,
    /// Default linear.
    #[serde(default)]
    pub scale: Scale,
    /// Where it begins. Default: 0 if that is near on a linear scale, or else a round number below the data.
    pub min: Option<f64>,
    /// Where it ends. Default: a round number above the data.
    pub max: Option<f64>,
}

/// A name, or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

impl OneOrMore {
    /// As a list.
    pub fn names(&self) -> &[String] {
        match self {
            OneOrMore::One(name) => std::slice::from_ref(name),
            OneOrMore::More(names) => names,
        }
    }
}

/// How values become lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are equal lengths.
    Log,
}

/// How the points of a curve are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// By straight lines.
    #[default]
    Line,
    /// Each value holds until the next.
    Steps,
    /// Not at all.
    Points,
}

/// A line across a panel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guide {
    /// At this value of y.
    pub y: f64,
    /// What it says in the legend.
    pub name: String,
}

#[cfg(test)]
mod tests;
