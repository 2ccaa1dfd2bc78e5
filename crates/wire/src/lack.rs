//! What a receiver lacks: its answer to the sender's question in EXT_ASK ([`crate::extension::Extension::Ask`]).
//!
//! Layout, big-endian. It begins as a receipt does ([`crate::receipt`]): magic `WRCP`, version 4, kind 5, TSI 16 bits, the receiver's public
//! key 256 bits. Then the number of the question 8 bits, flags 8 bits (1: this is the last message of the answer), and the number of blocks
//! in it 16 bits. Each block has its TOI 32 bits, its number 8 bits, the number of runs 8 bits, the symbols that it needs 16 bits, and for
//! each run its first symbol 16 bits and its length 16 bits. A tag of 128 bits over all before it ends the message.
//!
//! A block without runs needs that many symbols, whichever they are.

use crate::receipt::{self, KEY_LEN, TAG_LEN};
use crate::{DecodeError, take, take_array};

/// A message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'m> {
    /// Transport session identifier.
    pub tsi: u16,
    /// The receiver's public key.
    pub receiver: [u8; KEY_LEN],
    /// Which question it answers.
    pub question: u8,
    /// Whether it is the last message of the answer.
    pub is_last: bool,
    /// The tag, which the caller has yet to check.
    pub tag: [u8; TAG_LEN],
    blocks: u16,
    body: &'m [u8],
}

/// What is lacking of one source block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack<R> {
    /// Transport object identifier.
    pub toi: u32,
    /// The source block's number in its object.
    pub block: u8,
    /// How many symbols make it whole.
    pub needed: u16,
    /// Which source symbols those are: first and length of each run. None if any symbols do.
    pub runs: R,
}

/// The runs of a block in a message.
#[derive(Debug, Clone)]
pub struct Runs<'m>(&'m [u8]);

impl<'m> Message<'m> {
    /// Reads a message, whose blocks are read by [`Message::lacks`].
    pub fn decode(message: &'m [u8]) -> Result<Message<'m>, DecodeError> {
        let mut rest = message;
        let (kind, tsi, receiver) = receipt::decode_head(&mut rest)?;
        if kind != KIND {
            return Err(DecodeError::Value { field: "receipt kind", value: u64::from(kind) });
        }
        let [question, flags] = take_array(&mut rest, "question")?;
        let blocks = u16::from_be_bytes(take_array(&mut rest, "number of blocks")?);
        let length = rest.len().checked_sub(TAG_LEN).ok_or(DecodeError::Truncated {
            field: "tag of a lack",
            needed: TAG_LEN,
            left: rest.len(),
        })?;
        let body = take(&mut rest, length, "blocks")?;
        let tag = take_array(&mut rest, "tag of a lack")?;
        Ok(Message { tsi, receiver, question, is_last: flags & LAST != 0, tag, blocks, body })
    }

    /// The blocks of which something is lacking. Ends after the first that is malformed.
    pub fn lacks(&self) -> impl Iterator<Item = Result<Lack<Runs<'m>>, DecodeError>> + use<'m> {
        let mut rest = self.body;
        let mut left = self.blocks;
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let lack = Lack::decode(&mut rest);
            if lack.is_err() {
                left = 0;
            }
            Some(lack)
        })
    }
}

impl<R> Lack<R> {
    /// The same with its runs in another form.
    pub fn map<S>(self, form: impl FnOnce(R) -> S) -> Lack<S> {
        let Lack { toi, block, needed, runs } = self;
        Lack { toi, block, needed, runs: form(runs) }
    }
}

impl<'m> Lack<Runs<'m>> {
    fn decode(rest: &mut &'m [u8]) -> Result<Lack<Runs<'m>>, DecodeError> {
        let toi = u32::from_be_bytes(take_array(rest, "TOI of a lack")?);
        let [block, runs] = take_array(rest, "block of a lack")?;
        let needed = u16::from_be_bytes(take_array(rest, "needed symbols")?);
        let runs = Runs(take(rest, usize::from(runs) * RUN_LEN, "runs of a lack")?);
        Ok(Lack { toi, block, needed, runs })
    }
}

impl Iterator for Runs<'_> {
    type Item = (u16, u16);

    fn next(&mut self) -> Option<(u16, u16)> {
        let [first, length] = [(); 2].map(|()| take_array(&mut self.0, "run of a lack").map(u16::from_be_bytes));
        first.ok().zip(length.ok())
    }
}

/// A message that is being written.
#[derive(Debug, Clone)]
pub struct Writer {
    bytes: [u8; BODY_LEN],
    length: usize,
    blocks: u16,
}

impl Writer {
    /// The answer of this receiver to a question, or a part of it.
    pub fn new(tsi: u16, receiver: &[u8; KEY_LEN], question: u8) -> Writer {
        let mut bytes = [0; BODY_LEN];
        bytes[..HEAD_LEN].copy_from_slice(&receipt::head(KIND, tsi, receiver));
        bytes[HEAD_LEN] = question;
        Writer { bytes, length: HEAD_LEN + 4, blocks: 0 }
    }

    /// Adds what is lacking of a block, in at most [`MAX_RUNS`] runs. Whether there was room for it.
    pub fn push<R: AsRef<[(u16, u16)]>>(&mut self, lack: &Lack<R>) -> bool {
        let Lack { toi, block, needed, .. } = *lack;
        let runs = lack.runs.as_ref();
        let end = self.length + BLOCK_LEN + runs.len() * RUN_LEN;
        if end > BODY_LEN || runs.len() > MAX_RUNS {
            return false;
        }
        let out = &mut self.bytes[self.length..end];
        out[..4].copy_from_slice(&toi.to_be_bytes());
        (out[4], out[5]) = (block, runs.len() as u8);
        out[6..8].copy_from_slice(&needed.to_be_bytes());
        for (out, (first, length)) in out[BLOCK_LEN..].chunks_exact_mut(RUN_LEN).zip(runs) {
            out[..2].copy_from_slice(&first.to_be_bytes());
            out[2..].copy_from_slice(&length.to_be_bytes());
        }
        (self.length, self.blocks) = (end, self.blocks + 1);
        true
    }

    /// Everything that stands before the tag.
    pub fn finish(&mut self, is_last: bool) -> &[u8] {
        self.bytes[HEAD_LEN + 1] = if is_last { LAST } else { 0 };
        self.bytes[HEAD_LEN + 2..HEAD_LEN + 4].copy_from_slice(&self.blocks.to_be_bytes());
        &self.bytes[..self.length]
    }
}

/// Whether a datagram is such a message, as far as its beginning tells.
pub fn is_lack(datagram: &[u8]) -> bool {
    receipt::is_receipt(datagram) && datagram.get(5) == Some(&KIND)
}

/// Most runs of a block: more of them are written as any symbols.
pub const MAX_RUNS: usize = 128;
/// Bytes of the longest message, without its tag: with it, and with the headers of IPv6 and UDP, it fits into 1280 bytes.
const BODY_LEN: usize = 1200 - TAG_LEN;
const HEAD_LEN: usize = 40;
const BLOCK_LEN: usize = 8;
const RUN_LEN: usize = 4;
const KIND: u8 = 5;
const LAST: u8 = 1;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    type Block = (u32, u8, u16, Vec<(u16, u16)>);

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let runs = proptest::collection::vec(any::<(u16, u16)>(), 0..20);
        proptest::collection::vec((any::<u32>(), any::<u8>(), any::<u16>(), runs), 0..20)
    }

    proptest! {
        #[test]
        fn decoding_a_written_message_gives_its_blocks_back(
            tsi in any::<u16>(), receiver in any::<[u8; 32]>(), question in any::<u8>(), is_last in any::<bool>(),
            blocks in blocks(),
        ) {
            let mut writer = Writer::new(tsi, &receiver, question);
            let fits = |(toi, block, needed, runs): &&Block| {
                writer.push(&Lack { toi: *toi, block: *block, needed: *needed, runs })
            };
            let written: Vec<&Block> = blocks.iter().take_while(fits).collect();
            let mut bytes = writer.finish(is_last).to_vec();
            bytes.extend([7; TAG_LEN]);
            let message = Message::decode(&bytes).expect("our own");
            prop_assert_eq!((message.tsi, message.receiver, message.question), (tsi, receiver, question));
            prop_assert_eq!((message.is_last, message.tag), (is_last, [7; TAG_LEN]));
            let read: Vec<Block> = message.lacks().map(|lack| {
                let lack = lack.expect("our own");
                (lack.toi, lack.block, lack.needed, lack.runs.collect())
            }).collect();
            prop_assert!(read.iter().eq(written));
            prop_assert!(is_lack(&bytes) && crate::receipt::Receipt::decode(&bytes).is_err());
            for cut in 0..bytes.len() {
                Message::decode(&bytes[..cut]).into_iter().for_each(|message| message.lacks().for_each(drop));
            }
        }

        #[test]
        fn any_bytes_are_a_message_or_refused_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 6..300)) {
            bytes[..6].copy_from_slice(b"WRCP\x04\x05");
            Message::decode(&bytes).into_iter().for_each(|message| message.lacks().for_each(drop));
        }
    }

    #[test]
    fn a_message_has_room_for_two_blocks_of_the_most_runs_and_takes_no_more_runs() {
        let mut writer = Writer::new(1, &[2; KEY_LEN], 3);
        let lack = Lack { toi: 1, block: 0, needed: 1, runs: [(0, 1); MAX_RUNS] };
        assert!(!writer.push(&lack.map(|_| [(0, 1); MAX_RUNS + 1])));
        let taken = (0..9).filter(|block| writer.push(&Lack { block: *block, ..lack })).count();
        assert_eq!(taken, 2);
        assert!(writer.finish(true).len() + TAG_LEN + 48 <= 1280);
    }
}
