//! `--metrics ADDR:PORT`: how a running command stands, for Prometheus (OpenMetrics text over HTTP).
//!
//! What is served is what `--json` prints: the numbers of the last `progress` and `end` event of each session, and how many events of each
//! kind there were. `docs/metrics.md` is the page; a test keeps the two together.
//!
//! Not here: HTTP (`serve.rs`), which number has which name (`table.rs`).

mod serve;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::{Map, Value};

use table::{Kind, ROWS};

/// The metrics of a process, and where they are served.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    board: Board,
    /// The address and port; the system chose the port if it was 0.
    pub(crate) address: SocketAddr,
}

impl Metrics {
    /// Serves at this address from now on, until the process ends.
    ///
    /// # Errors
    /// If the address cannot be taken, or no thread started.
    pub(crate) fn serve(address: SocketAddr) -> std::io::Result<Metrics> {
        let board = Board::default();
        let text = board.clone();
        let address = serve::start(address, move || text.to_text())?;
        Ok(Metrics { board, address })
    }

    /// For the events of one session, or of the command as a whole.
    pub(crate) fn series(&self) -> Series {
        Series { board: self.board.clone(), labels: None }
    }
}

/// Where the events of one session are noted.
#[derive(Debug)]
pub(crate) struct Series {
    board: Board,
    /// Known from its `start` event on.
    labels: Option<Labels>,
}

impl Series {
    /// Notes an event.
    pub(crate) fn note(&mut self, event: &impl Serialize) {
        let Ok(Value::Object(fields)) = serde_json::to_value(event) else { return };
        let Some(kind) = fields.get("event").and_then(Value::as_str) else { return };
        if kind == "start" || self.labels.is_none() {
            self.labels = Some(labels(&fields));
        }
        let Some(labels) = &self.labels else { return };
        let mut all = self.board.lock();
        let Some(standing) = all.of(labels) else { return };
        *standing.events.entry([kind.to_owned(), table::detail(kind, &fields)]).or_default() += 1;
        match kind {
            "start" => {
                standing.values.clear();
                standing.values.insert(table::RUNNING, 1.0);
            }
            "progress" => standing.read(&fields),
            "end" => {
                standing.read(&fields);
                standing.values.insert(table::RUNNING, 0.0);
                all.note_end(labels);
            }
            _ => {}
        }
    }
}

/// What tells the series of a session from others.
type Labels = Vec<(&'static str, String)>;

/// The labels of a session, from its `start` event.
fn labels(start: &Map<String, Value>) -> Labels {
    let text = |key| match start.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let name = ["session", "stream", "address"].into_iter().map(text).find(|text| !text.is_empty());
    vec![
        ("role", Some(text("role")).filter(|role| !role.is_empty()).unwrap_or_else(|| "receiver".to_owned())),
        ("session", name.unwrap_or_default()),
        ("tsi", text("tsi")),
        ("sender_key", text("sender_key")),
    ]
}

/// How one session stands.
#[derive(Debug, Default)]
struct Standing {
    /// By the names of metrics.
    values: BTreeMap<&'static str, f64>,
    /// How many there were, by kind and what sort of it.
    events: BTreeMap<[String; 2], u64>,
}

impl Standing {
    fn read(&mut self, fields: &Map<String, Value>) {
        for row in ROWS {
            match fields.get(row.field) {
                Some(Value::Bool(is)) => drop(self.values.insert(row.name, f64::from(u8::from(*is)))),
                Some(Value::Number(number)) => {
                    self.values.insert(row.name, number.as_f64().unwrap_or(f64::NAN) * row.scale);
                }
                // Not known any more.
                Some(Value::Null) => drop(self.values.remove(row.name)),
                _ => {}
            }
        }
    }
}

/// How all sessions stand.
#[derive(Debug, Default)]
struct Standings {
    sessions: BTreeMap<Labels, Standing>,
    /// Those that have ended, by when: a count of ends.
    ended: BTreeSet<(u64, Labels)>,
    ends: u64,
}

impl Standings {
    /// The one with these labels. Sessions that ended long ago make room for new ones; without any, there is no room.
    fn of(&mut self, labels: &Labels) -> Option<&mut Standing> {
        self.ended.retain(|(_, ended)| ended != labels);
        if !self.sessions.contains_key(labels) && self.sessions.len() >= MOST_SESSIONS {
            let (_, oldest) = self.ended.pop_first()?;
            self.sessions.remove(&oldest);
        }
        Some(self.sessions.entry(labels.clone()).or_default())
    }

    fn note_end(&mut self, labels: &Labels) {
        self.ends += 1;
        self.ended.insert((self.ends, labels.clone()));
    }
}

/// How all sessions stand, shared by those who write and those who read.
#[derive(Debug, Clone, Default)]
struct Board(Arc<Mutex<Standings>>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, Standings> {
        // Each number stands by itself: what a panic left is still true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, in OpenMetrics text format 1.0.
    fn to_text(&self) -> String {
        let mut registry = Registry::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("weir_build", "Version of Weir", version);
        registry.register_collector(Box::new(self.clone()));
        let mut out = String::new();
        text::encode(&mut out, &registry).expect("a text takes every byte");
        out
    }
}

impl Collector for Board {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.lock();
        for row in ROWS {
            let mut values = all
                .sessions
                .iter()
                .filter_map(|(labels, standing)| Some((labels, standing.values.get(row.name)?)))
                .peekable();
            if values.peek().is_none() {
                continue;
            }
            let kind = if row.kind == Kind::Counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(row.name, row.help, None, kind)?;
            for (labels, value) in values {
                let mut metric = metric.encode_family(labels)?;
                match row.kind {
                    Kind::Counter => metric.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                    Kind::Gauge => metric.encode_gauge(value)?,
                }
            }
        }
        let mut metric = encoder.encode_descriptor(table::EVENTS, table::EVENTS_HELP, None, MetricType::Counter)?;
        for (labels, standing) in &all.sessions {
            for ([kind, detail], count) in &standing.events {
                let mut labels = labels.clone();
                labels.extend([("event", kind.clone()), ("detail", detail.clone())]);
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, f64>(count, None)?;
            }
        }
        Ok(())
    }
}

/// Sessions that are remembered, those that have ended among them.
const MOST_SESSIONS: usize = 1_024;

#[cfg(test)]
mod tests;
