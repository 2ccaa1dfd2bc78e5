//! The sender's side.

use std::fmt;

use weir_wire::auth;

use super::burst::{self, Hashes, SIGNATURE_LEN, Tree, VALUE_LEN};
use super::key::{MasterKey, OVERHEAD, PacketKey, TAG_LEN};
use super::stamp::{END, Stamp, Start};
use super::{ENCRYPTED_HEAD, GROUP, Members, SOURCE};

/// Signs with the sender's key (Ed25519).
pub type Sign = Box<dyn Fn(&[u8]) -> [u8; 64] + Send>;

/// Seals packets, a batch at a time.
pub struct Sealer {
    tsi: u16,
    next: Stamp,
    members: Option<(Members, PacketKey)>,
    source: Option<Signer>,
    /// A batch with the source's seals, before the members' is put around them.
    signed: Vec<u8>,
    /// What a tag is over.
    known: Vec<u8>,
}

/// What puts the source's seal on.
struct Signer {
    sign: Sign,
    hashes: Hashes,
    tree: Tree,
}

impl Sealer {
    /// Seals the packets of one start of the sender of session `tsi`.
    pub fn new(tsi: u16, start: Start, members: Option<(Members, MasterKey)>, source: Option<Sign>) -> Sealer {
        let start = Start { epoch: start.epoch % END, ..start };
        Sealer {
            tsi,
            next: Stamp { start, number: 0 },
            members: members.map(|(how, master)| (how, PacketKey::new(&master, how, tsi, start))),
            source: source.map(|sign| Signer { sign, hashes: Hashes::new(), tree: Tree::default() }),
            signed: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The bytes that it adds to each packet of a batch of so many.
    pub fn overhead(&self, packets: usize) -> usize {
        let source = self.source.as_ref().map_or(0, |_| burst::overhead(packets));
        source + self.members.as_ref().map_or(0, |_| OVERHEAD)
    }

    /// Seals a batch to a channel: packets of `packet_len` bytes one behind the other, the last one perhaps shorter. They are put into
    /// `out` in the same way, each longer by [`Sealer::overhead`]. Says whether the seals fit into their headers.
    pub fn seal(&mut self, channel: u16, batch: &[u8], packet_len: usize, out: &mut Vec<u8>) -> bool {
        let packets = batch.len().div_ceil(packet_len);
        let first = self.next;
        // A session of 2^48 packets takes nine years of a million packets a second.
        self.next.number = (first.number + packets as u64) % END;
        out.clear();
        let mut signed = std::mem::take(&mut self.signed);
        let sealed = match (&mut self.source, &self.members) {
            (None, None) => {
                out.extend_from_slice(batch);
                true
            }
            (Some(source), None) => source.seal(self.tsi, channel, first, batch, packet_len, out),
            (None, Some(_)) => self.seal_for_members(channel, first, batch, packet_len, out),
            (Some(source), Some(_)) => {
                signed.clear();
                let longer = packet_len + burst::overhead(packets);
                source.seal(self.tsi, channel, first, batch, packet_len, &mut signed)
                    && self.seal_for_members(channel, first, &signed, longer, out)
            }
        };
        self.signed = signed;
        sealed
    }

    fn seal_for_members(
        &mut self,
        channel: u16,
        first: Stamp,
        batch: &[u8],
        packet_len: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some((how, key)) = &self.members else { return true };
        for (packet, number) in batch.chunks(packet_len).zip(first.number..) {
            let stamp = Stamp { number, ..first };
            let at = out.len();
            out.resize(at + packet.len() + OVERHEAD, 0);
            match how {
                Members::Tag => {
                    super::tagged(channel, &stamp, packet, &mut self.known);
                    let tag = key.seal(number, &self.known, &mut []);
                    let mut body = [0; Stamp::LEN + TAG_LEN];
                    body[..Stamp::LEN].copy_from_slice(&stamp.encode());
                    body[Stamp::LEN..].copy_from_slice(&tag);
                    if auth::insert(packet, GROUP, 0, &body, &mut out[at..]).is_err() {
                        return false;
                    }
                }
                Members::Encrypt => {
                    let known = super::encrypted(self.tsi, channel, &stamp);
                    let (head, rest) = out[at..].split_at_mut(ENCRYPTED_HEAD);
                    head.copy_from_slice(&known[..ENCRYPTED_HEAD]);
                    let (text, end) = rest.split_at_mut(packet.len());
                    text.copy_from_slice(packet);
                    end.copy_from_slice(&key.seal(number, &known, text));
                }
            }
        }
        true
    }
}

impl Signer {
    fn seal(
        &mut self,
        tsi: u16,
        channel: u16,
        first: Stamp,
        batch: &[u8],
        packet_len: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let packets = batch.len().div_ceil(packet_len);
        let stamped = |place: usize| Stamp { number: first.number + place as u64, ..first };
        let leaves = batch.chunks(packet_len).enumerate();
        let leaves = leaves.map(|(place, packet)| self.hashes.leaf(place as u8, &stamped(place), packet));
        let root = self.tree.build(&self.hashes, leaves);
        let signature = (self.sign)(&burst::signed(tsi, channel, &first, packets as u8, &root));
        let overhead = burst::overhead(packets);
        let mut body = vec![0; overhead - auth::len(0)];
        for (place, packet) in batch.chunks(packet_len).enumerate() {
            body[..Stamp::LEN].copy_from_slice(&stamped(place).encode());
            body[Stamp::LEN..Stamp::LEN + SIGNATURE_LEN].copy_from_slice(&signature);
            let way = body[Stamp::LEN + SIGNATURE_LEN..].chunks_exact_mut(VALUE_LEN);
            way.zip(self.tree.way(place)).for_each(|(to, value)| to.copy_from_slice(value));
            let at = out.len();
            out.resize(at + packet.len() + overhead, 0);
            let detail = (place as u16) << 6 | (packets - 1) as u16;
            if auth::insert(packet, SOURCE, detail, &body, &mut out[at..]).is_err() {
                return false;
            }
        }
        true
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.as_ref().map(|(how, _)| how);
        let debug = &mut f.debug_struct("Sealer");
        debug.field("next", &self.next).field("members", &members).field("source", &self.source.is_some());
        debug.finish_non_exhaustive()
    }
}

const _: () = assert!(ENCRYPTED_HEAD + TAG_LEN == OVERHEAD, "both of the members' seals take as much");
