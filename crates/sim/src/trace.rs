//! A run written down, event by event, with the network's own numbers: the text by which two runs are compared.
//!
//! Not here: names, filters and a form that is promised. The laboratory's traces have them.

use std::fmt;
use std::io::{self, Write};

use weir_core::{Header, Observation};
use weir_link::DropReason;
use weir_units::Time;

use crate::{Address, AgentId, Body, LinkId, Monitor, Packet};

/// Writes a line for every event: what, when (seconds), where, and what of.
///
/// The first word is `+` for a packet that comes to a link, `-` for one that comes out of it, `d` for one that the link
/// loses, `r` for one that reaches an agent, `u` for payload that an endpoint hands to its application, `c` for an endpoint
/// that has done what its application wanted, and `o` for what an endpoint tells. A drop that a queue decides on when it sends is written when the link is next looked at, with its
/// own time.
///
/// An error of the writer is kept, and ends the writing: [`Trace::finish`] gives it.
#[derive(Debug)]
pub struct Trace<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> Trace<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Trace<W> {
        Trace { out, error: None }
    }

    /// Writes what is still to be written, and gives the writer back, or the first error.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = self.out.write_fmt(line).err();
        }
    }

    fn on_link(&mut self, what: &str, at: Time, link: LinkId, packet: &Packet, why: &str) {
        self.line(format_args!("{what} {at} link {} {}{why}\n", link.index(), Line(packet)));
    }
}

impl<W: Write> Monitor for Trace<W> {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        self.line(format_args!("o {now} agent {} {observation:?}\n", agent.index()));
    }

    fn arrive(&mut self, now: Time, agent: AgentId, packet: &Packet) {
        self.line(format_args!("r {now} agent {} {}\n", agent.index(), Line(packet)));
    }

    fn deliver(&mut self, now: Time, agent: AgentId, bytes: u64, number: Option<u64>) {
        match number {
            Some(number) => self.line(format_args!("u {now} agent {} {bytes} B number {number}\n", agent.index())),
            None => self.line(format_args!("u {now} agent {} {bytes} B\n", agent.index())),
        }
    }

    fn complete(&mut self, now: Time, agent: AgentId) {
        self.line(format_args!("c {now} agent {}\n", agent.index()));
    }

    fn enqueue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.on_link("+", now, link, packet, "");
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        self.on_link("d", at, link, packet, &format!(" {reason:?}"));
    }

    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        self.on_link("-", now, link, packet, "");
    }
}

/// A packet as it stands in a line.
struct Line<'a>(&'a Packet);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packet { size, flow, source, to, ecn, body } = self.0;
        write!(f, "flow {} from {} ", flow.index(), source.index())?;
        match to {
            Address::Agent(agent) => write!(f, "to {}", agent.index())?,
            Address::Channel(session, channel) => write!(f, "to channel {}.{channel}", session.index())?,
        }
        write!(f, " {} B {ecn:?} ", size.count())?;
        match body {
            Body::Endpoint(Header::Layered(header)) => write!(f, "{header:?}"),
            Body::Endpoint(header) => write!(f, "{header:?}"),
            Body::Segment(segment) => write!(f, "{segment:?}"),
            Body::Datagram(number) => write!(f, "datagram {number}"),
        }
    }
}
