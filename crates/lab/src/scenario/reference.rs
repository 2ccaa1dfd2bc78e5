//! The reference page of scenario files, made from the types that read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::SchemaGenerator;
use serde_json::Value as Json;
use weir_link::{Grammar, Key, grammar};

use super::head::Head;
use super::setup::Setup;

/// `docs/scenarios.md`: every key, its type and what it means.
pub fn reference() -> String {
    let mut generator = SchemaGenerator::default();
    let head = generator.root_schema_for::<Head>().to_value();
    let setup = SchemaGenerator::default().root_schema_for::<Setup>().to_value();
    let mut page = INTRODUCTION.to_owned();
    let mut kinds = BTreeMap::new();
    table(&mut page, "The scenario", &head, &mut kinds);
    table(&mut page, "The set-up", &setup, &mut kinds);
    let mut definitions: BTreeMap<String, Json> = BTreeMap::new();
    for schema in [&head, &setup] {
        if let Some(Json::Object(inner)) = schema.get("$defs") {
            definitions.extend(inner.iter().map(|(name, schema)| (name.clone(), schema.clone())));
        }
    }
    for name in ORDER {
        if let Some(schema) = definitions.remove(*name) {
            section(&mut page, name, &schema, &mut kinds);
        }
    }
    for (name, schema) in &definitions {
        section(&mut page, name, schema, &mut kinds);
    }
    links(&mut page);
    page.push_str("\n## How values are written\n\n| type | written |\n|---|---|\n");
    for (name, help) in &kinds {
        writeln!(page, "| {name} | {} |", cell(help)).expect("a string takes everything");
    }
    page
}

/// How links are written, from the tables by which they are read.
fn links(page: &mut String) {
    page.push_str("\n## How links are written\n\n");
    page.push_str(LINKS);
    for Grammar { name, about, keys, default } in grammar() {
        let title = if name.is_empty() { "A link" } else { name };
        let default = default.replace("000000ns", "ms");
        write!(page, "\n### {title}\n\n{about} Default: `{default}`.\n").expect("a string takes everything");
        if !keys.is_empty() {
            page.push_str("\n| key | value | |\n|---|---|---|\n");
        }
        for Key { name, expected, means } in keys {
            writeln!(page, "| `{name}` | {} | {} |", cell(expected), cell(means)).expect("a string takes everything");
        }
    }
}

fn section(page: &mut String, name: &str, schema: &Json, kinds: &mut BTreeMap<String, String>) {
    let description = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    if schema.get("type").and_then(Json::as_str) == Some("string") && schema.get("enum").is_none() {
        kinds.insert(name.to_owned(), description.to_owned());
    } else if let Some(choices) = schema.get("oneOf").and_then(Json::as_array) {
        write!(page, "\n## {name}\n\n{description}\n\n| choice | |\n|---|---|\n").expect("a string takes everything");
        for choice in choices {
            self::choice(page, choice);
        }
    } else if schema.get("properties").is_some() {
        table(page, name, schema, kinds);
    } else {
        kinds.insert(name.to_owned(), description.to_owned());
    }
}

fn choice(page: &mut String, choice: &Json) {
    let description = cell(choice.get("description").and_then(Json::as_str).unwrap_or_default());
    if let Some(name) = choice.get("const").and_then(Json::as_str) {
        writeln!(page, "| `{name}` | {description} |").expect("a string takes everything");
    } else if let Some(Json::Object(inner)) = choice.get("properties") {
        for (name, schema) in inner {
            writeln!(page, "| `{name} = {{…}}` | {description} → {} |", kind(schema))
                .expect("a string takes everything");
        }
    } else {
        for name in choice.get("enum").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str) {
            writeln!(page, "| `{name}` | {description} |").expect("a string takes everything");
        }
    }
}

fn table(page: &mut String, title: &str, schema: &Json, _kinds: &mut BTreeMap<String, String>) {
    let description = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    write!(page, "\n## {title}\n\n{}\n\n| key | type | |\n|---|---|---|\n", description.replace("[`Setup`]", "set-up"))
        .expect("a string takes everything");
    let required: Vec<&str> =
        schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
    let Some(Json::Object(properties)) = schema.get("properties") else { return };
    for (key, property) in properties {
        let description = cell(property.get("description").and_then(Json::as_str).unwrap_or_default());
        let needed = if required.contains(&key.as_str()) { "**needed.** " } else { "" };
        writeln!(page, "| `{key}` | {} | {needed}{description} |", kind(property)).expect("a string takes everything");
    }
}

/// The name of a property's type.
fn kind(schema: &Json) -> String {
    if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
        return name.rsplit('/').next().unwrap_or(name).replace("%20", " ");
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("allOf")).and_then(Json::as_array);
    if let Some(alternatives) = alternatives {
        let names = alternatives.iter().map(kind).filter(|name| name != "null");
        return names.collect::<Vec<_>>().join(" or ");
    }
    if let Some(items) = schema.get("items") {
        return format!("list of {}", kind(items));
    }
    if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
        return format!("by name, {}", kind(inner));
    }
    match schema.get("type") {
        Some(Json::Array(types)) => {
            let names = types.iter().filter_map(Json::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ").replace("string", "text")
        }
        Some(Json::String(name)) => name.replace("string", "text"),
        _ => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

/// Sections in the order in which a reader needs them; what is not here follows by name.
const ORDER: &[&str] = &[
    "Variant",
    "Topology",
    "Dumbbell",
    "Graph",
    "Edge",
    "Chain",
    "Tree",
    "TransitStub",
    "Session",
    "Manager",
    "LadderKeys",
    "Receivers",
    "TreeStream",
    "Flow",
    "Traffic",
    "Tcp",
    "Http",
    "Udp",
    "Stream",
    "Supply",
    "Change",
    "Measure",
    "Kind",
    "Over",
    "Trace",
    "Quantity",
];

const LINKS: &str = "`rate=2mbit,delay=20ms,buffer=100ms,loss=2%` is a link with a drop-tail queue;
`rate=2mbit,buffer=50p,queue=red(min=5,max=15)` has another one. Queues that know parameters take them in parentheses. `weir recv --link`
reads the same.
";

const INTRODUCTION: &str = "# Scenario files

A scenario is one TOML file: a network, who sends over it, what is measured, and over which values it goes. This page is
made from the types that read the files (`cargo test -p weir-lab --test reference` says when it is out of date, and
`WEIR_BLESS=1` before it writes it again).

In every string of the set-up, `{…}` is replaced by the value of an expression: numbers, parameters, `+ - * /`, brackets, and
`round(a)`, `floor(a)`, `ceil(a)`, `min(a, b)`, `max(a, b)`. So `bottleneck = \"rate={1.5 * sessions}M,buffer={40 * sessions}p\"`
follows the swept parameter `sessions`, and `scheme = \"{scheme}\"` a parameter that is a word.

A swept word can stand for several things at once: the table `[case.queue]` says for each value of `queue` what else is
set, parameters by name and other keys by their path.

Parts may be there or not: a session, tree or flow with a `count` of 0 is not built, and a measure of several names takes those that are there. Points that
differ only in parts of which there are none are one run, which is made once.

What is random is written as a distribution, and drawn from a stream of its own that the seed and the key's path name, so that
adding a flow changes nobody else's luck.

`--set key=value` overrides any of it from outside: a parameter (`--set clients=4`), a swept parameter (one value, or a list), `seeds`,
`variant` (a name, or a list of names), or any key by its path (`--set session.main.settings.tau=200ms`). Elements of lists have numbers from 0: `--set change.0.at=5s`,
`--set topology.graph.links.2.link=rate=2M,buffer=50p`.
";
