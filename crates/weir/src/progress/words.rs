//! Events in words.

use weir_units::{Bytes, Rate, is_unprintable};

use crate::events::{
    FileDone, Hashing, HookDone, HostOutcome, HostResult, Level, Listening, Reading, ReceiptReceived, ReceiptSent,
    ReceiverEnd, ReceiverProgress, ReceiverStart, SenderEnd, SenderProgress, SenderStart, Top,
};
use crate::top;

/// `text` without control characters: names come from the network, and a terminal obeys what it is sent.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || !is_unprintable(c) { c } else { '\u{fffd}' }).collect()
}

/// A name in one line.
pub(crate) fn name(text: &str) -> String {
    clean(text).replace('\n', "\u{fffd}")
}

/// What the command of `--hook` did.
pub(super) fn hook(done: &HookDone) -> String {
    format!("the hook {} took {}", clean(&done.command), seconds(done.seconds))
}

/// What an always-on receiver listens for.
pub(super) fn listening(listening: &Listening) -> String {
    let (groups, keys) = (listening.groups.join(", "), listening.sender_keys.join(", "));
    format!("listening at {groups} for sessions of {keys}; they come to folders in {}", clean(&listening.out))
}

/// Time as a clock shows it: `0:07`, `12:34`, `1:02:03`.
pub(crate) fn clock(seconds: f64) -> String {
    let s = seconds.clamp(0.0, 359_999_999.0).round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// Seconds with as many digits as matter: `1.24 s`, `52.3 s`, `12:34`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 119.95 => format!("{s:.1} s"),
        s => clock(s),
    }
}

/// A share as per cent: `0.31 %`, `12.3 %`, `100 %`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 9.995 => format!("{p:.2} %"),
        p if p < 99.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// What is done of `all`, at most 1; `None` if `all` is unknown.
pub(crate) fn share(done: u64, all: Option<u64>) -> Option<f64> {
    all.map(|all| if all == 0 { 1.0 } else { (done as f64 / all as f64).min(1.0) })
}

/// Of all packets that were sent this way, the share that `lost` are.
fn loss(lost: u64, received: u64) -> String {
    percent(share(lost, Some((lost + received).max(1))).unwrap_or(0.0))
}

fn levels(rates_bps: &[u64]) -> String {
    match rates_bps {
        [] => "one rate".to_owned(),
        [rate] => format!("one rate, {}", Rate::from_bps(*rate)),
        [low, .., high] => {
            format!("{} rates, {} to {}", rates_bps.len(), Rate::from_bps(*low), Rate::from_bps(*high))
        }
    }
}

pub(super) fn receiver_start(start: &ReceiverStart) -> String {
    let link = start.link_bps.map(|bps| format!(", behind a modelled link of {}", Rate::from_bps(bps)));
    format!(
        "receiving {} (session {}, {}) from {}: {}{}",
        name(&start.session),
        start.tsi,
        start.scheme,
        start.address,
        levels(&start.rates_bps),
        link.unwrap_or_default()
    )
}

pub(super) fn level(level: &Level) -> String {
    let rate = Rate::from_bps(level.rate_bps);
    format!("{:>7}  now at level {}, {rate}: {}", clock(level.t_s), level.level, level.cause.words())
}

pub(super) fn receiver_progress(p: &ReceiverProgress) -> String {
    if p.received_packets == 0 {
        return "waiting for the first packet".to_owned();
    }
    let size = match p.needed_bytes {
        Some(needed) => format!("{} of {}", Bytes::new(p.useful_bytes.min(needed)), Bytes::new(needed)),
        None => format!("{}, size not known yet", Bytes::new(p.received_bytes)),
    };
    let rate = Rate::from_bps(p.rate_bps);
    let level_rate = Rate::from_bps(p.level_rate_bps);
    let lost = loss(p.lost_packets, p.received_packets);
    let mut line = format!(
        "{size} · {rate} · level {} of {} ({level_rate}) · lost {lost} · delay {:.0} ms",
        p.level, p.levels, p.queuing_delay_ms
    );
    if p.host_dropped_packets > 0 {
        line += &format!(" · {} dropped by this host", p.host_dropped_packets);
    }
    if let Some(eta) = p.eta_s {
        line += &format!(" · {} to go", clock(eta));
    }
    line
}

pub(super) fn file(file: &FileDone) -> String {
    let rate = if file.seconds > 0.0 {
        Rate::from_bps((file.new_bytes as f64 * 8.0 / file.seconds) as u64)
    } else {
        Rate::ZERO
    };
    let verdict = if file.verified { "verified" } else { "complete, not signed" };
    format!("{}  {} in {} ({rate}), {verdict}", name(&file.name), Bytes::new(file.bytes), seconds(file.seconds))
}

pub(super) fn receipt_sent(receipt: &ReceiptSent) -> &'static str {
    if receipt.acknowledged { "the sender has our receipt" } else { "the sender did not answer our receipt" }
}

pub(super) fn receiver_end(end: &ReceiverEnd) -> String {
    let took = seconds(end.seconds);
    let outcome = if end.verified {
        format!("{} verified in {took}", count(end.files, "file"))
    } else if end.complete {
        format!("{} complete, not signed, in {took}", count(end.files, "file"))
    } else {
        format!("not complete after {took}")
    };
    let (received, lost) = (Bytes::new(end.received_bytes), loss(end.lost_packets, end.received_packets));
    let mut line = format!("{outcome}: received {received}, lost {lost} in the network");
    if end.host_dropped_packets > 0 {
        line +=
            &format!(", {} dropped by this host (raise net.core.rmem_max)", count(end.host_dropped_packets, "packet"));
    }
    line
}

pub(super) fn sender_start(start: &SenderStart) -> String {
    let until = match start.receipts_wanted {
        Some(wanted) => format!(", stops at {}", count(wanted, "receipt")),
        None => String::new(),
    };
    let without = match start.excluded {
        0 => String::new(),
        excluded => format!(" without {excluded} excluded"),
    };
    format!(
        "sending {}{without}, {}, to {} (session {}, {}): {}{until}\n{}receivers need {}",
        count(start.files, "file"),
        Bytes::new(start.bytes),
        start.address,
        start.tsi,
        start.scheme,
        levels(&start.rates_bps),
        highest(start).map(|why| why + "\n").unwrap_or_default(),
        name(&start.description),
    )
}

/// Why the highest rate is what it is, unless the user said it.
fn highest(start: &SenderStart) -> Option<String> {
    let highest = Rate::from_bps(start.rates_bps.last().copied().unwrap_or_default());
    let interface = start.interface.as_deref().map_or_else(|| "the interface".to_owned(), name);
    match (start.top, start.interface_speed_bps.map(Rate::from_bps)) {
        (Top::Interface, Some(speed)) if highest > speed => {
            Some(format!("{interface} has {speed}, which is less than the highest rate: --rates begins high"))
        }
        (Top::Interface, Some(speed)) if highest >= top::HIGHEST => {
            Some(format!("{interface} has {speed}; the highest rate is the most that is taken without --rates"))
        }
        (Top::Interface, Some(speed)) => {
            Some(format!("the highest rate leaves a tenth of the {speed} of {interface} free; --rates chooses another"))
        }
        (Top::Virtual, _) => {
            Some(format!("{interface} is virtual, so the highest rate is {highest}; --rates chooses another"))
        }
        (Top::Unknown, _) => {
            Some(format!("{interface} states no speed, so the highest rate is {highest}; --rates chooses another"))
        }
        (Top::Asked | Top::Other | Top::Interface, _) => None,
    }
}

pub(super) fn reading(reading: &Reading) -> String {
    format!("read {} of standard input, which is sent when it ends", Bytes::new(reading.read_bytes))
}

pub(super) fn hashing(hashing: &Hashing) -> String {
    format!("hashed {} of {}", Bytes::new(hashing.hashed_bytes), Bytes::new(hashing.bytes))
}

pub(super) fn sender_progress(p: &SenderProgress, wanted: u64) -> String {
    let of = if wanted > 0 { format!(" of {wanted}") } else { String::new() };
    format!(
        "{} · sent {} ({:.1} × the files) · {}receipts {}{of}",
        Rate::from_bps(p.rate_bps),
        Bytes::new(p.sent_bytes),
        p.passes,
        audience(p),
        p.receipts
    )
}

/// Who receives now, as far as it is known.
fn audience(p: &SenderProgress) -> String {
    let rate = |bps: Option<u64>| Rate::from_bps(bps.unwrap_or_default());
    match p.receivers {
        None => String::new(),
        Some(0) => "no receiver is heard · ".to_owned(),
        Some(1) => format!("1 receiver at {} · ", rate(p.highest_bps)),
        Some(count) if p.lowest_bps == p.highest_bps => format!("{count} receivers at {} · ", rate(p.highest_bps)),
        Some(count) => format!("{count} receivers at {} to {} · ", rate(p.lowest_bps), rate(p.highest_bps)),
    }
}

pub(super) fn receipt_received(receipt: &ReceiptReceived, wanted: u64) -> String {
    let of = if wanted > 0 { format!(" of {wanted}") } else { String::new() };
    format!(
        "{:>7}  receipt {}{of}: {} ({}) has all after {}",
        clock(receipt.t_s),
        receipt.receipts,
        name(&receipt.name),
        receipt.from,
        seconds(receipt.seconds)
    )
}

/// A line of the table of results.
pub(super) fn host(result: &HostResult) -> String {
    let outcome = match (result.outcome, result.seconds, result.heard_s) {
        (HostOutcome::Complete, Some(took), _) => format!("complete     after {}", seconds(took)),
        (HostOutcome::Complete, None, _) => "complete".to_owned(),
        (HostOutcome::Partial, _, heard) => {
            format!("at {:<9} heard at {}", percent(result.percent / 100.0), clock(heard.unwrap_or(0.0)))
        }
        (HostOutcome::NeverHeard, ..) => "never heard".to_owned(),
        (HostOutcome::Other, ..) => "unknown".to_owned(),
    };
    let mut line = format!("{:<24} {outcome}", name(&result.host));
    if !result.expected {
        line += ", not expected";
    }
    if result.claimants > 1 {
        line += &format!(", one of {} that have this name: keys in --expect tell them apart", result.claimants);
    }
    line
}

pub(super) fn sender_end(end: &SenderEnd) -> String {
    let sent = Bytes::new(end.sent_bytes);
    let mut line = format!(
        "{}; sent {sent} in {} ({:.1} × the files)",
        count(end.receipts, "receipt"),
        seconds(end.seconds),
        end.passes
    );
    if end.forged_messages + end.overflowed_messages > 0 {
        line += &format!(
            "; {} forged or of an earlier session, {} not looked at",
            count(end.forged_messages, "message"),
            end.overflowed_messages
        );
    }
    line
}

fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!([clock(7.4), clock(754.0), clock(3723.0), clock(-1.0)], ["0:07", "12:34", "1:02:03", "0:00"]);
        assert_eq!([seconds(1.239), seconds(52.34), seconds(754.0)], ["1.24 s", "52.3 s", "12:34"]);
        assert_eq!(
            [percent(0.0), percent(0.0031), percent(0.1234), percent(1.0)],
            ["0 %", "0.31 %", "12.3 %", "100 %"]
        );
    }

    #[test]
    fn names_from_the_network_cannot_steer_a_terminal() {
        assert_eq!(name("a\u{1b}[2Jb\n\u{202e}c\u{9b}"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}");
        assert_eq!(clean("two\nlines"), "two\nlines");
    }

    #[test]
    fn every_host_has_its_line() {
        let line = |outcome, expected, claimants| {
            let (percent, heard_s) = (43.21, Some(61.0));
            let seconds = (outcome == HostOutcome::Complete).then_some(12.34);
            let host = "alpha".to_owned();
            super::host(&HostResult { host, expected, outcome, percent, heard_s, seconds, receiver: None, claimants })
        };
        assert_eq!(line(HostOutcome::Complete, true, 1), "alpha                    complete     after 12.3 s");
        assert_eq!(line(HostOutcome::Partial, true, 1), "alpha                    at 43.2 %    heard at 1:01");
        assert_eq!(line(HostOutcome::NeverHeard, true, 0), "alpha                    never heard");
        let twice = line(HostOutcome::Complete, false, 2);
        assert!(twice.contains(", not expected, one of 2 that have this name"), "{twice}");
    }

    #[test]
    fn what_nobody_signed_is_complete_and_never_verified() {
        assert!(file(&FileDone::default()).ends_with(", complete, not signed"));
        let end = ReceiverEnd { complete: true, files: 1, seconds: 2.0, ..Default::default() };
        assert!(receiver_end(&end).starts_with("1 file complete, not signed, in 2.00 s: "));
    }

    #[test]
    fn a_receiver_without_a_packet_says_so() {
        assert_eq!(receiver_progress(&ReceiverProgress::default()), "waiting for the first packet");
    }
}
