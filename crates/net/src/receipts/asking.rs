//! The sender's side of a question: takes what receivers answer, and knows when to wait no longer.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_units::Time;
use weir_wire::extension::Question;
use weir_wire::lack::Message;
use weir_wire::receipt::KEY_LEN;

use super::has_tag;

/// What the sender asks and has heard.
#[derive(Debug)]
pub struct Asking {
    tsi: u16,
    key: [u8; 32],
    question: Question,
    /// When that was asked; `None` before the first.
    asked: Option<Time>,
    /// When somebody answered last.
    heard: Option<Time>,
    /// Receivers whose answer is complete.
    done: BTreeSet<[u8; KEY_LEN]>,
    /// How long the first answer took, to this question or to one before.
    reaction: Option<Duration>,
    /// How long to wait for it at least.
    patience: Duration,
}

/// How it stands with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// More are to be waited for.
    Awaited,
    /// Everybody has answered.
    All,
    /// Somebody has, and the others take too long.
    Some,
    /// Nobody has in time.
    Nobody,
}

impl Asking {
    /// Nothing was asked yet in session `tsi`, whose tags `key` makes. A question that nobody has answered is not given up before `patience`: what
    /// is done then in place of an answer should not cost less.
    pub fn new(tsi: u16, key: [u8; 32], patience: Duration) -> Asking {
        let question = Question { number: 0, receivers: 0 };
        Asking { tsi, key, question, asked: None, heard: None, done: BTreeSet::new(), reaction: None, patience }
    }

    /// Asks a new question of `receivers` receivers at `now`. Returns what packets are to carry.
    pub fn ask(&mut self, now: Time, receivers: u16) -> Question {
        self.question = Question { number: self.question.number.wrapping_add(1), receivers };
        (self.asked, self.heard) = (Some(now), None);
        self.done.clear();
        self.question
    }

    /// A message came at `now`: what it says, if it is an answer to the last question. One that comes after its time says how long to wait for
    /// the next.
    pub fn on_message<'m>(&mut self, now: Time, message: &'m [u8]) -> Option<Message<'m>> {
        let asked = self.asked?;
        let answer = Message::decode(message).ok()?;
        if answer.tsi != self.tsi
            || answer.question != self.question.number
            || !has_tag(message, &answer.tag, &self.key)
        {
            return None;
        }
        if self.heard.is_none() {
            self.reaction = Some(now.since(asked).min(LONGEST_REACTION));
        }
        self.heard = Some(now);
        if answer.is_last && self.done.len() < usize::from(u16::MAX) {
            self.done.insert(answer.receiver);
        }
        Some(answer)
    }

    /// How it stands with the last question.
    pub fn answers(&self, now: Time) -> Answers {
        let Some(asked) = self.asked else { return Answers::Awaited };
        if self.done.len() >= usize::from(self.question.receivers) {
            return Answers::All;
        }
        let (passed, reaction) = (now.since(asked), self.reaction.unwrap_or(FIRST_REACTION));
        match self.heard {
            None if passed < (reaction * SILENT + MARGIN).max(self.patience) => Answers::Awaited,
            None => Answers::Nobody,
            // Others take as long again, and pause less between their messages.
            Some(heard) => {
                let is_late = passed >= reaction * 2 + MARGIN && now.since(heard) >= reaction + MARGIN;
                if is_late || passed >= LONGEST_ANSWER { Answers::Some } else { Answers::Awaited }
            }
        }
    }
}

/// What a first answer takes, before one has shown that.
const FIRST_REACTION: Duration = Duration::from_millis(50);
const LONGEST_REACTION: Duration = Duration::from_secs(1);
/// A question that nobody answers is given up after this multiple of the last reaction.
const SILENT: u32 = 3;
/// A receiver's application runs at least this often.
const MARGIN: Duration = Duration::from_millis(10);
/// What a whole answer may take. The rest can be asked for again.
const LONGEST_ANSWER: Duration = Duration::from_secs(3);
