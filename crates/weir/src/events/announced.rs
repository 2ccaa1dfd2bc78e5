//! What an always-on receiver tells of announcements.

use serde::{Deserialize, Serialize};

/// An always-on receiver listens for announcements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Listening {
    /// Version of Weir.
    pub version: String,
    /// Groups and ports of the announcements.
    pub groups: Vec<String>,
    /// Public keys of the senders whose sessions are taken, in base64.
    pub sender_keys: Vec<String>,
    /// Folder for the sessions' folders.
    pub out: String,
    /// How many sessions are received at once.
    pub at_once: u32,
}

/// What became of announcements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Announced {
    /// Seconds since the receiver began to listen.
    pub t_s: f64,
    /// What became of it.
    pub outcome: Outcome,
    /// Name of the session; null if the announcement is not believed.
    pub name: Option<String>,
    /// Number of the session.
    pub tsi: Option<u64>,
    /// The start of the sender that it is of.
    pub epoch: Option<u64>,
    /// The sender's public key, in base64.
    pub sender_key: Option<String>,
    /// The address that it came from, the last of several.
    pub from: String,
    /// How many there were since they were last told of.
    pub announcements: u64,
    /// All of it in words.
    pub message: String,
}

/// What became of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The session is received.
    Taken,
    /// It waits until another session is done.
    Waiting,
    /// It is here already.
    Complete,
    /// The sender has ended it before it was received.
    Withdrawn,
    /// No key that was given has signed it.
    OtherKey,
    /// It names a key that was given, which has not signed it.
    BadSignature,
    /// It does not hold any more.
    Expired,
    /// It is of an earlier start of the sender than was heard of before.
    Old,
    /// It cannot be read.
    Unreadable,
    /// More came than are looked at.
    Flood,
    /// An outcome that this version has no word for.
    #[default]
    #[serde(other)]
    Other,
}

impl Outcome {
    /// Whether this is as it should be, and no trouble.
    pub const fn is_plain(self) -> bool {
        matches!(self, Outcome::Taken | Outcome::Waiting | Outcome::Complete | Outcome::Withdrawn)
    }
}
