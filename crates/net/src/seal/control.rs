//! Tags of what goes to the control port and back.

use super::key::MasterKey;
use super::stamp::Start;

/// Tags messages of members to the sender, and its answers: the first 16 bytes of keyed BLAKE3 behind each.
#[derive(Debug, Clone)]
pub struct ControlKey(blake3::Hasher);

impl ControlKey {
    /// The key for the control port of session `tsi`.
    pub fn new(master: &MasterKey, tsi: u16) -> ControlKey {
        let key = master.derive("weir 2026 messages at the control port", tsi, Start { epoch: 0, salt: 0 });
        ControlKey(blake3::Hasher::new_keyed(&key))
    }

    /// Appends the tag.
    pub fn seal(&self, message: &mut Vec<u8>) {
        let tag = self.tag(message);
        message.extend_from_slice(&tag);
    }

    /// The tag of a message.
    pub fn tag(&self, message: &[u8]) -> [u8; ControlKey::LEN] {
        let mut out = [0; ControlKey::LEN];
        out.copy_from_slice(&self.0.clone().update(message).finalize().as_bytes()[..ControlKey::LEN]);
        out
    }

    /// The message without its tag, if that is right.
    pub fn open<'m>(&self, message: &'m [u8]) -> Option<&'m [u8]> {
        let (message, tag) = message.split_last_chunk::<{ ControlKey::LEN }>()?;
        constant_time_eq::constant_time_eq(&self.tag(message), tag).then_some(message)
    }

    /// Bytes of a tag.
    pub const LEN: usize = 16;
}
