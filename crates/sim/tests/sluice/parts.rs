//! Between two levels: a receiver of a ladder with wide steps takes as much of the next step as its path carries, unless another one with the same
//! level cannot.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_link::LinkConfig;
use weir_sim::{EndpointConfig, LinkId, Network};
use weir_units::{Rate, Time};

/// A session in steps of a half, one level of which has 6.56 Mbit/s, to receivers behind links of these rates. Gives what each link has carried from
/// 30 s to 90 s, in Mbit/s, and how many packets it has dropped.
fn behind<const N: usize>(mbps: [&str; N]) -> [(f64, u64); N] {
    let mut net = Network::new(1);
    let root = net.add_node();
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.5).expect("a ladder");
    assert_eq!(ladder.level_rate(9).bps() / 10_000, 656);
    let (id, session) = super::open(&mut net, root, ladder, &[]);
    let links = mbps.map(|mbps| {
        let host = net.add_node();
        let link = format!("rate={mbps}M,delay=10ms,buffer=40p");
        let link = net.add_link(root, host, &link.parse::<LinkConfig>().expect("a valid link"));
        net.add_link(host, root, &LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() });
        super::join(&mut net, id, &session, host, EndpointConfig::default(), &[]);
        link
    });
    let counted = |net: &Network| {
        links.map(|link: LinkId| {
            let counters = net.link_counters(link);
            (counters.delivered_bytes.count(), counters.dropped)
        })
    };
    net.run_until(Time::from_secs(30), &mut ());
    let before = counted(&net);
    net.run_until(Time::from_secs(90), &mut ());
    let after = counted(&net);
    std::array::from_fn(|number| {
        let [before, after] = [before[number], after[number]];
        ((after.0 - before.0) as f64 * 8e-6 / 60.0, after.1 - before.1)
    })
}

#[test]
fn a_receiver_alone_at_its_level_takes_the_part_of_the_next_step_that_fits_and_loses_nothing() {
    for (link, most) in [("7", 7.0), ("8.5", 8.5), ("9.5", 9.5)] {
        let [(mbps, dropped)] = behind([link]);
        assert!((0.9 * most..=most).contains(&mbps) && dropped == 0, "{mbps} of {most} Mbit/s, {dropped} dropped");
    }
}

#[test]
fn receivers_with_one_level_take_the_part_that_all_their_paths_carry() {
    let [fast, slow] = behind(["9.5", "7.3"]);
    assert!((6.75..7.3).contains(&slow.0) && slow.1 == 0, "{slow:?}");
    assert!((fast.0 / slow.0 - 1.0).abs() < 0.01 && fast.1 == 0, "{fast:?}, and the slow one {slow:?}");
}
