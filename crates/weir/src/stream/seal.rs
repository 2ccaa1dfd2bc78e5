//! The seal of a stream: its last payload, with length and BLAKE3 digest of all its bytes, signed by the sender.
//!
//! The first byte of a payload says whether bytes of the stream follow or the seal. Not here: who holds the key.

use weir_object::keys::{PublicKey, SecretKey};

/// Bytes before those of the stream in each payload.
pub(super) const OVERHEAD: usize = 1;

const BYTES: u8 = 0;
const SEAL: u8 = 1;
/// Digest, length, signature.
const SEAL_LEN: usize = 32 + 8 + 64;
/// Bytes that the digest gets together.
const TOGETHER: usize = 1 << 16;

/// What has passed of a stream.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    digest: blake3::Hasher,
    /// What the digest does not have yet: it works on many chunks of a kilobyte at a time, if it gets them together.
    pending: Vec<u8>,
    bytes: u64,
}

/// What a receiver knows of the stream's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has not come.
    Open,
    /// Length and digest are those of what came, and the signature is good, where the key is known.
    Good,
    /// The seal is good, and this is the end of a stream whose beginning was not wanted.
    Tail,
    /// What came is not what the sender has sealed.
    Bad,
}

/// What a payload is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// Bytes of the stream.
    Bytes(&'a [u8]),
    /// The end of the stream.
    Seal(&'a [u8; SEAL_LEN]),
    /// Nothing that a sender sends.
    Unknown,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally { digest: blake3::Hasher::new(), pending: Vec::with_capacity(2 * TOGETHER), bytes: 0 }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() / TOGETHER * TOGETHER;
        if whole > 0 {
            self.digest.update(&self.pending[..whole]);
            self.pending.drain(..whole);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn digest(&self) -> blake3::Hash {
        self.digest.clone().update(&self.pending).finalize()
    }

    /// Writes the payload that seals stream `tsi`.
    pub(super) fn seal(&self, key: &SecretKey, tsi: u16, payload: &mut Vec<u8>) {
        let signed = [&self.digest().as_bytes()[..], &self.bytes.to_be_bytes()].concat();
        payload.clear();
        payload.push(SEAL);
        payload.extend_from_slice(&signed);
        payload.extend_from_slice(&key.sign(&message(tsi, &signed)));
    }

    /// Whether a seal is that of the bytes that came, all of them or from somewhere on.
    pub(super) fn verdict(&self, seal: &[u8; SEAL_LEN], key: Option<&PublicKey>, tsi: u16, is_tail: bool) -> Verdict {
        let (signed, signature) = seal.split_at(SEAL_LEN - 64);
        let signature = signature.first_chunk().expect("a seal ends with a signature");
        let is_signed = key.is_none_or(|key| key.verifies(&message(tsi, signed), signature));
        let is_whole = signed == [&self.digest().as_bytes()[..], &self.bytes.to_be_bytes()].concat();
        match (is_signed, is_whole) {
            (true, true) => Verdict::Good,
            (true, false) if is_tail => Verdict::Tail,
            _ => Verdict::Bad,
        }
    }
}

/// Writes a payload with bytes of the stream.
pub(super) fn wrap(bytes: &[u8], payload: &mut Vec<u8>) {
    payload.clear();
    payload.push(BYTES);
    payload.extend_from_slice(bytes);
}

/// What a payload is.
pub(super) fn unwrap(payload: &[u8]) -> Content<'_> {
    match payload.split_first() {
        Some((&BYTES, bytes)) => Content::Bytes(bytes),
        Some((&SEAL, seal)) => seal.try_into().map_or(Content::Unknown, Content::Seal),
        _ => Content::Unknown,
    }
}

/// What is signed: nobody takes it for anything else.
fn message(tsi: u16, signed: &[u8]) -> Vec<u8> {
    [&b"weir stream\0"[..], &tsi.to_be_bytes(), signed].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(bytes: &[u8], key: &SecretKey) -> Vec<u8> {
        let (mut tally, mut payload) = (Tally::new(), Vec::new());
        tally.add(bytes);
        tally.seal(key, 7, &mut payload);
        payload
    }

    fn judged(payload: &[u8], bytes: &[u8], key: Option<&PublicKey>, tsi: u16, is_tail: bool) -> Verdict {
        let mut tally = Tally::new();
        tally.add(bytes);
        let Content::Seal(seal) = unwrap(payload) else { panic!("no seal: {payload:?}") };
        tally.verdict(seal, key, tsi, is_tail)
    }

    #[test]
    fn a_seal_is_good_for_its_bytes_its_stream_and_its_sender_alone() {
        let [key, other] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
        let (public, seal) = (key.public(), sealed(b"all of it", &key));
        assert_eq!(judged(&seal, b"all of it", Some(&public), 7, false), Verdict::Good);
        assert_eq!(judged(&seal, b"all of it", None, 7, false), Verdict::Good);
        assert_eq!(judged(&seal, b"of it", Some(&public), 7, true), Verdict::Tail);
        assert_eq!(judged(&seal, b"of it", Some(&public), 7, false), Verdict::Bad);
        assert_eq!(judged(&seal, b"all of it", Some(&public), 8, false), Verdict::Bad);
        assert_eq!(judged(&seal, b"all of it", Some(&other.public()), 7, true), Verdict::Bad);
    }

    #[test]
    fn a_payload_is_bytes_or_a_seal_or_nothing_that_is_known() {
        let mut payload = Vec::new();
        wrap(b"some", &mut payload);
        assert_eq!(unwrap(&payload), Content::Bytes(b"some"));
        let seal = sealed(b"", &SecretKey::from_seed([1; 32]));
        assert_eq!(unwrap(&seal[..seal.len() - 1]), Content::Unknown);
        assert_eq!(unwrap(&[]), Content::Unknown);
        assert_eq!(unwrap(&[9, 1]), Content::Unknown);
    }
}
