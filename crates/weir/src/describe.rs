//! `weir describe`: what a session description holds, in words.

use std::fmt::Write;

use weir_net::description::{Control, Description, Sealing};
use weir_net::seal::Members;
use weir_object::keys::PublicKey;

use crate::args::Describe;
use crate::exit::{Exit, Failure};
use crate::{fetch, trust};

/// Reads a description and puts it into words.
pub(crate) fn describe(args: &Describe) -> Result<String, Failure> {
    let text = fetch::session(&args.session)?;
    let description: Description = text.parse().map_err(Failure::of(Exit::Session, args.session.to_string()))?;
    Ok(in_words(&description, &text))
}

fn in_words(description: &Description, source: &str) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<12} {value}").expect("writing to a string cannot fail");
    };
    let first = description.channels[0];
    line("name", description.name.clone());
    match &description.media {
        Some(media) => {
            let latency = media.latency_ms;
            let (layers, encoding) = (media.layer_count(), &media.encoding);
            line(
                "session",
                format!("TSI {}, {encoding} in {layers} layers, put out {latency} ms late", description.tsi),
            );
        }
        None => line("session", format!("TSI {}, FLUTE version {}", description.tsi, description.flute_version)),
    }
    match description.channels.last() {
        Some(last) if description.channels.len() > 1 => {
            line("channels", format!("{}, {first} to {last}", description.channels.len()));
        }
        _ => line("channel", first.to_string()),
    }
    line("reach", format!("TTL {}", description.ttl));
    line("source", description.source.map_or_else(|| "any".to_owned(), |source| format!("{source} only")));
    match &description.control {
        Some(control) => control_in_words(control, &mut line),
        None => line("control", "none: receivers take all channels at whatever rate the sender chose".to_owned()),
    }
    line("signed", signed(description, source));
    line("packets", sealed(&description.sealing));
    if description.media.is_none() {
        let receipts = if description.receipt_key.is_some() { "asked for" } else { "not asked for" };
        line("receipts", receipts.to_owned());
    }
    if let Some(priority) = description.priority {
        line("priority", format!("{priority} among several sessions that a host receives"));
    }
    if let Some(address) = description.control_address {
        line("control port", address.to_string());
    }
    text
}

/// What proves whose packets are, and hides them.
fn sealed(sealing: &Sealing) -> String {
    let members = sealing.seals.members.map(|how| {
        let what = match how {
            Members::Tag => "authentic by a key that members share",
            Members::Encrypt => "encrypted by a key that members share",
        };
        match (&sealing.key, sealing.wrapped.len()) {
            (Some(_), _) => format!("{what}, which IS IN THIS DESCRIPTION: keep it secret"),
            (None, 1) => format!("{what}, which one host can read here"),
            (None, hosts) => format!("{what}, which {hosts} hosts can read here"),
        }
    });
    let source = sealing.seals.source.then(|| "signed by the sender".to_owned());
    let all: Vec<String> = members.into_iter().chain(source).collect();
    if all.is_empty() { "neither authentic by themselves nor encrypted".to_owned() } else { all.join("; ") }
}

/// By whom the content is signed, and whether the description is.
fn signed(description: &Description, source: &str) -> String {
    let key = description.public_key.map(|key| PublicKey::from_bytes(&key));
    match key {
        None => "no".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(key)) => match trust::is_signed(source, &key) {
            Some(true) => format!("{key}, and so is this description"),
            Some(false) => format!("{key}; THIS DESCRIPTION WAS CHANGED after it was signed"),
            None => format!("{key}; this description is not"),
        },
    }
}

fn control_in_words(control: &Control, line: &mut impl FnMut(&str, String)) {
    let settings: Vec<String> =
        control.settings.iter().map(|setting| format!(" {}={}", setting.key, setting.value)).collect();
    line("control", format!("{}{}", control.scheme, settings.concat()));
    let rates: Vec<String> = control.ladder.rates().iter().map(ToString::to_string).collect();
    line("rates", rates.join(", "));
    line("packet size", format!("{} on the network", control.packet_size));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_flute_session_is_said_to_have_no_congestion_control() {
        let description = Description {
            name: "news".to_owned(),
            tsi: 7,
            flute_version: 1,
            source: None,
            channels: vec!["239.255.0.1:5004".parse().expect("an address")],
            ttl: 1,
            control: None,
            symbol_size: None,
            public_key: None,
            epoch: None,
            expires: None,
            control_address: None,
            receipt_key: None,
            priority: None,
            sessions: None,
            sealing: Sealing::default(),
            media: None,
        };
        let text = in_words(&description, "");
        assert!(text.contains("control      none") && text.contains("channel      239.255.0.1:5004"), "{text}");
    }
}
