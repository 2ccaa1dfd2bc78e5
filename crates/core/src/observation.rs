//! What endpoints tell about themselves. Progress displays, event logs and the laboratory's metrics are made of these.

use core::time::Duration;

use weir_units::{Bytes, Rate};

use crate::endpoint::PeerId;

pub use weir_wire::mtcp::join::Standing;

/// One observation. Its time is that of the call that produced it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Observation {
    /// The subscription level changed. Level 0 is no channel at all; for AVMRC level i is the channels below i, for STAIR and
    /// FGLM a rate of i times the lowest channel's.
    Level {
        /// The new level.
        level: usize,
        /// Rate of that level; without stairs, whose rate changes by itself.
        rate: Rate,
        /// Why.
        cause: LevelCause,
    },
    /// What a receiver under a manager would take of its session, and what it finds on its path. It is told when it would add
    /// or drop a layer, and when it has found something out.
    Wish(Wish),
    /// A burst of packets told what the flow's share of the path is.
    Share(Rate),
    /// Whether the path counts as fair-queued from here on, so that what bursts of packets tell is the flow's share of it.
    FairQueued(bool),
    /// A loss event began: at least one packet of the network is missing.
    LossEvent,
    /// A time slot ended: what the receiver measured and concludes.
    Slot(SlotReport),
    /// The pace of a unicast stream changed, or could have: its source's step ended.
    Pace(PaceReport),
    /// How the layers of a unicast stream stand: its manager has looked at its source's rate, or has added or dropped one.
    Layers(LayersReport),
    /// The path has been full for seconds, whatever the receiver left: a switch sends it channels that it has not joined, or other
    /// traffic fills the path.
    Flooded {
        /// What the receiver gets.
        received_rate: Rate,
    },
    /// Much is lost without a queue, and as much as before although the receiver has given way: the path may do so by itself.
    LossyPath {
        /// The part of the last second's packets.
        lost: f64,
    },
    /// The sender sends the ladder up to this rate from here on.
    Ceiling {
        /// The highest level's rate.
        rate: Rate,
        /// Why.
        cause: CeilingCause,
    },
    /// Which receivers the sender knows; `None` while it does not know them.
    Audience(Option<Audience>),
    /// A receiver has told the sender that it gets the channels of this level, so what it has just joined is on its way to it.
    Reached {
        /// The number of channels.
        level: usize,
    },
    /// The source of a unicast stream knows what has become of a payload. It tells if it is set to.
    Payload {
        /// Its number: the application's first is 0.
        number: u64,
        /// What has become of it.
        fate: PayloadFate,
    },
    /// A round trip was measured.
    RoundTrip(Duration),
    /// How a node of a tree stands.
    Window(WindowReport),
    /// A tree that builds itself has changed next to this node.
    Tree(TreeReport),
    /// Packets of a unicast stream are missing before the one that came. They may still come.
    Missing {
        /// How many.
        packets: u64,
    },
}

/// What a receiver would take of a layered session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The level that it would have if it were not limited. Below the one that it has: it has just given layers up.
    pub level: usize,
    /// What it takes for its share of the path.
    pub share: Rate,
    /// Whether it does not know its share and finds its rate by trying: `share` is the rate that it has.
    pub tries: bool,
    /// The most that it could get through while others leave part of their shares unused; `None` if it does not know.
    pub at_most: Option<Rate>,
}

/// The receivers that have told a sender what they want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    /// How many.
    pub receivers: u64,
    /// What the slowest of them wants; 0 where nobody is.
    pub lowest: Rate,
    /// What the fastest wants.
    pub highest: Rate,
}

/// What the source of a unicast stream does, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceReport {
    /// The rate from here on, headers included, before any fine-grain adaptation.
    pub rate: Rate,
    /// Smoothed round-trip time.
    pub smoothed_round_trip: Duration,
    /// Packets that were sent and neither acknowledged nor given up.
    pub outstanding_packets: u64,
    /// Why now.
    pub cause: PaceCause,
}

/// How the layers of a stream stand, as its sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayersReport {
    /// How many layers are sent.
    pub layers: usize,
    /// What these play together.
    pub rate: Rate,
    /// How long the base layer could play on if nothing more of it were sent, and nothing that is on its way were lost.
    pub base_buffer: Duration,
    /// What was sent of all layers and has not played yet, headers included.
    pub buffered: Bytes,
    /// How often the receiver had nothing of the base layer to play, since the start.
    pub underflows: u64,
    /// For how long it had nothing of the base layer, since the start.
    pub missing: Duration,
    /// Why now.
    pub cause: LayersCause,
}

/// What has become of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadFate {
    /// It is at the sink.
    Arrived,
    /// It counts as lost. It may still arrive.
    Lost,
}

/// Why layers were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayersCause {
    /// The source has looked at its rate.
    Pace,
    /// The average rate and the receiver's buffers carry a layer more.
    Add,
    /// The receiver's buffers do not carry the top layer any more.
    Drop,
    /// The receiver has nothing of the base layer to play.
    Underflow,
}

/// What a node of a tree knows of those below it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowReport {
    /// Its congestion window.
    pub window_packets: f64,
    /// The least window among it and all nodes below. That of the sender is the transmission window (MTCP §4.1).
    pub least_packets: f64,
    /// Whether its window is in slow start.
    pub in_slow_start: bool,
    /// Packets that not all of its children have acknowledged.
    pub transit_packets: u64,
    /// Packets of the stream that wait in queues on the way to its slowest child.
    pub backlog_packets: f64,
    /// How many children it has.
    pub children: usize,
    /// All below have the packets with lower numbers.
    pub low_mark: u64,
    /// All below have room for the packets with lower numbers.
    pub limit: u64,
    /// Smoothed round-trip time to the farthest child, once it is known.
    pub round_trip: Option<Duration>,
}

/// What has changed in a tree next to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeReport {
    /// No multicast leads to this node: the node above sends it the data.
    CutOff {
        /// It sends the data on to all near it.
        forwards: bool,
    },
    /// Multicast leads to this node again.
    Multicast,
    /// This node has found the one above it.
    Attached {
        /// The node above.
        above: PeerId,
        /// Nodes between this one and the sender, and itself.
        level: u8,
        /// The stream does not wait for this node until it has caught up.
        catches_up: bool,
    },
    /// The node above is lost, and this one looks for another.
    Seeking,
    /// This node has no place in the tree any more.
    Out(Standing),
    /// What a member below is to this node.
    Below {
        /// The member.
        peer: PeerId,
        /// What it is.
        standing: Standing,
    },
}

/// Why a pace was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaceCause {
    /// The first acknowledgement: the round-trip time is known.
    Start,
    /// A step without loss in the start-up.
    StartUp,
    /// A step without loss.
    Step,
    /// A step in which the application had less to send than it could have: the rate stays.
    ApplicationLimited,
    /// A packet was lost: three later ones arrived.
    Loss,
    /// A packet's acknowledgement is overdue.
    Timeout,
    /// The network marked a packet.
    Mark,
    /// Nothing has come back for so long that the path counts as silent: only probes are sent.
    Silence,
    /// A silent path answers again.
    Resumed,
}

/// Why a subscription level changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LevelCause {
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
    /// This host could not keep up with what the network delivered.
    HostDrops,
    /// The manager of several sessions allots less, or the application needs no more.
    Allotted,
    /// The sender sends no more.
    Ceiling,
    /// The application is done.
    Finish,
}

/// Why a sender sends more or less of its ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CeilingCause {
    /// A receiver reports that its path is full whatever it leaves: to see whether it is empty when less is sent.
    Test,
    /// It was, so the network floods.
    Flooded,
    /// It was not, or nobody told.
    Futile,
    /// To see whether more does no harm any more.
    Trial,
    /// The sender's host does not send more in time.
    Busy,
    /// To see whether it does by now.
    Retry,
}

/// A receiver's measurements at the end of a time slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotReport {
    /// Subscription level.
    pub level: usize,
    /// What arrived in the slot.
    pub received_rate: Rate,
    /// Packets that arrived in the slot.
    pub received_packets: u64,
    /// Packets that the network lost in the slot.
    pub lost_packets: u64,
    /// Packets that this host dropped in the slot.
    pub host_dropped_packets: u64,
    /// Short-term and long-term average one-way queuing delay.
    pub queuing_delay: [Duration; 2],
    /// Short-term and long-term loss event rate; `None` before the first loss event.
    pub loss_event_rate: Option<[f64; 2]>,
    /// Short-term and long-term target rate; `None` while no model is in use (slow start).
    pub target_rate: Option<[Rate; 2]>,
    /// The Vegas threshold, packets; `None` for a scheme without one.
    pub vegas_beta_packets: Option<f64>,
}
