//! What the end of slow start costs an AVMRC receiver on sockets, on links that lie just below and just above one of slow
//! start's steps, in virtual time.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_testkit::dumbbell::{Dumbbell, Member, Plan};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

const SECONDS: u64 = 16;

/// Mean rate over the first seconds as a share of the link's, and how many packets the link dropped, of a receiver with these
/// `settings`.
fn share_and_drops(link_mbps: u64, delay_ms: u64, settings: &[(&str, &str)]) -> (f64, u64) {
    let session = Session {
        ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.15).expect("valid"),
        packet_size: Bytes::new(1456),
        form: CciForm::Short,
        habitat: Habitat::Sockets,
    };
    let link = format!("rate={link_mbps}M,delay={delay_ms}ms,buffer=100ms").parse().expect("a valid link");
    let joins = Time::from_millis(1_300);
    let plan = Plan {
        receivers: vec![Member { joins, delay: Duration::ZERO, clock_ahead: Duration::from_millis(777) }],
        sender_jitter: Duration::from_micros(200),
        members_at_entry: true,
        ..Plan::new(registry::find("avmrc").expect("it is registered"), session, link)
    };
    let plan = settings.iter().fold(plan, |plan, (key, value)| plan.with(key, value));
    let mut run = Dumbbell::new(plan);
    let end = joins + Duration::from_secs(SECONDS);
    run.run_until(end);
    (run.record(0).mean_bps(joins, end) / (link_mbps as f64 * 1e6), run.link_counters().dropped)
}

#[test]
fn a_link_beside_a_step_of_slow_start_is_used_as_well_as_any() {
    // Slow start's steps from 1.04 Mbit/s are at 16.9, 34.1 and 68.6 Mbit/s.
    for link in [32, 35, 64, 70] {
        for delay in [0, 20] {
            let (share, _) = share_and_drops(link, delay, &[]);
            assert!(share >= 0.8, "{link} Mbit/s, {delay} ms: {share}");
        }
    }
}

#[test]
fn steps_that_are_not_confirmed_are_built_upon_although_they_are_too_much() {
    for link in [32, 64] {
        let (_, loose) = share_and_drops(link, 20, &[("confirm_steps", "no")]);
        let (_, strict) = share_and_drops(link, 20, &[]);
        assert!(strict < loose / 10, "{link} Mbit/s: {strict} packets dropped, not confirmed {loose}");
    }
}
