//! The events of layered media, as `--json` prints them. `docs/events.md` is their page.

use serde::{Deserialize, Serialize};

use crate::events::{Level, Role, Trouble, Waiting};

/// An event of `weir send media`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MediaSenderEvent {
    /// The programme starts.
    Start(ProgrammeStart),
    /// How it stands, several times a second.
    Progress(ProgrammeProgress),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(ProgrammeEnd),
}

/// An event of `weir recv` of layered media.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MediaReceiverEvent {
    /// The receiver joins.
    Start(WatchStart),
    /// Nothing that can be used comes: what was seen instead, or what to check.
    Waiting(Waiting),
    /// It takes more layers, or fewer.
    Level(Level),
    /// How it stands, several times a second.
    Progress(WatchProgress),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(WatchEnd),
}

/// The programme starts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgrammeStart {
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
    /// Rates between which receivers choose, all headers included.
    pub rates_bps: Vec<u64>,
    /// Group and port of the base layer.
    pub address: String,
    /// Network interface.
    pub interface: String,
    /// What is sent.
    pub input: String,
    /// Encoding of the pictures.
    pub encoding: String,
    /// Layers that were found in it.
    pub layers: usize,
    /// How long after the sender got them receivers give pictures out.
    pub latency_ms: u64,
    /// Where receivers find the description.
    pub description: String,
}

/// How sending stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgrammeProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Packets sent, all headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Sent since the last progress event.
    pub rate_bps: u64,
    /// Of the packets, those of repair and padding.
    pub repair_packets: u64,
    /// Pictures sent.
    pub pictures: u64,
    /// Pictures that waited for too long, or needed one that had, and were dropped.
    pub dropped_pictures: u64,
    /// Pictures sent, by layer.
    pub layer_pictures: Vec<u64>,
    /// Pictures dropped, by layer.
    pub layer_dropped: Vec<u64>,
    /// For how long the picture that is sent next has waited, the longest of the layers.
    pub waited_ms: f64,
}

/// How a sender ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgrammeEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Packets sent, all headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Of the packets, those of repair and padding.
    pub repair_packets: u64,
    /// Pictures sent.
    pub pictures: u64,
    /// Pictures that waited for too long, or needed one that had, and were dropped.
    pub dropped_pictures: u64,
    /// Pictures sent, by layer.
    pub layer_pictures: Vec<u64>,
    /// Pictures dropped, by layer.
    pub layer_dropped: Vec<u64>,
    /// The exit code.
    pub exit_code: u8,
}

/// The receiver joins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WatchStart {
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
    /// Rates between which the receiver chooses, all headers included.
    pub rates_bps: Vec<u64>,
    /// Group and port of the base layer.
    pub address: String,
    /// Network interface.
    pub interface: String,
    /// Rate of the modelled link, if there is one.
    pub link_bps: Option<u64>,
    /// Where the pictures go.
    pub out: String,
    /// Encoding of the pictures.
    pub encoding: String,
    /// Layers that there are.
    pub layers: usize,
    /// How long after the sender got them pictures are given out.
    pub latency_ms: u64,
    /// The sender's public key, if the description has one.
    pub sender_key: Option<String>,
}

/// How receiving stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WatchProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Packets received, all headers included.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Received since the last progress event.
    pub rate_bps: u64,
    /// The subscription level.
    pub level: usize,
    /// Pictures given out.
    pub pictures: u64,
    /// Pictures that came and were withheld, as one that they need is missing.
    pub withheld_pictures: u64,
    /// Pictures given out, by layer.
    pub layer_pictures: Vec<u64>,
    /// Pictures withheld, by layer.
    pub layer_withheld: Vec<u64>,
    /// Packets of pictures that are missing.
    pub lost_packets: u64,
    /// Packets that repair brought back.
    pub recovered_packets: u64,
    /// The longest time from the sender's input to the output since the last progress event, less the fastest way between them; null if
    /// nothing was given out.
    pub lag_ms: Option<f64>,
}

/// What came of the pictures of a unicast stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PicturesShown {
    /// Pictures given out.
    pub pictures: u64,
    /// Pictures that came and were withheld, as one that they need is missing.
    pub withheld_pictures: u64,
    /// Pictures that came when they were of no use any more.
    pub late_pictures: u64,
    /// Pictures given out, by layer.
    pub layer_pictures: Vec<u64>,
    /// The longest time between two pictures of the base layer; null before the second.
    pub longest_pause_ms: Option<f64>,
}

/// How a receiver ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WatchEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// `bye`, `stopped`, `silent` or `failed`.
    pub reason: String,
    /// Packets received, all headers included.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Pictures given out.
    pub pictures: u64,
    /// Pictures that came and were withheld, as one that they need is missing.
    pub withheld_pictures: u64,
    /// Pictures given out, by layer.
    pub layer_pictures: Vec<u64>,
    /// Pictures withheld, by layer.
    pub layer_withheld: Vec<u64>,
    /// Pictures that came when they were of no use any more.
    pub late_pictures: u64,
    /// Packets of pictures that are missing.
    pub lost_packets: u64,
    /// Packets that repair brought back.
    pub recovered_packets: u64,
    /// From the start to the first picture given out; null if there was none.
    pub first_picture_s: Option<f64>,
    /// The longest pause between two pictures of the base layer that were given out, by the sender's clock; null with fewer than two.
    pub longest_pause_ms: Option<f64>,
    /// Packets of others, and packets that cannot be read.
    pub ignored_packets: u64,
    /// Packets of a sealed programme whose seal was not its own, or that had come before.
    pub forged_packets: u64,
    /// The exit code.
    pub exit_code: u8,
}

/// One event of each kind.
#[cfg(test)]
pub fn sender_samples() -> Vec<MediaSenderEvent> {
    vec![
        MediaSenderEvent::Start(ProgrammeStart { role: Role::Sender, ..Default::default() }),
        MediaSenderEvent::Progress(ProgrammeProgress::default()),
        MediaSenderEvent::Error(Trouble::default()),
        MediaSenderEvent::End(ProgrammeEnd::default()),
    ]
}

/// One event of each kind.
#[cfg(test)]
pub fn receiver_samples() -> Vec<MediaReceiverEvent> {
    vec![
        MediaReceiverEvent::Start(WatchStart::default()),
        MediaReceiverEvent::Waiting(Waiting::default()),
        MediaReceiverEvent::Level(Level { t_s: 0.5, level: 2, rate_bps: 1_000_000, cause: crate::events::Cause::Add }),
        MediaReceiverEvent::Progress(WatchProgress::default()),
        MediaReceiverEvent::Error(Trouble::default()),
        MediaReceiverEvent::End(WatchEnd::default()),
    ]
}
