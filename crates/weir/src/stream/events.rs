//! The events of streams over a tree, as `--json` prints them. `docs/events.md` is their page.

use serde::{Deserialize, Serialize};

use crate::events::{Role, Trouble};

/// An event of `weir send stream`, `weir agent` and `weir recv stream://…`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The node is ready.
    Start(StreamStart),
    /// How it stands with the node above or with a member below.
    Peer(PeerStanding),
    /// Where this node is in the tree.
    Place(Place),
    /// How the stream stands, several times a second.
    Progress(StreamProgress),
    /// Something failed.
    Error(Trouble),
    /// The last event.
    End(StreamEnd),
}

/// The node is ready.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamStart {
    /// `sender`, `agent` or `receiver`.
    pub role: Role,
    /// Version of Weir.
    pub version: String,
    /// What members need to know.
    pub stream: String,
    /// Where it takes members; null if it takes none.
    pub listens: Option<String>,
    /// The first node that it asks for a place in the tree; null at the sender.
    pub above: Option<String>,
    /// Where the bytes come from or go to; null at an agent.
    pub bytes: Option<String>,
}

/// How it stands with another node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeerStanding {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Its address and port.
    pub peer: String,
    /// Whether it is the node above.
    pub is_above: bool,
    /// Of a member below: `joined`, `catching_up`, `too_slow` or `too_late`; of the first node that is asked: `unanswered` or
    /// `busy`; and of either when it has gone: `bye`, `finished`, `stopped`, `silent` or `refused`.
    pub what: String,
}

/// Where this node is in the tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Place {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// `member`, `catching_up` while the stream does not wait for it, `seeking` a node, or `too_slow` or `too_late` to be a member;
    /// `cut_off` where no multicast comes and the node above sends the data, `forwarding` if an agent sends it on to the group
    /// then, and `reached` when multicast comes again.
    pub what: String,
    /// Address and port of the node above; null without one.
    pub above: Option<String>,
    /// Nodes between this one and the sender, and itself; null without one.
    pub level: Option<u8>,
}

/// How the stream stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamProgress {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Bytes of the stream that were sent, or given out in order; at an agent, bytes of packets that came.
    pub stream_bytes: u64,
    /// The same since the last progress event, a second.
    pub rate_bps: u64,
    /// Members right below that are there.
    pub members: u64,
    /// The node's congestion window; null without members.
    pub window_packets: Option<f64>,
    /// Packets that not all members have acknowledged; null without members.
    pub transit_packets: Option<u64>,
    /// Smoothed round-trip time to the farthest member; null until it is known.
    pub round_trip_ms: Option<f64>,
}

/// How a node ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Seconds since the `start` event.
    pub t_s: f64,
    /// Whether this node and all below it have the whole stream.
    pub complete: bool,
    /// Bytes of the stream that were sent, or given out in order; at an agent, bytes of packets that came.
    pub stream_bytes: u64,
    /// BLAKE3 of these bytes; null at an agent.
    pub blake3: Option<String>,
    /// Whether the bytes are the whole stream as the sender has signed it; null at the sender, at an agent, and if it is not complete.
    pub verified: Option<bool>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received that carry data.
    pub received_packets: u64,
    /// Members that came, and the node above.
    pub peers: u64,
    /// Messages of others, and messages that cannot be read.
    pub ignored: u64,
    /// The exit code.
    pub exit_code: u8,
}

/// One event of each kind.
#[cfg(test)]
pub fn samples() -> Vec<StreamEvent> {
    vec![
        StreamEvent::Start(StreamStart::default()),
        StreamEvent::Peer(PeerStanding::default()),
        StreamEvent::Place(Place::default()),
        StreamEvent::Progress(StreamProgress::default()),
        StreamEvent::Error(Trouble::default()),
        StreamEvent::End(StreamEnd::default()),
    ]
}
