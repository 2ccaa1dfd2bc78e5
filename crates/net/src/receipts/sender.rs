//! The receiver's side: when to report, when to send the receipt again, and when to stop.

use std::fmt;
use std::time::Duration;

use weir_units::{Random, Time};
use weir_wire::receipt::{DIGEST_LEN, Kind, Receipt, To, name_bytes};

use super::{IsSigned, Sign, digest, opened_answer, sealed};

/// Most receipts that a receiver sends.
pub const MAX_TRIES: u32 = 5;

/// Who a receiver is.
pub struct Identity {
    /// Its public key.
    pub key: [u8; 32],
    /// What people call it.
    pub name: String,
    /// Signs with its secret key.
    pub sign: Sign,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How a receiver stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Bytes that arrived for this session, headers included.
    pub received_bytes: u64,
    /// Milliseconds since it began.
    pub elapsed_millis: u64,
    /// How much of the content it has, in ten-thousandths.
    pub share: u16,
    /// Which content that is, for the sender to know its own; zeros before the receiver knows.
    pub of: [u8; 32],
}

/// The receiver's side.
pub struct ReceiptSender {
    identity: Identity,
    /// The session's number, and the key of its tags.
    tsi: u16,
    key: [u8; 32],
    /// Whether these bytes bear the sender's signature.
    is_sender_s: IsSigned,
    random: Random,
    /// When to send next; `None` when it is over.
    next: Option<Time>,
    interval: Duration,
    /// The receipt, once everything is there.
    receipt: Option<Vec<u8>>,
    /// What was sent last, to which answers have to be.
    asked: Option<[u8; DIGEST_LEN]>,
    tries: u32,
    is_acknowledged: bool,
    /// For which start of the sender the receipt is to prove that everything is there, if that is another one.
    other_start: Option<u64>,
}

impl ReceiptSender {
    /// Begins to report at `now`, for session `tsi`, whose tags `key` makes.
    pub fn new(
        identity: Identity,
        tsi: u16,
        key: [u8; 32],
        is_sender_s: IsSigned,
        now: Time,
        random: Random,
    ) -> ReceiptSender {
        let mut sender = ReceiptSender {
            identity,
            tsi,
            key,
            is_sender_s,
            random,
            next: None,
            interval: FIRST_REPORT,
            receipt: None,
            asked: None,
            tries: 0,
            is_acknowledged: false,
            other_start: None,
        };
        sender.next = Some(now + sender.some_of(FIRST_REPORT));
        sender
    }

    /// Everything is there: the receipt goes out after a wait within `spread` that chance chooses.
    pub fn finish(&mut self, now: Time, spread: Duration, standing: Standing, proof: [u8; 32]) {
        if self.receipt.is_none() {
            self.receipt = Some(self.message(Kind::Receipt, Standing { share: WHOLE, ..standing }, proof));
            self.next = Some(now + self.some_of(spread));
            self.interval = FIRST_RETRY;
        }
    }

    /// The start of the sender for which the receipt has to prove again that everything is there, told once: the sender was started again, and
    /// the receiver had everything before it heard of that.
    pub fn take_other_start(&mut self) -> Option<u64> {
        self.other_start.take()
    }

    /// The receipt goes out with this proof in place of the one before, at `now`.
    pub fn prove_again(&mut self, now: Time, standing: Standing, proof: [u8; 32]) {
        if self.is_confirming() {
            self.receipt = Some(self.message(Kind::Receipt, Standing { share: WHOLE, ..standing }, proof));
            (self.next, self.interval) = (Some(now), FIRST_RETRY);
        }
    }

    /// Whether the receipt is on its way: not acknowledged, and with tries left.
    pub fn is_confirming(&self) -> bool {
        self.receipt.is_some() && self.next.is_some()
    }

    /// When [`ReceiptSender::poll`] wants to be called; `None` when it is over.
    pub fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// The message to send at `now`, if it is time. Of a receipt each wait is twice the one before, from half a second on; of reports, as
    /// long as nobody answers.
    pub fn poll(&mut self, now: Time, standing: impl FnOnce() -> Standing) -> Option<Vec<u8>> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        let Some(receipt) = &self.receipt else {
            let interval = self.interval.min(LONGEST_REPORT);
            self.next = Some(now + interval.mul_f64(0.5 + self.random.unit()));
            self.interval = interval * 2;
            let standing = standing();
            let report = self.message(Kind::Report, standing, standing.of);
            self.asked = Some(digest(&report));
            return Some(report);
        };
        if self.tries == MAX_TRIES {
            self.next = None;
            return None;
        }
        self.tries += 1;
        self.next = Some(now + self.interval);
        self.interval *= 2;
        self.asked = Some(digest(receipt));
        Some(receipt.clone())
    }

    /// A message came at `now`. Returns whether the receipt is acknowledged; what is no answer to this receiver is ignored.
    pub fn on_message(&mut self, now: Time, message: &[u8]) -> bool {
        let answer = opened_answer(message, &self.key);
        let is_own = |asked| answer.filter(|(answer, _)| answer.is_to(self.tsi, &self.identity.key, &asked));
        let Some((answer, signature)) = self.asked.and_then(is_own) else { return self.is_acknowledged };
        let is_signed = || (self.is_sender_s)(&answer.encode_body(), &signature);
        match answer.to {
            To::Receipt if self.receipt.is_some() && is_signed() => {
                self.next = None;
                self.is_acknowledged = true;
            }
            To::OtherReceipt if self.receipt.is_some() && is_signed() => self.other_start = Some(answer.epoch),
            // Whoever has the description and sees the report can forge this answer: it can make reports rarer, never more frequent.
            To::Report if self.receipt.is_none() => {
                self.interval = Duration::from_secs(answer.next_secs.into()).clamp(FIRST_REPORT, LONGEST_REPORT);
                self.next = Some(now + self.interval.mul_f64(0.5 + self.random.unit()));
            }
            To::Receipt | To::OtherReceipt | To::Report => {}
        }
        self.is_acknowledged
    }

    /// The receiver's public key.
    pub fn key(&self) -> &[u8; 32] {
        &self.identity.key
    }

    /// How often the receipt was sent.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Whether the sender has confirmed.
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }

    fn some_of(&mut self, span: Duration) -> Duration {
        span.mul_f64(self.random.unit())
    }

    fn message(&self, kind: Kind, standing: Standing, proof: [u8; 32]) -> Vec<u8> {
        let Standing { received_bytes, elapsed_millis, share, .. } = standing;
        let (receiver, name) = (self.identity.key, name_bytes(&self.identity.name));
        let receipt = Receipt { kind, tsi: self.tsi, receiver, received_bytes, elapsed_millis, share, proof, name };
        let body = receipt.encode_body();
        sealed(&body, &(self.identity.sign)(&body), &self.key)
    }
}

impl fmt::Debug for ReceiptSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiptSender").field("tries", &self.tries).field("next", &self.next).finish_non_exhaustive()
    }
}

/// All of the content, in ten-thousandths.
const WHOLE: u16 = 10_000;
/// The first wait for an acknowledgement; it doubles each time, so five tries end after 15.5 s.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The shortest time between two reports.
const FIRST_REPORT: Duration = Duration::from_secs(5);
const LONGEST_REPORT: Duration = Duration::from_secs(600);
