#![allow(unreachable_pub, dead_code, reason = "each test uses what it needs")]
//! A link with packets offered to it, and everything that became of them.

use weir_link::{Delivered, Dropped, Label, Link, LinkConfig};
use weir_units::{Bytes, Ecn, Random, Time};

/// A packet that is offered.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    pub at: u64,
    pub size: u64,
    pub flow: u64,
    pub ecn: Ecn,
}

/// Packets are numbered in the order in which they came.
#[derive(Debug, Default, PartialEq)]
pub struct Fates {
    pub out: Vec<Delivered<u32>>,
    pub dropped: Vec<Dropped<u32>>,
    /// Mean number that waited, as those that came found it.
    pub mean_waiting: f64,
}

pub fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn link(text: &str) -> Link<u32> {
    Link::new(config(text), Random::new(1, "link"))
}

/// Offers packets, in the order of their times, and takes out what comes out at the times for which the link asks.
pub fn run(link: &mut Link<u32>, offers: impl IntoIterator<Item = Offer>) -> Fates {
    let mut fates = Fates::default();
    let (mut waited, mut came) = (0, 0);
    for (i, offer) in offers.into_iter().enumerate() {
        let now = Time::from_nanos(offer.at);
        drain(link, now, &mut fates);
        waited += link.waiting(now);
        came += 1;
        let label = Label { flow: offer.flow, ecn: offer.ecn };
        link.enqueue(now, Bytes::new(offer.size), label, i as u32, &mut |dropped| fates.dropped.push(dropped));
    }
    drain(link, Time::from_nanos(u64::MAX), &mut fates);
    fates.mean_waiting = waited as f64 / f64::from(came.max(1));
    fates
}

/// Everything that comes out by `until`.
pub fn drain(link: &mut Link<u32>, until: Time, fates: &mut Fates) {
    while let Some(at) = link.next_arrival().filter(|at| *at <= until) {
        let out = link.dequeue(at, &mut |dropped| fates.dropped.push(dropped));
        assert!(out.is_none_or(|out| out.at == at), "asked to be looked at for this very instant");
        fates.out.extend(out);
    }
    if until < Time::from_nanos(u64::MAX) {
        // Brings the account of what waits up to date.
        assert_eq!(link.dequeue(until, &mut |dropped| fates.dropped.push(dropped)), None);
    }
}
