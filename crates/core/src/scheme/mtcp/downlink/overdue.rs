//! What children lack is sent again: as they ask for it, and when its acknowledgement is overdue (§3.5, §3.8).

use core::time::Duration;

use weir_units::{Seq, Time};

use super::{Downlink, FIRST_TIMEOUT, data};
use crate::endpoint::Destination;
use crate::outbox::Outbox;
use crate::scheme::mtcp::child::Child;
use crate::scheme::mtcp::delay::overdue;

impl Downlink {
    /// What is overdue is repaired, and is congestion; repairs go as their windows allow.
    pub(super) fn repair(&mut self, now: Time, out: &mut Outbox) {
        while let Some((number, due)) = self.oldest() {
            if due > now {
                break;
            }
            self.on_overdue(now, number, out);
        }
        let (first, sent, end) = (self.first, &self.sent, self.end);
        let find = |number: Seq| {
            let index = number.value().checked_sub(first.value())?;
            sent.get(index as usize).filter(|sent| sent.here.is_some())
        };
        let guests = self.guests.iter_mut().map(|guest| &mut guest.child);
        for child in self.children.iter_mut().chain(guests) {
            let to = Destination::Peer(child.peer);
            let send = |number: Seq| {
                let stamp = find(number).map_or(0, |sent| sent.stamp);
                out.push(data(&self.stream, to, number, stamp, true, end));
            };
            child.send_repairs(now, &self.config, |number| find(number).is_some(), send);
        }
    }

    /// The packet whose first time-out comes first, and when.
    pub(super) fn oldest(&mut self) -> Option<(Seq, Time)> {
        let (timeout, first_timeout) = (self.timeout(), self.first_timeout());
        loop {
            let number = self.settled;
            let sent = *self.at(number)?;
            // What has not come here cannot be repaired from here: the child will have to ask again.
            let is_repaired = || {
                let mut lacking = self.children.iter().filter(|child| !child.has(number));
                lacking.all(|child| child.is_repairing(number))
            };
            if sent.lacking > 0 && is_repaired() {
                self.settled = number.next();
                continue;
            }
            if let (true, Some(here)) = (sent.lacking > 0, sent.here) {
                let due = match timeout {
                    Some(timeout) if sent.is_fresh => overdue(sent.micros, timeout),
                    None if sent.is_fresh => here + first_timeout,
                    // What came as a repair was sent long ago, so that its timer would have expired.
                    _ => here + FIRST_TIMEOUT,
                };
                return Some((number, due.max(here)));
            }
            if sent.lacking > 0 {
                return None;
            }
            self.settled = number.next();
        }
    }

    /// RTO_RTD: the greatest of all children, seconds.
    fn timeout(&self) -> Option<f64> {
        self.children.iter().filter_map(|child| child.rtd.value()).reduce(f64::max)
    }

    /// The time-out while no relative delay is known: by the round trips that probes have found, which know nothing of delayed
    /// acknowledgements. Switches learn of members a moment after these have joined, so that the first packets are often lost.
    fn first_timeout(&self) -> Duration {
        let round_trip = |child: &Child| child.rtt.average();
        let farthest = self.children.iter().map(round_trip).try_fold(0.0, |most: f64, one| Some(most.max(one?)));
        farthest.map_or(FIRST_TIMEOUT, |farthest| {
            let measured = Duration::from_secs_f64(2.0 * farthest) + self.config.ack_delay + self.config.floor;
            measured.min(FIRST_TIMEOUT)
        })
    }

    fn on_overdue(&mut self, now: Time, number: Seq, out: &mut Outbox) {
        self.settled = number.next();
        let next = self.next();
        self.children.iter_mut().filter(|child| !child.has(number)).for_each(|child| child.request(now, number));
        // What is lost before anything has come tells of memberships that are not known everywhere yet, and the window is at its
        // least: slow start goes on.
        if self.timeout().is_none() {
            return;
        }
        self.limit_window();
        if self.window.on_timeout(&self.config, number, next) {
            // τwnd is zero from here on (§3.9): what is on its way counts no more.
            self.transit = 0;
            self.sent.iter_mut().for_each(|sent| sent.in_transit = false);
            self.observe(out);
        }
    }
}
