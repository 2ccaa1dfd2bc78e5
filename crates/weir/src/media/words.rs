//! The events of layered media in words.

use weir_units::{Bytes, Rate};

use super::events::{ProgrammeEnd, ProgrammeProgress, ProgrammeStart, WatchEnd, WatchProgress, WatchStart};
use crate::progress::{percent, seconds, share};

pub(crate) fn programme_start(start: &ProgrammeStart) -> String {
    format!(
        "sending {} to {} ({}, {}, {}): {}; receivers need {}",
        start.input,
        start.address,
        start.encoding,
        layers(start.layers),
        start.scheme,
        rates(&start.rates_bps),
        start.description
    )
}

pub(crate) fn programme_progress(p: &ProgrammeProgress) -> String {
    let repair = percent(share(p.repair_packets, Some(p.sent_packets.max(1))).unwrap_or(0.0));
    let mut line = format!("{} · {} pictures · {repair} repair", Rate::from_bps(p.rate_bps), p.pictures);
    if p.dropped_pictures > 0 {
        line += &format!(" · {} pictures dropped, too late", p.dropped_pictures);
    }
    line
}

pub(crate) fn programme_end(end: &ProgrammeEnd) -> String {
    let mut line = format!(
        "sent {} pictures ({} by layer) in {} packets, {}, in {}",
        end.pictures,
        list(&end.layer_pictures),
        end.sent_packets,
        Bytes::new(end.sent_bytes),
        seconds(end.t_s)
    );
    if end.dropped_pictures > 0 {
        line += &format!("; {} pictures were dropped, as they had waited for too long", end.dropped_pictures);
    }
    line
}

pub(crate) fn watch_start(start: &WatchStart) -> String {
    format!(
        "receiving {} from {} ({}, {}, {}): {}; pictures go to {} {} ms after they were sent",
        start.session,
        start.address,
        start.encoding,
        layers(start.layers),
        start.scheme,
        rates(&start.rates_bps),
        start.out,
        start.latency_ms
    )
}

pub(crate) fn watch_progress(p: &WatchProgress) -> String {
    if p.received_packets == 0 {
        return "waiting for the first packet".to_owned();
    }
    let mut line = format!(
        "level {} · {} · {} pictures ({}) · lost {}",
        p.level,
        Rate::from_bps(p.rate_bps),
        p.pictures,
        list(&p.layer_pictures),
        loss(p.lost_packets, p.received_packets)
    );
    if p.recovered_packets > 0 {
        line += &format!(" · {} recovered", p.recovered_packets);
    }
    if p.withheld_pictures > 0 {
        line += &format!(" · {} pictures withheld", p.withheld_pictures);
    }
    line
}

pub(crate) fn watch_end(end: &WatchEnd) -> String {
    let why = match end.reason.as_str() {
        "bye" => "the sender has ended the programme",
        "silent" => "nothing comes any more",
        "failed" => "the output failed",
        _ => "stopped",
    };
    let mut line = format!(
        "{why}; gave out {} pictures ({} by layer) in {}; lost {}, {} packets recovered",
        end.pictures,
        list(&end.layer_pictures),
        seconds(end.t_s),
        loss(end.lost_packets, end.received_packets),
        end.recovered_packets
    );
    if end.withheld_pictures > 0 {
        line += &format!(
            "; {} pictures ({} by layer) were withheld, as others that they need are missing",
            end.withheld_pictures,
            list(&end.layer_withheld)
        );
    }
    if end.forged_packets > 0 {
        line += &format!("; {} packets were forged or sent again by others, and ignored", end.forged_packets);
    }
    if let Some(pause) = end.longest_pause_ms {
        line += &format!("; the longest pause of the base layer was {pause:.0} ms");
    }
    line
}

fn layers(count: usize) -> String {
    format!("{count} layer{}", if count == 1 { "" } else { "s" })
}

fn rates(rates_bps: &[u64]) -> String {
    rates_bps.iter().map(|bps| Rate::from_bps(*bps).to_string()).collect::<Vec<_>>().join(", ")
}

fn list(counts: &[u64]) -> String {
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn loss(lost: u64, received: u64) -> String {
    percent(share(lost, Some((lost + received).max(1))).unwrap_or(0.0))
}
