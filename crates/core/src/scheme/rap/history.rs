//! The packets that were sent and not yet accounted for: which were delivered, which are lost, which overdue.

use alloc::collections::VecDeque;
use core::time::Duration;

use weir_units::{Seq, Time};

use super::config::{LATER_PACKETS, LossRule};

/// Sent packets from the oldest one whose fate is open.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// Number of the packet at the front.
    first: Seq,
    sent: VecDeque<Sent>,
    outstanding: u64,
    /// Payloads of packets that were given up, until they are asked for.
    lost: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Time,
    fate: Fate,
    /// The number of its payload, if that may be sent again.
    payload: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Delivered,
    GivenUp,
}

impl History {
    /// More would not be told apart by the 16 bits of the wire's sequence numbers.
    const MOST: usize = 1 << 14;

    /// Whether another packet may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < History::MOST
    }

    /// The next packet goes out, with a payload that has a number of its own or without; gives its number.
    pub(super) fn send(&mut self, at: Time, payload: Option<u64>) -> Seq {
        let seq = self.next();
        self.sent.push_back(Sent { at, fate: Fate::Open, payload });
        self.outstanding += 1;
        seq
    }

    /// The number of the packet that will be sent next.
    pub(super) fn next(&self) -> Seq {
        Seq::new(self.first.value() + self.sent.len() as u64)
    }

    /// The number of the packet that was sent last; `None` before the first.
    pub(super) fn last(&self) -> Option<Seq> {
        self.next().value().checked_sub(1).map(Seq::new)
    }

    /// Packets that may still be on their way.
    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// When the last packet was sent whose fate may be open.
    pub(super) fn last_sent(&self) -> Option<Time> {
        self.sent.back().map(|sent| sent.at)
    }

    /// A packet was delivered; gives when it was sent and the number of its payload, if this is news.
    pub(super) fn acknowledge(&mut self, seq: Seq) -> Option<(Time, Option<u64>)> {
        let index = seq.value().checked_sub(self.first.value())?;
        let sent = self.sent.get_mut(usize::try_from(index).ok()?)?;
        if sent.fate != Fate::Open {
            return None;
        }
        sent.fate = Fate::Delivered;
        self.outstanding -= 1;
        Some((sent.at, sent.payload))
    }

    /// Gives up what `rule` says is lost, now that `newest` was delivered. Gives the highest number among that.
    pub(super) fn give_up_lost(&mut self, newest: Seq, rule: LossRule) -> Option<Seq> {
        let mut highest = None;
        let mut later = 0;
        let known = (newest.value() + 1).saturating_sub(self.first.value());
        for index in (0..self.sent.len().min(known as usize)).rev() {
            let seq = Seq::new(self.first.value() + index as u64);
            let lost = match rule {
                LossRule::Deliveries => later >= LATER_PACKETS,
                LossRule::Distance => newest.since(seq) >= LATER_PACKETS,
            };
            match self.sent[index].fate {
                Fate::Delivered => later += 1,
                Fate::Open if lost => {
                    self.give_up(index);
                    highest = highest.or(Some(seq));
                }
                Fate::Open | Fate::GivenUp => {}
            }
        }
        self.forget_settled();
        highest
    }

    /// Gives up what was sent `timeout` ago or earlier. Gives the highest number among that.
    pub(super) fn give_up_overdue(&mut self, now: Time, timeout: Duration) -> Option<Seq> {
        let mut highest = None;
        for index in 0..self.sent.len() {
            if self.sent[index].at + timeout > now {
                break;
            }
            if self.sent[index].fate == Fate::Open {
                self.give_up(index);
                highest = Some(Seq::new(self.first.value() + index as u64));
            }
        }
        self.forget_settled();
        highest
    }

    /// The payload of a packet that was given up, if it has a number.
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        self.lost.pop_front()
    }

    fn give_up(&mut self, index: usize) {
        self.sent[index].fate = Fate::GivenUp;
        self.lost.extend(self.sent[index].payload);
        self.outstanding -= 1;
    }

    fn forget_settled(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.fate != Fate::Open) {
            self.sent.pop_front();
            self.first = self.first.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Packets 0 to `count` − 1, one a millisecond.
    fn sent(count: u64) -> History {
        let mut history = History::default();
        (0..count).for_each(|n| assert_eq!(history.send(at(n), Some(n)), Seq::new(n)));
        history
    }

    fn deliver(history: &mut History, numbers: &[u64]) -> Option<Seq> {
        for n in numbers {
            history.acknowledge(Seq::new(*n));
        }
        let newest = numbers.iter().max().expect("something was delivered");
        history.give_up_lost(Seq::new(*newest), LossRule::Deliveries)
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_were_delivered() {
        let mut history = sent(10);
        assert_eq!(deliver(&mut history, &[0, 2]), None);
        assert_eq!(deliver(&mut history, &[3]), None);
        assert_eq!(deliver(&mut history, &[4]), Some(Seq::new(1)));
        assert_eq!(history.outstanding(), 5);
    }

    #[test]
    fn two_missing_in_a_row_need_three_deliveries_but_only_a_distance_of_three() {
        let mut history = sent(10);
        assert_eq!(deliver(&mut history, &[0, 3, 4]), None);
        let mut by_distance = history.clone();
        assert_eq!(by_distance.give_up_lost(Seq::new(4), LossRule::Distance), Some(Seq::new(1)));
        assert_eq!(deliver(&mut history, &[5]), Some(Seq::new(2)));
    }

    #[test]
    fn a_packet_that_comes_late_is_not_lost() {
        let mut history = sent(10);
        assert_eq!(deliver(&mut history, &[0, 2, 3]), None);
        assert_eq!(deliver(&mut history, &[1]), None);
        assert_eq!(deliver(&mut history, &[4, 5, 6]), None);
        assert_eq!(history.outstanding(), 3);
    }

    #[test]
    fn an_acknowledgement_counts_once_and_only_for_what_was_sent() {
        let mut history = sent(3);
        assert_eq!(history.acknowledge(Seq::new(1)), Some((at(1), Some(1))));
        assert_eq!(history.acknowledge(Seq::new(1)), None);
        assert_eq!(history.acknowledge(Seq::new(3)), None);
        assert_eq!(history.outstanding(), 2);
    }

    #[test]
    fn what_is_overdue_is_given_up_and_what_was_delivered_is_not() {
        let mut history = sent(10);
        history.acknowledge(Seq::new(4));
        assert_eq!(history.give_up_overdue(at(103), Duration::from_millis(100)), Some(Seq::new(3)));
        assert_eq!(history.outstanding(), 5);
        assert_eq!(history.give_up_overdue(at(104), Duration::from_millis(100)), None);
        assert_eq!(history.next(), Seq::new(10));
    }
}
