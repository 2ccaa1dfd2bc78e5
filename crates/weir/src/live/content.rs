//! What a sender's viewers are served with.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use weir_core::PeerId;
use weir_core::observation::Observation;
use weir_units::{Bytes, Time};
use weir_wire::rtcp::handshake::Pictures;
use weir_wire::rtp::Rtp;

use super::events::LayersProgress;

/// A payload for a viewer.
#[derive(Debug, Clone)]
pub(crate) struct Next {
    /// What its RTP header says of it.
    pub(crate) header: Rtp,
    pub(crate) payload: Arc<[u8]>,
    /// The viewer was sent it before.
    pub(crate) is_again: bool,
}

/// A stream, and how far each viewer has got in it.
pub(crate) trait Content {
    /// A viewer comes, to whom packets of this size go.
    fn add(&mut self, now: Time, viewer: PeerId, packet_size: Bytes);

    /// A viewer has gone.
    fn remove(&mut self, viewer: PeerId);

    /// The congestion control of a viewer has observed something.
    fn observe(&mut self, _now: Time, _viewer: PeerId, _observation: &Observation) {}

    /// What to wait on for more; `None` while there is no room for more, or no more will come.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// There is something to read.
    fn read(&mut self, now: Time);

    /// It is `now`: what is due by then is there for the viewers.
    fn turn(&mut self, now: Time);

    /// When [`Content::turn`] wants to be called next.
    fn next_due(&self) -> Option<Time>;

    /// The next payload for a viewer.
    fn next(&mut self, now: Time, viewer: PeerId) -> Option<Next>;

    /// How many payloads wait for a viewer. It falls by [`Content::next`] only.
    fn waiting(&self, viewer: PeerId) -> u64;

    /// How many payloads wait for anybody.
    fn waiting_in_all(&self) -> u64;

    /// Whether all that there will be is there for the viewers.
    fn is_over(&self) -> bool;

    /// RTP payload type; `None` while it is not known.
    fn payload_type(&self) -> Option<u8>;

    /// Bytes of a full payload.
    fn payload_len(&self) -> usize;

    /// Bytes of the RTP header, its extension included.
    fn header_len(&self) -> usize;

    /// What pictures are like, if the stream is of layered media.
    fn pictures(&self) -> Option<Pictures> {
        None
    }

    /// How the layers that a viewer gets stand, if the stream has layers.
    fn layers_of(&self, _now: Time, _viewer: PeerId) -> Option<LayersProgress> {
        None
    }

    /// How often viewers got a layer more or less so far; `None` for a stream without layers.
    fn layer_changes(&self) -> Option<u64> {
        None
    }

    /// How often viewers had nothing of the base layer to play; `None` for a stream without layers.
    fn underflows(&self) -> Option<u64> {
        None
    }

    /// Payloads that a viewer has lost, as they had waited for too long.
    fn dropped_of(&self, viewer: PeerId) -> u64;

    /// The same of all viewers, and what fits no packet.
    fn dropped(&self) -> u64;

    /// What the user is to know of it since this was asked for last.
    fn told(&mut self) -> Vec<String>;

    /// What ended it before its end.
    fn failure(&self) -> Option<String>;
}
