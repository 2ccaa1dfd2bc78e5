//! A receipt: the small unicast message by which a receiver tells the sender that it has finished, and its answer.
//!
//! Layout, big-endian: magic `WRCP`, version 1, kind (1 receipt, 2 acknowledgement), TSI 16 bits, receiver id 64 bits,
//! bytes received 64 bits, milliseconds taken 64 bits, then a 16-byte tag that the key of the session description makes
//! over all before it. The tag is opaque here.

use crate::{DecodeError, take_array};

/// What a receiver reports when it has finished, or the sender's acknowledgement of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Receipt or acknowledgement.
    pub kind: Kind,
    /// Transport session identifier.
    pub tsi: u16,
    /// Random number that the receiver chose for itself.
    pub receiver: u64,
    /// Bytes that arrived for this session, headers included.
    pub received_bytes: u64,
    /// Milliseconds from the first packet to the verified end.
    pub elapsed_millis: u64,
}

/// The two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From a receiver: I have everything, verified.
    Receipt,
    /// From the sender: noted, send no more.
    Acknowledgement,
}

/// Bytes under the tag.
pub const BODY_LEN: usize = 32;
/// Bytes of the tag.
pub const TAG_LEN: usize = 16;
/// Bytes of the whole message.
pub const LEN: usize = BODY_LEN + TAG_LEN;

impl Receipt {
    /// The part under the tag.
    pub fn encode_body(&self) -> [u8; BODY_LEN] {
        let mut out = [0; BODY_LEN];
        out[..4].copy_from_slice(MAGIC);
        out[4] = VERSION;
        out[5] = match self.kind {
            Kind::Receipt => 1,
            Kind::Acknowledgement => 2,
        };
        out[6..8].copy_from_slice(&self.tsi.to_be_bytes());
        out[8..16].copy_from_slice(&self.receiver.to_be_bytes());
        out[16..24].copy_from_slice(&self.received_bytes.to_be_bytes());
        out[24..32].copy_from_slice(&self.elapsed_millis.to_be_bytes());
        out
    }

    /// Splits a message into the receipt and its tag, which the caller has yet to check.
    pub fn decode(message: &[u8]) -> Result<(Receipt, [u8; TAG_LEN]), DecodeError> {
        let mut rest = message;
        let magic: [u8; 4] = take_array(&mut rest, "receipt magic")?;
        if &magic != MAGIC {
            return Err(DecodeError::Value { field: "receipt magic", value: u64::from(u32::from_be_bytes(magic)) });
        }
        let [version, kind] = take_array(&mut rest, "receipt version")?;
        if version != VERSION {
            return Err(DecodeError::Version { protocol: "receipt", version });
        }
        let kind = match kind {
            1 => Kind::Receipt,
            2 => Kind::Acknowledgement,
            _ => return Err(DecodeError::Value { field: "receipt kind", value: u64::from(kind) }),
        };
        let receipt = Receipt {
            kind,
            tsi: u16::from_be_bytes(take_array(&mut rest, "receipt TSI")?),
            receiver: u64::from_be_bytes(take_array(&mut rest, "receipt receiver")?),
            received_bytes: u64::from_be_bytes(take_array(&mut rest, "receipt bytes")?),
            elapsed_millis: u64::from_be_bytes(take_array(&mut rest, "receipt time")?),
        };
        let tag = take_array(&mut rest, "receipt tag")?;
        if !rest.is_empty() {
            return Err(DecodeError::Value { field: "receipt length", value: message.len() as u64 });
        }
        Ok((receipt, tag))
    }
}

const MAGIC: &[u8; 4] = b"WRCP";
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_an_encoded_receipt_gives_it_back(
            tsi in any::<u16>(), receiver in any::<u64>(), received_bytes in any::<u64>(), elapsed_millis in any::<u64>(),
        ) {
            let receipt = Receipt { kind: Kind::Receipt, tsi, receiver, received_bytes, elapsed_millis };
            let mut message = [7; LEN];
            message[..BODY_LEN].copy_from_slice(&receipt.encode_body());
            prop_assert_eq!(Receipt::decode(&message), Ok((receipt, [7; TAG_LEN])));
            prop_assert!(Receipt::decode(&message[..LEN - 1]).is_err());
        }

        #[test]
        fn any_bytes_are_a_receipt_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Receipt::decode(&bytes);
        }
    }
}
