//! What a plain link does to a packet, to the nanosecond.

mod common;

use common::{Fates, Offer, drain, link, run};
use weir_link::{DropReason, Label};
use weir_units::{Bytes, Ecn, Time};

fn at_once(packets: usize, size: u64) -> impl Iterator<Item = Offer> {
    std::iter::repeat_n(Offer { at: 0, size, flow: 0, ecn: Ecn::NotEct }, packets)
}

#[test]
fn a_packet_takes_its_serialisation_and_the_propagation_delay() {
    let mut link = link("rate=1M,delay=20ms");
    link.enqueue(Time::from_millis(5), Bytes::new(1000), Label::default(), 7, &mut |lost| panic!("dropped: {lost:?}"));
    assert_eq!(link.next_arrival(), Some(Time::from_millis(33)));
    assert_eq!(link.dequeue(Time::from_nanos(32_999_999), &mut |_| {}), None);
    // Whoever comes late learns when it came out.
    let out = link.dequeue(Time::from_millis(40), &mut |_| {}).expect("it came out");
    assert_eq!((out.packet, out.at, out.marked), (7, Time::from_millis(33), false));
    assert_eq!(link.next_arrival(), None);
}

#[test]
fn what_an_idle_link_saves_up_goes_at_once_and_the_rest_at_its_rate() {
    // A packet takes 100 ms, and 250 ms are saved up: two packets at once, half of the third, then one each 100 ms.
    for queue in ["droptail", "fq"] {
        let mut link = link(&format!("rate=8k,delay=5ms,buffer=100p,burst=250ms,queue={queue}"));
        for start in [10_000, 20_000] {
            (0..5).for_each(|i| {
                link.enqueue(Time::from_millis(start), Bytes::new(100), Label::default(), i, &mut |_| {});
            });
            let mut take = || link.dequeue(Time::from_millis(start + 900), &mut |_| {}).map(|out| out.at);
            let times = [5, 5, 55, 155, 255].map(|millis| Some(Time::from_millis(start + millis)));
            assert_eq!([take(), take(), take(), take(), take()], times, "{queue}");
        }
    }
}

#[test]
fn rounding_does_not_add_up_over_a_busy_period() {
    // At 3 bit/s a byte takes 2.666… s; three take eight seconds to the nanosecond.
    for queue in ["droptail", "drr"] {
        let fates = run(&mut link(&format!("rate=3,buffer=1000p,queue={queue}")), at_once(300, 1));
        assert_eq!(fates.out[0].at, Time::from_nanos(2_666_666_666));
        assert_eq!(fates.out[299].at, Time::from_secs(800));
    }
}

#[test]
fn the_buffer_counts_what_waits_and_not_what_is_sent() {
    // A packet takes 100 ms.
    for (buffer, accepted) in [("3p", 4), ("399B", 4), ("400B", 5), ("300ms", 4), ("0p", 1), ("0B", 1)] {
        // The fast link, and two that have a queue.
        for queue in ["droptail", "droptail,jitter=1ns", "red(min=50,max=60)"] {
            let mut link = link(&format!("rate=8k,buffer={buffer},queue={queue}"));
            let fates = run(&mut link, at_once(20, 100));
            assert_eq!(fates.out.len(), accepted, "{buffer} {queue}");
            assert_eq!(link.counters().dropped, 20 - accepted as u64);
            assert!(fates.dropped.iter().all(|dropped| dropped.reason == DropReason::Overflow));
        }
    }
}

#[test]
fn waiting_packets_are_counted_at_any_time() {
    let mut link = link("rate=8k,buffer=10p");
    (0..4).for_each(|i| link.enqueue(Time::ZERO, Bytes::new(100), Label::default(), i, &mut |_| {}));
    let waiting = [0, 99, 100, 250, 300, 400].map(|millis| link.waiting(Time::from_millis(millis)));
    assert_eq!(waiting, [3, 3, 2, 1, 0, 0]);
}

#[test]
fn without_a_rate_nothing_waits() {
    for queue in ["droptail", "fq", "red"] {
        let fates = run(&mut link(&format!("delay=5ms,buffer=0p,queue={queue}")), at_once(100, 1500));
        assert!(fates.out.iter().all(|out| out.at == Time::from_millis(5)));
        assert_eq!(fates.out.len(), 100, "{queue}");
    }
}

#[test]
fn a_lost_packet_is_given_back_when_it_would_have_come_out() {
    let mut link = link("rate=8k,delay=1s,buffer=10p,loss=packets(2)");
    (0..3).for_each(|i| {
        link.enqueue(Time::ZERO, Bytes::new(100), Label::default(), i, &mut |lost| panic!("dropped: {lost:?}"));
    });
    let mut fates = Fates::default();
    drain(&mut link, Time::from_millis(1_199), &mut fates);
    assert_eq!((fates.out.len(), fates.dropped.len()), (1, 0));
    drain(&mut link, Time::from_millis(1_200), &mut fates);
    let lost = fates.dropped[0];
    assert_eq!((lost.packet, lost.at, lost.reason), (1, Time::from_millis(1_200), DropReason::Lost));
    drain(&mut link, Time::from_millis(1_300), &mut fates);
    assert_eq!(fates.out.iter().map(|out| out.packet).collect::<Vec<_>>(), [0, 2]);
}
