//! The events of live streams, as `--json` prints them. `docs/events.md` is their page.

use serde::{Deserialize, Serialize};

use crate::events::{Role, Trouble};

/// An event of `weir send live`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum LiveSenderEvent {
    /// The sender waits for a viewer.
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
pub(crate) enum LiveReceiverEvent {
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

/// The sender waits for a viewer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SendStart {
    /// `sender`.
    pub(crate) role: Role,
    /// Version of Weir.
    pub(crate) version: String,
    /// Congestion control scheme.
    pub(crate) scheme: String,
    /// Address and port where viewers ask.
    pub(crate) address: String,
    /// What is sent.
    pub(crate) input: String,
}

/// A viewer came or left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ViewerChange {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// Its address and port.
    pub(crate) viewer: String,
    /// `came`, `bye`, `finished`, `stopped`, `silent` or `refused`.
    pub(crate) what: String,
}

/// How sending stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SendProgress {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// The viewer's address and port; null without one.
    pub(crate) viewer: Option<String>,
    /// Packets sent, all headers included.
    pub(crate) sent_bytes: u64,
    /// Packets sent.
    pub(crate) sent_packets: u64,
    /// Sent since the last progress event.
    pub(crate) rate_bps: u64,
    /// The rate that congestion control allows; null before the first answer.
    pub(crate) allowed_bps: Option<u64>,
    /// Smoothed round-trip time; null before the first answer.
    pub(crate) round_trip_ms: Option<f64>,
    /// How often congestion made the rate fall.
    pub(crate) backoffs: u64,
    /// Payloads that wait.
    pub(crate) waiting: u64,
    /// Payloads that waited for too long and were dropped.
    pub(crate) dropped: u64,
}

/// How a sender ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct LiveEnd {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// Packets sent, all headers included.
    pub(crate) sent_bytes: u64,
    /// Packets sent.
    pub(crate) sent_packets: u64,
    /// Bytes of content in them.
    pub(crate) payload_bytes: u64,
    /// Viewers that there were.
    pub(crate) viewers: u64,
    /// Payloads that waited for too long and were dropped.
    pub(crate) dropped: u64,
    /// Messages of others, messages that cannot be read, answers to what was never sent.
    pub(crate) ignored: u64,
    /// Questions of others while there was a viewer.
    pub(crate) turned_away: u64,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// The viewer asks for the stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ViewStart {
    /// `receiver`.
    pub(crate) role: Role,
    /// Version of Weir.
    pub(crate) version: String,
    /// The sender's address and port.
    pub(crate) address: String,
    /// Where the stream goes.
    pub(crate) out: String,
}

/// How the meeting with the sender stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct MeetingChange {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// `unanswered`, `refused`, `busy` or `running`.
    pub(crate) stage: String,
    /// Congestion control scheme; null before the sender has said.
    pub(crate) scheme: Option<String>,
    /// RTP payload type; null before the sender has said.
    pub(crate) payload_type: Option<u8>,
}

/// How receiving stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ViewProgress {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// Packets received, all headers included.
    pub(crate) received_bytes: u64,
    /// Packets received.
    pub(crate) received_packets: u64,
    /// Bytes of content given out.
    pub(crate) payload_bytes: u64,
    /// Received since the last progress event.
    pub(crate) rate_bps: u64,
    /// Packets that are missing in what was given out.
    pub(crate) lost_packets: u64,
}

/// How a viewer ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ViewEnd {
    /// Seconds since the `start` event.
    pub(crate) t_s: f64,
    /// `bye`, `stopped`, `silent`, `refused` or `declined`.
    pub(crate) reason: String,
    /// Packets received, all headers included.
    pub(crate) received_bytes: u64,
    /// Packets received.
    pub(crate) received_packets: u64,
    /// Bytes of content given out.
    pub(crate) payload_bytes: u64,
    /// Packets that are missing in what was given out.
    pub(crate) lost_packets: u64,
    /// Of these, packets that came too late to be put in order.
    pub(crate) late_packets: u64,
    /// Packets that came with a congestion mark.
    pub(crate) marked_packets: u64,
    /// Messages of others, and messages that cannot be read.
    pub(crate) ignored: u64,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// One event of each kind.
#[cfg(test)]
pub(crate) fn sender_samples() -> Vec<LiveSenderEvent> {
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
pub(crate) fn receiver_samples() -> Vec<LiveReceiverEvent> {
    vec![
        LiveReceiverEvent::Start(ViewStart::default()),
        LiveReceiverEvent::Meeting(MeetingChange::default()),
        LiveReceiverEvent::Progress(ViewProgress::default()),
        LiveReceiverEvent::Error(Trouble::default()),
        LiveReceiverEvent::End(ViewEnd::default()),
    ]
}
