//! From a scenario file to the points of its sweep: parameters and variants are put in, and each point becomes a [`Setup`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use super::error::{ScenarioError, Source};
use super::head::{Assignments, HEAD_KEYS, Variant};
use super::rate_trace::RateTrace;
use super::setup::{Change, Setup};
use super::template::{assign, canonical, fill, outside_value};
use super::{Override, Scenario, did_you_mean};
use crate::results::Value;

/// A point of a sweep.
#[derive(Debug, Clone)]
pub struct Point {
    /// Values of the swept parameters, and the `variant` if there are any.
    pub at: BTreeMap<String, Value>,
    /// What is run.
    pub setup: Setup,
    /// How many runs it gets.
    pub seeds: usize,
    /// The set-up in one line: equal texts are equal set-ups. Of parts with a count of 0 it has only their names.
    pub canonical: String,
}

/// A file in its parts, overrides put in.
pub(super) struct Document<'i> {
    pub(super) head: DeTable<'i>,
    pub(super) sections: DeTable<'i>,
    setup: DeTable<'i>,
}

impl<'i> Document<'i> {
    pub(super) fn read(source: &'i Source, overrides: &'i [Override]) -> Result<Document<'i>, ScenarioError> {
        let whole = DeTable::parse(&source.text).map_err(|error| source.toml(&error))?;
        let mut parts = Document { head: DeTable::new(), sections: DeTable::new(), setup: DeTable::new() };
        for (key, value) in whole.into_inner() {
            let name = key.get_ref().as_ref();
            let part = if SECTIONS.contains(&name) {
                &mut parts.sections
            } else if HEAD_KEYS.contains(&name) {
                &mut parts.head
            } else if SETUP_KEYS.contains(&name) {
                &mut parts.setup
            } else {
                let known = HEAD_KEYS.iter().chain(SETUP_KEYS).chain(&SECTIONS).copied();
                return Err(
                    source.error(Some(key.span()), format!("unknown key {name:?}{}", did_you_mean(name, known)))
                );
            };
            part.insert(key, value);
        }
        for outside in overrides {
            parts.set(outside).map_err(|message| source.error(None, format!("--set {}: {message}", outside.key)))?;
        }
        Ok(parts)
    }

    fn set(&mut self, Override { key, value }: &'i Override) -> Result<(), String> {
        let value = outside_value(value);
        let swept = has(&self.head, "sweep", key);
        let known = swept || has(&self.head, "parameters", key) || self.is_set_by_name(key);
        let first = key.split('.').next().unwrap_or(key);
        if key == "variant" {
            return self.keep_variants(&value);
        }
        if !known && HEAD_KEYS.contains(&first) {
            self.variants_mut().for_each(|variant| drop(variant.remove(key.as_str())));
            return assign(&mut self.head, key, value);
        }
        if !known && !key.contains('.') && !self.setup.contains_key(key.as_str()) && !SETUP_KEYS.contains(&key.as_str())
        {
            let names = self.names();
            return Err(format!(
                "there is no such parameter or key{}",
                did_you_mean(key, names.iter().map(String::as_str))
            ));
        }
        for variant in self.variants_mut() {
            if let Some(set) = inner(variant, "set") {
                set.remove(key.as_str());
            }
        }
        for set in self.cases_mut() {
            set.remove(key.as_str());
        }
        match (swept, value) {
            (true, value @ (DeValue::Array(_) | DeValue::Table(_))) => {
                table(&mut self.head, "sweep").map(|t| put(t, key, value))
            }
            (true, value) => {
                let list = std::iter::once(Spanned::new(super::error::ELSEWHERE, value)).collect();
                table(&mut self.head, "sweep").map(|t| put(t, key, DeValue::Array(list)))
            }
            (false, value) if known && !key.contains('.') => {
                table(&mut self.head, "parameters").map(|t| put(t, key, value))
            }
            (false, value) => assign(&mut self.setup, key, value),
        }
    }

    /// Parameters and top-level keys, as candidates for a misspelt one.
    fn names(&self) -> Vec<String> {
        let inner = ["sweep", "parameters"].into_iter().filter_map(|name| self.head.get(name)?.get_ref().as_table());
        let inner = inner.flat_map(|table| table.keys().map(|key| key.get_ref().to_string()));
        inner.chain(HEAD_KEYS.iter().chain(SETUP_KEYS).map(ToString::to_string)).collect()
    }

    fn variants(&self) -> impl Iterator<Item = &DeTable<'i>> {
        let list = self.head.get("variant").and_then(|value| value.get_ref().as_array());
        list.into_iter().flat_map(|list| list.iter()).filter_map(|variant| variant.get_ref().as_table())
    }

    fn variants_mut(&mut self) -> impl Iterator<Item = &mut DeTable<'i>> {
        let list = self.head.get_mut("variant").and_then(|value| match value.get_mut() {
            DeValue::Array(list) => Some(list),
            _ => None,
        });
        list.into_iter().flat_map(|list| list.iter_mut()).filter_map(|variant| match variant.get_mut() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
    }

    /// What cases set.
    fn cases_mut(&mut self) -> impl Iterator<Item = &mut DeTable<'i>> {
        let parameters = inner(&mut self.head, "case").into_iter().flat_map(tables);
        parameters.flat_map(tables)
    }

    /// Whether a variant or a case sets it.
    fn is_set_by_name(&self, key: &str) -> bool {
        let cases = self.head.get("case").and_then(|value| value.get_ref().as_table());
        let values = cases.into_iter().flat_map(|cases| cases.values()).filter_map(|value| value.get_ref().as_table());
        let mut sets = values.flat_map(|cases| cases.values()).filter_map(|value| value.get_ref().as_table());
        sets.any(|set| set.contains_key(key)) || self.variants().any(|set| has(set, "set", key))
    }

    /// `--set variant=NAME`, or a list of names.
    fn keep_variants(&mut self, wanted: &DeValue<'_>) -> Result<(), String> {
        let wanted: Vec<&str> = match wanted {
            DeValue::Array(list) => list.iter().filter_map(|value| value.get_ref().as_str()).collect(),
            value => value.as_str().into_iter().collect(),
        };
        let known: Vec<String> = self.variants().filter_map(variant_name).collect();
        if let Some(stranger) = wanted.iter().find(|wanted| !known.iter().any(|known| known == *wanted)) {
            let suggestion = did_you_mean(stranger, known.iter().map(String::as_str));
            return Err(format!("there is no variant {stranger:?}{suggestion}"));
        }
        let list = self.head.get_mut("variant").map(Spanned::get_mut);
        if let Some(DeValue::Array(list)) = list {
            let kept = std::mem::replace(list, DeArray::new()).into_iter().filter(|variant| {
                let variant = variant.get_ref().as_table();
                variant.and_then(variant_name).is_some_and(|name| wanted.contains(&name.as_str()))
            });
            *list = kept.collect();
        }
        Ok(())
    }
}

fn variant_name(variant: &DeTable<'_>) -> Option<String> {
    variant.get("name").and_then(|name| name.get_ref().as_str()).map(str::to_owned)
}

fn has(table: &DeTable<'_>, inner: &str, key: &str) -> bool {
    table.get(inner).and_then(|value| value.get_ref().as_table()).is_some_and(|table| table.contains_key(key))
}

/// The table that is at `key`, if there is one.
fn inner<'a, 'i>(table: &'a mut DeTable<'i>, key: &str) -> Option<&'a mut DeTable<'i>> {
    match table.get_mut(key).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => Some(inner),
        _ => None,
    }
}

/// The tables in a table.
fn tables<'a, 'i>(table: &'a mut DeTable<'i>) -> impl Iterator<Item = &'a mut DeTable<'i>> {
    table.iter_mut().filter_map(|(_, value)| match value.get_mut() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    })
}

fn table<'a, 'i>(head: &'a mut DeTable<'i>, name: &'static str) -> Result<&'a mut DeTable<'i>, String> {
    if !head.contains_key(name) {
        assign(head, name, DeValue::Table(DeTable::new()))?;
    }
    match head.get_mut(name).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => Ok(table),
        _ => Err(format!("{name} is not a table")),
    }
}

/// Replaces the value of `key`, which keeps its place in the file and with it in the sweep.
fn put<'i>(table: &mut DeTable<'i>, key: &'i str, value: DeValue<'i>) {
    match table.get_mut(key) {
        Some(old) => *old.get_mut() = value,
        None => drop(table.insert(
            Spanned::new(super::error::ELSEWHERE, Cow::Borrowed(key)),
            Spanned::new(super::error::ELSEWHERE, value),
        )),
    }
}

/// All points, the first axis changing slowest and the variant fastest.
pub(super) fn points(scenario: &Scenario) -> Result<Vec<Point>, ScenarioError> {
    let document = Document::read(&scenario.source, &scenario.overrides)?;
    let head = &scenario.head;
    let mut points: Vec<BTreeMap<String, Value>> = vec![BTreeMap::new()];
    for name in &scenario.axes {
        let values = &head.sweep[name].0;
        points = points
            .into_iter()
            .flat_map(|point| {
                values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.insert(name.clone(), value.clone());
                    point
                })
            })
            .collect();
    }
    let variants: Vec<Option<&Variant>> = match &head.variant[..] {
        [] => vec![None],
        some => some.iter().map(Some).collect(),
    };
    let each = points.iter().flat_map(|at| variants.iter().map(move |variant| (at, *variant)));
    each.map(|(at, variant)| point(scenario, &document, at, variant)).collect()
}

fn point(
    scenario: &Scenario,
    document: &Document<'_>,
    at: &BTreeMap<String, Value>,
    variant: Option<&Variant>,
) -> Result<Point, ScenarioError> {
    let source = &scenario.source;
    let mut at = at.clone();
    let mut parameters = scenario.head.parameters.clone();
    parameters.extend(at.clone());
    let mut setup = document.setup.clone();
    if let Some(variant) = variant {
        let who = format!("variant {:?}", variant.name);
        set(&variant.set, &mut parameters, &mut setup, &who).map_err(|message| source.error(None, message))?;
        at.insert("variant".to_owned(), Value::Word(variant.name.clone()));
    }
    for (who, assignments) in scenario.head.cases_of(&parameters).map_err(|message| source.error(None, message))? {
        set(assignments, &mut parameters, &mut setup, &who).map_err(|message| source.error(None, message))?;
    }
    fill(&mut setup, &parameters, source)?;
    let mut canonical = canonical(&present(&setup));
    let read = Setup::deserialize(Deserializer::from(Spanned::new(0..0, setup)));
    let mut setup = read.map_err(|error| source.toml(&error))?;
    setup.spread_defaults();
    for change in &mut setup.change {
        let text = change.load(source).map_err(|message| source.error(None, format!("change: {message}")))?;
        // Another trace is another set-up, whatever its file is called.
        canonical += &text;
    }
    setup.check().map_err(|message| source.error(None, format!("{message} (at {at:?})")))?;
    let seeds = variant.and_then(|variant| variant.seeds).unwrap_or(scenario.head.seeds).0;
    Ok(Point { at, setup, seeds, canonical })
}

/// Puts assignments in: into parameters, where there is one of that name, or into the set-up.
fn set(
    assignments: &Assignments,
    parameters: &mut BTreeMap<String, Value>,
    setup: &mut DeTable<'_>,
    who: &str,
) -> Result<(), String> {
    for (key, value) in assignments {
        if let Some(parameter) = parameters.get_mut(key) {
            *parameter = value.clone();
            continue;
        }
        if !key.contains('.') && setup.get(key.as_str()).is_none() {
            let suggestion = did_you_mean(key, parameters.keys().map(String::as_str));
            return Err(format!("{who} sets {key:?}, which is no parameter{suggestion}"));
        }
        assign(setup, key, DeValue::String(value.to_string().into()))?;
    }
    Ok(())
}

/// The set-up without what parts say of which there is none: runs that differ only there are the same.
fn present<'i>(setup: &DeTable<'i>) -> DeTable<'i> {
    let mut setup = setup.clone();
    for section in ["session", "tree", "flow"] {
        for part in inner(&mut setup, section).into_iter().flat_map(tables) {
            let count = part.get("count").map(|count| match count.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                _ => String::new(),
            });
            if count.is_some_and(|count| count == "0") {
                *part = DeTable::new();
            }
        }
    }
    setup
}

/// Tables that other modules read.
const SECTIONS: [&str; 2] = ["claim", "figure"];

/// The keys of [`Setup`].
const SETUP_KEYS: &[&str] = &[
    "duration",
    "settings",
    "host",
    "topology",
    "session",
    "manager",
    "tree",
    "flow",
    "change",
    "router",
    "flow_per_channel",
    "metrics",
    "series",
];

impl Change {
    /// Reads the trace, if it has one. Gives its text.
    fn load(&mut self, source: &Source) -> Result<String, String> {
        let Some(name) = &self.trace else { return Ok(String::new()) };
        let path = Path::new(&source.file).parent().unwrap_or(Path::new("")).join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.rates = RateTrace::read(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text)
    }
}
