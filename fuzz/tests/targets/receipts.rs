//! Receipts: a sender's book and three receivers, whose messages a stranger delivers as he likes, and who knows the
//! description's key. Nobody counts who has not said so, and nobody is answered for another.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_net::receipts::{Identity, ReceiptBook, ReceiptSender, Standing, Verdicts};
use weir_object::{PublicKey, SecretKey};
use weir_units::{Random, Time};
use weir_wire::receipt::{Answer, Kind, TAG_LEN, To};

use crate::Draw;

#[test]
fn any_messages_in_any_order_count_no_receiver_that_has_not_finished() {
    weir_fuzz::check!(500, seeds(), exchange);
}

#[test]
fn the_seeds_count_receivers_and_refuse_forgeries() {
    let after = seeds().iter().map(|seed| Exchange::after(seed)).collect::<Vec<_>>();
    let found = after.iter().map(|it| (it.counted.len(), it.confirmed.len(), it.book.forged() > 0)).collect::<Vec<_>>();
    assert_eq!(found, [(3, 3, false), (1, 0, true), (0, 0, true), (1, 1, true)]);
}

fn exchange(input: &[u8]) {
    Exchange::after(input);
}

/// What was said by whom, and what is known of it.
struct Exchange {
    now: Time,
    book: ReceiptBook,
    receivers: Vec<ReceiptSender>,
    /// Messages of receivers, and whose they are.
    sent: Vec<(usize, Vec<u8>)>,
    /// Answers, to whom, and to what.
    answers: Vec<(usize, To, Vec<u8>)>,
    /// Whose receipts were answered, and who has had such an answer.
    counted: BTreeSet<usize>,
    confirmed: BTreeSet<usize>,
}

impl Exchange {
    fn new() -> Exchange {
        let sender = secret(9);
        let verdicts = Verdicts {
            is_signed,
            is_of_content: Box::new(|receipt| {
                receipt.kind == Kind::Report || receipt.proof == proof_of(&receipt.receiver)
            }),
            is_expected: Box::new(|_| false),
            sign: Box::new(move |bytes| sender.sign(bytes)),
        };
        Exchange {
            now: Time::from_secs(1),
            book: ReceiptBook::new(KEY, TSI, EPOCH, verdicts),
            receivers: (0..RECEIVERS).map(receiver).collect(),
            sent: Vec::new(),
            answers: Vec::new(),
            counted: BTreeSet::new(),
            confirmed: BTreeSet::new(),
        }
    }

    /// The exchange after the steps of an input.
    fn after(input: &[u8]) -> Exchange {
        let (mut draw, mut exchange) = (Draw(input), Exchange::new());
        for _ in 0..STEPS {
            if draw.is_empty() {
                break;
            }
            exchange.step(&mut draw);
            exchange.check();
        }
        exchange
    }

    fn step(&mut self, draw: &mut Draw<'_>) {
        let (what, number) = (draw.u8() % 8, usize::from(draw.u8()));
        let index = number % RECEIVERS;
        self.now += Duration::from_millis(u64::from(draw.u8()));
        match what {
            0 | 1 => self.speak(index),
            2 => {
                // Some prove it for another start of the sender.
                let proof = if number < 128 { proof_of(self.receivers[index].key()) } else { [9; 32] };
                self.receivers[index].finish(self.now, Duration::from_secs(2), Standing::default(), proof);
            }
            3 | 4 => {
                if let Some((index, message)) = pick(&self.sent, number) {
                    self.hear(index, &message);
                }
            }
            5 => {
                if let Some((index, message)) = pick(&self.sent, number) {
                    let forged = altered(&message, draw);
                    if forged == message {
                        return self.hear(index, &message);
                    }
                    assert!(self.book.on_message(self.now, &forged, |_| {}).is_none(), "answered: {forged:?}");
                }
            }
            6 => {
                let length = draw.u8().into();
                let bytes = draw.bytes(length);
                assert!(self.book.on_message(self.now, bytes, |_| {}).is_none(), "answered: {bytes:?}");
                let bytes = tagged(bytes.to_vec());
                assert!(self.book.on_message(self.now, &bytes, |_| {}).is_none(), "answered: {bytes:?}");
            }
            _ => {
                if let Some((to, what, answer)) = pick(&self.answers, number) {
                    let forged = altered(&answer, draw);
                    self.receivers[index].on_message(self.now, &forged);
                    self.receivers[to].on_message(self.now, &forged);
                    if forged == answer && what == To::Receipt {
                        self.confirmed.insert(to);
                    }
                    self.prove_again([index, to], forged == answer && what == To::OtherReceipt);
                }
            }
        }
    }

    /// A receiver says what it has to say next.
    fn speak(&mut self, index: usize) {
        let receiver = &mut self.receivers[index];
        let Some(deadline) = receiver.deadline() else { return };
        self.now = self.now.max(deadline);
        if let Some(message) = receiver.poll(self.now, Standing::default) {
            assert!(receiver.deadline().is_none_or(|next| next > self.now), "it would speak without end");
            self.sent.push((index, message));
        }
    }

    /// These receivers prove again what the sender asked for, which only it can ask.
    fn prove_again(&mut self, receivers: [usize; 2], was_asked: bool) {
        for index in receivers {
            let proof = proof_of(self.receivers[index].key());
            if let Some(epoch) = self.receivers[index].take_other_start() {
                assert!(was_asked && epoch == EPOCH, "receiver {index} believes another");
                self.receivers[index].prove_again(self.now, Standing::default(), proof);
            }
        }
    }

    /// The book hears a receiver.
    fn hear(&mut self, index: usize, message: &[u8]) {
        // Too many a second are not looked at.
        let Some(answer) = self.book.on_message(self.now, message, |_| {}) else { return };
        assert!(answer.len() < message.len(), "an answer of {} bytes to {}", answer.len(), message.len());
        let (Answer { to, .. }, _) = Answer::decode(&answer).expect("our own");
        if to == To::Receipt {
            self.counted.insert(index);
        }
        self.answers.push((index, to, answer));
    }

    fn check(&self) {
        assert_eq!(self.book.receivers(), self.counted.len() as u64, "who has finished: {:?}", self.counted);
        assert!(self.book.entries().count() <= RECEIVERS, "receivers that there are not");
        for (index, receiver) in self.receivers.iter().enumerate() {
            assert!(
                !receiver.is_acknowledged() || self.confirmed.contains(&index),
                "receiver {index} believes another"
            );
        }
    }
}

fn receiver(index: usize) -> ReceiptSender {
    let (own, sender) = (secret(index as u8), secret(9).public());
    let key = own.public().to_bytes();
    let identity = Identity { key, name: format!("host{index}"), sign: Box::new(move |bytes| own.sign(bytes)) };
    let is_sender_s = Box::new(move |bytes: &[u8], signature: &[u8; 64]| sender.verifies(bytes, signature));
    ReceiptSender::new(identity, TSI, KEY, is_sender_s, Time::from_secs(1), Random::new(index as u64, "receipt"))
}

fn is_signed(key: &[u8; 32], bytes: &[u8], signature: &[u8; 64]) -> bool {
    PublicKey::from_bytes(key).is_ok_and(|key| key.verifies(bytes, signature))
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

/// What shows that a receiver has the content.
fn proof_of(receiver: &[u8; 32]) -> [u8; 32] {
    *blake3::keyed_hash(&[5; 32], receiver).as_bytes()
}

/// The message with other bytes in one place, under the right tag.
fn altered(message: &[u8], draw: &mut Draw<'_>) -> Vec<u8> {
    let mut body = message[..message.len() - TAG_LEN].to_vec();
    let at = usize::from(draw.u8()) % body.len();
    body[at] ^= draw.u8();
    tagged(body)
}

/// Bytes and their tag, as whoever has the description can make it.
fn tagged(mut bytes: Vec<u8>) -> Vec<u8> {
    let tag = blake3::keyed_hash(&KEY, &bytes);
    bytes.extend(&tag.as_bytes()[..TAG_LEN]);
    bytes
}

fn pick<T: Clone>(all: &[T], number: usize) -> Option<T> {
    all.get(number.checked_rem(all.len())?).cloned()
}

/// All report, finish and are confirmed; the same with every message altered; bytes of a stranger; and one that proves what it has for
/// another start first.
fn seeds() -> Vec<Vec<u8>> {
    let honest = (0..3u8).flat_map(|index| {
        let (report, receipt) = (2 * index, 2 * index + 1);
        let steps = [[0, index, 9], [3, report, 9], [2, index, 9], [0, index, 9], [3, receipt, 9], [7, receipt, 9]];
        [&steps.concat()[..], &[0, 0]].concat()
    });
    let forged =
        [&[0, 0, 1][..], &[5, 0, 1, 40, 1], &[2, 0, 1], &[0, 0, 1], &[5, 1, 1, 2, 3], &[3, 1, 1], &[7, 0, 1, 9, 9]];
    let stranger = [&[6, 0, 1, 8][..], b"WRCP\x04\x01\x00\x07", &[6, 0, 1, 255], &[0; 255]];
    let other_start =
        [[2, 129, 9].as_slice(), &[0, 0, 9, 3, 0, 9], &[7, 0, 9, 0, 0], &[0, 0, 9, 3, 1, 9], &[7, 1, 9, 0, 0]];
    vec![honest.collect(), forged.concat(), stranger.concat(), other_start.concat()]
}

/// The description's key for tags.
const KEY: [u8; 32] = [7; 32];
const TSI: u16 = 7;
const EPOCH: u64 = 3;
const RECEIVERS: usize = 3;
/// Most steps of an exchange: each takes a signature or two.
const STEPS: usize = 64;
