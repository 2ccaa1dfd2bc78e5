//! What is in a packet, as words: its family, its number, and the other fields as `key=value`.

use std::fmt::Write;

use weir_core::Header;
use weir_sim::tcp::{self, Segment};
use weir_sim::{Address, Body, Packet};
use weir_units::Ecn;
use weir_wire::probe;

use crate::run::Names;

/// A packet's header in words.
pub(super) struct Content {
    /// `layered`, `data`, `ack` …
    pub(super) family: &'static str,
    /// The number that it has within its kind, if it has one.
    pub(super) number: Option<u64>,
    /// Other fields.
    pub(super) fields: String,
}

/// What is in the packet.
pub(super) fn content(packet: &Packet) -> Content {
    match &packet.body {
        Body::Endpoint(header) => endpoint(header),
        Body::Segment(segment) => self::segment(segment),
        Body::Datagram(number) => Content { family: "datagram", number: Some(*number), fields: String::new() },
    }
}

fn endpoint(header: &Header) -> Content {
    let (family, number, fields) = match header {
        Header::Layered(layered) => (
            "layered",
            Some(u64::from(layered.sequence)),
            format!(
                "channel={} slot={} clock_us={} signal={}",
                layered.channel,
                layered.slot,
                layered.clock_micros,
                yes_no(layered.signal)
            ),
        ),
        Header::Paced(paced) => ("paced", Some(u64::from(paced.sequence)), String::new()),
        Header::Feedback(feedback) => (
            "feedback",
            Some(u64::from(feedback.newest)),
            format!(
                "reports={} arrived={:08x} marked={:08x} held={}",
                feedback.reports, feedback.arrived, feedback.marked, feedback.held
            ),
        ),
        Header::Probe(probe) => {
            let family = if probe.kind == probe::Kind::Echo { "echo" } else { "probe" };
            (family, None, format!("clock_us={}", probe.clock_micros))
        }
        Header::TreeData(data) => (
            "tree-data",
            Some(u64::from(data.number)),
            format!("sent_us={} repair={} end={}", data.sent_micros, yes_no(data.is_repair), yes_no(data.is_end)),
        ),
        Header::TreeAck(ack) => (
            "tree-ack",
            Some(u64::from(ack.start)),
            format!(
                "received={:016x} low_mark={} limit={} min_cwnd={} max_twnd={}",
                ack.received, ack.low_mark, ack.limit, ack.min_cwnd, ack.max_twnd
            ),
        ),
        Header::TreeJoin(join) => ("tree-join", None, format!("{join:?}")),
        Header::Experimental(fields) => ("experimental", None, hexadecimal(&fields.0)),
    };
    Content { family, number, fields }
}

fn segment(segment: &Segment) -> Content {
    let (family, time) = match segment.kind {
        tcp::Kind::Data => ("data", "sent"),
        tcp::Kind::Ack => ("ack", "echo"),
    };
    let mut fields = format!("{time}={}", seconds(segment.sent.as_nanos()));
    for (i, (start, end)) in segment.sack_blocks().enumerate() {
        let before = if i == 0 { " sack=" } else { "," };
        write!(fields, "{before}{start}-{end}").expect("a string takes everything");
    }
    fields += if segment.ecn_echo { " ece=yes" } else { "" };
    fields += if segment.window_reduced { " cwr=yes" } else { "" };
    Content { family, number: Some(segment.seq), fields }
}

/// Where the packet goes: an agent, or a session's channel.
pub(super) fn destination(packet: &Packet, names: &Names) -> String {
    match packet.to {
        Address::Agent(agent) => names.agents[agent.index()].clone(),
        Address::Channel(_, channel) => format!("{}/{channel}", names.flows[packet.flow.index()]),
    }
}

pub(super) fn ecn(packet: &Packet) -> &'static str {
    match packet.ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect => "ect",
        Ecn::Ce => "ce",
    }
}

/// Seconds with all nine decimals.
pub(super) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn yes_no(whether: bool) -> &'static str {
    if whether { "yes" } else { "no" }
}
