//! Receipts: how a sender that asks for it learns who has finished.
//!
//! A receiver that has everything waits for a random part of a spread, so that a thousand of them do not answer at once,
//! and then sends a small message to the sender's control port until it is acknowledged, at most five times. Messages carry a
//! keyed BLAKE3 tag; whoever has the session's description can make one, nobody else can, and the sender answers nothing
//! without it.
//!
//! [`ReceiptSender`] is the receiver's side, [`ReceiptBook`] the sender's. Both are state machines without clock or socket: the
//! applications of a session carry their messages ([`crate::host::Application::message`]).

use std::collections::BTreeMap;
use std::time::Duration;

use constant_time_eq::constant_time_eq_16;
use weir_units::{Random, Time};
use weir_wire::receipt::{BODY_LEN, Kind, LEN, Receipt, TAG_LEN};

/// The receiver's side: when to send the receipt again, and when to stop.
#[derive(Debug, Clone)]
pub struct ReceiptSender {
    receipt: Receipt,
    key: [u8; 32],
    /// When to send next; `None` when it is over.
    next: Option<Time>,
    interval: Duration,
    tries: u32,
    is_acknowledged: bool,
}

/// Most receipts that a receiver sends.
pub const MAX_TRIES: u32 = 5;

impl ReceiptSender {
    /// Begins at `now`, with a wait within `spread` that `random` chooses.
    pub fn new(receipt: Receipt, key: [u8; 32], now: Time, spread: Duration, mut random: Random) -> ReceiptSender {
        let wait = spread.mul_f64(random.unit());
        let receipt = Receipt { kind: Kind::Receipt, ..receipt };
        ReceiptSender {
            receipt,
            key,
            next: Some(now + wait),
            interval: FIRST_INTERVAL,
            tries: 0,
            is_acknowledged: false,
        }
    }

    /// When [`ReceiptSender::poll`] wants to be called; `None` when it is over.
    pub fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The message to send at `now`, if it is time. Each wait is twice the one before, from half a second on.
    pub fn poll(&mut self, now: Time) -> Option<[u8; LEN]> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        if self.tries == MAX_TRIES {
            self.next = None;
            return None;
        }
        self.tries += 1;
        self.next = Some(now + self.interval);
        self.interval *= 2;
        Some(sealed(&self.receipt, &self.key))
    }

    /// A message came. Returns whether it is the acknowledgement; anything else is ignored.
    pub fn on_message(&mut self, message: &[u8]) -> bool {
        let wanted = Receipt { kind: Kind::Acknowledgement, ..self.receipt };
        if opened(message, &self.key) == Some(wanted) {
            self.next = None;
            self.is_acknowledged = true;
        }
        self.is_acknowledged
    }

    /// How often the receipt was sent.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Whether the sender has confirmed.
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }
}

/// The sender's side: takes receipts, answers them, and counts the receivers.
#[derive(Debug)]
pub struct ReceiptBook {
    key: [u8; 32],
    tsi: u16,
    receivers: BTreeMap<u64, Receipt>,
    forged: u64,
    overflowed: u64,
}

impl ReceiptBook {
    /// A book of the receipts of session `tsi`, whose tags this key makes.
    pub fn new(key: [u8; 32], tsi: u16) -> ReceiptBook {
        ReceiptBook { key, tsi, receivers: BTreeMap::new(), forged: 0, overflowed: 0 }
    }

    /// How many receivers have finished.
    pub fn receivers(&self) -> u64 {
        self.receivers.len() as u64
    }

    /// The receipts, by the number of the receiver.
    pub fn receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.receivers.values()
    }

    /// Messages that were not receipts of this session made with its key.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Good receipts that were not counted, and not acknowledged, because the table was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// A message came: gives the answer, if there is to be one. `on_new` hears of the receipt of a receiver that had sent none.
    /// If the answer is lost, the receiver asks again.
    pub fn on_message(&mut self, message: &[u8], on_new: impl FnOnce(&Receipt)) -> Option<[u8; LEN]> {
        let receipt = opened(message, &self.key).filter(|it| it.kind == Kind::Receipt && it.tsi == self.tsi);
        let Some(receipt) = receipt else {
            self.forged += 1;
            return None;
        };
        if !self.receivers.contains_key(&receipt.receiver) {
            if self.receivers.len() == MAX_RECEIVERS {
                self.overflowed += 1;
                return None;
            }
            self.receivers.insert(receipt.receiver, receipt);
            on_new(&receipt);
        }
        Some(sealed(&Receipt { kind: Kind::Acknowledgement, ..receipt }, &self.key))
    }
}

/// A message with its tag: the first 16 bytes of the keyed BLAKE3 hash of its body.
fn sealed(receipt: &Receipt, key: &[u8; 32]) -> [u8; LEN] {
    let body = receipt.encode_body();
    let mut message = [0; LEN];
    message[..BODY_LEN].copy_from_slice(&body);
    message[BODY_LEN..].copy_from_slice(&tag(&body, key));
    message
}

/// What a message says, if its tag is right.
fn opened(message: &[u8], key: &[u8; 32]) -> Option<Receipt> {
    let (receipt, given) = Receipt::decode(message).ok()?;
    let right = tag(&receipt.encode_body(), key);
    constant_time_eq_16(&given, &right).then_some(receipt)
}

fn tag(body: &[u8; BODY_LEN], key: &[u8; 32]) -> [u8; TAG_LEN] {
    let hash = blake3::keyed_hash(key, body);
    *hash.as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
}

/// The first wait for an acknowledgement; it doubles each time, so five tries end after 15.5 s.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// So many receivers take about 100 MB.
const MAX_RECEIVERS: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn receipt(receiver: u64) -> Receipt {
        Receipt { kind: Kind::Receipt, tsi: 9, receiver, received_bytes: 1_000, elapsed_millis: 20 }
    }

    fn sender() -> ReceiptSender {
        ReceiptSender::new(receipt(1), KEY, Time::ZERO, Duration::ZERO, Random::new(1, "receipt"))
    }

    #[test]
    fn an_unanswered_receipt_is_sent_five_times_ever_more_slowly() {
        let mut sender = sender();
        let mut sent = Vec::new();
        while let Some(deadline) = sender.deadline() {
            if sender.poll(deadline).is_some() {
                sent.push(deadline.as_micros() / 1_000);
            }
        }
        assert_eq!(sent, [0, 500, 1_500, 3_500, 7_500]);
        assert!(!sender.is_acknowledged());
    }

    #[test]
    fn the_first_receipt_waits_for_a_random_part_of_the_spread() {
        let spread = Duration::from_secs(10);
        let first = |seed| {
            let random = Random::new(seed, "receipt");
            ReceiptSender::new(receipt(1), KEY, Time::ZERO, spread, random).deadline().expect("it waits")
        };
        let waits: Vec<Time> = (0..100).map(first).collect();
        assert!(waits.iter().all(|wait| *wait < Time::ZERO + spread));
        let early = waits.iter().filter(|wait| **wait < Time::from_secs(5)).count();
        assert!((30..70).contains(&early), "{early} of 100 in the first half");
    }

    #[test]
    fn an_acknowledgement_ends_it_and_a_forged_one_does_not() {
        let mut sender = sender();
        let receipt_back = sender.poll(Time::ZERO).expect("it is time");
        assert!(!sender.on_message(&receipt_back), "its own receipt is no acknowledgement");
        let acknowledgement = Receipt { kind: Kind::Acknowledgement, ..receipt(1) };
        assert!(!sender.on_message(&sealed(&acknowledgement, &[8; 32])), "the key is wrong");
        assert!(!sender.on_message(&sealed(&Receipt { receiver: 2, ..acknowledgement }, &KEY)), "it is for another");
        assert!(sender.on_message(&sealed(&acknowledgement, &KEY)));
        assert_eq!(sender.deadline(), None);
    }

    #[test]
    fn the_book_counts_each_receiver_once_and_forgeries_apart() {
        let mut book = ReceiptBook::new(KEY, 9);
        let mut new = 0;
        let mut hear = |message: &[u8]| book.on_message(message, |_: &Receipt| new += 1).is_some();
        assert!(
            hear(&sealed(&receipt(1), &KEY)) && hear(&sealed(&receipt(1), &KEY)) && hear(&sealed(&receipt(2), &KEY))
        );
        assert!(!hear(&sealed(&receipt(3), &[8; 32])), "another key");
        assert!(!hear(&sealed(&Receipt { tsi: 8, ..receipt(3) }, &KEY)), "another session");
        assert!(!hear(&sealed(&Receipt { kind: Kind::Acknowledgement, ..receipt(3) }, &KEY)), "not a receipt");
        assert!(!hear(b"WRCP") && !hear(&[]));
        assert_eq!((book.receivers(), book.forged(), new), (2, 5, 2));
    }

    #[test]
    fn a_receipt_that_is_lost_once_is_acknowledged_at_the_second_try() {
        let (mut sender, mut book) = (sender(), ReceiptBook::new(KEY, 9));
        sender.poll(Time::ZERO).expect("the first, which is lost");
        let again = sender.deadline().expect("there is no answer");
        let message = sender.poll(again).expect("it is time");
        let answer = book.on_message(&message, |_| {}).expect("it is good");
        assert!(sender.on_message(&answer) && sender.is_acknowledged());
        assert_eq!((book.receivers(), sender.tries()), (1, 2));
    }
}
