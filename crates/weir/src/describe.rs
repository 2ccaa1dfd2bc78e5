//! `weir describe`: what a session description holds, in words.

use std::fmt::Write;

use weir_net::description::{Control, Description};

use crate::args::Describe;
use crate::exit::{Exit, Failure};
use crate::fetch;

/// Reads a description and puts it into words.
pub(crate) fn describe(args: &Describe) -> Result<String, Failure> {
    let description: Description =
        fetch::session(&args.session)?.parse().map_err(Failure::of(Exit::Session, args.session.to_string()))?;
    Ok(in_words(&description))
}

fn in_words(description: &Description) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<12} {value}").expect("writing to a string cannot fail");
    };
    let first = description.channels[0];
    line("name", description.name.clone());
    line("session", format!("TSI {}, FLUTE version {}", description.tsi, description.flute_version));
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
    let signed = description.public_key.map_or_else(
        || "no".to_owned(),
        |key| format!("Ed25519 {}", key.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))),
    );
    line("signed", signed);
    let receipts = if description.receipt_key.is_some() { "asked for" } else { "not asked for" };
    line("receipts", receipts.to_owned());
    if let Some(priority) = description.priority {
        line("priority", format!("{priority} among several sessions that a host receives"));
    }
    if let Some(address) = description.control_address {
        line("control port", address.to_string());
    }
    text
}

fn control_in_words(control: &Control, line: &mut impl FnMut(&str, String)) {
    let settings: Vec<String> =
        control.settings.iter().map(|setting| format!(" {}={}", setting.key, setting.value)).collect();
    line("control", format!("{}{}", control.scheme, settings.concat()));
    let rates: Vec<String> = control.ladder.rates().iter().map(ToString::to_string).collect();
    line("rates", rates.join(", "));
    line("packets", format!("{} on the network", control.packet_size));
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
            control_address: None,
            receipt_key: None,
            priority: None,
            sessions: None,
        };
        let text = in_words(&description);
        assert!(text.contains("control      none") && text.contains("channel      239.255.0.1:5004"), "{text}");
    }
}
