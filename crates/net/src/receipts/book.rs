//! The sender's side: takes reports and receipts, answers them, and knows who is how far.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use weir_units::Time;
use weir_wire::receipt::{ANSWER_BODY_LEN, Answer, DIGEST_LEN, KEY_LEN, Kind, Receipt, SIGNATURE_LEN, To};

use super::{Question, REPORTS_PER_SEC, Sign, digest, opened, sealed};

/// What the book asks of the application.
pub struct Verdicts {
    /// Whether a signature is that of this public key over these bytes.
    pub is_signed: fn(&[u8; KEY_LEN], &[u8], &[u8; SIGNATURE_LEN]) -> bool,
    /// Whether what this receiver says of the content is of this session's: that a receipt proves that it has it, or that a report goes
    /// by it, or by none yet.
    pub is_of_content: Question,
    /// Whether somebody waits for this receiver: when there is no room for all, others are forgotten first.
    pub is_expected: Question,
    /// Signs with the sender's key.
    pub sign: Sign,
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdicts").finish_non_exhaustive()
    }
}

/// The sender's side.
#[derive(Debug)]
pub struct ReceiptBook {
    key: [u8; 32],
    tsi: u16,
    epoch: u64,
    verdicts: Verdicts,
    receivers: BTreeMap<[u8; KEY_LEN], Entry>,
    /// Those that have not finished, in the order in which they are forgotten.
    unfinished: BTreeSet<Rank>,
    /// For how many there is room.
    most: usize,
    finished: u64,
    forged: u64,
    overflowed: u64,
    /// How many signatures may be looked at until `refilled` plus a moment.
    room: f64,
    refilled: Time,
}

/// What is known of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it said last; its receipt once there is one.
    pub last: Receipt,
    /// When.
    pub heard: Time,
}

/// Whether a receiver is expected, when it was heard, and its key.
type Rank = (bool, Time, [u8; KEY_LEN]);

impl Entry {
    /// Whether it has everything.
    pub fn is_finished(&self) -> bool {
        self.last.kind == Kind::Receipt
    }
}

impl ReceiptBook {
    /// A book of session `tsi`, whose tags this key makes, and of this start of the sender.
    pub fn new(key: [u8; 32], tsi: u16, epoch: u64, verdicts: Verdicts) -> ReceiptBook {
        ReceiptBook {
            key,
            tsi,
            epoch,
            verdicts,
            receivers: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            most: MAX_RECEIVERS,
            finished: 0,
            forged: 0,
            overflowed: 0,
            room: LOOKS_PER_SEC,
            refilled: Time::ZERO,
        }
    }

    /// The same book with room for at most `most` receivers.
    #[cfg(test)]
    pub(super) fn with_room(self, most: usize) -> ReceiptBook {
        ReceiptBook { most, ..self }
    }

    /// The sender begins again, as this start. Messages are judged by these verdicts from here on; receivers that have finished stay so.
    pub fn begin_again(&mut self, epoch: u64, verdicts: Verdicts) {
        (self.epoch, self.verdicts) = (epoch, verdicts);
    }

    /// How many receivers have finished.
    pub fn receivers(&self) -> u64 {
        self.finished
    }

    /// All receivers that were heard, by their public keys.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.receivers.values()
    }

    /// Messages that were not those of a receiver of this session, or were of an earlier one, or whose proof was none.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Messages that were not looked at, because there were too many, or of receivers for whom there was no room.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// A message came at `now`: gives the answer, if there is to be one. `on_new` hears of the receipt of a receiver that had sent
    /// none. If the answer is lost, the receiver asks again.
    pub fn on_message(&mut self, now: Time, message: &[u8], on_new: impl FnOnce(&Receipt)) -> Option<Vec<u8>> {
        let Some((receipt, signature)) = opened(message, &self.key).filter(|(receipt, _)| receipt.tsi == self.tsi)
        else {
            self.forged += 1;
            return None;
        };
        if !self.may_look(now) {
            self.overflowed += 1;
            return None;
        }
        if !(self.verdicts.is_signed)(&receipt.receiver, &receipt.encode_body(), &signature) {
            self.forged += 1;
            return None;
        }
        if !(self.verdicts.is_of_content)(&receipt) {
            self.forged += 1;
            // Whoever had everything before it heard of this start proves it for another one.
            let is_receipt = receipt.kind == Kind::Receipt;
            return is_receipt.then(|| self.answer(&receipt, To::OtherReceipt, digest(message)));
        }
        let known = self.receivers.get(&receipt.receiver).copied();
        // What is told after the receipt is old.
        if known.is_none_or(|known| !known.is_finished()) {
            let entry = Entry { last: receipt, heard: now };
            if known.is_none() && !self.make_room(&entry) {
                self.overflowed += 1;
                return None;
            }
            self.enter(known, entry);
            if entry.is_finished() {
                self.finished += 1;
                on_new(&receipt);
            }
        }
        let to = if receipt.kind == Kind::Receipt { To::Receipt } else { To::Report };
        Some(self.answer(&receipt, to, digest(message)))
    }

    fn enter(&mut self, known: Option<Entry>, entry: Entry) {
        if let Some(known) = known {
            self.unfinished.remove(&self.rank(&known));
        }
        self.receivers.insert(entry.last.receiver, entry);
        if !entry.is_finished() {
            self.unfinished.insert(self.rank(&entry));
        }
    }

    fn rank(&self, entry: &Entry) -> Rank {
        ((self.verdicts.is_expected)(&entry.last), entry.heard, entry.last.receiver)
    }

    /// Makes room for a new entry. If the book is full, it forgets the unfinished receiver that has been silent longest, unexpected ones
    /// first: anyone can invent those, but neither a receiver with a proof nor one that is expected by its key. Says whether there is room.
    fn make_room(&mut self, new: &Entry) -> bool {
        if self.receivers.len() < self.most {
            return true;
        }
        let is_worth = new.is_finished() || (self.verdicts.is_expected)(&new.last);
        let first = self.unfinished.first().copied().filter(|(is_expected, ..)| is_worth || !is_expected);
        let Some(rank) = first else { return false };
        self.unfinished.remove(&rank);
        self.receivers.remove(&rank.2).is_some()
    }

    fn answer(&self, receipt: &Receipt, to: To, message: [u8; DIGEST_LEN]) -> Vec<u8> {
        let unfinished = self.receivers.len() as u64 - self.finished;
        let next_secs = u16::try_from(unfinished.div_ceil(REPORTS_PER_SEC)).unwrap_or(u16::MAX);
        let (tsi, epoch, receiver) = (self.tsi, self.epoch, receipt.receiver);
        let answer = Answer { to, tsi, receiver, next_secs, message, epoch };
        let body: [u8; ANSWER_BODY_LEN] = answer.encode_body();
        let signature = match to {
            To::Receipt | To::OtherReceipt => (self.verdicts.sign)(&body),
            To::Report => [0; SIGNATURE_LEN],
        };
        sealed(&body, &signature, &self.key)
    }

    /// Whether there is time for another signature.
    fn may_look(&mut self, now: Time) -> bool {
        let since = now.since(self.refilled).min(Duration::from_secs(1));
        self.refilled = self.refilled.max(now);
        self.room = (self.room + since.as_secs_f64() * LOOKS_PER_SEC).min(LOOKS_PER_SEC);
        let may = self.room >= 1.0;
        self.room -= if may { 1.0 } else { 0.0 };
        may
    }
}

/// So many receivers take about 60 MB.
const MAX_RECEIVERS: usize = 200_000;
/// Signatures and proofs looked at in a second: about a twentieth of a core's time, as a proof is judged from memory.
const LOOKS_PER_SEC: f64 = 500.0;
