//! What packets go out through: a socket, and what seals them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::seal::pair::PairSealer;
use crate::seal::{ControlKey, PAIR_OVERHEAD, Sealer};
use crate::socket::{MAX_BATCH_PACKETS, Output};

/// What sends to the channels of a session.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) output: Output,
    pub(super) sealer: Option<Sealer>,
    /// The number of the session's first channel.
    first: u16,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sealed {
    /// It goes as it is.
    No,
    /// Each packet is so much longer.
    Longer(usize),
    /// The seals do not fit into the packets' headers.
    TooLong,
}

impl Group {
    pub(super) fn new(output: Output, first: u16) -> Group {
        Group { output, sealer: None, first }
    }

    /// The most bytes that the seals of a packet take.
    pub(super) fn reserve(&self) -> usize {
        self.sealer.as_ref().map_or(0, |sealer| sealer.overhead(MAX_BATCH_PACKETS))
    }

    /// Puts a batch of packets of this length to a channel, the last one perhaps shorter, into `out` with their seals, if they get any.
    pub(super) fn seal(&mut self, channel: u16, batch: &[u8], len: usize, out: &mut Vec<u8>) -> Sealed {
        let Some(sealer) = &mut self.sealer else { return Sealed::No };
        match sealer.seal(channel - self.first, batch, len, out) {
            true => Sealed::Longer(sealer.overhead(batch.len().div_ceil(len))),
            false => Sealed::TooLong,
        }
    }
}

/// What sends to peers and to the control port.
#[derive(Debug)]
pub(super) struct Unicast {
    pub(super) output: Output,
    /// What tags messages at the control port.
    pub(super) key: Option<ControlKey>,
    /// By address: what seals packets to peers with whom this host shares keys.
    pairs: BTreeMap<SocketAddr, PairSealer>,
}

impl Unicast {
    pub(super) fn new(output: Output) -> Unicast {
        Unicast { output, key: None, pairs: BTreeMap::new() }
    }

    /// Packets to this address are sealed from now on; `is_there` says of which others this still holds.
    pub(super) fn pair(&mut self, to: SocketAddr, pair: PairSealer, is_there: impl Fn(SocketAddr) -> bool) {
        self.pairs.retain(|address, _| is_there(*address));
        self.pairs.insert(to, pair);
    }

    /// The most bytes that the seal of a packet to this address takes.
    pub(super) fn reserve(&self, to: SocketAddr) -> usize {
        match (&self.key, self.pairs.contains_key(&to)) {
            (_, true) => PAIR_OVERHEAD,
            (Some(_), false) => ControlKey::LEN,
            (None, false) => 0,
        }
    }

    /// Puts packets of this length one behind the other, the last one perhaps shorter, into `out` with their seals.
    pub(super) fn seal(&mut self, to: SocketAddr, packets: &[u8], len: usize, out: &mut Vec<u8>) {
        out.clear();
        match (self.pairs.get_mut(&to), &self.key) {
            (Some(pair), _) => packets.chunks(len).for_each(|packet| pair.seal(packet, out)),
            (None, Some(key)) => packets.chunks(len).for_each(|packet| {
                out.extend_from_slice(packet);
                out.extend_from_slice(&key.tag(packet));
            }),
            (None, None) => out.extend_from_slice(packets),
        }
    }
}
