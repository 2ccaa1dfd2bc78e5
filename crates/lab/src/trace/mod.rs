//! A run written down event by event, with the scenario's names, as text (`docs/trace.md`) or as Parquet.
//!
//! What a filter leaves out is neither formatted nor kept. Not here: what the names are, which the run knows.

mod columns;
mod filter;
mod packet;
mod text;

use std::io::{self, Write};
use std::str::FromStr;

use weir_core::Observation;
use weir_link::DropReason;
use weir_sim::{AgentId, FlowId, LinkId, Monitor, Packet};
use weir_units::Time;

pub use filter::{Filter, FilterError};

use crate::run::Names;
use columns::Columns;
use filter::Wanted;
use text::Lines;

/// What happens in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A packet comes to a link.
    Enqueue,
    /// A packet comes out of a link.
    Dequeue,
    /// A link loses a packet.
    Drop,
    /// A packet reaches an agent.
    Arrive,
    /// An endpoint gives a payload to its application.
    Deliver,
    /// An endpoint has done what its application wanted.
    Complete,
    /// An endpoint joins a channel.
    Join,
    /// An endpoint leaves a channel.
    Leave,
    /// An endpoint tells something.
    Observe,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::Enqueue,
        Kind::Dequeue,
        Kind::Drop,
        Kind::Arrive,
        Kind::Deliver,
        Kind::Complete,
        Kind::Join,
        Kind::Leave,
        Kind::Observe,
    ];

    /// Its name, and the sign that lines of text begin with.
    pub const fn name(self) -> (&'static str, char) {
        match self {
            Kind::Enqueue => ("enqueue", '+'),
            Kind::Dequeue => ("dequeue", '-'),
            Kind::Drop => ("drop", 'd'),
            Kind::Arrive => ("arrive", 'r'),
            Kind::Deliver => ("deliver", 'u'),
            Kind::Complete => ("complete", 'c'),
            Kind::Join => ("join", 'j'),
            Kind::Leave => ("leave", 'l'),
            Kind::Observe => ("observe", 'o'),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.name().0 == text).ok_or_else(|| {
            let names = Kind::ALL.map(|kind| kind.name().0).join(", ");
            format!("there is no kind {text:?}; there are {names}")
        })
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line each.
    Text,
    /// A row each.
    Parquet,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "parquet" => Ok(Format::Parquet),
            _ => Err(format!("there is no form {text:?}; there are text and parquet")),
        }
    }
}

/// Something that happened.
struct Event<'a> {
    at: Time,
    kind: Kind,
    place: Place,
    flow: FlowId,
    what: What<'a>,
}

/// Where it happened.
#[derive(Clone, Copy)]
enum Place {
    Link(LinkId),
    Agent(AgentId),
}

/// To what.
enum What<'a> {
    Packet(&'a Packet, Option<DropReason>),
    Payload { bytes: u64, number: Option<u64> },
    Channel(u16),
    Observation(&'a Observation),
    Nothing,
}

/// Takes down events.
trait Sink {
    fn take(&mut self, event: &Event<'_>, names: &Names) -> io::Result<()>;

    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Watches a run and writes down what is wanted of it.
///
/// An error of the writer is kept, and ends the writing: [`Tracer::finish`] gives it.
pub struct Tracer {
    names: Names,
    wanted: Wanted,
    sink: Box<dyn Sink>,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("wanted", &self.wanted).field("error", &self.error).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Writes what `filter` takes to `out`, which should be buffered.
    pub fn new(
        out: impl Write + 'static,
        format: Format,
        filter: &Filter,
        names: &Names,
    ) -> Result<Tracer, FilterError> {
        let sink: Box<dyn Sink> = match format {
            Format::Text => Box::new(Lines::new(out)),
            Format::Parquet => Box::new(Columns::new(out)),
        };
        Ok(Tracer { wanted: filter.resolve(names)?, names: names.clone(), sink, error: None })
    }

    /// Writes what is still to be written, or gives the first error.
    pub fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.sink.finish(),
        }
    }

    fn take(&mut self, event: &Event<'_>) {
        if self.error.is_none() && self.wanted.takes(event) {
            self.error = self.sink.take(event, &self.names).err();
        }
    }

    fn on_link(&mut self, kind: Kind, at: Time, link: LinkId, packet: &Packet, reason: Option<DropReason>) {
        let what = What::Packet(packet, reason);
        self.take(&Event { at, kind, place: Place::Link(link), flow: packet.flow, what });
    }

    fn at_agent(&mut self, kind: Kind, at: Time, agent: AgentId, what: What<'_>) {
        let flow = match &what {
            What::Packet(packet, _) => packet.flow,
            _ => self.names.flow_of[agent.index()],
        };
        self.take(&Event { at, kind, place: Place::Agent(agent), flow, what });
    }
}

impl Monitor for Tracer {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        self.at_agent(Kind::Observe, now, agent, What::Observation(observation));
    }

    fn observe_session(&mut self, now: Time, agent: AgentId, session: u16, observation: &Observation) {
        let managed = self.names.managed.get(&agent).and_then(|flows| flows.get(usize::from(session)));
        let flow = managed.copied().unwrap_or(self.names.flow_of[agent.index()]);
        let what = What::Observation(observation);
        self.take(&Event { at: now, kind: Kind::Observe, place: Place::Agent(agent), flow, what });
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        self.at_agent(Kind::Arrive, now, agent, What::Packet(packet, None));
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        self.at_agent(Kind::Deliver, now, agent, What::Payload { bytes, number });
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.at_agent(Kind::Complete, now, agent, What::Nothing);
    }

    fn member(&mut self, now: Time, agent: AgentId, channel: u16, joins: bool) {
        let kind = if joins { Kind::Join } else { Kind::Leave };
        self.at_agent(kind, now, agent, What::Channel(channel));
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.on_link(Kind::Enqueue, now, link, packet, None);
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        self.on_link(Kind::Drop, at, link, packet, Some(reason));
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.on_link(Kind::Dequeue, now, link, packet, None);
    }
}

#[cfg(test)]
mod tests;
