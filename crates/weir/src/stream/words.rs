//! The events of streams over a tree in words.

use weir_units::{Bytes, Rate};

use super::events::{PeerStanding, Place, StreamEnd, StreamProgress, StreamStart};
use crate::events::Role;
use crate::progress::seconds;

pub(crate) fn start(start: &StreamStart) -> String {
    let listens = start.listens.as_deref().unwrap_or_default();
    let above = start.above.as_deref().unwrap_or_default();
    let bytes = start.bytes.as_deref().unwrap_or_default();
    match start.role {
        Role::Sender => format!("sending {bytes}; members join with\n  weir recv {}", start.stream),
        Role::Agent => format!("agent at {listens}; asking {above} for a place in the tree"),
        Role::Receiver => format!("receiving to {bytes}; asking {above} for a place in the tree"),
    }
}

pub(crate) fn peer(standing: &PeerStanding) -> String {
    let PeerStanding { peer, is_above, what, .. } = standing;
    match (what.as_str(), is_above) {
        ("joined", _) => format!("{peer} has joined"),
        ("catching_up", _) => format!("{peer} catches up; the stream does not wait for it"),
        ("too_slow", _) => format!("{peer} was turned out: it has been slower than --min-rate for too long"),
        ("too_late", _) => format!("{peer} was turned out: what it lacks is not kept any more"),
        ("unanswered", _) => format!("nobody answers at {peer} yet; asking on"),
        ("busy", _) => format!("{peer} has as many members as it takes; asking again every few seconds"),
        ("bye", true) => format!("{peer} has said goodbye"),
        ("bye" | "finished", _) => format!("{peer} has left"),
        ("silent", _) => format!("{peer} is gone: it has said nothing for too long"),
        ("refused", _) => format!("{peer} is gone: nobody listens there any more"),
        _ => format!("{peer} was told goodbye"),
    }
}

pub(crate) fn place(place: &Place) -> String {
    let (above, level) = (place.above.as_deref().unwrap_or_default(), place.level.unwrap_or_default());
    match place.what.as_str() {
        "member" => format!("{above} takes this node, at level {level} of the tree"),
        "catching_up" => format!("{above} takes this node, which catches up"),
        "cut_off" => format!("no multicast comes here from the sender: {above} sends the stream to this host alone"),
        "forwarding" => format!(
            "no multicast comes here from the sender: {above} sends the stream, and this agent sends it to the group"
        ),
        "reached" => "multicast comes here from the sender again".to_owned(),
        "too_slow" => "turned out: this node has been slower than the sender allows for too long".to_owned(),
        "too_late" => "what this node lacks is not kept any more; --from-now takes the stream from here on".to_owned(),
        _ => "looking for a place in the tree".to_owned(),
    }
}

pub(crate) fn progress(p: &StreamProgress) -> String {
    let mut line = format!("{} · {}", Rate::from_bps(p.rate_bps), Bytes::new(p.stream_bytes));
    if let Some(window) = p.window_packets {
        let transit = p.transit_packets.unwrap_or_default();
        line += &format!(" · {} members · {transit} packets in transit of {window:.0}", p.members);
    }
    if let Some(round_trip) = p.round_trip_ms {
        line += &format!(" · round trip {round_trip:.1} ms");
    }
    line
}

pub(crate) fn end(end: &StreamEnd) -> String {
    let digest = end.blake3.as_deref().map_or_else(String::new, |digest| format!(", BLAKE3 {digest}"));
    let is_whole = match (end.complete, end.verified) {
        (true, Some(true)) => "complete and verified",
        (true, _) => "complete",
        (false, _) => "not complete",
    };
    format!("{is_whole}: {} in {}{digest}", Bytes::new(end.stream_bytes), seconds(end.t_s))
}
