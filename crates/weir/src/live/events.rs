//! The events of live streams, as `--json` prints them. `docs/events.md` is their page.

use serde::{Deserialize, Serialize};

use crate::events::{Role, Trouble};
use crate::media::PicturesShown;

/// An event of `weir send live`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveSenderEvent {
    /// The sender waits for viewers.
    Start(SendStart),
    /// A viewer came or left.
    Viewer(ViewerChange),
    /// How it stands, several times a second.
    Progress(SendProgress),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(LiveEnd),
}

/// An event of `weir recv HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveReceiverEvent {
    /// The viewer asks for the stream.
    Start(ViewStart),
    /// How the meeting with the sender stands.
    Meeting(MeetingChange),
    /// How it stands, several times a second.
    Progress(ViewProgress),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(ViewEnd),
}

/// The sender waits for viewers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SendStart {
    /// `sender`.
    pub role: Role,
    /// Version of Weir.
    pub version: String,
    /// Congestion control scheme.
    pub scheme: String,
    /// Address and port where viewers ask.
    pub address: String,
    /// What is sent.
    pub input: String,
    /// The public key by which viewers know the sender; null if the stream is not encrypted.
    #[serde(default)]
    pub key: Option<String>,
}

/// A viewer came or left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ViewerChange {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Its address and port.
    pub viewer: String,
    /// `came`, `bye`, `finished`, `stopped`, `silent` or `refused`.
    pub what: String,
    /// How many there are now.
    #[serde(default)]
    pub viewers: u64,
}

/// How sending stands: to all viewers together, and to each.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SendProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// How many viewers there are.
    pub viewers: u64,
    /// Packets sent so far, all headers included.
    pub sent_bytes: u64,
    /// Packets sent so far.
    pub sent_packets: u64,
    /// Of these, packets whose content was sent to the same viewer before.
    pub resent_packets: u64,
    /// Sent since the last progress event.
    pub rate_bps: u64,
    /// The least rate that congestion control allows to a viewer; null before the first answer.
    pub allowed_bps: Option<u64>,
    /// The rate of content with which the slowest viewer keeps up; null before the first answer.
    pub target_bps: Option<u64>,
    /// The longest smoothed round-trip time to a viewer; null before the first answer.
    pub round_trip_ms: Option<f64>,
    /// How often congestion made the rate to a viewer fall.
    pub backoffs: u64,
    /// Payloads that wait for the viewer that is farthest behind.
    pub waiting: u64,
    /// Payloads that waited for too long and were dropped, counted for each viewer.
    pub dropped: u64,
    /// How it stands with each viewer.
    pub each: Vec<ViewerProgress>,
}

/// How sending to a viewer stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ViewerProgress {
    /// Its address and port.
    pub viewer: String,
    /// Packets sent to it, all headers included.
    pub sent_bytes: u64,
    /// Packets sent to it.
    pub sent_packets: u64,
    /// Of these, packets whose content was sent to it before.
    pub resent_packets: u64,
    /// Sent to it since the last progress event.
    pub rate_bps: u64,
    /// The rate that congestion control allows; null before the first answer.
    pub allowed_bps: Option<u64>,
    /// The rate of content with which it keeps up; null before the first answer.
    pub target_bps: Option<u64>,
    /// Smoothed round-trip time; null before the first answer.
    pub round_trip_ms: Option<f64>,
    /// How often congestion made the rate fall.
    pub backoffs: u64,
    /// Payloads that wait for it.
    pub waiting: u64,
    /// Payloads that waited for it for too long and were dropped.
    pub dropped: u64,
    /// How the layers that it gets stand; null for a stream without layers.
    #[serde(default)]
    pub layers: Option<LayersProgress>,
}

/// How the layers that a viewer gets stand, as the sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LayersProgress {
    /// How many it gets.
    pub layers: u64,
    /// How many there are.
    pub of: u64,
    /// How often it got one more.
    pub added: u64,
    /// How often it got one less.
    pub left: u64,
    /// How long it could play the base layer on if nothing more were sent.
    pub base_ms: f64,
    /// How often it had nothing of the base layer to play.
    pub underflows: u64,
    /// Pictures of these layers that would have come too late, or need one that did not go, and did not go either.
    pub dropped_pictures: u64,
}

/// How a sender ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LiveEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Packets sent, all headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Of these, packets whose content was sent to the same viewer before.
    #[serde(default)]
    pub resent_packets: u64,
    /// Bytes of content in all of them.
    pub payload_bytes: u64,
    /// Viewers that there were.
    pub viewers: u64,
    /// Payloads that waited for too long and were dropped, counted for each viewer.
    pub dropped: u64,
    /// Messages of others, messages that cannot be read, answers to what was never sent.
    pub ignored: u64,
    /// Questions of others while there was no room for another viewer.
    pub turned_away: u64,
    /// How often congestion made the rate to a viewer fall.
    #[serde(default)]
    pub backoffs: u64,
    /// How often viewers got a layer more or less; null for a stream without layers.
    #[serde(default)]
    pub layer_changes: Option<u64>,
    /// How often viewers had nothing of the base layer to play; null for a stream without layers.
    #[serde(default)]
    pub base_underflows: Option<u64>,
    /// The exit code.
    pub exit_code: u8,
}

/// The viewer asks for the stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ViewStart {
    /// `receiver`.
    pub role: Role,
    /// Version of Weir.
    pub version: String,
    /// The sender's address and port.
    pub address: String,
    /// Where the stream goes.
    pub out: String,
}

/// How the meeting with the sender stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeetingChange {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// `unanswered`, `refused`, `busy`, `later`, `running` or `reconnecting`.
    pub stage: String,
    /// Why the sender is asked again: `silent`, `refused` or `forgotten`; null in other stages.
    #[serde(default)]
    pub why: Option<String>,
    /// When the stream runs again: seconds without a packet; null otherwise.
    #[serde(default)]
    pub missed_s: Option<f64>,
    /// Congestion control scheme; null before the sender has said.
    pub scheme: Option<String>,
    /// RTP payload type; null before the sender has said.
    pub payload_type: Option<u8>,
    /// How long after the sender got it the stream is given out; null before the sender has said.
    #[serde(default)]
    pub latency_ms: Option<u64>,
}

/// How receiving stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ViewProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Packets received, all headers included.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes of content given out.
    pub payload_bytes: u64,
    /// Received since the last progress event.
    pub rate_bps: u64,
    /// Packets that are missing in what was given out.
    pub lost_packets: u64,
    /// Packets that came after later ones and in time: sent again, or overtaken.
    #[serde(default)]
    pub recovered_packets: u64,
    /// How often the stream was taken again.
    #[serde(default)]
    pub reconnects: u64,
    /// Seconds in all without a packet before it was.
    #[serde(default)]
    pub missed_s: f64,
    /// The longest time from the sender's input to the output since the last progress event, less the fastest way between them; null if
    /// nothing was given out, or the stream has no times.
    #[serde(default)]
    pub lag_ms: Option<f64>,
    /// What came of the pictures; nothing for a stream without layers.
    #[serde(flatten)]
    pub pictures: Option<PicturesShown>,
}

/// How a viewer ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ViewEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// `bye`, `stopped`, `silent`, `refused`, `forgotten` or `declined`.
    pub reason: String,
    /// Packets received, all headers included.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes of content given out.
    pub payload_bytes: u64,
    /// Packets that are missing in what was given out.
    pub lost_packets: u64,
    /// Of these, packets that came too late to be put in order.
    pub late_packets: u64,
    /// Packets that came after later ones and in time: sent again, or overtaken.
    #[serde(default)]
    pub recovered_packets: u64,
    /// How often the stream was taken again.
    #[serde(default)]
    pub reconnects: u64,
    /// Seconds in all without a packet before it was.
    #[serde(default)]
    pub missed_s: f64,
    /// Packets that came with a congestion mark.
    pub marked_packets: u64,
    /// Messages of others, and messages that cannot be read.
    pub ignored: u64,
    /// The exit code.
    pub exit_code: u8,
    /// What came of the pictures; nothing for a stream without layers.
    #[serde(flatten)]
    pub pictures: Option<PicturesShown>,
}

/// One event of each kind.
#[cfg(test)]
pub fn sender_samples() -> Vec<LiveSenderEvent> {
    vec![
        LiveSenderEvent::Start(SendStart { role: Role::Sender, ..Default::default() }),
        LiveSenderEvent::Viewer(ViewerChange::default()),
        LiveSenderEvent::Progress(SendProgress::default()),
        LiveSenderEvent::Error(Trouble::default()),
        LiveSenderEvent::End(LiveEnd::default()),
    ]
}

/// One event of each kind.
#[cfg(test)]
pub fn receiver_samples() -> Vec<LiveReceiverEvent> {
    vec![
        LiveReceiverEvent::Start(ViewStart::default()),
        LiveReceiverEvent::Meeting(MeetingChange::default()),
        LiveReceiverEvent::Progress(ViewProgress { pictures: Some(PicturesShown::default()), ..Default::default() }),
        LiveReceiverEvent::Error(Trouble::default()),
        LiveReceiverEvent::End(ViewEnd { pictures: Some(PicturesShown::default()), ..Default::default() }),
    ]
}
