//! What `--json` prints: one event a line. `docs/events.md` is their page; a test keeps the two together.
//!
//! Times are seconds since the `start` event (`t_s`), sizes bytes, rates bits per second; units stand in the names.
//! New events and new fields may be added; none is renamed or given another meaning.

mod announced;

use serde::{Deserialize, Serialize};
use weir_core::observation::LevelCause;

pub use announced::{Announced, Listening, Outcome};

/// An event of `weir recv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ReceiverEvent {
    /// The receiver is ready and joins.
    Start(ReceiverStart),
    /// The subscription level changed.
    Level(Level),
    /// How it stands, several times a second.
    Progress(ReceiverProgress),
    /// Nothing that can be used comes: what was seen instead, or what to check.
    Waiting(Waiting),
    /// A file is complete.
    File(FileDone),
    /// The sender acknowledged the receipt, or all tries are used up.
    Receipt(ReceiptSent),
    /// The command of `--hook` has run.
    Hook(HookDone),
    /// An always-on receiver listens for announcements.
    Listening(Listening),
    /// What became of announcements.
    Announced(Announced),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(ReceiverEnd),
}

/// An event of `weir send file`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SenderEvent {
    /// How much of standard input has been read, where that takes a while.
    Reading(Reading),
    /// How much of the files has been hashed, where that takes a while.
    Hashing(Hashing),
    /// The session is described and the sender starts.
    Start(SenderStart),
    /// How it stands, several times a second.
    Progress(SenderProgress),
    /// A receiver has everything.
    Receipt(ReceiptReceived),
    /// What became of a host, at the end.
    Result(HostResult),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(SenderEnd),
}

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

/// The receiver is ready and joins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiverStart {
    /// `receiver`.
    pub role: Role,
    /// Version of Weir.
    pub version: String,
    /// Name of the session.
    pub session: String,
    /// Number of the session.
    pub tsi: u64,
    /// Congestion control scheme.
    pub scheme: String,
    /// Rates of the levels, level 1 first.
    pub rates_bps: Vec<u64>,
    /// Group and port of the base layer.
    pub address: String,
    /// Interface, by name or address; null if the system chooses.
    pub interface: Option<String>,
    /// Rate of the modelled link; null without one.
    pub link_bps: Option<u64>,
    /// Folder for the files.
    pub out: String,
    /// The sender's public key, in base64; null if the session has none.
    #[serde(default)]
    pub sender_key: Option<String>,
}

/// The subscription level changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// The new level: its place among the rates.
    pub level: usize,
    /// Rate of that level.
    pub rate_bps: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a subscription level changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The session started.
    Start,
    /// Slow start went on.
    SlowStart,
    /// Slow start went too far.
    SlowStartEnd,
    /// The target rate allows more.
    Add,
    /// The target rate allows less.
    Drop,
    /// This host could not keep up.
    HostDrops,
    /// Another session of this host goes first.
    Allotted,
    /// The sender sends no more.
    Ceiling,
    /// The application is done.
    Finish,
    /// A cause that this version has no word for.
    #[serde(other)]
    Other,
}

impl Cause {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::SlowStart => "slow start",
            Cause::SlowStartEnd => "end of slow start",
            Cause::Add => "the path allows more",
            Cause::Drop => "the path allows less",
            Cause::HostDrops => "this host cannot keep up",
            Cause::Allotted => "another session goes first",
            Cause::Ceiling => "the sender sends no more",
            Cause::Finish => "leaving",
            Cause::Other => "another cause",
        }
    }
}

impl From<LevelCause> for Cause {
    fn from(cause: LevelCause) -> Cause {
        match cause {
            LevelCause::Start => Cause::Start,
            LevelCause::SlowStart => Cause::SlowStart,
            LevelCause::SlowStartEnd => Cause::SlowStartEnd,
            LevelCause::Add => Cause::Add,
            LevelCause::Drop => Cause::Drop,
            LevelCause::HostDrops => Cause::HostDrops,
            LevelCause::Allotted => Cause::Allotted,
            LevelCause::Ceiling => Cause::Ceiling,
            LevelCause::Finish => Cause::Finish,
            _ => Cause::Other,
        }
    }
}

/// How a receiver stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiverProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Bytes of packets received, all headers included.
    pub received_bytes: u64,
    /// Bytes of content gained: symbols that were new.
    pub useful_bytes: u64,
    /// Bytes of content needed; null until the sender's table of files has come.
    pub needed_bytes: Option<u64>,
    /// Rate received since the last progress event.
    pub rate_bps: u64,
    /// Subscription level.
    pub level: usize,
    /// How many levels there are.
    pub levels: usize,
    /// Rate of the subscription level.
    pub level_rate_bps: u64,
    /// Short-term loss event rate; null before the first loss event.
    pub loss_event_rate: Option<f64>,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that the network lost.
    pub lost_packets: u64,
    /// Packets that this host dropped after the network had delivered them.
    pub host_dropped_packets: u64,
    /// Short-term average of the one-way queuing delay.
    pub queuing_delay_ms: f64,
    /// The last round trip to the sender that was measured; null where the scheme measures none.
    pub round_trip_ms: Option<f64>,
    /// Seconds to go at the present pace; null while unknown.
    pub eta_s: Option<f64>,
    /// The rate that the scheme aims at, bit/s: the lower one of a model's two targets, or for plm the least share of the path that
    /// a burst has told of in the last second; null while it has none.
    pub target_bps: Option<u64>,
}

/// Nothing that can be used comes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Waiting {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// For how long.
    pub waited_s: f64,
    /// All of it in words, in lines.
    pub message: String,
    /// What came and was not taken, the most first.
    pub seen: Vec<Seen>,
    /// What to check, if nothing was seen.
    pub check: Vec<String>,
}

/// Packets that came and were not taken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// What they are.
    pub what: SeenWhat,
    /// Who sent them; null if that is not known.
    pub from: Option<String>,
    /// Number of the session that they are of, if that is why.
    pub tsi: Option<u64>,
    /// FEC encoding id, if that is why.
    pub fec: Option<u64>,
    /// How many came.
    pub packets: u64,
}

/// Why packets were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenWhat {
    /// They are of another session.
    OtherSession,
    /// They are not from the sender that the description names.
    OtherSource,
    /// They are of another channel of the session.
    OtherChannel,
    /// Their FEC scheme is not known.
    UnknownFec,
    /// They cannot be read.
    Unreadable,
    /// They do not bear the session's seal.
    Unsealed,
    /// They bear a seal of another key.
    Forged,
    /// They are of an earlier start of the sender, or came before.
    Replayed,
    /// Tables of files that the sender's key has not signed.
    UnsignedTable,
    /// They reach the interface for groups that were not joined.
    Flooded,
    /// They reach the interface and not the program.
    Blocked,
    /// A reason that this version has no word for.
    #[default]
    #[serde(other)]
    Other,
}

/// A file is complete.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FileDone {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Name, as the sender gives it, relative to the folder.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// How much of it came in this run; the rest was there before.
    #[serde(default)]
    pub new_bytes: u64,
    /// From the first join to the verified file.
    pub seconds: f64,
    /// BLAKE3 digest, in hexadecimal.
    pub blake3: String,
    /// True if the digest is the one that the sender signed.
    pub verified: bool,
}

/// A receipt was sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiptSent {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// True if the sender acknowledged it.
    pub acknowledged: bool,
    /// How often it was sent.
    pub tries: u32,
}

/// The command of `--hook` has run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HookDone {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// The command.
    pub command: String,
    /// What it was told of the session: `complete` or `failed`.
    pub result: String,
    /// Its exit status; null if it could not be run or a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if it took too long.
    pub timed_out: bool,
    /// How long it took.
    pub seconds: f64,
    /// What went wrong, in words.
    pub message: Option<String>,
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

/// The receiver is done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiverEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// True if every file came.
    pub complete: bool,
    /// True if every file came and is what the sender signed.
    pub verified: bool,
    /// How many files came, verified unless any sender is taken.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// From the first join to the last verified file, or to giving up.
    pub seconds: f64,
    /// Bytes of packets received, all headers included.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets that the network lost.
    pub lost_packets: u64,
    /// Packets that this host dropped.
    pub host_dropped_packets: u64,
    /// Packets that came and were not taken: of other senders or sessions, or unreadable.
    #[serde(default)]
    pub ignored_packets: u64,
    /// Blocks that were forged or damaged in part and came again.
    #[serde(default)]
    pub bad_blocks: u64,
    /// Packets of a sealed session whose seal was not the session's, or that had come before.
    #[serde(default)]
    pub forged_packets: u64,
    /// Tables of files that the sender had not signed, or that make no sense.
    #[serde(default)]
    pub bad_tables: u64,
    /// Tables of files that the sender had signed and that were out of date.
    #[serde(default)]
    pub old_tables: u64,
    /// The start of the sender whose files came; null until its table has.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// The exit code.
    pub exit_code: u8,
}

/// The sender starts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SenderStart {
    /// `sender`.
    pub role: Role,
    /// Version of Weir.
    pub version: String,
    /// Name of the session.
    pub session: String,
    /// Number of the session.
    pub tsi: u64,
    /// Congestion control scheme.
    pub scheme: String,
    /// Rates of the levels, level 1 first.
    pub rates_bps: Vec<u64>,
    /// Where the highest of them is from.
    pub top: Top,
    /// Group and port of the base layer.
    pub address: String,
    /// Interface, by name or address; null if the system chooses.
    pub interface: Option<String>,
    /// Speed that the interface states; null if it is virtual or states none.
    pub interface_speed_bps: Option<u64>,
    /// How many files are sent.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// How many files, folders and links in the folders `--exclude` left out; a folder is one, with everything in it.
    #[serde(default)]
    pub excluded: u64,
    /// Where the session description was written.
    pub description: String,
    /// Group and port where the session is announced; null if it is not.
    #[serde(default)]
    pub announced: Option<String>,
    /// How many receipts are waited for; null for any number.
    pub receipts_wanted: Option<u64>,
}

/// Where the highest rate of a session is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Top {
    /// The user said it.
    #[default]
    Asked,
    /// From the speed that the interface states.
    Interface,
    /// The scheme's, as the interface is virtual.
    Virtual,
    /// The scheme's, as the interface states no speed.
    Unknown,
    /// From something that this version has no word for.
    #[serde(other)]
    Other,
}

/// How far a sender is that reads standard input to its end before it sends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Seconds since the command started.
    pub t_s: f64,
    /// Bytes that have been read.
    pub read_bytes: u64,
}

/// How far a sender is that looks through its files before it sends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hashing {
    /// Seconds since the command started.
    pub t_s: f64,
    /// Bytes that have been hashed.
    pub hashed_bytes: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// How a sender stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SenderProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Bytes of packets sent, all headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Rate sent since the last progress event.
    pub rate_bps: u64,
    /// Receivers that have sent a receipt.
    pub receipts: u64,
    /// Content sent, in times the size of the files.
    pub passes: f64,
    /// Receivers that have told what they want and not left; null where that is not known.
    pub receivers: Option<u64>,
    /// What the slowest of them wants.
    pub lowest_bps: Option<u64>,
    /// What the fastest wants.
    pub highest_bps: Option<u64>,
}

/// A receiver has everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceiptReceived {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// The receiver's address and port.
    pub from: String,
    /// What the receiver calls itself.
    pub name: String,
    /// The receiver's public key, in base64.
    pub receiver: String,
    /// What it received for the session, all headers included.
    pub received_bytes: u64,
    /// From its first packet to its verified end.
    pub seconds: f64,
    /// Receivers that have sent a receipt, this one included.
    pub receipts: u64,
}

/// What became of a host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostResult {
    /// Its name.
    pub host: String,
    /// Whether it was expected.
    pub expected: bool,
    /// How it ended.
    pub outcome: HostOutcome,
    /// How much of the content it has, as it last said.
    pub percent: f64,
    /// When it was last heard, in seconds since the `start` event; null if never.
    pub heard_s: Option<f64>,
    /// How long it took to have everything; null if it has not.
    pub seconds: Option<f64>,
    /// Its public key, in base64; null if it was never heard.
    pub receiver: Option<String>,
    /// How many receivers say that this is their name.
    pub claimants: u64,
}

/// How a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOutcome {
    /// It has everything, verified.
    Complete,
    /// It has a part.
    Partial,
    /// Nothing was heard of it.
    #[default]
    NeverHeard,
    /// An end that this version has no word for.
    #[serde(other)]
    Other,
}

/// The sender is done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SenderEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// How long it sent.
    pub seconds: f64,
    /// Bytes of packets sent, all headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Content sent, in times the size of the files.
    pub passes: f64,
    /// Receivers that have sent a receipt.
    pub receipts: u64,
    /// Reports and receipts that were no receiver's of this session.
    pub forged_messages: u64,
    /// Reports and receipts for which there was no time or no room.
    pub overflowed_messages: u64,
    /// The exit code.
    pub exit_code: u8,
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
