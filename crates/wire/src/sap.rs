//! Announcements of sessions: the Session Announcement Protocol (RFC 2974 §6).
//!
//! What is announced is a session description. Weir sends it compressed and without a payload type: a description says that it is one.
//! Authentication data is skipped, as a description bears its own signature. Not here: who may announce what, and how often.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{DecodeError, take, take_array};

/// An announcement, or the end of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sap<'a> {
    /// The session has ended.
    pub is_deletion: bool,
    /// The payload is compressed (zlib, RFC 1950).
    pub is_compressed: bool,
    /// A number of this version of the announcement, for receivers that read it once.
    pub hash: u16,
    /// Who announces.
    pub origin: IpAddr,
    /// The session description.
    pub payload: &'a [u8],
}

/// Most bytes of a header without authentication data.
pub const MAX_HEADER: usize = 20;

impl<'a> Sap<'a> {
    /// Writes the header to the front of `out` and gives its length; the payload follows it.
    pub fn encode_header(&self, out: &mut [u8; MAX_HEADER]) -> usize {
        let flag = |is_set: bool, bit: u8| u8::from(is_set) << bit;
        out[0] = VERSION << 5
            | flag(self.origin.is_ipv6(), ADDRESS_TYPE)
            | flag(self.is_deletion, MESSAGE_TYPE)
            | flag(self.is_compressed, COMPRESSED);
        out[1] = 0;
        out[2..4].copy_from_slice(&self.hash.to_be_bytes());
        match self.origin {
            IpAddr::V4(origin) => {
                out[4..8].copy_from_slice(&origin.octets());
                8
            }
            IpAddr::V6(origin) => {
                out[4..20].copy_from_slice(&origin.octets());
                20
            }
        }
    }

    /// Reads a packet.
    pub fn decode(packet: &'a [u8]) -> Result<Sap<'a>, DecodeError> {
        let mut rest = packet;
        let [flags, authentication] = take_array(&mut rest, "announcement flags")?;
        if flags >> 5 != VERSION {
            return Err(DecodeError::Version { protocol: "SAP", version: flags >> 5 });
        }
        let is_set = |bit: u8| flags >> bit & 1 == 1;
        if is_set(ENCRYPTED) {
            return Err(DecodeError::Value { field: "announcement encryption", value: 1 });
        }
        let hash = u16::from_be_bytes(take_array(&mut rest, "announcement hash")?);
        let origin = if is_set(ADDRESS_TYPE) {
            IpAddr::from(Ipv6Addr::from(take_array::<16>(&mut rest, "announcement origin")?))
        } else {
            IpAddr::from(Ipv4Addr::from(take_array::<4>(&mut rest, "announcement origin")?))
        };
        take(&mut rest, usize::from(authentication) * 4, "announcement authentication")?;
        let payload = rest.strip_prefix(PAYLOAD_TYPE).unwrap_or(rest);
        Ok(Sap { is_deletion: is_set(MESSAGE_TYPE), is_compressed: is_set(COMPRESSED), hash, origin, payload })
    }
}

const VERSION: u8 = 1;
/// Places of the flags.
const ADDRESS_TYPE: u8 = 4;
const MESSAGE_TYPE: u8 = 2;
const ENCRYPTED: u8 = 1;
const COMPRESSED: u8 = 0;
/// Others may say what the payload is.
const PAYLOAD_TYPE: &[u8] = b"application/sdp\0";

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    fn packet(sap: &Sap<'_>) -> std::vec::Vec<u8> {
        let mut header = [0; MAX_HEADER];
        let length = sap.encode_header(&mut header);
        [&header[..length], sap.payload].concat()
    }

    #[test]
    fn an_announcement_is_laid_out_as_in_the_rfc() {
        let origin = IpAddr::from([192, 0, 2, 7]);
        let sap = Sap { is_deletion: false, is_compressed: true, hash: 0x1234, origin, payload: b"xyz" };
        assert_eq!(packet(&sap), [0x21, 0, 0x12, 0x34, 192, 0, 2, 7, b'x', b'y', b'z']);
        assert_eq!(packet(&Sap { is_deletion: true, is_compressed: false, ..sap })[0], 0x24);
        assert_eq!(packet(&Sap { origin: Ipv6Addr::LOCALHOST.into(), ..sap }).len(), 23);
    }

    #[test]
    fn payload_types_and_authentication_of_others_are_skipped_and_encryption_is_refused() {
        let others = [&[0x20, 1, 0, 9, 192, 0, 2, 7, 1, 2, 3, 4][..], b"application/sdp\0v=0"].concat();
        let sap = Sap::decode(&others).expect("a packet of another maker");
        assert_eq!((sap.hash, sap.payload, sap.is_compressed), (9, &b"v=0"[..], false));
        assert!(Sap::decode(&[0x22, 0, 0, 9, 192, 0, 2, 7, b'v']).is_err());
        assert!(Sap::decode(&[0x40, 0, 0, 9, 192, 0, 2, 7, b'v']).is_err());
        assert!(Sap::decode(&others[..10]).is_err(), "cut within the authentication");
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_announcement_gives_it_back(
            is_deletion in any::<bool>(), is_compressed in any::<bool>(), hash in any::<u16>(), origin in any::<IpAddr>(),
            payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let sap = Sap { is_deletion, is_compressed, hash, origin, payload: &payload };
            let bytes = packet(&sap);
            prop_assert_eq!(Sap::decode(&bytes), Ok(sap));
        }

        #[test]
        fn any_bytes_are_an_announcement_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Sap::decode(&bytes);
        }
    }
}
