//! Two hosts that share keys of their own: a live stream's sender and one viewer.
//!
//! The keys are from two agreements (X25519): the viewer's key for this stream with the sender's key for this run, so that what was recorded cannot be
//! read later with a key that lasts; and with the sender's lasting key, so that nobody else can answer in its place. Each direction
//! has a key (AES-128-GCM), and counts its packets.

use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

use super::replay::Window;

/// What a host brings to those with whom it shares keys.
#[derive(Clone)]
pub struct PairConfig {
    /// Random, for this run.
    pub secret: [u8; 32],
    /// Who it is, if it sends streams: these are encrypted then.
    pub identity: Option<Identity>,
    /// The lasting public key (Ed25519) of the only sender whose streams it takes.
    pub expected: Option<[u8; 32]>,
}

impl std::fmt::Debug for PairConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let debug = &mut f.debug_struct("PairConfig");
        debug.field("identity", &self.identity).field("expected", &self.expected).finish_non_exhaustive()
    }
}

/// The sender's keys.
#[derive(Clone)]
pub struct Identity {
    /// Its lasting key: the public half (Ed25519).
    pub public: [u8; 32],
    /// The secret half of the same key for agreements (X25519).
    pub agreement: [u8; 32],
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}

/// What both hosts know that nobody else needs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About {
    /// The sender's public key for this run.
    pub(crate) ephemeral: [u8; 32],
    /// The sender's lasting public key.
    pub(crate) identity: [u8; 32],
    /// The viewer's public key.
    pub(crate) viewer: [u8; 32],
    pub(crate) viewer_ssrc: u32,
    pub(crate) stream_ssrc: u32,
}

impl PairConfig {
    /// The public half of the secret for this run.
    pub(crate) fn public(&self) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(self.secret).to_bytes()
    }

    /// The sender's side; `None` if the viewer's key is of no use.
    pub(crate) fn with_viewer(&self, about: &About) -> Option<Pair> {
        let identity = self.identity.as_ref()?;
        let viewer = MontgomeryPoint(about.viewer);
        let shared = [agree(&viewer, self.secret)?, agree(&viewer, identity.agreement)?];
        let [to_viewer, to_sender] = keys(shared, about);
        Some(Pair { sealer: PairSealer::new(&to_viewer), opener: PairOpener::new(&to_sender) })
    }

    /// The viewer's side; `None` if the sender's keys are of no use.
    pub(crate) fn with_sender(&self, about: &About) -> Option<Pair> {
        let identity = CompressedEdwardsY(about.identity).decompress()?.to_montgomery();
        let shared = [agree(&MontgomeryPoint(about.ephemeral), self.secret)?, agree(&identity, self.secret)?];
        let [to_viewer, to_sender] = keys(shared, about);
        Some(Pair { sealer: PairSealer::new(&to_sender), opener: PairOpener::new(&to_viewer) })
    }
}

/// X25519; `None` for a point whose multiples are few (RFC 7748 §6.1).
fn agree(other: &MontgomeryPoint, secret: [u8; 32]) -> Option<[u8; 32]> {
    let shared = other.mul_clamped(secret).to_bytes();
    (shared != [0; 32]).then_some(shared)
}

/// The key of each direction: to the viewer, to the sender.
fn keys(shared: [[u8; 32]; 2], about: &About) -> [[u8; 16]; 2] {
    let mut hasher = blake3::Hasher::new_derive_key("weir 2026 live stream to one viewer");
    for part in shared.iter().chain([&about.viewer, &about.ephemeral, &about.identity]) {
        hasher.update(part);
    }
    hasher.update(&about.viewer_ssrc.to_be_bytes()).update(&about.stream_ssrc.to_be_bytes());
    let mut out = [0; 32];
    hasher.finalize_xof().fill(&mut out);
    let (first, second) = out.split_at(16);
    [first, second].map(|half| half.try_into().expect("half of 32 bytes"))
}

/// Both directions of a host.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) sealer: PairSealer,
    pub(crate) opener: PairOpener,
}

/// Seals what goes to the other.
#[derive(Debug)]
pub(crate) struct PairSealer {
    key: LessSafeKey,
    next: u64,
}

/// Opens what comes from the other.
#[derive(Debug)]
pub(crate) struct PairOpener {
    key: LessSafeKey,
    window: Window,
}

impl PairSealer {
    fn new(key: &[u8; 16]) -> PairSealer {
        PairSealer { key: aes(key), next: 0 }
    }

    /// Appends the packet, sealed, to `out`.
    pub(crate) fn seal(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        let head = head(self.next);
        let at = out.len();
        out.extend_from_slice(&head);
        out.extend_from_slice(packet);
        let tag = self.key.seal_in_place_separate_tag(nonce(self.next), Aad::from(head), &mut out[at + HEAD_LEN..]);
        out.extend_from_slice(tag.expect("packets are shorter than the algorithm's limit").as_ref());
        self.next += 1;
    }
}

impl PairOpener {
    fn new(key: &[u8; 16]) -> PairOpener {
        PairOpener { key: aes(key), window: Window::new() }
    }

    /// Puts the packet without its seal into `out`; says whether the other sent it, and for the first time.
    pub(crate) fn open(&mut self, sealed: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((head, rest)) = sealed.split_first_chunk::<HEAD_LEN>() else { return false };
        let Some((text, tag)) = rest.split_last_chunk::<TAG_LEN>() else { return false };
        let number = head[4..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if *head != self::head(number) || number >= END {
            return false;
        }
        out.clear();
        out.extend_from_slice(text);
        let opened = self.key.open_in_place_separate_tag(nonce(number), Aad::from(*head), Tag::from(*tag), out, 0..);
        opened.is_ok() && self.window.note(number)
    }
}

/// Whether a datagram may be sealed so.
pub(crate) fn is_sealed(datagram: &[u8]) -> bool {
    datagram.starts_with(&MARK)
}

fn aes(key: &[u8; 16]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("the key has the length of the algorithm's"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn head(number: u64) -> [u8; HEAD_LEN] {
    let mut out = [0; HEAD_LEN];
    out[..2].copy_from_slice(&MARK);
    out[4..].copy_from_slice(&number.to_be_bytes());
    out
}

/// Neither RTP nor RTCP begins so, nor does a session's encrypted packet.
const MARK: [u8; 2] = [super::ENCRYPTED_MARK, 2];
const HEAD_LEN: usize = 12;
const TAG_LEN: usize = 16;
const END: u64 = 1 << 63;

/// Bytes that sealing adds to a packet of a pair.
pub const PAIR_OVERHEAD: usize = HEAD_LEN + TAG_LEN;

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;

    fn identity(seed: u8) -> Identity {
        let key = SigningKey::from_bytes(&[seed; 32]);
        Identity { public: key.verifying_key().to_bytes(), agreement: key.to_scalar_bytes() }
    }

    fn own(secret: u8, identity: Option<Identity>) -> PairConfig {
        PairConfig { secret: [secret; 32], identity, expected: None }
    }

    fn about(sender: &PairConfig, viewer: &PairConfig) -> About {
        let identity = sender.identity.as_ref().expect("a sender has one").public;
        About { ephemeral: sender.public(), identity, viewer: viewer.public(), viewer_ssrc: 1, stream_ssrc: 2 }
    }

    fn pairs() -> (Pair, Pair) {
        let (sender, viewer) = (own(1, Some(identity(3))), own(2, None));
        let about = about(&sender, &viewer);
        (sender.with_viewer(&about).expect("good keys"), viewer.with_sender(&about).expect("good keys"))
    }

    #[test]
    fn both_sides_have_the_same_keys_and_each_direction_its_own() {
        let (mut sender, mut viewer) = pairs();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        for text in [&b"first"[..], b"", b"third"] {
            sealed.clear();
            sender.sealer.seal(text, &mut sealed);
            assert_eq!(sealed.len(), text.len() + PAIR_OVERHEAD);
            assert!(viewer.opener.open(&sealed, &mut opened) && opened == text);
            assert!(!viewer.opener.open(&sealed, &mut opened), "it came before");
            assert!(!sender.opener.open(&sealed, &mut opened), "it is its own");
        }
        sealed.clear();
        viewer.sealer.seal(b"back", &mut sealed);
        assert!(sender.opener.open(&sealed, &mut opened) && opened == b"back");
    }

    #[test]
    fn a_packet_with_any_one_bit_changed_or_cut_short_is_refused() {
        let (mut sender, mut viewer) = pairs();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        sender.sealer.seal(b"text", &mut sealed);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!viewer.opener.open(&changed, &mut opened), "bit {bit}");
        }
        (0..sealed.len()).for_each(|len| assert!(!viewer.opener.open(&sealed[..len], &mut opened), "{len} bytes"));
        assert!(viewer.opener.open(&sealed, &mut opened), "what was refused left no trace");
    }

    #[test]
    fn who_has_not_the_sender_s_lasting_key_cannot_answer_in_its_place() {
        let viewer = own(2, None);
        // It claims the sender's name, and has a secret of its own.
        let claimed = Identity { public: identity(3).public, agreement: identity(4).agreement };
        let impostor = own(5, Some(claimed));
        let about = about(&impostor, &viewer);
        let mut theirs = impostor.with_viewer(&about).expect("keys");
        let mut ours = viewer.with_sender(&about).expect("keys");
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        theirs.sealer.seal(b"text", &mut sealed);
        assert!(!ours.opener.open(&sealed, &mut opened));
    }

    #[test]
    fn another_stream_to_the_same_viewer_has_other_keys() {
        let (sender, viewer) = (own(1, Some(identity(3))), own(2, None));
        let first = about(&sender, &viewer);
        let next = About { stream_ssrc: 3, ..first };
        let mut sealed = Vec::new();
        sender.with_viewer(&first).expect("good keys").sealer.seal(b"text", &mut sealed);
        assert!(!viewer.with_sender(&next).expect("good keys").opener.open(&sealed, &mut Vec::new()));
    }

    #[test]
    fn keys_that_lead_nowhere_are_refused() {
        let (sender, viewer) = (own(1, Some(identity(3))), own(2, None));
        let good = about(&sender, &viewer);
        assert!(sender.with_viewer(&About { viewer: [0; 32], ..good }).is_none());
        assert!(viewer.with_sender(&About { ephemeral: [0; 32], ..good }).is_none());
        assert!(viewer.with_sender(&About { identity: [2; 32], ..good }).is_none(), "no point of the curve");
    }
}
