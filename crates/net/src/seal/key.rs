//! The members' key, and the seals by it: AES-GMAC and AES-128-GCM (NIST SP 800-38D).

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

use super::Members;
use super::stamp::{Stamp, Start};

/// What the members of a session share: 32 secret bytes. It never shows itself in debug output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MasterKey([u8; 32]);

impl MasterKey {
    /// The key of these bytes, which nobody else may be able to guess.
    pub const fn new(bytes: [u8; 32]) -> MasterKey {
        MasterKey(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 32 bytes for a `purpose`, the same each time.
    pub(super) fn derive(&self, purpose: &str, tsi: u16, start: Start) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&self.0);
        hasher.update(&tsi.to_be_bytes());
        hasher.update(&Stamp { start, number: 0 }.encode());
        *hasher.finalize().as_bytes()
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey")
    }
}

/// The key of the packets of one start of a sender.
#[derive(Debug)]
pub(super) struct PacketKey(LessSafeKey);

impl PacketKey {
    pub(super) fn new(master: &MasterKey, how: Members, tsi: u16, start: Start) -> PacketKey {
        let purpose = match how {
            Members::Tag => "weir 2026 tags of packets",
            Members::Encrypt => "weir 2026 encryption of packets",
        };
        let bytes = master.derive(purpose, tsi, start);
        let key = UnboundKey::new(&AES_128_GCM, &bytes[..16]).expect("the key has the length of the algorithm's");
        PacketKey(LessSafeKey::new(key))
    }

    /// Encrypts `text` in place; gives the tag over it and `known`.
    pub(super) fn seal(&self, number: u64, known: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        let tag = self.0.seal_in_place_separate_tag(nonce(number), Aad::from(known), text);
        let mut out = [0; TAG_LEN];
        out.copy_from_slice(tag.expect("packets are shorter than the algorithm's limit").as_ref());
        out
    }

    /// Decrypts `text` in place; says whether the tag is right. If not, `text` is of no use.
    pub(super) fn open(&self, number: u64, known: &[u8], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.0.open_in_place_separate_tag(nonce(number), Aad::from(known), Tag::from(*tag), text, 0..).is_ok()
    }
}

/// Each start of a sender has a key of its own, so that a packet's number is enough.
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Bytes of a tag.
pub(super) const TAG_LEN: usize = 16;
/// Bytes that either seal adds: four of its own, the stamp, the tag.
pub(super) const OVERHEAD: usize = 4 + Stamp::LEN + TAG_LEN;
