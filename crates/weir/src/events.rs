//! What `--json` prints: one event a line. `docs/events.md` is their page; a test keeps the two together.
//!
//! Times are seconds since the `start` event (`t_s`), sizes bytes, rates bits per second; units stand in the names.
//! New events and new fields may be added; none is renamed or given another meaning.

mod announced;
mod receiver;
mod sender;

use serde::{Deserialize, Serialize};

pub use announced::{Announced, Listening, Outcome};
pub use receiver::{
    Cause, FileDone, HookDone, Level, ReceiptSent, ReceiverEnd, ReceiverEvent, ReceiverProgress, ReceiverStart, Seen,
    SeenWhat, Waiting,
};
pub use sender::{
    Hashing, HostOutcome, HostResult, Reading, ReceiptReceived, SenderEnd, SenderEvent, SenderProgress, SenderStart,
    Top,
};

/// The side of a session that a process is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `weir send`.
    Sender,
    /// `weir agent`.
    Agent,
    /// `weir recv`.
    #[default]
    Receiver,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trouble {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// What, and what to do.
    pub message: String,
    /// The exit code that it leads to; null if the command goes on.
    pub exit_code: Option<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor, live, media, stream};
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// One of each, so that the page and the round trip miss none.
    fn receiver_events() -> Vec<ReceiverEvent> {
        let level = Level { t_s: 0.5, level: 2, rate_bps: 384_000, cause: Cause::SlowStart };
        let all = vec![
            ReceiverEvent::Start(ReceiverStart { rates_bps: vec![256_000, 384_000], ..Default::default() }),
            ReceiverEvent::Level(level),
            ReceiverEvent::Progress(ReceiverProgress { loss_event_rate: Some(0.01), ..Default::default() }),
            ReceiverEvent::Waiting(Waiting { seen: vec![Seen::default()], ..Default::default() }),
            ReceiverEvent::File(FileDone { name: "a\nb\u{202e}".into(), ..Default::default() }),
            ReceiverEvent::Receipt(ReceiptSent::default()),
            ReceiverEvent::Hook(HookDone::default()),
            ReceiverEvent::Listening(Listening::default()),
            ReceiverEvent::Announced(Announced::default()),
            ReceiverEvent::Error(Trouble::default()),
            ReceiverEvent::End(ReceiverEnd::default()),
        ];
        all.iter().for_each(|event| match event {
            // A new kind needs a line above too.
            ReceiverEvent::Start(_) | ReceiverEvent::Level(_) | ReceiverEvent::Progress(_) | ReceiverEvent::File(_) => {
            }
            ReceiverEvent::Waiting(_) | ReceiverEvent::Receipt(_) | ReceiverEvent::Error(_) => {}
            ReceiverEvent::Hook(_) | ReceiverEvent::Listening(_) | ReceiverEvent::Announced(_) => {}
            ReceiverEvent::End(_) => {}
        });
        all
    }

    fn sender_events() -> Vec<SenderEvent> {
        let all = vec![
            SenderEvent::Reading(Reading::default()),
            SenderEvent::Hashing(Hashing::default()),
            SenderEvent::Start(SenderStart { role: Role::Sender, ..Default::default() }),
            SenderEvent::Progress(SenderProgress::default()),
            SenderEvent::Receipt(ReceiptReceived::default()),
            SenderEvent::Result(HostResult::default()),
            SenderEvent::Error(Trouble::default()),
            SenderEvent::End(SenderEnd::default()),
        ];
        all.iter().for_each(|event| match event {
            SenderEvent::Reading(_) | SenderEvent::Hashing(_) | SenderEvent::Start(_) => {}
            SenderEvent::Progress(_) | SenderEvent::Receipt(_) => {}
            SenderEvent::Result(_) | SenderEvent::Error(_) | SenderEvent::End(_) => {}
        });
        all
    }

    #[test]
    fn events_survive_the_line_that_carries_them() {
        for event in receiver_events() {
            let line = serde_json::to_string(&event).expect("events are plain data");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<ReceiverEvent>(&line).expect("reads back"), event);
        }
        for event in sender_events() {
            let line = serde_json::to_string(&event).expect("events are plain data");
            assert_eq!(serde_json::from_str::<SenderEvent>(&line).expect("reads back"), event);
        }
    }

    #[test]
    fn a_line_starts_with_its_kind_and_knows_causes_of_later_versions() {
        let level = ReceiverEvent::Level(Level { t_s: 1.5, level: 3, rate_bps: 576_000, cause: Cause::HostDrops });
        let line = r#"{"event":"level","t_s":1.5,"level":3,"rate_bps":576000,"cause":"host_drops"}"#;
        assert_eq!(serde_json::to_string(&level).expect("plain data"), line);
        let later = line.replace("host_drops", "moonshine");
        let Ok(ReceiverEvent::Level(level)) = serde_json::from_str(&later) else { panic!("{later}") };
        assert_eq!(level.cause, Cause::Other);
    }

    /// The (heading, field) pairs of the page, from `### kind` and the tables below each.
    fn documented(page: &str) -> BTreeSet<(String, String)> {
        let mut role = "";
        let mut kind = "";
        let mut fields = BTreeSet::new();
        for line in page.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                role = title;
            } else if let Some(title) = line.strip_prefix("### ") {
                kind = title;
            } else if let Some(field) = line.strip_prefix("| `").and_then(|row| row.split('`').next()) {
                fields.insert((format!("{role}/{kind}"), field.to_owned()));
            }
        }
        fields
    }

    #[test]
    fn the_page_lists_exactly_the_fields_that_there_are() {
        let page = include_str!("../../../docs/events.md");
        let receivers = receiver_events().into_iter().map(|event| ("weir recv", serde_json::to_value(event)));
        let senders = sender_events().into_iter().map(|event| ("weir send file", serde_json::to_value(event)));
        let mut real = BTreeSet::new();
        let viewers =
            live::receiver_samples().into_iter().map(|event| ("weir recv HOST:PORT", serde_json::to_value(event)));
        let live = live::sender_samples().into_iter().map(|event| ("weir send live", serde_json::to_value(event)));
        let media = media::sender_samples().into_iter().map(|event| ("weir send media", serde_json::to_value(event)));
        let watch =
            media::receiver_samples().into_iter().map(|event| ("weir recv of media", serde_json::to_value(event)));
        let doctor = doctor::samples().into_iter().map(|event| ("weir doctor", serde_json::to_value(event)));
        let streams = stream::samples().into_iter().map(|event| ("Streams over a tree", serde_json::to_value(event)));
        for (role, event) in
            receivers.chain(senders).chain(viewers).chain(live).chain(media).chain(watch).chain(streams).chain(doctor)
        {
            let Ok(Value::Object(fields)) = event else { panic!("an event is an object") };
            let kind = fields["event"].as_str().expect("the kind is a text").to_owned();
            let names = fields.keys().filter(|name| *name != "event");
            real.extend(names.map(|name| (format!("{role}/{kind}"), name.clone())));
        }
        assert_eq!(documented(page), real, "docs/events.md (left) and the events (right) differ");
    }

    #[test]
    fn the_page_lists_every_cause_and_where_tops_are_from() {
        let page = include_str!("../../../docs/events.md");
        let causes = [Cause::Start, Cause::SlowStart, Cause::SlowStartEnd, Cause::Add, Cause::Drop];
        for cause in
            causes.into_iter().chain([Cause::HostDrops, Cause::Allotted, Cause::Ceiling, Cause::Finish, Cause::Other])
        {
            let name = serde_json::to_string(&cause).expect("plain data");
            assert!(page.contains(&format!("`{}`", name.trim_matches('"'))), "{name}");
        }
        for top in [Top::Asked, Top::Interface, Top::Virtual, Top::Unknown, Top::Other] {
            let name = serde_json::to_string(&top).expect("plain data");
            assert!(page.contains(&format!("`{}`", name.trim_matches('"'))), "{name}");
        }
    }
}
