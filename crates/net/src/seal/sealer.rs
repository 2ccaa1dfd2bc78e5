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

    /// Bytes that it adds to each packet in a batch of `packets`.
    pub fn overhead(&self, packets: usize) -> usize {
        let source = self.source.as_ref().map_or(0, |_| burst::overhead(packets));
        source + self.members.as_ref().map_or(0, |_| OVERHEAD)
    }

    /// Seals a batch to a channel: packets of `packet_len` bytes one behind the other, the last one perhaps shorter. They are put into
    /// `out` in the same way, each longer by [`Sealer::overhead`]. Says whether the seals fit into their headers.
    pub fn seal(&mut self, channel: u16, batch: &[u8], packet_len: usize, out: &mut Vec<u8>) -> bool {
        let batch = Batch { tsi: self.tsi, channel, first: self.next, bytes: batch, packet_len };
        // A session of 2^48 packets takes nine years of a million packets a second.
        self.next.number = (self.next.number + batch.len() as u64) % END;
        out.clear();
        match (&mut self.source, &self.members) {
            (None, None) => {
                out.extend_from_slice(batch.bytes);
                true
            }
            (Some(source), None) => source.seal(&batch, out),
            (None, Some((how, key))) => seal_for_members(*how, key, &batch, &mut self.known, out),
            (Some(source), Some((how, key))) => {
                self.signed.clear();
                let packet_len = packet_len + burst::overhead(batch.len());
                source.seal(&batch, &mut self.signed) && {
                    let signed = Batch { bytes: &self.signed, packet_len, ..batch };
                    seal_for_members(*how, key, &signed, &mut self.known, out)
                }
            }
        }
    }
}

/// Packets to a channel, one behind the other.
#[derive(Clone, Copy)]
struct Batch<'b> {
    tsi: u16,
    channel: u16,
    /// That of the first packet; the others count on.
    first: Stamp,
    bytes: &'b [u8],
    packet_len: usize,
}

impl Batch<'_> {
    fn len(&self) -> usize {
        self.bytes.len().div_ceil(self.packet_len)
    }

    fn packets(&self) -> impl Iterator<Item = (Stamp, &[u8])> {
        let stamps = (self.first.number..).map(|number| Stamp { number, ..self.first });
        stamps.zip(self.bytes.chunks(self.packet_len))
    }
}

/// Puts the members' seal around each packet. Says whether it fits.
fn seal_for_members(how: Members, key: &PacketKey, batch: &Batch<'_>, known: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    for (stamp, packet) in batch.packets() {
        let at = out.len();
        out.resize(at + packet.len() + OVERHEAD, 0);
        match how {
            Members::Tag => {
                super::tagged(batch.channel, &stamp, packet, known);
                let mut body = [0; Stamp::LEN + TAG_LEN];
                body[..Stamp::LEN].copy_from_slice(&stamp.encode());
                body[Stamp::LEN..].copy_from_slice(&key.seal(stamp.number, known, &mut []));
                if auth::insert(packet, GROUP, 0, &body, &mut out[at..]).is_err() {
                    return false;
                }
            }
            Members::Encrypt => {
                let known = super::encrypted(batch.tsi, batch.channel, &stamp);
                let (head, rest) = out[at..].split_at_mut(ENCRYPTED_HEAD);
                head.copy_from_slice(&known[..ENCRYPTED_HEAD]);
                let (text, end) = rest.split_at_mut(packet.len());
                text.copy_from_slice(packet);
                end.copy_from_slice(&key.seal(stamp.number, &known, text));
            }
        }
    }
    true
}

impl Signer {
    /// Signs a burst, and puts the signature and its way to the root into each packet. Says whether they fit.
    fn seal(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> bool {
        let packets = batch.len();
        let leaves = (0..).zip(batch.packets());
        let leaves = leaves.map(|(place, (stamp, packet))| self.hashes.leaf(place, &stamp, packet));
        let root = self.tree.build(&self.hashes, leaves);
        let signature = (self.sign)(&burst::signed(batch.tsi, batch.channel, &batch.first, packets as u8, &root));
        let overhead = burst::overhead(packets);
        let mut body = vec![0; overhead - auth::len(0)];
        for (place, (stamp, packet)) in batch.packets().enumerate() {
            body[..Stamp::LEN].copy_from_slice(&stamp.encode());
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
