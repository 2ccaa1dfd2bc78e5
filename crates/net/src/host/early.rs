//! Questions of hosts that asked for a stream of which nothing was known yet. They are answered once it is, rather than when they are
//! repeated: the beginning of what is live does not wait for that.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use weir_units::Time;
use weir_wire::rtcp::handshake::Message;

/// A question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) asked: Time,
    /// The unicast socket that it came to.
    pub(super) socket: usize,
    pub(super) from: SocketAddr,
    pub(super) message: Message,
}

/// The latest of each host, of as many hosts as there is room for.
#[derive(Debug, Default)]
pub(super) struct Early(VecDeque<Question>);

impl Early {
    /// A question came.
    pub(super) fn note(&mut self, question: Question) {
        self.0.retain(|other| other.from != question.from && is_open(other, question.asked));
        if self.0.len() < MOST {
            self.0.push_back(question);
        }
    }

    /// The next question whose asker still waits for an answer.
    pub(super) fn next(&mut self, now: Time) -> Option<Question> {
        while let Some(question) = self.0.pop_front() {
            if is_open(&question, now) {
                return Some(question);
            }
        }
        None
    }

    /// The host that asked first.
    pub(super) fn first(&self) -> Option<SocketAddr> {
        self.0.front().map(|question| question.from)
    }
}

/// A peer that does not ask again has gone.
fn is_open(question: &Question, now: Time) -> bool {
    now.since(question.asked) < OPEN_FOR
}

/// Anybody can ask in anybody's name.
const MOST: usize = 64;
/// A host that was told to ask later does so four times in this.
const OPEN_FOR: Duration = Duration::from_secs(1);
