//! The receiver's side of a question: its answer, in messages that take a small part of the rate at which the session comes.

use std::collections::VecDeque;
use std::time::Duration;

use weir_units::{Bytes, Rate, Time};
use weir_wire::extension::Question;
use weir_wire::lack::{Lack, Writer};
use weir_wire::receipt::KEY_LEN;

use super::tag;

/// What a receiver has to answer.
#[derive(Debug)]
pub struct Answering {
    tsi: u16,
    key: [u8; 32],
    receiver: [u8; KEY_LEN],
    /// The question that was heard last.
    question: Option<u8>,
    messages: VecDeque<Vec<u8>>,
    next: Time,
    rate: Rate,
}

impl Answering {
    /// Nothing was asked yet in session `tsi`, whose tags `key` makes.
    pub fn new(tsi: u16, key: [u8; 32], receiver: [u8; KEY_LEN]) -> Answering {
        let (messages, next, rate) = (VecDeque::new(), Time::ZERO, LEAST_RATE);
        Answering { tsi, key, receiver, question: None, messages, next, rate }
    }

    /// Whether this was not asked before. What was to be said to another question is not said any more.
    pub fn is_new(&mut self, question: Question) -> bool {
        let is_new = self.question.replace(question.number) != Some(question.number);
        if is_new {
            self.messages.clear();
        }
        is_new
    }

    /// Answers the last question at `now`: this is lacking, and the session comes at `rate`.
    pub fn answer<'l, R: AsRef<[(u16, u16)]> + 'l>(
        &mut self,
        now: Time,
        question: Question,
        rate: Rate,
        lacking: impl IntoIterator<Item = &'l Lack<R>>,
    ) {
        if self.question != Some(question.number) {
            return;
        }
        self.messages.clear();
        self.next = now;
        let part = rate.bps() / (ANSWERS_PART * u64::from(question.receivers.max(1)));
        self.rate = Rate::from_bps(part).max(LEAST_RATE);
        let blank = Writer::new(self.tsi, &self.receiver, question.number);
        let mut writer = blank.clone();
        for lack in lacking {
            if !writer.push(lack) {
                self.keep(writer, false);
                writer = blank.clone();
                writer.push(lack);
            }
        }
        self.keep(writer, true);
    }

    fn keep(&mut self, mut writer: Writer, is_last: bool) {
        let mut message = writer.finish(is_last).to_vec();
        let tag = tag(&message, &self.key);
        message.extend(tag);
        self.messages.push_back(message);
    }

    /// When [`Answering::poll`] wants to be called; `None` while nothing is to be said.
    pub fn deadline(&self) -> Option<Time> {
        (!self.messages.is_empty()).then_some(self.next)
    }

    /// The message to send at `now`, if it is time for one.
    pub fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        if now < self.next {
            return None;
        }
        let message = self.messages.pop_front()?;
        self.next = now + (Bytes::new(message.len() as u64) / self.rate).min(LONGEST_PAUSE);
        Some(message)
    }
}

/// All answers together take at most one part in this number of the session's rate, as RTCP's reports do (RFC 3550 §6.2).
const ANSWERS_PART: u64 = 20;
/// A message in 1.2 s.
const LEAST_RATE: Rate = Rate::from_kbps(8);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
