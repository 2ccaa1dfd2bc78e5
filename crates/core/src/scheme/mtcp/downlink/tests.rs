use super::*;

use weir_units::Bytes;

use crate::definition::Habitat;

const CHILD: PeerId = PeerId(1);

fn node(config: Config) -> (Downlink, Outbox) {
    let stream = Stream { packet_size: Bytes::new(1000), feedback_size: Bytes::new(60), habitat: Habitat::Lab };
    (Downlink::new(&stream, config, false), Outbox::default())
}

/// The numbers of the repairs that it wants sent.
fn repairs(out: &mut Outbox) -> Vec<u32> {
    let sent = core::iter::from_fn(|| out.pop()).filter_map(|action| match action {
        Action::Send { packet, .. } => Some(packet.header),
        _ => None,
    });
    let number = |header| match header {
        Header::TreeData(data) => Some(data.number),
        _ => None,
    };
    sent.filter_map(number).collect()
}

#[test]
fn fig_4_a_packet_of_0_is_sent_again_at_7_8_10_14_and_22() {
    let (mut node, mut out) = node(Config { floor: Duration::ZERO, ..Config::refined(Habitat::Lab) });
    node.add(Time::ZERO, CHILD, &mut out);
    // RTO_RTD is 7 and RTO_RTT is 1, of which 10 ms are the floor under 4D.
    node.children[0].note_delay(Time::ZERO, 7.0, 7.0);
    node.children[0].note_round_trip(Time::ZERO, Duration::from_millis(990));
    // The stamp is that of time 0, as an earlier packet has shown.
    node.clock.note(Time::ZERO, 0, true);
    node.on_data(Time::from_millis(5_500), Seq::new(0), 0, true, &mut out);
    assert_eq!(repairs(&mut out), [0; 0]);
    let mut at = Vec::new();
    while at.len() < 5 {
        let due = node.deadline().expect("a packet is not acknowledged");
        // The child is there, and says so: it is not given up.
        node.children[0].unanswered = 0;
        node.on_deadline(due, &mut out);
        at.extend(repairs(&mut out).iter().map(|_| due));
    }
    assert_eq!(at, [7, 8, 10, 14, 22].map(Time::from_secs));
}

#[test]
fn fig_5_the_sender_sees_a_least_window_of_15_and_a_greatest_transit_window_of_10() {
    let own = Summary {
        min_cwnd: f64::INFINITY,
        max_twnd: 0.0,
        limit: Seq::new(100),
        low_mark: Seq::new(0),
        receivers: 0,
        is_complete: false,
    };
    let above = |children: &[(f64, f64)]| {
        let (mut node, mut out) = node(Config { least_window: 30.0, ..Config::refined(Habitat::Lab) });
        for (number, (min_cwnd, max_twnd)) in (1..).zip(children) {
            let ack = Ack {
                min_cwnd: (min_cwnd * 256.0) as u32,
                max_twnd: (max_twnd * 256.0) as u32,
                limit: 100,
                ..Ack::default()
            };
            node.add(Time::ZERO, PeerId(number), &mut out);
            node.on_ack(Time::ZERO, PeerId(number), &ack, &mut out);
        }
        let summary = node.summary(own);
        (summary.min_cwnd, summary.max_twnd)
    };
    // Node 3 above nodes 7 and 9, and the sender above nodes 3 and 1.
    let of_3 = above(&[(30.0, 8.0), (15.0, 10.0)]);
    assert_eq!(of_3, (15.0, 10.0));
    let (min_cwnd, max_twnd) = above(&[of_3, (25.0, 5.0)]);
    assert_eq!(min_cwnd - max_twnd, 5.0);
}

#[test]
fn a_packet_is_not_sent_again_within_a_round_trip() {
    let (mut node, mut out) = node(Config::refined(Habitat::Lab));
    node.add(Time::ZERO, CHILD, &mut out);
    node.children[0].note_round_trip(Time::ZERO, Duration::from_millis(100));
    let at = |millis| Time::from_secs(1) + Duration::from_millis(millis);
    (0..3).for_each(|number| node.on_data(at(0), Seq::new(number), 0, true, &mut out));
    let missing = Ack { start: 0, reported: 3, received: 0b110, limit: 100, ..Ack::default() };
    repairs(&mut out);
    let sent = [1, 50, 90, 101].map(|millis| {
        node.on_ack(at(millis), CHILD, &missing, &mut out);
        repairs(&mut out).len()
    });
    assert_eq!(sent, [1, 0, 0, 1]);
}

#[test]
fn a_first_packet_that_nobody_gets_is_overdue_by_the_round_trips_of_probes() {
    let (mut node, mut out) = node(Config::refined(Habitat::Lab));
    node.add(Time::ZERO, CHILD, &mut out);
    let sent = Time::from_secs(1);
    node.on_data(sent, Seq::new(0), 1_000_000, true, &mut out);
    assert_eq!(node.oldest(), Some((Seq::new(0), sent + FIRST_TIMEOUT)));
    node.children[0].note_round_trip(sent, Duration::from_millis(50));
    // Twice 50 ms, 20 ms of delayed acknowledgements, and the floor of 200 ms.
    assert_eq!(node.oldest(), Some((Seq::new(0), sent + Duration::from_millis(320))));
    node.on_deadline(sent + Duration::from_millis(320), &mut out);
    assert_eq!(repairs(&mut out), [0]);
    assert!(node.is_in_slow_start());
    // Another child, of which nothing is known.
    node.add(sent, PeerId(2), &mut out);
    node.on_data(sent, Seq::new(1), 1_000_000, true, &mut out);
    assert_eq!(node.oldest(), Some((Seq::new(0), sent + FIRST_TIMEOUT)));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
    let (mut node, mut out) = node(Config { buffer: 10, ..Config::refined(Habitat::Lab) });
    node.add(Time::ZERO, CHILD, &mut out);
    node.on_data(Time::ZERO, Seq::new(0), 0, true, &mut out);
    let lie = Ack { start: 1 << 20, low_mark: 1 << 20, limit: 1 << 21, is_complete: true, ..Ack::default() };
    node.on_ack(Time::ZERO, CHILD, &lie, &mut out);
    assert!(!node.children[0].has(Seq::new(0)) && !node.is_complete());
}
