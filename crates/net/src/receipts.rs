//! Reports and receipts: how a sender that asks for it learns who is how far, and who has finished.
//!
//! A receiver tells now and then how far it is. One that has everything waits for a random part of a spread, so that a thousand of
//! them do not answer at once, and then sends its receipt until it is acknowledged, at most five times. Each has a key of its
//! own, by which it is known, and signs; a receipt proves that its receiver has the content. So it counts once for each receiver,
//! the description alone is not enough to make one, and one of an earlier session counts for nothing. An answer says what it answers, so that
//! nobody can give one that was given before. A keyed BLAKE3 tag under the description's key keeps others out before any signature is
//! looked at, and of what bears it a second takes only so much time.
//!
//! How often receivers report is the sender's word: all of them together send at most [`REPORTS_PER_SEC`]. A receiver that hears nothing reports half as
//! often each time.
//!
//! A sender of few receivers also asks what they lack, in its packets, so that it sends that and nothing else ([`Asking`]). Receivers answer a
//! question once ([`Answering`]), in messages that bear the tag alone: all that they can do is have something sent again.
//!
//! [`ReceiptSender`] and [`Answering`] are the receiver's side, [`ReceiptBook`] and [`Asking`] the sender's. All are state machines without clock or socket: the
//! applications of a session carry their messages ([`crate::host::Application::message`]), and bring the signatures.

mod answering;
mod asking;
mod book;
mod sender;

use constant_time_eq::constant_time_eq_16;
use weir_wire::receipt::{Answer, DIGEST_LEN, Receipt, SIGNATURE_LEN, TAG_LEN};

pub use answering::Answering;
pub use asking::{Answers, Asking};
pub use book::{Entry, ReceiptBook, Verdicts};
pub use sender::{Identity, MAX_TRIES, ReceiptSender, Standing};

/// Makes signatures.
pub type Sign = Box<dyn Fn(&[u8]) -> [u8; SIGNATURE_LEN] + Send>;

/// Whether bytes bear a certain signature.
pub type IsSigned = Box<dyn Fn(&[u8], &[u8; SIGNATURE_LEN]) -> bool + Send>;

/// Something that is asked of what a receiver says.
pub type Question = Box<dyn Fn(&Receipt) -> bool + Send>;

/// Reports a second of all receivers together.
pub const REPORTS_PER_SEC: u64 = 20;

/// A body with its signature and its tag: the first 16 bytes of the keyed BLAKE3 hash of both.
fn sealed(body: &[u8], signature: &[u8; SIGNATURE_LEN], key: &[u8; 32]) -> Vec<u8> {
    let mut message = [body, signature].concat();
    let tag = tag(&message, key);
    message.extend(tag);
    message
}

/// What a receiver's message says, and its signature, if its tag is right.
fn opened(message: &[u8], key: &[u8; 32]) -> Option<(Receipt, [u8; SIGNATURE_LEN])> {
    let (receipt, (signature, given)) = Receipt::decode(message).ok()?;
    has_tag(message, &given, key).then_some((receipt, signature))
}

/// What an answer says, and its signature, if its tag is right.
fn opened_answer(message: &[u8], key: &[u8; 32]) -> Option<(Answer, [u8; SIGNATURE_LEN])> {
    let (answer, (signature, given)) = Answer::decode(message).ok()?;
    has_tag(message, &given, key).then_some((answer, signature))
}

fn has_tag(message: &[u8], given: &[u8; TAG_LEN], key: &[u8; 32]) -> bool {
    constant_time_eq_16(given, &tag(&message[..message.len() - TAG_LEN], key))
}

/// By what an answer says what it answers: the first 16 bytes of the message's BLAKE3 hash.
fn digest(message: &[u8]) -> [u8; DIGEST_LEN] {
    *blake3::hash(message).as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
}

fn tag(signed: &[u8], key: &[u8; 32]) -> [u8; TAG_LEN] {
    let hash = blake3::keyed_hash(key, signed);
    *hash.as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
}

#[cfg(test)]
mod tests;
