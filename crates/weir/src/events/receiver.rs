//! What a receiver of files tells.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_core::observation::LevelCause;

use super::{Announced, Listening, Role, Trouble};

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
    /// Name, as the sender gives it, relative to the folder; what is no UTF-8 in it is replaced by U+FFFD.
    pub name: String,
    /// Where it is.
    #[serde(skip)]
    pub path: PathBuf,
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
