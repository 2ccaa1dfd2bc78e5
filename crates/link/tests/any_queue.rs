//! What holds for every discipline, under any load.

mod common;

use common::{Fates, Offer, config, drain, run};
use proptest::prelude::*;
use std::time::Duration;
use weir_link::{DropReason, Label, Link};
use weir_units::{Bytes, Ecn, Random, Time};

const QUEUES: [&str; 9] = [
    "droptail",
    "red(min=1,max=3,weight=0.1,ecn=yes)",
    "red(min=1,max=3,weight=0.1,bytes=yes,mean=700B,gentle=no,wait=no)",
    "drr(quantum=500B)",
    "drr(drop=own)",
    "fq",
    "fq(drop=own)",
    "codel(target=1ms,interval=3ms,mtu=100B)",
    "fq_codel(target=1ms,interval=3ms,mtu=100B,flows=4)",
];

fn offers(gap: u64) -> impl Strategy<Value = Vec<Offer>> {
    proptest::collection::vec((0..gap, 40u64..1500, 0u64..5, any::<bool>()), 1..300).prop_map(|packets| {
        let mut at = 0;
        let offer = |(gap, size, flow, ect)| {
            at += gap;
            Offer { at, size, flow, ecn: if ect { Ecn::Ect } else { Ecn::NotEct } }
        };
        packets.into_iter().map(offer).collect()
    })
}

fn buffers() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("10p"), Just("8kB"), Just("5ms"), Just("0p"), Just("1000p")]
}

fn link(queue: usize, more: &str) -> Link<u32> {
    Link::new(config(&format!("rate=10M,delay=3ms,{more},queue={}", QUEUES[queue])), Random::new(9, "any"))
}

proptest! {
    #[test]
    fn every_packet_is_given_back_once_and_a_flow_stays_in_order(
        queue in 0..QUEUES.len(), buffer in buffers(), offers in offers(2_000_000),
        way in prop_oneof![Just("loss=0"), Just("loss=10%"), Just("jitter=1ms"), Just("jitter=normal(2ms),loss=packets(2,3)")],
    ) {
        let mut link = link(queue, &format!("buffer={buffer},{way}"));
        let fates = run(&mut link, offers.clone());
        let mut seen: Vec<u32> = fates.out.iter().map(|out| out.packet).collect();
        seen.extend(fates.dropped.iter().map(|dropped| dropped.packet));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..offers.len() as u32).collect::<Vec<_>>());
        let counters = link.counters();
        let lost = fates.dropped.iter().filter(|dropped| dropped.reason == DropReason::Lost).count();
        prop_assert_eq!(counters.received, offers.len() as u64);
        prop_assert_eq!(counters.delivered, fates.out.len() as u64);
        prop_assert_eq!(counters.lost, lost as u64);
        prop_assert_eq!(counters.dropped, (fates.dropped.len() - lost) as u64);
        for flow in 0..5 {
            let of_flow = fates.out.iter().filter(|out| offers[out.packet as usize].flow == flow);
            prop_assert!(of_flow.map(|out| out.packet).is_sorted(), "flow {flow}");
        }
        for out in &fates.out {
            prop_assert!(!out.marked || offers[out.packet as usize].ecn == Ecn::Ect);
        }
    }

    /// The last packet of a busy period leaves when all that was sent in it could have been sent, to the nanosecond.
    #[test]
    fn the_link_is_busy_while_something_waits_and_never_faster_than_its_rate(
        queue in 0..QUEUES.len(), buffer in buffers(), offers in offers(2_000_000), bps in 3_000_000u64..50_000_000,
    ) {
        let text = format!("rate={bps},buffer={buffer},queue={}", QUEUES[queue]);
        let fates = run(&mut Link::new(config(&text), Random::new(9, "any")), offers.clone());
        let left = fates.out.iter().map(|out| (out.at.as_nanos(), &offers[out.packet as usize]));
        let (mut busy_since, mut work, mut last) = (0, 0u128, 0);
        for (at, offer) in left {
            let bits = u128::from(offer.size) * 8_000_000_000;
            // It either followed at once on the packet before, or found the link free when it came.
            if u128::from(at - busy_since) == (work + bits) / u128::from(bps) && last > 0 {
                work += bits;
            } else {
                prop_assert!(offer.at >= last, "the link waited although packet of {} ns was there at {last}", offer.at);
                prop_assert_eq!(u128::from(at - offer.at), bits / u128::from(bps));
                (busy_since, work) = (offer.at, bits);
            }
            last = at;
        }
    }

    #[test]
    fn the_fast_link_and_the_general_one_do_the_same(
        buffer in buffers(), offers in offers(1_500_000), loss in prop_oneof![Just("0"), Just("20%"), Just("gilbert(enter=20%,leave=30%)")],
    ) {
        let config = config(&format!("rate=7M,delay=3ms,buffer={buffer},loss={loss}"));
        let mut fast = Link::new(config.clone(), Random::new(2, "same"));
        let mut general = Link::new(config.clone(), Random::new(2, "same"));
        // A link that was changed is a general one from then on.
        general.change(Time::ZERO, config, &mut |_| {});
        let (fast, general) = (run(&mut fast, offers.clone()), run(&mut general, offers));
        prop_assert_eq!(fast, general);
    }

    #[test]
    fn a_change_keeps_what_waits(
        from in 0..QUEUES.len(), to in 0..QUEUES.len(), offers in offers(500_000), change_at in 0u64..100_000_000,
    ) {
        let mut link = link(from, "buffer=20p");
        let mut fates = Fates::default();
        let change_at = Time::from_nanos(change_at);
        let becomes = config(&format!("rate=1M,delay=1ms,buffer=5p,queue={}", QUEUES[to]));
        let mut changed = false;
        for (i, offer) in offers.iter().enumerate() {
            let now = Time::from_nanos(offer.at);
            if now >= change_at && !changed {
                changed = true;
                drain(&mut link, change_at, &mut fates);
                let (before, dropped) = (link.waiting(change_at), fates.dropped.len());
                link.change(change_at, becomes.clone(), &mut |dropped| fates.dropped.push(dropped));
                prop_assert!(link.waiting(change_at) + fates.dropped.len() - dropped + 1 >= before);
            }
            drain(&mut link, now, &mut fates);
            let label = Label { flow: offer.flow, ecn: offer.ecn };
            link.enqueue(now, Bytes::new(offer.size), label, i as u32, &mut |dropped| fates.dropped.push(dropped));
        }
        drain(&mut link, Time::from_nanos(u64::MAX), &mut fates);
        prop_assert_eq!(fates.out.len() + fates.dropped.len(), offers.len());
        prop_assert!(fates.out.is_sorted_by_key(|out| out.at), "nothing overtakes");
    }
}

#[test]
fn a_cut_in_capacity_slows_what_waits_and_not_what_is_being_sent() {
    let mut link = common::link("rate=8M,delay=1ms,buffer=10p");
    (0..3).for_each(|i| link.enqueue(Time::ZERO, Bytes::new(1000), Label::default(), i, &mut |_| {}));
    let slow = config("rate=800k,delay=1ms,buffer=1p");
    link.change(Time::from_micros(500), slow, &mut |dropped| panic!("{dropped:?}"));
    let mut fates = Fates::default();
    drain(&mut link, Time::from_secs(1), &mut fates);
    let at: Vec<u64> = fates.out.iter().map(|out| out.at.as_micros()).collect();
    assert_eq!(at, [2_000, 12_000, 22_000]);
}

#[test]
fn reordering_overtakes_and_without_it_nothing_does() {
    let offers = |n| (0..n).map(|i| Offer { at: i * 100_000, size: 100, flow: 0, ecn: Ecn::NotEct });
    let order = |jitter: &str| {
        let mut link = common::link(&format!("rate=100M,delay=20ms,jitter={jitter}"));
        run(&mut link, offers(1000)).out.into_iter().map(|out| (out.at, out.packet)).collect::<Vec<_>>()
    };
    let (kept, mixed) = (order("uniform(5ms)"), order("uniform(5ms,reorder)"));
    assert!(kept.is_sorted_by_key(|(_, packet)| *packet));
    assert!(!mixed.is_sorted_by_key(|(_, packet)| *packet));
    assert!(mixed.is_sorted_by_key(|(at, _)| *at));
    let span = Duration::from_millis(15)..Duration::from_millis(26);
    assert!(mixed.iter().all(|(at, i)| span.contains(&at.since(Time::from_nanos(u64::from(*i) * 100_000)))));
}
