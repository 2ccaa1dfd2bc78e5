//! What the toy's parties say to each other, and how it lies in the sixteen bytes of an experimental header.
//!
//! Layout, big-endian: kind 8 bits, a number 56 bits, a second number 64 bits.

use weir_wire::{Experimental, Header};

/// A packet's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The payload of this number follows.
    Payload {
        /// Payloads are numbered from 0.
        number: u64,
    },
    /// The stream has no payload of this number: the one before it was the last. The end has a number so that it is asked for
    /// and acknowledged as a payload is.
    End {
        /// How many payloads the stream has.
        number: u64,
    },
    /// These are missing here, and wanted.
    Request {
        /// The first of them.
        first: u64,
        /// The number behind the last of them.
        below: u64,
    },
    /// How far the stream has come here, and how far it may go.
    Report {
        /// All lower numbers have come.
        next: u64,
        /// Lower numbers may be sent. It never falls.
        limit: u64,
    },
    /// What was asked for is not stored any more.
    Gone {
        /// The lowest number that is.
        below: u64,
    },
    /// All receivers have everything.
    Done,
}

impl Message {
    /// The header that says this.
    pub fn header(self) -> Header {
        let (kind, number, second) = match self {
            Message::Payload { number } => (PAYLOAD, number, 0),
            Message::End { number } => (END, number, 0),
            Message::Request { first, below } => (REQUEST, first, below),
            Message::Report { next, limit } => (REPORT, next, limit),
            Message::Gone { below } => (GONE, below, 0),
            Message::Done => (DONE, 0, 0),
        };
        let mut fields = [0; 16];
        fields[..8].copy_from_slice(&(number & NUMBER).to_be_bytes());
        fields[0] = kind;
        fields[8..].copy_from_slice(&second.to_be_bytes());
        Header::Experimental(Experimental(fields))
    }

    /// What a header says; `None` if it is not one of the toy's.
    pub fn of(header: &Header) -> Option<Message> {
        let Header::Experimental(Experimental(fields)) = header else { return None };
        let (first, second) = fields.split_first_chunk()?;
        let number = u64::from_be_bytes(*first) & NUMBER;
        let second = u64::from_be_bytes(*second.first_chunk()?);
        Some(match fields[0] {
            PAYLOAD => Message::Payload { number },
            END => Message::End { number },
            REQUEST => Message::Request { first: number, below: second },
            REPORT => Message::Report { next: number, limit: second },
            GONE => Message::Gone { below: number },
            DONE => Message::Done,
            _ => return None,
        })
    }
}

const PAYLOAD: u8 = 1;
const END: u8 = 2;
const REQUEST: u8 = 3;
const REPORT: u8 = 4;
const GONE: u8 = 5;
const DONE: u8 = 6;
/// The bits of the first number. At a million payloads a second it lasts for 2283 years.
const NUMBER: u64 = u64::MAX >> 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_went() {
        let messages = [
            Message::Payload { number: 1 << 40 },
            Message::End { number: 7 },
            Message::Request { first: 3, below: 9 },
            Message::Report { next: 5, limit: u64::MAX },
            Message::Gone { below: NUMBER },
            Message::Done,
        ];
        for message in messages {
            assert_eq!(Message::of(&message.header()), Some(message));
        }
        assert_eq!(Message::of(&Header::Experimental(Experimental([0; 16]))), None, "no message has kind 0");
    }
}
