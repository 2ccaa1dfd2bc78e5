//! A trace as lines: see `docs/trace.md`.

use std::io::{self, Write};

use weir_link::DropReason;

use super::packet::{Content, content, destination, ecn, seconds};
use super::{Event, Place, Sink, What};
use crate::run::Names;

/// Writes a line an event.
pub(super) struct Lines<W>(W);

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Lines<W> {
        Lines(out)
    }
}

impl<W: Write> Sink for Lines<W> {
    fn take(&mut self, event: &Event<'_>, names: &Names) -> io::Result<()> {
        let out = &mut self.0;
        let place = match event.place {
            Place::Link(link) => &names.links[link.index()],
            Place::Agent(agent) => &names.agents[agent.index()],
        };
        let (_, sign) = event.kind.name();
        write!(out, "{sign} {} {place} {}", seconds(event.at.as_nanos()), names.flows[event.flow.index()])?;
        match &event.what {
            What::Packet(packet, reason) => {
                let Content { family, number, fields } = content(packet);
                let (from, to) = (&names.agents[packet.source.index()], destination(packet, names));
                write!(out, " {from} {to} {} {} {family}", packet.size.count(), ecn(packet))?;
                number.map_or(Ok(()), |number| write!(out, " seq={number}"))?;
                if !fields.is_empty() {
                    write!(out, " {fields}")?;
                }
                reason.map_or(Ok(()), |reason| write!(out, " reason={}", in_a_word(reason)))?;
            }
            What::Payload { bytes, number } => {
                write!(out, " bytes={bytes}")?;
                number.map_or(Ok(()), |number| write!(out, " number={number}"))?;
            }
            What::Channel(channel) => write!(out, " channel={channel}")?,
            What::Observation(observation) => write!(out, " {observation:?}")?,
            What::Nothing => {}
        }
        writeln!(out)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

pub(super) fn in_a_word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Overflow => "overflow",
        DropReason::Early => "early",
        DropReason::Lost => "lost",
    }
}
