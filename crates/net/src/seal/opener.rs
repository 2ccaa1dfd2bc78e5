//! The receiver's side.

use std::fmt;

use weir_wire::auth::Authenticated;

use super::burst::{self, Hashes, SIGNATURE_LEN, VALUE_LEN, Value};
use super::key::{MasterKey, PacketKey, TAG_LEN};
use super::replay::Window;
use super::stamp::{Stamp, Start};
use super::{ENCRYPTED_HEAD, GROUP, Members, SOURCE};

/// Says whether a signature is the sender's (Ed25519).
pub type Verify = Box<dyn Fn(&[u8], &[u8; 64]) -> bool + Send>;

/// Why a packet is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It does not bear the session's seal.
    Unsealed,
    /// Its seal is not of the key that this host knows.
    Forged,
    /// It is of an earlier start of the sender than others that have come, or than the description says.
    Old,
    /// It has come before.
    Repeated,
}

/// Checks packets that come over channels and takes their seals off.
pub struct Opener {
    tsi: u16,
    /// The lowest epoch that counts.
    least: u64,
    current: Option<Current>,
    /// The epoch of the start that was heard first since somebody asked.
    begun: Option<u64>,
    members: Option<(Members, MasterKey)>,
    source: Option<Checker>,
    /// Where packets are put together without their seals: after the outer one, after the inner one.
    opened: Vec<u8>,
    stripped: Vec<u8>,
}

/// The start of the sender that packets are of.
struct Current {
    start: Start,
    key: Option<PacketKey>,
    window: Window,
}

/// What takes the source's seal off.
struct Checker {
    verify: Verify,
    hashes: Hashes,
    /// Roots that are the sender's, the last ones that came: a burst needs one look at its signature.
    roots: Vec<Root>,
    next: usize,
}

/// A root, and all else that is signed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Root {
    start: Start,
    channel: u16,
    packets: u8,
    value: Value,
    signature: [u8; SIGNATURE_LEN],
}

impl Opener {
    /// Opens the packets of session `tsi`, of starts of its sender that are not before `epoch`.
    pub fn new(tsi: u16, epoch: u64, members: Option<(Members, MasterKey)>, source: Option<Verify>) -> Opener {
        let checker = |verify| Checker { verify, hashes: Hashes::new(), roots: Vec::new(), next: 0 };
        Opener {
            tsi,
            least: epoch,
            current: None,
            begun: None,
            members,
            source: source.map(checker),
            opened: Vec::new(),
            stripped: Vec::new(),
        }
    }

    /// The packet without its seals.
    ///
    /// # Errors
    /// [`Refusal`], which says why the packet does not count.
    pub fn open<'p>(&'p mut self, channel: u16, packet: &'p [u8]) -> Result<&'p [u8], Refusal> {
        if self.members.is_none() && self.source.is_none() {
            return Ok(packet);
        }
        let mut outer = None;
        if let Some((how, master)) = self.members {
            let sealed = Sealed::read(how, self.tsi, packet)?;
            outer = Some(sealed.stamp);
            let key = match &self.current {
                Some(current) if current.start == sealed.stamp.start => None,
                _ => Some(self.candidate(sealed.stamp.start, |start| PacketKey::new(&master, how, self.tsi, start))?),
            };
            let current = self.current.as_ref().and_then(|current| current.key.as_ref());
            let known = key.as_ref().or(current).ok_or(Refusal::Forged)?;
            if !sealed.open(known, self.tsi, channel, &mut self.opened) {
                return Err(Refusal::Forged);
            }
            if key.is_some() {
                self.begin(sealed.stamp.start, key);
            }
        }
        let packet = if outer.is_some() { &self.opened } else { packet };
        let Some(source) = &mut self.source else {
            return self.note(outer).map(|()| self.opened.as_slice());
        };
        let stamp = source.check(self.tsi, channel, packet, &mut self.stripped)?;
        match outer {
            Some(outer) if outer.start != stamp.start => return Err(Refusal::Forged),
            Some(_) => {}
            None if self.current.as_ref().is_some_and(|current| current.start == stamp.start) => {}
            None => {
                self.candidate(stamp.start, |_| ())?;
                self.begin(stamp.start, None);
            }
        }
        self.note(outer.or(Some(stamp))).map(|()| self.stripped.as_slice())
    }

    /// The epoch of a start of the sender whose first packet was opened since this was asked last.
    pub fn take_begun(&mut self) -> Option<u64> {
        self.begun.take()
    }

    /// What `make` makes of a start that is not the current one, if it can be the next.
    fn candidate<K>(&self, start: Start, make: impl FnOnce(Start) -> K) -> Result<K, Refusal> {
        let is_next = self.current.as_ref().is_none_or(|current| start.epoch > current.start.epoch);
        if is_next && start.epoch >= self.least { Ok(make(start)) } else { Err(Refusal::Old) }
    }

    /// The sender has proved that it has started again.
    fn begin(&mut self, start: Start, key: Option<PacketKey>) {
        self.begun = Some(start.epoch);
        self.current = Some(Current { start, key, window: Window::new() });
    }

    fn note(&mut self, stamp: Option<Stamp>) -> Result<(), Refusal> {
        let is_new = match (&mut self.current, stamp) {
            (Some(current), Some(stamp)) => current.window.note(stamp.number),
            _ => false,
        };
        if is_new { Ok(()) } else { Err(Refusal::Repeated) }
    }
}

/// A packet with the members' seal, in its parts.
enum Parts<'p> {
    Tagged { packet: Authenticated<'p> },
    Encrypted { text: &'p [u8] },
}

struct Sealed<'p> {
    stamp: Stamp,
    tag: &'p [u8; TAG_LEN],
    parts: Parts<'p>,
}

impl<'p> Sealed<'p> {
    fn read(how: Members, tsi: u16, packet: &'p [u8]) -> Result<Sealed<'p>, Refusal> {
        match how {
            Members::Tag => {
                let packet = Authenticated::decode(packet).map_err(|_| Refusal::Unsealed)?;
                let (stamp, tag) = packet.body.split_first_chunk().ok_or(Refusal::Unsealed)?;
                let tag = tag
                    .try_into()
                    .ok()
                    .filter(|_| (packet.scheme, packet.detail) == (GROUP, 0))
                    .ok_or(Refusal::Unsealed)?;
                Ok(Sealed { stamp: Stamp::decode(stamp), tag, parts: Parts::Tagged { packet } })
            }
            Members::Encrypt => {
                let rest = packet.strip_prefix(&super::encrypted_prefix(tsi)).ok_or(Refusal::Unsealed)?;
                let (stamp, rest) = rest.split_first_chunk().ok_or(Refusal::Unsealed)?;
                let (text, tag) = rest.split_last_chunk().ok_or(Refusal::Unsealed)?;
                Ok(Sealed { stamp: Stamp::decode(stamp), tag, parts: Parts::Encrypted { text } })
            }
        }
    }

    /// Puts the packet without the seal into `out`; says whether the seal is right. If not, `out` is of no use.
    fn open(&self, key: &PacketKey, tsi: u16, channel: u16, out: &mut Vec<u8>) -> bool {
        match &self.parts {
            Parts::Tagged { packet } => {
                super::tagged(channel, &self.stamp, &[], out);
                let at = out.len();
                out.resize(at + packet.stripped_len(), 0);
                packet.strip(&mut out[at..]);
                let is_right = key.open(self.stamp.number, out, &mut [], self.tag);
                out.drain(..at);
                is_right
            }
            Parts::Encrypted { text } => {
                let known = super::encrypted(tsi, channel, &self.stamp);
                debug_assert!(known.len() == ENCRYPTED_HEAD + 2, "what stands before the text, and the channel");
                out.clear();
                out.extend_from_slice(text);
                key.open(self.stamp.number, &known, out, self.tag)
            }
        }
    }
}

impl Checker {
    /// Puts the packet without the seal into `out`; gives its stamp if the sender vouches for it.
    fn check(&mut self, tsi: u16, channel: u16, packet: &[u8], out: &mut Vec<u8>) -> Result<Stamp, Refusal> {
        let sealed = Authenticated::decode(packet).map_err(|_| Refusal::Unsealed)?;
        let (stamp, rest) = sealed.body.split_first_chunk().ok_or(Refusal::Unsealed)?;
        let (signature, way) = rest.split_first_chunk().ok_or(Refusal::Unsealed)?;
        let (place, packets) = ((sealed.detail >> 6) as u8, (sealed.detail & 0x3f) as u8 + 1);
        let depth = burst::depth(packets.into());
        if sealed.scheme != SOURCE || place >= packets || way.len() != depth * VALUE_LEN {
            return Err(Refusal::Unsealed);
        }
        let stamp = Stamp::decode(stamp);
        out.resize(sealed.stripped_len(), 0);
        sealed.strip(out);
        let value = self.hashes.root(place, self.hashes.leaf(place, &stamp, out), way);
        let root = Root { start: stamp.start, channel, packets, value, signature: *signature };
        if !self.roots.contains(&root) {
            if !(self.verify)(&burst::signed(tsi, channel, &stamp, packets, &value), signature) {
                return Err(Refusal::Forged);
            }
            self.remember(root);
        }
        Ok(stamp)
    }

    fn remember(&mut self, root: Root) {
        if self.roots.len() < ROOTS {
            self.roots.push(root);
        } else {
            self.roots[self.next] = root;
            self.next = (self.next + 1) % ROOTS;
        }
    }
}

/// Bursts of several channels come mixed, of each a few at a time.
const ROOTS: usize = 32;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.current.as_ref().map(|current| current.start);
        let members = self.members.as_ref().map(|(how, _)| how);
        let debug = &mut f.debug_struct("Opener");
        debug.field("start", &start).field("members", &members).field("source", &self.source.is_some());
        debug.finish_non_exhaustive()
    }
}
