use alloc::string::ToString;

use proptest::prelude::*;
use weir_units::Bytes;

use super::*;
use crate::{CoDelConfig, DropFrom, DrrConfig, FairConfig, FqCoDelConfig, GilbertElliott, RedConfig, Shape};

fn link(text: &str) -> LinkConfig {
    text.parse().expect("a valid link")
}

#[test]
fn a_link_is_read_as_the_command_line_gives_it() {
    let expected = LinkConfig {
        rate: Some(Rate::from_mbps(2)),
        delay: Duration::from_millis(20),
        buffer: Buffer::Span(Duration::from_millis(100)),
        burst: Duration::ZERO,
        loss: Loss::Random(0.02),
        variation: None,
        queue: QueueConfig::DropTail,
    };
    assert_eq!(link("rate=2mbit,delay=20ms,buffer=100ms,loss=2%"), expected);
    assert_eq!(link("loss=0.02, buffer=100ms,delay=20ms, rate=2M, queue=droptail"), expected);
    assert_eq!(link(""), LinkConfig::default());
}

#[test]
fn queues_are_read_by_name_with_what_differs_from_the_default() {
    let red = RedConfig {
        min_packets: Some(5.0),
        max_packets: Some(15.0),
        max_p: 0.02,
        gentle: false,
        weight: None,
        ..RedConfig::default()
    };
    let drr = DrrConfig { quantum: Bytes::new(500), drop: DropFrom::Own };
    let codel = CoDelConfig { target: Duration::from_millis(10), ecn: true, ..CoDelConfig::default() };
    let fq_codel = FqCoDelConfig { flows: 16, codel, ..FqCoDelConfig::default() };
    for (text, queue) in [
        ("red", QueueConfig::Red(RedConfig::default())),
        ("red(min=5, max=15p, maxp=2%, gentle=no, weight=auto)", QueueConfig::Red(red)),
        ("drr(quantum=500B,drop=own)", QueueConfig::Drr(drr)),
        ("fq()", QueueConfig::Fair(FairConfig::default())),
        ("codel(target=10ms,ecn=yes)", QueueConfig::CoDel(codel)),
        ("fq_codel(target=10ms,flows=16)", QueueConfig::FqCoDel(fq_codel)),
    ] {
        let text = alloc::format!("rate=1M,queue={text},buffer=50p");
        assert_eq!(link(&text).queue, queue, "{text}");
        assert_eq!(link(&text).buffer, Buffer::Packets(50), "{text}");
    }
}

#[test]
fn loss_and_jitter_are_read_by_name() {
    let bursts = GilbertElliott { enter_bad: 0.01, leave_bad: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    assert_eq!(link("loss=gilbert(enter=1%,leave=25%)").loss, Loss::GilbertElliott(bursts));
    assert_eq!(link("loss=packets(7,3,7)").loss, Loss::Packets([3, 7].into()));
    assert_eq!(link("loss=0").loss, Loss::None);
    let around = Shape::Uniform(Duration::from_millis(5));
    assert_eq!(link("jitter=5ms").variation, Some(Variation { shape: around, reorder: false }));
    assert_eq!(link("jitter=uniform(5ms,reorder)").variation, Some(Variation { shape: around, reorder: true }));
    let normal = Shape::Normal(Duration::from_millis(2));
    assert_eq!(link("jitter=normal(2ms)").variation, Some(Variation { shape: normal, reorder: false }));
    assert_eq!(link("jitter=0").variation, None);
}

#[test]
fn errors_say_which_key_and_what_is_accepted() {
    let message = |text: &str| text.parse::<LinkConfig>().expect_err("must be refused").to_string();
    assert_eq!(message("rate=0"), "rate=0: expected bits per second above 0, such as 2mbit or 512k");
    assert_eq!(message("delay=20"), "delay=20: expected a span, such as 20ms");
    assert_eq!(message("buffer=80"), "buffer=80: expected a span (100ms), bytes (64kB) or packets (80p)");
    assert!(message("loss=2").starts_with("loss=2: expected a share from 0 to 1 or in per cent (2%), gilbert("));
    assert_eq!(
        message("speed=2"),
        "a link has no \"speed\"; it has rate, delay, buffer, burst, loss, jitter and queue"
    );
    assert_eq!(message("delay=1ms,delay=2ms"), "delay is given twice");
    assert!(message("2mbit").contains("\"2mbit\" is not key=value; a link is described as in rate=2mbit,"));
    assert!(message("queue=blue").starts_with("queue=blue: expected droptail, red, drr, fq, codel or fq_codel,"));
    assert_eq!(message("queue=fq(drop=all)"), "drop=all: expected longest or own");
    assert_eq!(message("queue=drr(size=3)"), "drr has no \"size\"; it has quantum and drop");
    assert_eq!(message("queue=red(min=5,max=5)"), "red: max must be above min");
    assert!(message("queue=red(5,15)").contains("\"5\" is not key=value; red is described as in red(min=5,"));
    assert_eq!(message("queue=red(min=5"), "the parentheses in \"queue=red(min=5\" do not match");
    assert!(message("jitter=uniform(5ms,later)").starts_with("jitter=uniform(5ms,later): expected a span around"));
    assert!(message("loss=packets(0)").starts_with("loss=packets(0): expected"));
}

fn any_span() -> impl Strategy<Value = Duration> {
    (1u64..1_000_000_000).prop_map(Duration::from_nanos)
}

fn any_size() -> impl Strategy<Value = Bytes> {
    (1u64..100_000).prop_map(Bytes::new)
}

prop_compose! {
    fn any_red()(
        (min_packets, above) in proptest::option::of((0.1f64..50.0, 0.1f64..50.0)).prop_map(|x| (x.map(|x| x.0), x.map(|x| x.1))),
        max_p in 0.001f64..1.0, weight in proptest::option::of(0.0001f64..0.9999), mark_p in 0.0f64..1.0,
        gentle in any::<bool>(), wait in any::<bool>(), bytes in any::<bool>(), ecn in any::<bool>(), mean_size in any_size(),
    ) -> RedConfig {
        let max_packets = min_packets.zip(above).map(|(min, above)| min + above);
        RedConfig { min_packets, max_packets, max_p, weight, gentle, wait, bytes, mean_size, ecn, mark_p }
    }
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let drop = || prop_oneof![Just(DropFrom::Longest), Just(DropFrom::Own)];
    let codel = || {
        (any_span(), any_span(), any_size(), any::<bool>()).prop_map(|(target, interval, mtu, ecn)| CoDelConfig {
            target,
            interval,
            mtu,
            ecn,
        })
    };
    prop_oneof![
        Just(QueueConfig::DropTail),
        any_red().prop_map(QueueConfig::Red),
        (any_size(), drop()).prop_map(|(quantum, drop)| QueueConfig::Drr(DrrConfig { quantum, drop })),
        drop().prop_map(|drop| QueueConfig::Fair(FairConfig { drop })),
        codel().prop_map(QueueConfig::CoDel),
        (codel(), 1u16.., any_size()).prop_map(|(codel, flows, quantum)| QueueConfig::FqCoDel(FqCoDelConfig {
            codel,
            flows,
            quantum
        })),
    ]
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let p = || 0.0f64..=1.0;
    prop_oneof![
        Just(Loss::None),
        (0.001f64..=1.0).prop_map(Loss::Random),
        (p(), p(), p(), p()).prop_map(|(enter_bad, leave_bad, loss_good, loss_bad)| {
            Loss::GilbertElliott(GilbertElliott { enter_bad, leave_bad, loss_good, loss_bad })
        }),
        proptest::collection::btree_set(1u64..1000, 1..5).prop_map(|set| Loss::Packets(set.into_iter().collect())),
    ]
}

prop_compose! {
    fn any_link()(
        rate in proptest::option::of(1u64..1_000_000_000), delay in 0u64..1_000_000_000, loss in any_loss(),
        buffer in prop_oneof![
            (0usize..10_000).prop_map(Buffer::Packets),
            (0u64..1_000_000).prop_map(|bytes| Buffer::Bytes(Bytes::new(bytes))),
            (0u64..1_000_000_000).prop_map(|nanos| Buffer::Span(Duration::from_nanos(nanos))),
        ],
        variation in proptest::option::of((any_span(), any::<bool>(), any::<bool>()).prop_map(|(span, normal, reorder)| {
            Variation { shape: if normal { Shape::Normal(span) } else { Shape::Uniform(span) }, reorder }
        })),
        queue in any_queue(), burst in prop_oneof![Just(0u64), 0u64..1_000_000_000],
    ) -> LinkConfig {
        let (delay, burst) = (Duration::from_nanos(delay), Duration::from_nanos(burst));
        LinkConfig { rate: rate.map(Rate::from_bps), delay, buffer, burst, loss, variation, queue }
    }
}

proptest! {
    #[test]
    fn a_link_reads_back_as_it_is_shown(link in any_link()) {
        prop_assert_eq!(link.to_string().parse(), Ok(link));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,40}", queue in "(red|drr|fq|codel|fq_codel)[(),=a-z0-9]{0,20}") {
        let _ = text.parse::<LinkConfig>();
        let _ = alloc::format!("queue={queue}").parse::<LinkConfig>();
    }
}

#[test]
fn the_grammar_names_every_queue_and_every_key_and_its_defaults_read_back() {
    let names: alloc::vec::Vec<&str> = grammar().iter().map(|part| part.name).collect();
    assert_eq!(names, ["", "gilbert", "droptail", "red", "drr", "fq", "codel", "fq_codel"]);
    for name in &names[2..] {
        assert!(queue::QUEUE.contains(name), "errors name {name}");
    }
    for part in grammar() {
        let text = match part.name {
            "" => part.default.clone(),
            "gilbert" => alloc::format!("loss={}", part.default),
            _ => alloc::format!("queue={}", part.default),
        };
        assert!(text.parse::<LinkConfig>().is_ok(), "{text}");
        // What is the default may be left out of the link's own.
        let left_out = ["rate", "burst", "loss", "jitter", "queue"];
        let shown = |key: &Key| part.default.contains(&alloc::format!("{}=", key.name));
        assert!(part.keys.iter().all(|key| shown(key) || left_out.contains(&key.name)), "{}", part.default);
    }
}
