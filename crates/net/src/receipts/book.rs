//! The sender's side: takes reports and receipts, answers them, and knows who is how far.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use weir_units::Time;
use weir_wire::receipt::{ANSWER_BODY_LEN, Answer, KEY_LEN, Kind, Receipt, SIGNATURE_LEN};

use super::{HasContent, REPORTS_PER_SEC, Sign, opened, sealed};

/// What the book asks of the application.
pub struct Verdicts {
    /// Whether a signature is that of this public key over these bytes.
    pub is_signed: fn(&[u8; KEY_LEN], &[u8], &[u8; SIGNATURE_LEN]) -> bool,
    /// Whether this receiver's proof shows that it has the content.
    pub has_content: HasContent,
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
    verdicts: Verdicts,
    receivers: BTreeMap<[u8; KEY_LEN], Entry>,
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

impl Entry {
    /// Whether it has everything.
    pub fn is_finished(&self) -> bool {
        self.last.kind == Kind::Receipt
    }
}

impl ReceiptBook {
    /// A book of session `tsi`, whose tags this key makes.
    pub fn new(key: [u8; 32], tsi: u16, verdicts: Verdicts) -> ReceiptBook {
        ReceiptBook {
            key,
            tsi,
            verdicts,
            receivers: BTreeMap::new(),
            finished: 0,
            forged: 0,
            overflowed: 0,
            room: LOOKS_PER_SEC,
            refilled: Time::ZERO,
        }
    }

    /// How many receivers have finished.
    pub fn receivers(&self) -> u64 {
        self.finished
    }

    /// All receivers that were heard, by their public keys.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.receivers.values()
    }

    /// Messages that were not those of a receiver of this session, or whose proof was none.
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
        let known = self.receivers.get(&receipt.receiver).copied();
        let is_full = known.is_none() && self.receivers.len() >= MAX_RECEIVERS;
        if (is_full && receipt.kind == Kind::Report) || !self.may_look(now) {
            self.overflowed += 1;
            return None;
        }
        if !self.is_good(&receipt, &signature) {
            self.forged += 1;
            return None;
        }
        if is_full && !self.forget_one() {
            self.overflowed += 1;
            return None;
        }
        // What is told after the receipt is old.
        if known.is_none_or(|known| !known.is_finished()) {
            self.receivers.insert(receipt.receiver, Entry { last: receipt, heard: now });
            if receipt.kind == Kind::Receipt {
                self.finished += 1;
                on_new(&receipt);
            }
        }
        Some(self.answer(&receipt))
    }

    /// Forgets whoever has only reported, and that longest ago: anyone can invent such receivers, and not one with a proof.
    fn forget_one(&mut self) -> bool {
        let unfinished = self.receivers.iter().filter(|(_, entry)| !entry.is_finished());
        let oldest = unfinished.min_by_key(|(_, entry)| entry.heard).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.receivers.remove(&key).is_some())
    }

    fn is_good(&mut self, receipt: &Receipt, signature: &[u8; SIGNATURE_LEN]) -> bool {
        (self.verdicts.is_signed)(&receipt.receiver, &receipt.encode_body(), signature)
            && (receipt.kind == Kind::Report || (self.verdicts.has_content)(&receipt.receiver, &receipt.proof))
    }

    fn answer(&self, receipt: &Receipt) -> Vec<u8> {
        let unfinished = self.receivers.len() as u64 - self.finished;
        let next_secs = u16::try_from(unfinished.div_ceil(REPORTS_PER_SEC)).unwrap_or(u16::MAX);
        let answer = Answer { to: receipt.kind, tsi: self.tsi, receiver: receipt.receiver, next_secs };
        let body: [u8; ANSWER_BODY_LEN] = answer.encode_body();
        let signature = match receipt.kind {
            Kind::Receipt => (self.verdicts.sign)(&body),
            Kind::Report => [0; SIGNATURE_LEN],
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
/// Signatures and proofs looked at in a second: about a twentieth of a core's time.
const LOOKS_PER_SEC: f64 = 500.0;
