//! Seals: what proves that a packet is of its sender, or hides what it says. A session has none, one or two of them.
//!
//! | seal | what it is | who can forge it |
//! |---|---|---|
//! | group | AES-GMAC under a key that the session's members share | members |
//! | encryption | AES-128-GCM under that key | members |
//! | source | an Ed25519 signature over the root of a Merkle tree of a burst's packets | nobody |
//!
//! [`Sealer`] seals what goes out to channels, a batch at a time; [`Opener`] checks what comes in, before anything else reads it.
//! What goes to the control port and back bears a tag under a key from the same one ([`ControlKey`]). `docs/wire.md` draws the layouts,
//! `docs/threat-model.md` says what each is good for.
//!
//! No nonce comes twice. It is a packet's number within one start of the sender, and each start has a key of its own: from the
//! epoch, which grows with each start, and from a random number, for the case that an epoch could not be remembered.
//!
//! Not here: signing keys, which callers bring as functions, and where the members' key is from.

mod burst;
mod control;
mod key;
mod opener;
pub(crate) mod pair;
mod replay;
mod sealer;
mod stamp;
#[cfg(test)]
mod tests;

pub use control::ControlKey;
pub use key::MasterKey;
pub use opener::{Opener, Refusal, Verify};
pub use pair::{Identity, PAIR_OVERHEAD, PairConfig};
pub use sealer::{Sealer, Sign};
pub use stamp::Start;

use stamp::Stamp;

/// Which seals a session's packets bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seals {
    /// The outer one, by the key that members share.
    pub members: Option<Members>,
    /// The inner one, by the sender's key.
    pub source: bool,
}

/// A seal by the key that members share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// Packets stay readable; tools that do not know the seal skip it.
    Tag,
    /// Only members can read anything but the seal itself.
    Encrypt,
}

impl Seals {
    /// Whether packets bear none.
    pub fn is_none(&self) -> bool {
        *self == Seals::default()
    }

    /// The most bytes that they add to a packet.
    pub fn overhead(&self) -> usize {
        let members = self.members.map_or(0, |_| key::OVERHEAD);
        members + if self.source { burst::overhead(crate::socket::MAX_BATCH_PACKETS) } else { 0 }
    }
}

/// The start of an encrypted packet: what no LCT packet begins with, and the session.
fn encrypted_prefix(tsi: u16) -> [u8; 4] {
    let [high, low] = tsi.to_be_bytes();
    [ENCRYPTED_MARK, ENCRYPTED_VERSION, high, low]
}

/// What is known of an encrypted packet without the key: what it begins with, then the channel that it comes over.
fn encrypted(tsi: u16, channel: u16, stamp: &Stamp) -> [u8; ENCRYPTED_HEAD + 2] {
    let mut out = [0; ENCRYPTED_HEAD + 2];
    out[..4].copy_from_slice(&encrypted_prefix(tsi));
    out[4..ENCRYPTED_HEAD].copy_from_slice(&stamp.encode());
    out[ENCRYPTED_HEAD..].copy_from_slice(&channel.to_be_bytes());
    out
}

/// What the members' tag of a readable packet is over.
fn tagged(channel: u16, stamp: &Stamp, packet: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&stamp.encode());
    out.extend_from_slice(packet);
}

/// Numbers of the authentication schemes in EXT_AUTH (RFC 6584 leaves them to the session).
const GROUP: u8 = 1;
const SOURCE: u8 = 2;

const ENCRYPTED_MARK: u8 = 0x5e;
const ENCRYPTED_VERSION: u8 = 1;
/// Bytes before the text of an encrypted packet.
const ENCRYPTED_HEAD: usize = 4 + Stamp::LEN;
