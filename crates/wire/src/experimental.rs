//! A header for protocols that are being tried out: sixteen bytes, whose meaning is the protocol's own business.
//!
//! A protocol that has proved itself gets a family of its own (`docs/wire.md`). Until then it lays its fields out in these
//! bytes, and needs no change outside its own folder. Layout, big-endian: magic `WEXP`, version 1, zero, TSI 16 bits, the
//! sixteen bytes; the payload follows.

use crate::{DecodeError, take_array};

/// The bytes that a protocol under trial fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Experimental(pub [u8; 16]);

/// Bytes of the whole header.
pub const LEN: usize = 24;

impl Experimental {
    /// The header of session `tsi`.
    pub fn encode(&self, tsi: u16) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(MAGIC);
        out[4] = VERSION;
        out[6..8].copy_from_slice(&tsi.to_be_bytes());
        out[8..].copy_from_slice(&self.0);
        out
    }

    /// The header of a message, its session, and the payload behind it.
    pub fn decode(message: &[u8]) -> Result<(Experimental, u16, &[u8]), DecodeError> {
        let mut rest = message;
        let magic: [u8; 4] = take_array(&mut rest, "experimental magic")?;
        if &magic != MAGIC {
            let value = u64::from(u32::from_be_bytes(magic));
            return Err(DecodeError::Value { field: "experimental magic", value });
        }
        let [version, _] = take_array(&mut rest, "experimental version")?;
        if version != VERSION {
            return Err(DecodeError::Version { protocol: "experimental", version });
        }
        let tsi = u16::from_be_bytes(take_array(&mut rest, "experimental TSI")?);
        let header = Experimental(take_array(&mut rest, "experimental header")?);
        Ok((header, tsi, rest))
    }
}

const MAGIC: &[u8; 4] = b"WEXP";
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_an_encoded_header_gives_it_and_the_payload_back(tsi in any::<u16>(), fields in any::<[u8; 16]>()) {
            let mut message = Experimental(fields).encode(tsi).to_vec();
            message.extend(b"payload");
            prop_assert_eq!(Experimental::decode(&message), Ok((Experimental(fields), tsi, &b"payload"[..])));
            prop_assert!(Experimental::decode(&message[..LEN - 1]).is_err());
        }

        #[test]
        fn any_bytes_are_a_header_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Experimental::decode(&bytes);
        }
    }
}
