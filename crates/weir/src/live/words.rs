//! The events of live streams in words.

use weir_units::{Bytes, Rate};

use super::events::{
    LiveEnd, MeetingChange, SendProgress, SendStart, ViewEnd, ViewProgress, ViewStart, ViewerChange, ViewerProgress,
};
use crate::media::PicturesShown;
use crate::progress::{percent, seconds, share};

pub(crate) fn send_start(start: &SendStart) -> String {
    let text = format!("sending {} ({}); waiting for viewers at {}", start.input, start.scheme, start.address);
    match &start.key {
        Some(key) => format!("{text}; encrypted, viewers know this sender by --sender-key {key}"),
        None => text,
    }
}

pub(crate) fn viewer(change: &ViewerChange) -> String {
    let viewer = &change.viewer;
    match change.what.as_str() {
        "came" if change.viewers > 1 => format!("{viewer} views; {} viewers", change.viewers),
        "came" => format!("{viewer} views"),
        "bye" => format!("{viewer} has left"),
        "finished" => format!("everything was sent to {viewer}"),
        "stopped" => format!("the stream to {viewer} was stopped"),
        "silent" => format!("the viewer {viewer} is gone: it has not answered for too long"),
        _ => format!("the viewer {viewer} is gone: nobody listens there any more"),
    }
}

pub(crate) fn send_progress(p: &SendProgress) -> String {
    let rate = Rate::from_bps(p.rate_bps);
    let mut line = match &p.each[..] {
        [] => return format!("waiting for a viewer · {} payloads wait", p.waiting),
        [viewer] => {
            let mut line = format!("{rate} to {}", viewer.viewer);
            if let (Some(allowed), Some(round_trip)) = (p.allowed_bps, p.round_trip_ms) {
                line += &format!(" of {} · round trip {round_trip:.1} ms", Rate::from_bps(allowed));
            }
            if let Some(layers) = viewer.layers {
                line += &format!(" · {} of {} layers", layers.layers, layers.of);
                line += &format!(", {:.1} s ahead", layers.base_ms.max(0.0) / 1e3);
            }
            line
        }
        all => {
            let slowest = all.iter().min_by_key(|viewer| viewer.allowed_bps.unwrap_or(u64::MAX));
            let of = |slowest: &ViewerProgress| {
                Some(format!("{} to {}", Rate::from_bps(slowest.allowed_bps?), slowest.viewer))
            };
            let slowest = slowest.and_then(of).map_or_else(String::new, |slowest| format!(" · at least {slowest}"));
            format!("{rate} to {} viewers{slowest}", all.len())
        }
    };
    if let Some(target) = p.target_bps.filter(|_| p.each.iter().all(|viewer| viewer.layers.is_none())) {
        line += &format!(" · good for content of {}", Rate::from_bps(target));
    }
    line += &format!(" · sent {} · {} back-offs", Bytes::new(p.sent_bytes), p.backoffs);
    if p.each.iter().all(|viewer| viewer.layers.is_none()) {
        line += &format!(" · {} payloads wait", p.waiting);
    }
    if p.dropped > 0 {
        line += &format!(" · {} dropped, too old", p.dropped);
    }
    line
}

pub(crate) fn send_end(end: &LiveEnd) -> String {
    let mut line = format!(
        "sent {} of content in {} packets to {} viewer{}, {}",
        Bytes::new(end.payload_bytes),
        end.sent_packets,
        end.viewers,
        if end.viewers == 1 { "" } else { "s" },
        seconds(end.t_s)
    );
    if let (Some(changes), Some(underflows)) = (end.layer_changes, end.base_underflows) {
        line += &format!("; {changes} layers added or dropped, the base layer was missing {underflows} times");
    }
    if end.dropped > 0 {
        let what = if end.layer_changes.is_some() { "pictures" } else { "payloads" };
        line += &format!("; {} {what} were dropped, as they had waited for too long", end.dropped);
    }
    line
}

pub(crate) fn view_start(start: &ViewStart) -> String {
    format!("asking {} for its stream, which goes to {}", start.address, start.out)
}

pub(crate) fn meeting(change: &MeetingChange, address: &str) -> String {
    match change.stage.as_str() {
        "running" => {
            let scheme = change.scheme.as_deref().unwrap_or("unknown");
            let payload_type = change.payload_type.map_or_else(String::new, |it| format!(", RTP payload type {it}"));
            let latency = match change.latency_ms {
                Some(latency) if latency > 0 => format!(", given out {latency} ms after it came in"),
                _ => String::new(),
            };
            let missed =
                change.missed_s.map_or_else(String::new, |missed| format!("; nothing came for {}", seconds(missed)));
            let again = if change.missed_s.is_some() { " again" } else { "" };
            format!("the stream runs{again} ({scheme}{payload_type}{latency}){missed}")
        }
        "later" => format!("{address} has nothing to send yet; asking again until it has"),
        "busy" => format!("{address} has as many viewers as it takes; asking again every few seconds"),
        "reconnecting" => {
            let why = match change.why.as_deref() {
                Some("refused") => "nobody listens there any more",
                Some("forgotten") => "it was started again, or has given this viewer up",
                _ => "it has said nothing for too long",
            };
            format!("the stream of {address} has stopped: {why}; asking for it again")
        }
        "refused" => format!("nobody answers at {address} yet: no program listens on that port; asking on"),
        _ => format!("nobody answers at {address} yet; asking on"),
    }
}

pub(crate) fn view_progress(p: &ViewProgress) -> String {
    if p.received_packets == 0 {
        return "waiting for the first packet".to_owned();
    }
    let mut line = format!(
        "{} · {} received · lost {}",
        Rate::from_bps(p.rate_bps),
        Bytes::new(p.payload_bytes),
        loss(p.lost_packets, p.received_packets)
    );
    if let Some(pictures) = &p.pictures {
        let rate = Rate::from_bps(p.rate_bps);
        line = format!("{rate} · {} pictures put out", pictures.pictures);
        if pictures.withheld_pictures > 0 {
            line += &format!(", {} withheld", pictures.withheld_pictures);
        }
    }
    if p.recovered_packets > 0 {
        line += &format!(" · {} recovered", p.recovered_packets);
    }
    if let Some(lag) = p.lag_ms {
        line += &format!(" · {lag:.0} ms behind");
    }
    line
}

pub(crate) fn view_end(end: &ViewEnd) -> String {
    let why = match end.reason.as_str() {
        "bye" => "the sender has said goodbye",
        "stopped" => "stopped",
        "silent" => "the sender is gone: it has said nothing for too long",
        "refused" => "the sender is gone: nobody listens there any more",
        "forgotten" => "the sender is gone: it was started again, and does not offer its stream",
        _ => "the stream cannot be taken",
    };
    if let Some(pictures) = &end.pictures {
        return format!("{why}; {}{}", seen(pictures, end.t_s), again(end));
    }
    let line = format!(
        "{why}; received {} of content in {} packets in {}, {} packets ({}) are missing, {} were recovered",
        Bytes::new(end.payload_bytes),
        end.received_packets,
        seconds(end.t_s),
        end.lost_packets,
        loss(end.lost_packets, end.received_packets),
        end.recovered_packets
    );
    line + &again(end)
}

/// What came of the pictures of layered media.
fn seen(pictures: &PicturesShown, t_s: f64) -> String {
    let layers: Vec<String> = pictures.layer_pictures.iter().map(u64::to_string).collect();
    let pause = pictures.longest_pause_ms.map_or_else(String::new, |pause| {
        format!("; the longest pause of the base layer was {}", seconds(pause / 1e3))
    });
    let mut line =
        format!("put out {} pictures in {} (by layer: {})", pictures.pictures, seconds(t_s), layers.join(", "));
    if pictures.withheld_pictures > 0 {
        line += &format!(", withheld {}, as something that they need is missing", pictures.withheld_pictures);
    }
    line + &pause
}

/// How often the stream was taken again.
fn again(end: &ViewEnd) -> String {
    if end.reconnects == 0 {
        return String::new();
    }
    let (times, missed) = (if end.reconnects == 1 { "once" } else { "several times" }, seconds(end.missed_s));
    format!("; the stream was taken again {times}, and nothing came for {missed} before that")
}

fn loss(lost: u64, received: u64) -> String {
    percent(share(lost, Some((lost + received).max(1))).unwrap_or(0.0))
}
