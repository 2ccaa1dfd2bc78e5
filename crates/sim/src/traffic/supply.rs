//! A sending application: what it offers to its endpoint, and what of that the endpoint has taken.

use weir_units::{Random, Time};

use super::{UdpConfig, UdpSource};

/// What an application hands over to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Supply {
    /// There is always a payload.
    Endless,
    /// So many payloads are there from the start, and then the stream ends.
    AtOnce(u64),
    /// Payloads come as datagrams of this source would: the stream is limited by its application.
    Payloads {
        /// When they come.
        source: UdpConfig,
        /// After how many the stream ends, if ever.
        count: Option<u64>,
    },
}

/// What an application offers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offered {
    pub(crate) packets: u64,
    /// Nothing more will follow.
    pub(crate) is_end: bool,
}

/// A sending application.
#[derive(Debug)]
pub(crate) struct Supplier {
    /// When payloads come; `None` if all are there at the start.
    source: Option<Box<UdpSource>>,
    /// Payloads that it has not offered yet.
    left: u64,
    /// Payloads that it has offered and that were not taken.
    waiting: u64,
    has_ended: bool,
}

impl Supplier {
    /// `random` decides on the bursts of the application.
    pub(crate) fn new(supply: Supply, random: Random) -> Supplier {
        let (source, left) = match supply {
            Supply::Endless => (None, u64::MAX),
            Supply::AtOnce(payloads) => (None, payloads),
            Supply::Payloads { source, count } => {
                (Some(Box::new(UdpSource::new(source, random))), count.unwrap_or(u64::MAX))
            }
        };
        Supplier { source, left, waiting: 0, has_ended: false }
    }

    /// The application begins: gives what it has at once.
    pub(crate) fn start(&mut self, now: Time) -> Offered {
        let mut payloads = 0;
        match &mut self.source {
            None => payloads = self.left,
            Some(source) => source.start(now, &mut |_| payloads += 1),
        }
        self.offer(payloads)
    }

    /// Gives what the application has more by now.
    pub(crate) fn expire(&mut self, now: Time) -> Offered {
        let mut payloads = 0;
        self.source.iter_mut().for_each(|source| source.expire(now, &mut |_| payloads += 1));
        self.offer(payloads)
    }

    fn offer(&mut self, payloads: u64) -> Offered {
        let packets = payloads.min(self.left);
        if self.left != u64::MAX {
            self.left -= packets;
        }
        self.waiting = self.waiting.saturating_add(packets);
        let is_end = self.left == 0 && !std::mem::replace(&mut self.has_ended, self.left == 0);
        if is_end {
            self.stop();
        }
        Offered { packets, is_end }
    }

    /// A payload goes out, unless none is there.
    pub(crate) fn take(&mut self) -> bool {
        match self.waiting {
            0 => return false,
            u64::MAX => {}
            _ => self.waiting -= 1,
        }
        true
    }

    /// The application offers nothing more, and does not say so.
    pub(crate) fn stop(&mut self) {
        self.source.iter_mut().for_each(|source| source.stop());
    }

    /// When [`Supplier::expire`] is wanted.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.source.as_ref()?.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Pattern;
    use weir_units::{Bytes, Rate};

    #[test]
    fn a_source_of_three_payloads_offers_them_in_time_and_says_once_that_it_is_over() {
        // A payload of 1000 bytes a millisecond.
        let source = UdpConfig { packet_size: Bytes::new(1000), rate: Rate::from_mbps(8), pattern: Pattern::Constant };
        let mut supplier = Supplier::new(Supply::Payloads { source, count: Some(3) }, Random::new(1, "supply"));
        assert_eq!(supplier.start(Time::ZERO), Offered { packets: 1, is_end: false });
        assert_eq!(supplier.deadline(), Some(Time::from_millis(1)));
        assert_eq!(supplier.expire(Time::from_millis(1)), Offered { packets: 1, is_end: false });
        assert_eq!(supplier.expire(Time::from_millis(2)), Offered { packets: 1, is_end: true });
        assert_eq!((supplier.deadline(), supplier.expire(Time::from_millis(3))), (None, Offered::default()));
        assert_eq!([(); 4].map(|()| supplier.take()), [true, true, true, false]);
    }

    #[test]
    fn a_supply_without_end_is_offered_once_and_never_used_up() {
        let mut supplier = Supplier::new(Supply::Endless, Random::new(1, "supply"));
        assert_eq!(supplier.start(Time::ZERO), Offered { packets: u64::MAX, is_end: false });
        assert!((0..10).all(|_| supplier.take()));
    }
}
