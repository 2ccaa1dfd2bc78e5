//! Round-trip times of receivers that nobody else hears from: probes to the sender at random times, and its echoes.
//!
//! A sender keeps probes few: it tells how far apart each receiver's are to be, and answers no more than it wants to.

mod announcement;
mod receiver;

use weir_units::{Bytes, Ecn};
use weir_wire::probe::{Flooded, Starting, Verdict, Wanted};
use weir_wire::{Probe, probe};

use crate::endpoint::{Action, Destination, Event, Header, Origin, Packet, PeerId};

pub(crate) use announcement::{Announcement, Interval};
pub(crate) use receiver::Probing;

/// A receiver sends a probe.
pub(crate) fn ask(probe: Probe) -> Action {
    Action::send(Destination::Peer(SENDER), packet(probe))
}

/// The sender answers one.
pub(crate) fn answer(asked: Probe) -> Action {
    Action::send(Destination::Reply, packet(Probe { kind: probe::Kind::Echo, ..asked }))
}

/// A receiver reports that its path is full whatever it leaves, and carries only this part of what is sent.
pub(crate) fn report(flooded: Flooded) -> Action {
    ask(Probe::flooded(flooded))
}

/// A receiver reports what sending less has done.
pub(crate) fn judge(verdict: Verdict) -> Action {
    ask(Probe::judged(verdict))
}

/// A receiver reports what it wants.
pub(crate) fn want(wanted: Wanted) -> Action {
    ask(Probe::wanted(wanted))
}

/// A receiver that looks for its rate reports what it has.
pub(crate) fn start(starting: Starting) -> Action {
    ask(Probe::starting(starting))
}

/// The probe that came to the sender with this event, if one did. An answer must not be longer than what asked for it.
pub(crate) fn asked(event: &Event<'_>) -> Option<Probe> {
    sent_to_sender(event).filter(|asked| asked.kind == probe::Kind::Probe)
}

/// What a receiver reported to the sender with this event, if it did.
pub(crate) fn reported(event: &Event<'_>) -> Option<Flooded> {
    sent_to_sender(event)?.carried()
}

/// What a receiver told the sender with this event of a cut, if it did.
pub(crate) fn judged(event: &Event<'_>) -> Option<Verdict> {
    sent_to_sender(event)?.verdict()
}

/// What a receiver told the sender with this event that it wants, if it did.
pub(crate) fn wanted(event: &Event<'_>) -> Option<Wanted> {
    sent_to_sender(event)?.wants()
}

/// What a receiver that looks for its rate told the sender with this event, if it did.
pub(crate) fn starting(event: &Event<'_>) -> Option<Starting> {
    sent_to_sender(event)?.starts()
}

fn sent_to_sender(event: &Event<'_>) -> Option<Probe> {
    let Event::Packet { from: Origin::Unverified, packet } = event else { return None };
    let Header::Probe(probe) = packet.header else { return None };
    (packet.size >= PROBE_SIZE).then_some(probe)
}

fn packet(probe: Probe) -> Packet {
    Packet { header: Header::Probe(probe), size: PROBE_SIZE, ecn: Ecn::NotEct }
}

/// A receiver's only correspondent.
pub(crate) const SENDER: PeerId = PeerId(0);

/// A probe or an echo on the network: IPv4 and UDP headers, and what is in them.
pub(crate) const PROBE_SIZE: Bytes = Bytes::new(28 + probe::LEN as u64);
