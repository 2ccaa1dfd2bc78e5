//! Scenario files: one TOML file an experiment. What a file says about itself is read at once; its set-up is a template,
//! from which each point of the sweep makes a [`Setup`]. Not here: running it.

mod check;
mod defaults;
mod error;
mod expression;
mod head;
mod points;
mod rate_trace;
mod reference;
mod setup;
mod template;
mod topology;
mod traffic;
mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use serde::de::{Deserialize, DeserializeOwned};
use toml::Spanned;

pub use defaults::{Hosts, Settings};
pub use error::ScenarioError;
pub use head::{Assignments, Axis, Cases, Head, Variant};
pub use points::Point;
pub use rate_trace::RateTrace;
pub use reference::reference;
pub use setup::{Change, Flow, LadderKeys, Manager, Receivers, Router, Session, Setup, TreeStream};
pub use topology::{Chain, Dumbbell, Edge, Graph, Topology, TransitStub, Tree};
pub use traffic::{Http, Stream, Supply, Tcp, Traffic, Udp};
pub use values::{Sizes, Spans, Text, Written};

pub(crate) use error::did_you_mean;
pub(crate) use topology::{ALL_ON_ONE_NODE, one_node};

use crate::results::Value;
use error::Source;
use points::Document;

/// A scenario file.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it says about itself, and over what it goes.
    pub head: Head,
    /// Swept parameters, in the order of the file.
    axes: Vec<String>,
    source: Source,
    overrides: Vec<Override>,
}

/// An assignment from outside the file: `--set clients=4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// A parameter, a swept parameter, `variant`, `seeds`, or the path of any key: `session.main.settings.tau`.
    pub key: String,
    /// A TOML value; what is none is a string.
    pub value: String,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Override, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not key=value"))?;
        Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned() })
    }
}

impl Scenario {
    /// Reads the file at `path`.
    pub fn load(path: &Path, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Scenario::parse(&file, &text, overrides),
            Err(error) => Err(ScenarioError { file, line: None, message: error.to_string() }),
        }
    }

    /// Reads `text`, which errors call `file`. Every point is made once, so that what is read here can be run.
    pub fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let source = Source { file: file.to_owned(), text: text.to_owned() };
        let document = Document::read(&source, overrides)?;
        let axes = head::axes_in_order(&document.head);
        let head = Head::deserialize(toml::de::Deserializer::from(Spanned::new(0..0, document.head)));
        let head = head.map_err(|error| source.toml(&error))?;
        head.check().map_err(|message| source.error(None, message))?;
        let scenario = Scenario { head, axes, source, overrides: overrides.to_vec() };
        scenario.points()?;
        Ok(scenario)
    }

    /// A part of the file that this module does not look into: its `claim`s, its `figure`.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ScenarioError> {
        let mut document = Document::read(&self.source, &self.overrides)?;
        let Some(value) = document.sections.remove(name) else { return Ok(None) };
        let read = T::deserialize(toml::de::ValueDeserializer::from(value));
        read.map(Some).map_err(|error| self.source.toml(&error))
    }

    /// The points of the sweep: the first swept parameter of the file changes slowest, the variant fastest.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        points::points(self)
    }

    /// The points of the whole sweep of the file, if only a part of it was asked for: variants, or other values of
    /// swept parameters.
    pub(crate) fn whole_sweep(&self) -> Result<Option<Vec<BTreeMap<String, Value>>>, ScenarioError> {
        let narrows = |Override { key, .. }: &&Override| {
            key == "variant" || key.starts_with("sweep.") || self.axes.iter().any(|axis| axis == key)
        };
        if !self.overrides.iter().any(|outside| narrows(&outside)) {
            return Ok(None);
        }
        let others: Vec<Override> = self.overrides.iter().filter(|outside| !narrows(outside)).cloned().collect();
        let whole = Scenario::parse(&self.source.file, &self.source.text, &others)?;
        Ok(Some(whole.points()?.into_iter().map(|point| point.at).collect()))
    }

    /// The swept parameters, in the order of the file.
    pub fn axes(&self) -> &[String] {
        &self.axes
    }
}
