//! Puts the packets of a stream back in order, and gives them out when they are due. A state machine without clock or socket.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_units::{Seq, Time};

/// Packets that wait for earlier ones.
#[derive(Debug, Clone)]
pub struct Order<T> {
    /// The number of the next packet to give out; `None` before the first.
    next: Option<Seq>,
    waiting: BTreeMap<Seq, Waiting<T>>,
    missing: u64,
    late: u64,
    filled: u64,
}

/// When a packet goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// If all before it did.
    pub ready: Time,
    /// Whatever is missing before it.
    pub at_last: Time,
}

#[derive(Debug, Clone)]
struct Waiting<T> {
    due: Due,
    packet: T,
}

impl<T> Default for Order<T> {
    fn default() -> Order<T> {
        Order { next: None, waiting: BTreeMap::new(), missing: 0, late: 0, filled: 0 }
    }
}

impl Due {
    /// As soon as all before it went out, and for these it waits no longer than `hold`.
    pub fn at_once(now: Time, hold: Duration) -> Due {
        Due { ready: now, at_last: now + hold }
    }

    /// At a time, and no earlier or later.
    pub fn at(time: Time) -> Due {
        Due { ready: time, at_last: time }
    }
}

impl<T> Order<T> {
    /// A packet came. What can go out now is fetched with [`Order::pop`].
    pub fn push(&mut self, number: Seq, due: Due, packet: T) {
        // Before anything went out nothing is late, whichever comes first.
        if self.next.is_some_and(|next| number < next) {
            self.late += 1;
        } else {
            self.filled += u64::from(self.waiting.last_key_value().is_some_and(|(last, _)| number < *last));
            self.waiting.entry(number).or_insert(Waiting { due, packet });
        }
    }

    /// The next packet that can go out at `now`: because it is the next, because those before it had their time, or because
    /// too many wait.
    pub fn pop(&mut self, now: Time) -> Option<T> {
        let is_full = self.waiting.len() > MOST_WAITING;
        let first = self.waiting.first_entry()?;
        let (number, due) = (*first.key(), first.get().due);
        let next = self.next.unwrap_or(number);
        let time = if number > next { due.at_last } else { due.ready };
        if now < time && !is_full {
            return None;
        }
        self.missing += number.since(next);
        self.next = Some(number.next());
        Some(first.remove().packet)
    }

    /// When something can go out though nothing more comes.
    pub fn deadline(&self) -> Option<Time> {
        let (number, waiting) = self.waiting.first_key_value()?;
        Some(if self.next.is_some_and(|next| next < *number) { waiting.due.at_last } else { waiting.due.ready })
    }

    /// Numbers that were passed over.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Packets that came after later ones and in time: sent again, or overtaken.
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// Packets that came after their number was passed over.
    pub fn late(&self) -> u64 {
        self.late
    }
}

/// Packets that wait at a time, lest a fast stream fill the memory.
const MOST_WAITING: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOLD: Duration = Duration::from_millis(20);

    fn drain(order: &mut Order<u64>, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| order.pop(now)).collect()
    }

    fn push(order: &mut Order<u64>, now: Time, number: u64) -> Vec<u64> {
        order.push(Seq::new(number), Due::at_once(now, HOLD), number);
        drain(order, now)
    }

    #[test]
    fn packets_in_order_go_out_at_once() {
        let mut order = Order::default();
        assert_eq!((push(&mut order, Time::ZERO, 5), push(&mut order, Time::ZERO, 6)), (vec![5], vec![6]));
        assert_eq!(order.deadline(), None);
    }

    #[test]
    fn swapped_packets_are_put_right() {
        let mut order = Order::default();
        push(&mut order, Time::ZERO, 1);
        assert_eq!(push(&mut order, Time::ZERO, 3), []);
        assert_eq!(push(&mut order, Time::from_millis(19), 2), [2, 3]);
        assert_eq!((order.missing(), order.late()), (0, 0));
    }

    #[test]
    fn a_lost_packet_is_waited_for_no_longer_than_the_hold() {
        let mut order = Order::default();
        push(&mut order, Time::ZERO, 1);
        push(&mut order, Time::from_millis(1), 3);
        push(&mut order, Time::from_millis(10), 4);
        assert_eq!(order.deadline(), Some(Time::from_millis(21)));
        assert_eq!(drain(&mut order, Time::from_millis(21)), [3, 4]);
        assert_eq!(push(&mut order, Time::from_millis(22), 2), []);
        assert_eq!((order.missing(), order.late()), (1, 1));
    }

    #[test]
    fn what_comes_first_need_not_be_the_first_to_go_out() {
        let mut order = Order::default();
        order.push(Seq::new(7), Due::at(Time::from_millis(70)), 7);
        order.push(Seq::new(5), Due::at(Time::from_millis(50)), 5);
        assert_eq!(drain(&mut order, Time::from_millis(60)), [5]);
        assert_eq!((order.late(), drain(&mut order, Time::from_millis(70))), (0, vec![7]));
    }

    #[test]
    fn packets_with_a_time_go_out_at_it_in_order_and_not_before() {
        let mut order = Order::default();
        for (number, due) in [(1, 10), (3, 30), (2, 20), (5, 50)] {
            order.push(Seq::new(number), Due::at(Time::from_millis(due)), number);
        }
        assert_eq!((order.deadline(), order.filled()), (Some(Time::from_millis(10)), 1));
        assert_eq!(drain(&mut order, Time::from_millis(29)), [1, 2]);
        assert_eq!(drain(&mut order, Time::from_millis(49)), [3]);
        assert_eq!(drain(&mut order, Time::from_millis(50)), [5]);
        assert_eq!(order.missing(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut order = Order::default();
        push(&mut order, Time::ZERO, 1);
        let out: usize = (3..100_000).map(|number| push(&mut order, Time::ZERO, number).len()).sum();
        assert_eq!(out, 99_997, "the gap was given up, then all are in order");
        assert_eq!(order.missing(), 1);
    }

    #[test]
    fn a_packet_that_comes_twice_goes_out_once() {
        let mut order = Order::default();
        push(&mut order, Time::ZERO, 1);
        push(&mut order, Time::ZERO, 3);
        push(&mut order, Time::ZERO, 3);
        assert_eq!(push(&mut order, Time::ZERO, 2), [2, 3]);
    }

    proptest! {
        #[test]
        fn whatever_comes_goes_out_once_in_order_or_is_counted(steps in proptest::collection::vec((0u64..40, 0u64..15), 1..200)) {
            let mut order = Order::default();
            let (mut now, mut out) = (Time::ZERO, Vec::new());
            let first = 100 + steps[0].0;
            for (number, millis) in &steps {
                now += Duration::from_millis(*millis);
                out.extend(push(&mut order, now, 100 + number));
            }
            out.extend(drain(&mut order, now + HOLD));
            prop_assert!(out.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", out);
            prop_assert_eq!(order.deadline(), None);
            let span = out.last().map_or(0, |last| last - first + 1);
            prop_assert_eq!(out.len() as u64 + order.missing(), span, "every number up to the last went out or is missing");
        }
    }
}
