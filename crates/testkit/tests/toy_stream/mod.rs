//! Streams of the toy, as data for both drivers, and what must come of them.

use std::time::Duration;

use weir_core::registry::{Habitat, Stream};
use weir_testkit::toy::WINDOW;
use weir_units::{Bytes, Time};

/// A stream of [`PAYLOADS`] payloads over hosts that lose packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// By receiver.
    pub(crate) receivers: [Guest; 3],
    /// The share of packets that each host loses of those that come to it.
    pub(crate) loss: f64,
}

/// A receiver, with times from when the stream begins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Guest {
    /// When it comes; `None` is before the stream begins.
    pub(crate) joins: Option<Duration>,
    /// When it leaves, if before it has everything.
    pub(crate) leaves: Option<Duration>,
    /// How its application reads; `None` has room for everything.
    pub(crate) reads: Option<Reads>,
}

/// An application that reads and rests by turns, beginning with reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reads {
    pub(crate) capacity: u64,
    pub(crate) for_so_long: Duration,
    pub(crate) then_rests: Duration,
}

/// Something that a driver has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It took this number from the sender's application, to send it for the first time.
    Took(u64),
    /// It gave the application of this receiver the payload of this number.
    Delivered(usize, u64),
    /// The sender has said that it is complete.
    SenderComplete,
    /// The agent has.
    AgentComplete,
    /// This receiver has.
    Complete(usize),
}

/// What came of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When the stream began.
    pub(crate) begun: Time,
    /// In the order in which it happened.
    pub(crate) log: Vec<(Time, Done)>,
    /// Packets that were lost at the sender, the agent and the receivers.
    pub(crate) lost: [u64; 5],
}

pub(crate) const PAYLOADS: u64 = 2_000;
pub(crate) const STREAM: Stream =
    Stream { packet_size: Bytes::new(1_052), feedback_size: Bytes::new(52), habitat: Habitat::Sockets };

const SOON: Guest = Guest { joins: None, leaves: None, reads: None };
const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Everybody is there from the start and reads at once.
pub(crate) const LOSS: Plan = Plan { receivers: [SOON; 3], loss: 0.05 };

/// One application rests for a second after each half second.
pub(crate) const REST: Plan = Plan {
    receivers: [
        SOON,
        Guest { reads: Some(Reads { capacity: 32, for_so_long: ms(500), then_rests: ms(1_000) }), ..SOON },
        SOON,
    ],
    loss: 0.02,
};

/// One stops reading for good, and leaves a second later.
pub(crate) const LEAVE: Plan = Plan {
    receivers: [
        SOON,
        SOON,
        Guest {
            leaves: Some(ms(1_500)),
            reads: Some(Reads { capacity: 32, for_so_long: ms(500), then_rests: ms(60_000) }),
            ..SOON
        },
    ],
    loss: 0.02,
};

/// One comes when the stream has been going on for a second.
pub(crate) const LATE: Plan = Plan { receivers: [SOON, SOON, Guest { joins: Some(ms(1_000)), ..SOON }], loss: 0.02 };

/// What must come of every plan.
pub(crate) fn check(plan: &Plan, outcome: &Outcome) {
    assert!(outcome.lost.iter().all(|lost| *lost > 0), "loss has struck everywhere: {:?}", outcome.lost);
    let count = |done: Done| outcome.log.iter().filter(|(_, other)| *other == done).count();
    assert_eq!((count(Done::SenderComplete), count(Done::AgentComplete)), (1, 1), "each says so once");
    let taken: Vec<u64> = outcome.numbers(|done| match done {
        Done::Took(number) => Some(number),
        _ => None,
    });
    assert!(taken.into_iter().eq(0..PAYLOADS), "each payload is taken once, in order");
    for (number, guest) in plan.receivers.iter().enumerate() {
        let delivered = outcome.delivered(number);
        let (first, end) = (delivered[0], delivered[0] + delivered.len() as u64);
        assert!(delivered.into_iter().eq(first..end), "receiver {number}: in order, exactly once");
        let has_all = (if guest.joins.is_none() { first == 0 } else { first > PAYLOADS / 10 }, end == PAYLOADS);
        assert_eq!(has_all, (true, guest.leaves.is_none()), "receiver {number} got {first} to {end}");
        assert_eq!(count(Done::Complete(number)), usize::from(guest.leaves.is_none()), "receiver {number}");
        if let Some(reads) = guest.reads {
            outcome.check_rests(number, guest, reads);
        }
    }
}

impl Outcome {
    fn numbers(&self, select: impl Fn(Done) -> Option<u64>) -> Vec<u64> {
        self.log.iter().filter_map(|(_, done)| select(*done)).collect()
    }

    fn delivered(&self, receiver: usize) -> Vec<u64> {
        self.numbers(|done| match done {
            Done::Delivered(to, number) if to == receiver => Some(number),
            _ => None,
        })
    }

    /// The sender never sends what a receiver has not said that it has room for, stops while one rests, and goes on after
    /// that.
    fn check_rests(&self, receiver: usize, guest: &Guest, reads: Reads) {
        let (mut delivered, mut last, mut pauses) = (0, None, Vec::new());
        let has_left = |at: Time| guest.leaves.is_some_and(|leaves| at >= self.begun + leaves);
        for (at, done) in &self.log {
            match *done {
                Done::Took(number) => {
                    // What was allowed before this receiver came stays allowed.
                    let may = (delivered + reads.capacity).max(WINDOW);
                    assert!(number < may || has_left(*at), "payload {number} is sent when {may} could be");
                    let before: Time = last.replace(*at).unwrap_or(*at);
                    pauses.extend((at.since(before) > STOPPED).then_some(number));
                }
                Done::Delivered(to, _) if to == receiver => delivered += 1,
                _ => {}
            }
        }
        assert!(!pauses.is_empty() && pauses[0] > reads.capacity, "the sender stopped and went on: {pauses:?}");
    }
}

/// A sender that sends nothing for so long has stopped.
const STOPPED: Duration = ms(600);
