//! How a tree builds itself: what a newcomer asks a node, what the node offers, and which other nodes it knows.
//!
//! Layout behind the head that all packets have, big-endian:
//!
//! - ask (kind 3): clock 32, the lowest number that it needs 32, where it is reached itself 144,
//!   check sum of the node that it has lost 16. Flags: 1 it wants to join, 4 it needs nothing from before
//!   now, 8 it can be reached, 16 it is a receiver and not only an agent.
//! - offer (kind 4): standing 8, level 8, places 16, echoed clock 32, the lowest number that is kept 64, the next number 64.
//! - node (kind 5): level 8, zero 8, where the node is reached 144. Flags: 1 it is above the sender of this packet.

use crate::{DecodeError, Locator, take_array};

use super::{ASK, NODE, OFFER, head};

/// A packet with which a tree builds itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// From a newcomer.
    Ask(Ask),
    /// From a node, to a newcomer or to a child.
    Offer(Offer),
    /// From a node, about another.
    Node(Node),
}

/// What a newcomer asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask {
    /// The lowest number that it needs; the lowest 32 bits.
    pub need: u32,
    /// Its clock, microseconds modulo 2^32. The offer repeats it.
    pub clock_micros: u32,
    /// It wants to become a child, and not only to know.
    pub joins: bool,
    /// It has taken part in the stream, and has lost the node with this check sum ([`check_sum`]): what it needs is kept for it,
    /// and the stream waits for it. 0 if it comes for the first time.
    pub lost: u16,
    /// It is a receiver, and not only an agent.
    pub is_receiver: bool,
    /// It takes the stream from now on, whatever [`Ask::need`] says.
    pub from_now: bool,
    /// Where it takes children itself, if it does.
    pub door: Option<Locator>,
}

/// What a node offers a newcomer, or tells a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// The lowest number that it can send again.
    pub first: u64,
    /// The number after the last one that it knows.
    pub next: u64,
    /// The clock of the question, microseconds modulo 2^32.
    pub clock_micros: u32,
    /// How many more children it takes.
    pub places: u16,
    /// Nodes between it and the sender, and itself. The sender's level is 0.
    pub level: u8,
    /// What the asker is to it.
    pub standing: Standing,
}

/// The relation of a peer to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// None of its children.
    #[default]
    Stranger,
    /// A child: the stream waits for it.
    Child,
    /// A child that catches up: the stream does not wait for it.
    CatchingUp,
    /// It was a child and is no more: it was slower than the operator allows.
    TooSlow,
    /// It cannot be a child: what it needs is not kept any more.
    TooLate,
}

/// A node that others may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Node {
    /// Where it is reached.
    pub at: Locator,
    /// Its level.
    pub level: u8,
    /// It is above the sender of this packet, and not below.
    pub is_above: bool,
}

/// Bytes of the longest of these packets.
pub const MAX_JOIN_LEN: usize = 34;

/// A number from 1 on by which a node knows which of its children a member has lost.
pub fn check_sum(at: Locator) -> u16 {
    let words = at.0.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    words.fold(0, |sum: u16, word| sum.rotate_left(5) ^ word).max(1)
}

impl Join {
    /// Writes the packet of session `tsi`; returns its length.
    pub fn encode(&self, tsi: u16, out: &mut [u8]) -> usize {
        match self {
            Join::Ask(ask) => {
                let flags = [(ask.joins, JOINS), (ask.from_now, FROM_NOW)];
                let flags = flags.into_iter().chain([(ask.door.is_some(), HAS_DOOR), (ask.is_receiver, IS_RECEIVER)]);
                let flags = flags.filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
                out[..6].copy_from_slice(&head(ASK, flags, tsi));
                out[6..10].copy_from_slice(&ask.clock_micros.to_be_bytes());
                out[10..14].copy_from_slice(&ask.need.to_be_bytes());
                out[14..32].copy_from_slice(&ask.door.unwrap_or_default().0);
                out[32..34].copy_from_slice(&ask.lost.to_be_bytes());
                34
            }
            Join::Offer(offer) => {
                out[..6].copy_from_slice(&head(OFFER, 0, tsi));
                (out[6], out[7]) = (offer.standing as u8, offer.level);
                out[8..10].copy_from_slice(&offer.places.to_be_bytes());
                out[10..14].copy_from_slice(&offer.clock_micros.to_be_bytes());
                out[14..22].copy_from_slice(&offer.first.to_be_bytes());
                out[22..30].copy_from_slice(&offer.next.to_be_bytes());
                30
            }
            Join::Node(node) => {
                out[..6].copy_from_slice(&head(NODE, u8::from(node.is_above) * IS_ABOVE, tsi));
                (out[6], out[7]) = (node.level, 0);
                out[8..26].copy_from_slice(&node.at.0);
                26
            }
        }
    }

    /// The packet of a kind behind its head.
    pub(super) fn decode(kind: u8, flags: u8, rest: &mut &[u8]) -> Result<Join, DecodeError> {
        let join = match kind {
            ASK => {
                let clock_micros = u32::from_be_bytes(take_array(rest, "MTCP clock")?);
                let need = u32::from_be_bytes(take_array(rest, "MTCP number")?);
                let door = Locator::take(rest)?;
                let lost = u16::from_be_bytes(take_array(rest, "MTCP check sum")?);
                let is_set = |flag| flags & flag != 0;
                Join::Ask(Ask {
                    need,
                    clock_micros,
                    joins: is_set(JOINS),
                    lost,
                    is_receiver: is_set(IS_RECEIVER),
                    from_now: is_set(FROM_NOW),
                    door: is_set(HAS_DOOR).then_some(door),
                })
            }
            OFFER => {
                let [standing, level] = take_array(rest, "MTCP standing")?;
                let standing = *STANDINGS
                    .get(usize::from(standing))
                    .ok_or(DecodeError::Value { field: "MTCP standing", value: u64::from(standing) })?;
                let places = u16::from_be_bytes(take_array(rest, "MTCP places")?);
                let clock_micros = u32::from_be_bytes(take_array(rest, "MTCP clock")?);
                let first = u64::from_be_bytes(take_array(rest, "MTCP number")?);
                let next = u64::from_be_bytes(take_array(rest, "MTCP number")?);
                Join::Offer(Offer { first, next, clock_micros, places, level, standing })
            }
            _ => {
                let [level, _] = take_array(rest, "MTCP level")?;
                Join::Node(Node { at: Locator::take(rest)?, level, is_above: flags & IS_ABOVE != 0 })
            }
        };
        match rest.len() {
            0 => Ok(join),
            more => Err(DecodeError::Value { field: "MTCP bytes too many", value: more as u64 }),
        }
    }
}

const JOINS: u8 = 1;
const FROM_NOW: u8 = 4;
const HAS_DOOR: u8 = 8;
const IS_RECEIVER: u8 = 16;
const IS_ABOVE: u8 = 1;
/// By their codes.
const STANDINGS: [Standing; 5] =
    [Standing::Stranger, Standing::Child, Standing::CatchingUp, Standing::TooSlow, Standing::TooLate];

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;
    use proptest::prelude::*;

    fn comes_back(join: Join, tsi: u16) {
        let mut bytes = [0; MAX_JOIN_LEN];
        let len = join.encode(tsi, &mut bytes);
        assert_eq!(Message::decode(&bytes[..len]), Ok((Message::Join(join), tsi)));
        assert!(Message::decode(&bytes[..len - 1]).is_err());
        let long = [&bytes[..len], &[0]].concat();
        assert!(Message::decode(&long).is_err());
    }

    #[test]
    fn a_standing_that_nobody_knows_is_refused() {
        let mut bytes = [0; MAX_JOIN_LEN];
        let len = Join::Offer(Offer::default()).encode(1, &mut bytes);
        bytes[6] = STANDINGS.len() as u8;
        assert!(Message::decode(&bytes[..len]).is_err());
        assert!(STANDINGS.iter().enumerate().all(|(code, standing)| *standing as usize == code));
    }

    proptest! {
        #[test]
        fn decoding_what_was_encoded_gives_it_back(
            (tsi, words, clock_micros, need, lost) in any::<(u16, [u64; 2], u32, u32, u16)>(), at in any::<[u8; 18]>(),
            flags in any::<[bool; 4]>(), (places, level) in any::<(u16, u8)>(), standing in 0..STANDINGS.len()
        ) {
            let [joins, from_now, has_door, is_receiver] = flags;
            let door = has_door.then_some(Locator(at));
            comes_back(Join::Ask(Ask { need, clock_micros, joins, lost, is_receiver, from_now, door }), tsi);
            let [first, next] = words;
            let standing = STANDINGS[standing];
            comes_back(Join::Offer(Offer { first, next, clock_micros, places, level, standing }), tsi);
            comes_back(Join::Node(Node { at: Locator(at), level, is_above: joins }), tsi);
        }
    }
}
