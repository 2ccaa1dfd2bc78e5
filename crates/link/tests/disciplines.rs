//! What each discipline is for: fairness, drops that follow the law, marks.

mod common;

use common::{Fates, Offer, link, run};
use proptest::prelude::*;
use weir_link::DropReason;
use weir_units::Ecn;

/// Packets of `size` every `gap` nanoseconds from zero until `until`.
fn steady(flow: u64, size: u64, gap: u64, until: u64) -> impl Iterator<Item = Offer> {
    (0..until / gap).map(move |i| Offer { at: i * gap, size, flow, ecn: Ecn::NotEct })
}

fn merged(flows: impl IntoIterator<Item = Vec<Offer>>) -> Vec<Offer> {
    let mut all: Vec<Offer> = flows.into_iter().flatten().collect();
    all.sort_by_key(|offer| offer.at);
    all
}

/// Bytes of a flow that came out in the second half of `until`.
fn bytes_of(flow: u64, fates: &Fates, offers: &[Offer], until: u64) -> f64 {
    let late = fates.out.iter().filter(|out| (until / 2..until).contains(&out.at.as_nanos()));
    late.map(|out| offers[out.packet as usize]).filter(|offer| offer.flow == flow).map(|offer| offer.size as f64).sum()
}

#[test]
fn fair_queues_give_each_flow_what_it_asks_for_and_split_the_rest_evenly_whatever_the_packet_size() {
    let until = 20_000_000_000;
    // Offered 0.2, 0.8 and 1.6 Mbit/s on 1 Mbit/s: max-min fair are 0.2, 0.4 and 0.4.
    // ns 2.35's `Queue/DRR` under the same load (`quantum_` 1500, `blimit_` 50000, `buckets_` 101): 0.1998, 0.3996 and 0.4001.
    let offers = merged([
        steady(1, 200, 8_000_000, until).collect(),
        steady(2, 1500, 15_000_000, until).collect(),
        steady(3, 300, 1_500_000, until).collect(),
    ]);
    for queue in ["drr", "drr(drop=own)", "drr(quantum=250B)", "fq", "fq(drop=own)", "fq_codel"] {
        let fates = run(&mut link(&format!("rate=1M,buffer=50p,queue={queue}")), offers.clone());
        let half = until as f64 / 2e9;
        for (flow, bps) in [(1, 0.2e6), (2, 0.4e6), (3, 0.4e6)] {
            let got = bytes_of(flow, &fates, &offers, until) * 8.0 / half;
            assert!((got / bps - 1.0).abs() < 0.04, "{queue}: flow {flow} got {got} of {bps}");
        }
    }
    // The same without fairness: flow 1 loses as much as the others do.
    let fates = run(&mut link("rate=1M,buffer=50p"), offers.clone());
    assert!(bytes_of(3, &fates, &offers, until) * 8.0 > 0.5e6 * until as f64 / 2e9);
}

#[test]
fn fair_queueing_serves_in_the_order_of_finish_numbers() {
    let at_once = |flow, size| Offer { at: 0, size, flow, ecn: Ecn::NotEct };
    // The first is sent at once. Finish numbers of the others: 2000, 300, 600, 900, 700.
    let offers = [(1, 1000), (1, 1000), (2, 300), (2, 300), (2, 300), (3, 700)].map(|(flow, size)| at_once(flow, size));
    let fates = run(&mut link("rate=1M,buffer=50p,queue=fq"), offers);
    let order: Vec<u32> = fates.out.iter().map(|out| out.packet).collect();
    assert_eq!(order, [0, 2, 3, 5, 4, 1]);
}

#[test]
fn deficit_round_robin_carries_what_a_turn_left_over() {
    let at_once = |flow, size| Offer { at: 0, size, flow, ecn: Ecn::NotEct };
    // Shreedhar and Varghese's example (their figures 2 and 3): quantum 500; flow 1 holds 200, 750, 20, flow 2 holds 500, 500.
    let mut offers = vec![at_once(9, 1)];
    offers.extend([(1, 200), (1, 750), (1, 20), (2, 500), (2, 500)].map(|(flow, size)| at_once(flow, size)));
    let fates = run(&mut link("rate=1M,buffer=50p,queue=drr(quantum=500B)"), offers);
    let order: Vec<u32> = fates.out.iter().map(|out| out.packet).collect();
    assert_eq!(order, [0, 1, 4, 2, 3, 5]);
}

#[test]
fn overflow_takes_from_the_longest_queue_or_from_the_own() {
    let at_once = |flow, size| Offer { at: 0, size, flow, ecn: Ecn::NotEct };
    let offers = [9, 1, 1, 1, 2].map(|flow| at_once(flow, 100));
    // FQ-CoDel drops half of the fattest queue at once.
    for (queue, victims) in
        [("drr", &[1][..]), ("fq", &[3]), ("fq_codel", &[1, 2]), ("drr(drop=own)", &[]), ("droptail", &[4])]
    {
        let fates = run(&mut link(&format!("rate=1M,buffer=3p,queue={queue}")), offers);
        let dropped: Vec<u32> = fates.dropped.iter().map(|dropped| dropped.packet).collect();
        assert_eq!(dropped, victims, "{queue}");
        assert!(fates.dropped.iter().all(|dropped| dropped.reason == DropReason::Overflow));
    }
}

#[test]
fn codel_leaves_alone_what_waits_less_than_its_target() {
    // Bursts of four packets that wait up to 3 ms.
    let offers = (0..10_000u64).map(|i| Offer { at: i / 4 * 4_000_000, size: 125, flow: 0, ecn: Ecn::NotEct });
    for queue in ["codel", "fq_codel"] {
        let fates = run(&mut link(&format!("rate=1M,buffer=1000p,queue={queue}")), offers.clone());
        assert_eq!(fates.dropped, []);
    }
}

#[test]
fn codel_drops_first_after_an_interval_and_then_at_the_spacing_of_its_law() {
    // Twice what the link can send: packets wait for longer than 5 ms from about 10 ms on.
    let offers = steady(0, 1000, 4_000_000, 1_400_000_000);
    let fates = run(&mut link("rate=1M,buffer=100000p,queue=codel"), offers);
    let times: Vec<f64> = fates.dropped.iter().map(|dropped| dropped.at.as_nanos() as f64 / 1e6).collect();
    // A packet is taken out every 8 ms: the first that waited 5 ms or more behind a full packet at 16 or 24 ms, and 100 ms on.
    assert!((108.0..=136.0).contains(&times[0]), "{times:?}");
    let mut due = times[0];
    for (i, time) in times.iter().enumerate().take(12) {
        assert!((due..=due + 8.0).contains(time), "drop {i} at {time} instead of {due}: {times:?}");
        due += 100.0 / ((i + 1) as f64).sqrt();
    }
    assert!(times.len() > 12);
    assert!(fates.dropped.iter().all(|dropped| dropped.reason == DropReason::Early));
}

#[test]
fn packets_that_can_be_marked_are_not_dropped() {
    let offers = |ecn| steady(0, 1000, 7_000_000, 20_000_000_000).map(move |offer| Offer { ecn, ..offer });
    for queue in ["red(min=5,max=400,mean=1000B,ecn=yes,maxp=30%,markp=100%)", "codel(ecn=yes)", "fq_codel"] {
        let mut able = link(&format!("rate=1M,buffer=10000p,queue={queue}"));
        let fates = run(&mut able, offers(Ecn::Ect));
        assert_eq!(fates.dropped, [], "{queue}");
        assert!(able.counters().marked > 20, "{queue}: {:?}", able.counters());
        assert_eq!(able.counters().marked, fates.out.iter().filter(|out| out.marked).count() as u64);
        let mut unable = link(&format!("rate=1M,buffer=10000p,queue={queue}"));
        assert!(run(&mut unable, offers(Ecn::NotEct)).dropped.len() > 20, "{queue}");
        assert_eq!(unable.counters().marked, 0);
    }
}

#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_one_at_fq_codel() {
    let until = 4_000_000_000;
    let offers = merged([steady(1, 1500, 6_000_000, until).collect(), steady(2, 100, 50_000_000, until).collect()]);
    let fates = run(&mut link("rate=1M,buffer=1000p,queue=fq_codel"), offers.clone());
    // In the beginning both are new.
    for out in fates.out.iter().filter(|out| offers[out.packet as usize].flow == 2 && out.packet > 20) {
        let waited = out.at.as_nanos() - offers[out.packet as usize].at;
        // At most the bulk packet that is being sent and its own 0.8 ms.
        assert!(waited <= 12_800_000, "{waited}");
    }
}

proptest! {
    /// While two flows wait, neither gets ahead by more than a quantum and two of the largest packets (Shreedhar & Varghese,
    /// theorem 2); at finish numbers, by no more than two of the largest packets.
    #[test]
    fn flows_that_wait_stay_within_the_bound_of_each_other(
        queue in prop_oneof![Just(("fq", 0.0)), Just(("drr(quantum=600B)", 600.0)), Just(("drr(quantum=2000B)", 2000.0))],
        sizes in proptest::collection::vec((40u64..1500, 40u64..1500), 20..100),
    ) {
        let mut offers = vec![Offer { at: 0, size: 1, flow: 9, ecn: Ecn::NotEct }];
        for (one, two) in &sizes {
            offers.extend([(1, *one), (2, *two)].map(|(flow, size)| Offer { at: 0, size, flow, ecn: Ecn::NotEct }));
        }
        let fates = run(&mut link(&format!("rate=10M,buffer=10000p,queue={}", queue.0)), offers.clone());
        let mut left = [sizes.len(); 2];
        let mut ahead = 0.0f64;
        for out in fates.out.iter().skip(1) {
            let offer = offers[out.packet as usize];
            ahead += if offer.flow == 1 { offer.size as f64 } else { -(offer.size as f64) };
            left[offer.flow as usize - 1] -= 1;
            if left.contains(&0) {
                break;
            }
            prop_assert!(ahead.abs() <= queue.1 + 2.0 * 1500.0, "{ahead}");
        }
    }
}
