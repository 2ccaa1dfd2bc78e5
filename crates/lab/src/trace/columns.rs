//! A trace as a Parquet file: a row an event, group after group, so that memory holds one group.

use std::io::{self, Write};

use super::packet::{Content, content, destination, ecn};
use super::text::in_a_word;
use super::{Event, Place, Sink, What};
use crate::export::{Column, Parquet, Table, Values};
use crate::run::Names;

/// Collects rows and writes them by the group.
pub(super) struct Columns<W: Write> {
    file: Parquet<W>,
    rows: Rows,
}

/// The rows of a group, by column.
#[derive(Default)]
struct Rows {
    times: Vec<Option<i64>>,
    words: [Vec<Option<String>>; WORDS.len()],
    numbers: [Vec<Option<i64>>; NUMBERS.len()],
}

impl Rows {
    fn len(&self) -> usize {
        self.times.len()
    }

    fn table(self) -> Table {
        let named = |name: &str, values| Column { name: name.to_owned(), values };
        let words = WORDS.iter().zip(self.words).map(|(name, values)| named(name, Values::Words(values)));
        let numbers = NUMBERS.iter().zip(self.numbers).map(|(name, values)| named(name, Values::Integers(values)));
        let time = named("time_ns", Values::Integers(self.times));
        Table { columns: std::iter::once(time).chain(words).chain(numbers).collect() }
    }
}

impl<W: Write> Columns<W> {
    pub(super) fn new(out: W) -> Columns<W> {
        Columns { file: Parquet::new(out), rows: Rows::default() }
    }
}

impl<W: Write> Sink for Columns<W> {
    fn take(&mut self, event: &Event<'_>, names: &Names) -> io::Result<()> {
        let (link, agent) = match event.place {
            Place::Link(link) => (Some(names.links[link.index()].clone()), None),
            Place::Agent(agent) => (None, Some(names.agents[agent.index()].clone())),
        };
        let flow = Some(names.flows[event.flow.index()].clone());
        let start = [Some(event.kind.name().0.to_owned()), link, agent, flow];
        let (rest, numbers) = match &event.what {
            What::Packet(packet, reason) => {
                let Content { family, number, fields } = content(packet);
                let from = names.agents[packet.source.index()].clone();
                let words = [from, destination(packet, names), ecn(packet).to_owned(), family.to_owned(), fields];
                let [from, to, ecn, family, fields] = words.map(Some);
                let reason = reason.map(|reason| in_a_word(reason).to_owned());
                ([from, to, ecn, reason, family, fields], [Some(packet.size.count()), number])
            }
            What::Payload { bytes, number } => (none(None), [Some(*bytes), *number]),
            What::Channel(channel) => (none(Some(format!("channel={channel}"))), [None, None]),
            What::Observation(observation) => (none(Some(format!("{observation:?}"))), [None, None]),
            What::Nothing => (none(None), [None, None]),
        };
        self.rows.times.push(i64::try_from(event.at.as_nanos()).ok());
        self.rows.words.iter_mut().zip(start.into_iter().chain(rest)).for_each(|(column, word)| column.push(word));
        let numbers = numbers.map(|number| number.and_then(|number| i64::try_from(number).ok()));
        self.rows.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
        if self.rows.len() < GROUP {
            return Ok(());
        }
        self.file.write(&std::mem::take(&mut self.rows).table())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let Columns { mut file, rows } = *self;
        file.write(&rows.table())?;
        file.finish()?.flush()
    }
}

/// The words of an event that is about no packet.
fn none(fields: Option<String>) -> [Option<String>; 6] {
    [None, None, None, None, None, fields]
}

const WORDS: [&str; 10] = ["kind", "link", "agent", "flow", "from", "to", "ecn", "reason", "header", "fields"];
const NUMBERS: [&str; 2] = ["bytes", "seq"];
/// Rows of a group.
const GROUP: usize = 1 << 16;
