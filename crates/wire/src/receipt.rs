//! Reports and receipts: the small unicast messages by which a receiver tells the sender how far it is and that it has finished, and
//! the sender's answers.
//!
//! Layout, big-endian. Both begin with magic `WRCP`, version 4, kind, TSI 16 bits, the receiver's public key 256 bits. A receiver's
//! message (kind 1 receipt, 3 report) goes on with bytes received 64 bits, milliseconds taken 64 bits, the share that it has in
//! ten-thousandths 16 bits, 16 bits of zero, a proof 256 bits, its name 512 bits, the receiver's signature 512 bits over all before
//! it, and a tag 128 bits over all before that. An answer (kind 2 to a receipt, 4 to a report, 6 to a receipt that proves nothing for this
//! start of the sender) goes on with the seconds to the next report 16 bits, 16 bits of zero, a digest of the message that it answers
//! 128 bits, the sender's epoch 64 bits, its signature 512 bits (zero in kind 4) and a tag. Signatures, proofs, digests and tags are opaque here.

use crate::{DecodeError, take_array};

/// What a receiver says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Receipt or report.
    pub kind: Kind,
    /// Transport session identifier.
    pub tsi: u16,
    /// The receiver's public key, by which it is known.
    pub receiver: [u8; KEY_LEN],
    /// Bytes that arrived for this session, headers included.
    pub received_bytes: u64,
    /// Milliseconds since the receiver began; of a receipt, until the verified end.
    pub elapsed_millis: u64,
    /// How much of the content it has, in ten-thousandths.
    pub share: u16,
    /// Of a receipt, that it has the content; of a report, which content it goes by, zeros before it knows.
    pub proof: [u8; 32],
    /// What people call it: UTF-8, zeros behind it.
    pub name: [u8; NAME_LEN],
}

/// What a receiver's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// I have everything, verified.
    Receipt,
    /// I am so far.
    Report,
}

/// The sender's answer to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// To what.
    pub to: To,
    /// Transport session identifier.
    pub tsi: u16,
    /// To whom.
    pub receiver: [u8; KEY_LEN],
    /// Seconds until the sender wants the next report.
    pub next_secs: u16,
    /// A digest of the message that it answers.
    pub message: [u8; DIGEST_LEN],
    /// Which start of the sender this is.
    pub epoch: u64,
}

/// To what an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// A receipt, which is taken.
    Receipt,
    /// A report.
    Report,
    /// A receipt that proves nothing for this start of the sender.
    OtherReceipt,
}

/// Bytes of a public key.
pub const KEY_LEN: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_LEN: usize = 64;
/// Bytes of the tag.
pub const TAG_LEN: usize = 16;
/// Bytes of the digest of a message.
pub const DIGEST_LEN: usize = 16;
/// Bytes of a name.
pub const NAME_LEN: usize = 64;
/// Bytes of a receiver's message under its signature.
pub const BODY_LEN: usize = 8 + KEY_LEN + 8 + 8 + 4 + 32 + NAME_LEN;
/// Bytes of a receiver's whole message.
pub const LEN: usize = BODY_LEN + SIGNATURE_LEN + TAG_LEN;
/// Bytes of an answer under its signature.
pub const ANSWER_BODY_LEN: usize = 8 + KEY_LEN + 4 + DIGEST_LEN + 8;
/// Bytes of a whole answer.
pub const ANSWER_LEN: usize = ANSWER_BODY_LEN + SIGNATURE_LEN + TAG_LEN;

/// Signature and tag behind a body.
pub type Seals = ([u8; SIGNATURE_LEN], [u8; TAG_LEN]);

/// Whether a datagram is one of these messages, as far as its beginning tells.
pub fn is_receipt(datagram: &[u8]) -> bool {
    datagram.starts_with(MAGIC)
}

/// A name as it travels: cut to what fits, at a character's end.
pub fn name_bytes(name: &str) -> [u8; NAME_LEN] {
    let end = (0..=name.len().min(NAME_LEN)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let mut bytes = [0; NAME_LEN];
    bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
    bytes
}

impl Receipt {
    /// The name as text; empty if it is none.
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_LEN);
        core::str::from_utf8(&self.name[..end]).unwrap_or("")
    }

    /// The part under the signature.
    pub fn encode_body(&self) -> [u8; BODY_LEN] {
        let mut out = [0; BODY_LEN];
        out[..40].copy_from_slice(&head(if self.kind == Kind::Receipt { 1 } else { 3 }, self.tsi, &self.receiver));
        out[40..48].copy_from_slice(&self.received_bytes.to_be_bytes());
        out[48..56].copy_from_slice(&self.elapsed_millis.to_be_bytes());
        out[56..58].copy_from_slice(&self.share.to_be_bytes());
        out[60..92].copy_from_slice(&self.proof);
        out[92..].copy_from_slice(&self.name);
        out
    }

    /// Splits a message into what it says, and its signature and tag, which the caller has yet to check.
    pub fn decode(message: &[u8]) -> Result<(Receipt, Seals), DecodeError> {
        let mut rest = message;
        let (kind, tsi, receiver) = decode_head(&mut rest)?;
        let kind = match kind {
            1 => Kind::Receipt,
            3 => Kind::Report,
            _ => return Err(DecodeError::Value { field: "receipt kind", value: u64::from(kind) }),
        };
        let received_bytes = u64::from_be_bytes(take_array(&mut rest, "receipt bytes")?);
        let elapsed_millis = u64::from_be_bytes(take_array(&mut rest, "receipt time")?);
        let share = u16::from_be_bytes(take_array(&mut rest, "receipt share")?);
        take_zeros(&mut rest, "receipt zero")?;
        let proof = take_array(&mut rest, "receipt proof")?;
        let name = take_array(&mut rest, "receipt name")?;
        let seals = decode_seals(rest, message.len())?;
        Ok((Receipt { kind, tsi, receiver, received_bytes, elapsed_millis, share, proof, name }, seals))
    }
}

impl Answer {
    /// Whether it is to this receiver of this session, and answers the message of this digest.
    pub fn is_to(&self, tsi: u16, receiver: &[u8; KEY_LEN], message: &[u8; DIGEST_LEN]) -> bool {
        self.tsi == tsi && &self.receiver == receiver && &self.message == message
    }

    /// The part under the signature.
    pub fn encode_body(&self) -> [u8; ANSWER_BODY_LEN] {
        let mut out = [0; ANSWER_BODY_LEN];
        let kind = match self.to {
            To::Receipt => 2,
            To::Report => 4,
            To::OtherReceipt => 6,
        };
        out[..40].copy_from_slice(&head(kind, self.tsi, &self.receiver));
        out[40..42].copy_from_slice(&self.next_secs.to_be_bytes());
        out[44..60].copy_from_slice(&self.message);
        out[60..].copy_from_slice(&self.epoch.to_be_bytes());
        out
    }

    /// Splits an answer into what it says, and its signature and tag, which the caller has yet to check.
    pub fn decode(message: &[u8]) -> Result<(Answer, Seals), DecodeError> {
        let mut rest = message;
        let (kind, tsi, receiver) = decode_head(&mut rest)?;
        let to = match kind {
            2 => To::Receipt,
            4 => To::Report,
            6 => To::OtherReceipt,
            _ => return Err(DecodeError::Value { field: "answer kind", value: u64::from(kind) }),
        };
        let next_secs = u16::from_be_bytes(take_array(&mut rest, "answer seconds")?);
        take_zeros(&mut rest, "answer zero")?;
        let digest = take_array(&mut rest, "answer digest")?;
        let epoch = u64::from_be_bytes(take_array(&mut rest, "answer epoch")?);
        let seals = decode_seals(rest, message.len())?;
        Ok((Answer { to, tsi, receiver, next_secs, message: digest, epoch }, seals))
    }
}

pub(crate) fn head(kind: u8, tsi: u16, receiver: &[u8; KEY_LEN]) -> [u8; 40] {
    let mut out = [0; 40];
    out[..4].copy_from_slice(MAGIC);
    (out[4], out[5]) = (VERSION, kind);
    out[6..8].copy_from_slice(&tsi.to_be_bytes());
    out[8..].copy_from_slice(receiver);
    out
}

pub(crate) fn decode_head(rest: &mut &[u8]) -> Result<(u8, u16, [u8; KEY_LEN]), DecodeError> {
    let magic: [u8; 4] = take_array(rest, "receipt magic")?;
    if &magic != MAGIC {
        return Err(DecodeError::Value { field: "receipt magic", value: u64::from(u32::from_be_bytes(magic)) });
    }
    let [version, kind] = take_array(rest, "receipt version")?;
    if version != VERSION {
        return Err(DecodeError::Version { protocol: "receipt", version });
    }
    Ok((kind, u16::from_be_bytes(take_array(rest, "receipt TSI")?), take_array(rest, "receipt receiver")?))
}

/// Two bytes that are zero: what is signed is what is read, so nothing else may stand there.
fn take_zeros(rest: &mut &[u8], field: &'static str) -> Result<(), DecodeError> {
    match u16::from_be_bytes(take_array(rest, field)?) {
        0 => Ok(()),
        other => Err(DecodeError::Value { field, value: u64::from(other) }),
    }
}

fn decode_seals(mut rest: &[u8], length: usize) -> Result<Seals, DecodeError> {
    let seals = (take_array(&mut rest, "receipt signature")?, take_array(&mut rest, "receipt tag")?);
    if !rest.is_empty() {
        return Err(DecodeError::Value { field: "receipt length", value: length as u64 });
    }
    Ok(seals)
}

const MAGIC: &[u8; 4] = b"WRCP";
const VERSION: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_an_encoded_message_gives_it_back(
            tsi in any::<u16>(), receiver in any::<[u8; 32]>(), received_bytes in any::<u64>(), elapsed_millis in any::<u64>(),
            share in 0u16..=10_000, proof in any::<[u8; 32]>(), name in "\\PC{0,80}", is_receipt in any::<bool>(), to in 0usize..3,
        ) {
            let kind = if is_receipt { Kind::Receipt } else { Kind::Report };
            let name = name_bytes(&name);
            let receipt = Receipt { kind, tsi, receiver, received_bytes, elapsed_millis, share, proof, name };
            let mut message = [7; LEN];
            message[..BODY_LEN].copy_from_slice(&receipt.encode_body());
            prop_assert_eq!(Receipt::decode(&message), Ok((receipt, ([7; SIGNATURE_LEN], [7; TAG_LEN]))));
            prop_assert!(Receipt::decode(&message[..LEN - 1]).is_err() && Answer::decode(&message).is_err());
            let to = [To::Receipt, To::Report, To::OtherReceipt][to];
            let (message, epoch) = ([share as u8; DIGEST_LEN], elapsed_millis);
            let answer = Answer { to, tsi, receiver, next_secs: share, message, epoch };
            let mut message = [7; ANSWER_LEN];
            message[..ANSWER_BODY_LEN].copy_from_slice(&answer.encode_body());
            prop_assert_eq!(Answer::decode(&message), Ok((answer, ([7; SIGNATURE_LEN], [7; TAG_LEN]))));
            prop_assert!(Receipt::decode(&message).is_err());
        }

        #[test]
        fn any_bytes_are_a_message_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..260)) {
            let _ = (Receipt::decode(&bytes), Answer::decode(&bytes));
        }
    }

    #[test]
    fn every_byte_under_the_signature_counts() {
        let receipt = Receipt {
            kind: Kind::Receipt,
            tsi: 1,
            receiver: [2; KEY_LEN],
            received_bytes: 3,
            elapsed_millis: 4,
            share: 5,
            proof: [6; 32],
            name: name_bytes("host"),
        };
        let mut message = [7; LEN];
        message[..BODY_LEN].copy_from_slice(&receipt.encode_body());
        for at in 0..BODY_LEN {
            let mut changed = message;
            changed[at] ^= 0x40;
            assert!(Receipt::decode(&changed).map(|(other, _)| other) != Ok(receipt), "byte {at}");
        }
        let mut answer = [0; ANSWER_LEN];
        answer[..40].copy_from_slice(&head(4, 1, &[2; KEY_LEN]));
        assert!(Answer::decode(&answer).is_ok());
        answer[43] = 1;
        assert!(Answer::decode(&answer).is_err());
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_at_a_character_s_end() {
        let long = "aéééééééééééééééééééééééééééééééééééééééé";
        let receipt = Receipt {
            kind: Kind::Report,
            tsi: 1,
            receiver: [0; 32],
            received_bytes: 0,
            elapsed_millis: 0,
            share: 0,
            proof: [0; 32],
            name: name_bytes(long),
        };
        assert_eq!(receipt.name(), &long[..63]);
        assert_eq!(Receipt { name: [0xff; NAME_LEN], ..receipt }.name(), "");
    }
}
