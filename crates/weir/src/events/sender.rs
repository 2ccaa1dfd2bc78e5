//! What a sender of files tells.

use serde::{Deserialize, Serialize};

use super::{Role, Trouble};

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
