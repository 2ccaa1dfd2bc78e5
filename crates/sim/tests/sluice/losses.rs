//! The path's own losses and reordered packets: neither is congestion, so neither costs rate.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_core::registry::Setting;
use weir_core::{Header, Observation};
use weir_link::Counters as LinkCounters;
use weir_sim::{AgentId, Body, Monitor, Network, Packet};
use weir_units::{Rate, Time};

/// What came since a time, and which losses were taken for congestion.
#[derive(Default)]
struct Seen {
    since: Time,
    delivered: u64,
    loss_events: usize,
    /// The parts that were told to be lost whatever is given up.
    lossy: Vec<f64>,
    /// By channel, the highest number.
    latest: BTreeMap<u16, u32>,
    /// Packets that came once four later ones or more of their channel had.
    overtaken: usize,
}

impl Monitor for Seen {
    fn deliver(&mut self, now: Time, _agent: AgentId, bytes: u64, _number: Option<u64>) {
        self.delivered += if now >= self.since { bytes } else { 0 };
    }

    fn arrive(&mut self, _now: Time, _agent: AgentId, packet: &Packet) {
        let Body::Endpoint(Header::Layered(layered)) = &packet.body else { return };
        let latest = self.latest.entry(layered.channel).or_insert(layered.sequence);
        match latest.wrapping_sub(layered.sequence) {
            0..=3 => {}
            4..1_000 => self.overtaken += 1,
            _ => *latest = layered.sequence,
        }
    }

    fn observe(&mut self, _now: Time, _agent: AgentId, observation: &Observation) {
        match observation {
            Observation::LossEvent => self.loss_events += 1,
            Observation::LossyPath { lost } => self.lossy.push(*lost),
            _ => {}
        }
    }
}

/// The bursts of the start make a longer queue than anything else does; twenty seconds later they are forgotten.
const FORGOTTEN: u64 = 20;

/// A receiver at the top of a ladder that ends just below the link, in twenty seconds: its part of the top rate, what else was seen, and what the link did.
fn below_the_link(top_mbps: u64, link: &str, one_way: Duration, settings: &[Setting]) -> (f64, Seen, LinkCounters) {
    let mut net = Network::new(1);
    let (root, host, bottleneck) = super::link(&mut net, link, one_way);
    super::session(&mut net, (root, host), Rate::from_mbps(top_mbps), 1.15, settings);
    let mut seen = Seen { since: Time::from_secs(FORGOTTEN), ..Seen::default() };
    net.run_until(Time::from_secs(2 * FORGOTTEN), &mut seen);
    let part = seen.delivered as f64 * 8.0 / (FORGOTTEN * top_mbps * 1_000_000) as f64;
    let counters = net.link_counters(bottleneck);
    (part, seen, counters)
}

/// The same where the link loses this many per cent of the packets: its part of the top rate, and its loss events.
fn with_losses(top_mbps: u64, percent: u64, link: &str, one_way: Duration) -> (f64, usize) {
    let (part, seen, counters) = below_the_link(top_mbps, &format!("{link},loss={percent}%"), one_way, &[]);
    assert!(counters.lost * 200 > counters.delivered * percent, "{counters:?}");
    (part, seen.loss_events)
}

/// Packets that the sender sends together wait for each other, up to 5 ms where the link is nearly full. One of a hundred of those that wait the longest is
/// lost, too, a hundred a second.
#[test]
fn one_percent_of_random_loss_costs_little_more_than_that_at_half_a_gigabit() {
    let (part, loss_events) = with_losses(500, 1, "rate=550M,delay=0.1ms,buffer=100ms", Duration::from_micros(100));
    assert!(part > 0.9 && loss_events == 0, "{part} of the top rate, {loss_events} loss events");
}

/// The same at a rate where channels tell of a loss up to 100 ms later.
#[test]
fn two_percent_of_random_loss_cost_little_more_than_that_at_16_mbit_s() {
    let (part, loss_events) = with_losses(16, 2, "rate=20M,delay=20ms,buffer=100ms", Duration::from_millis(20));
    assert!(part > 0.9 && loss_events == 0, "{part} of the top rate, {loss_events} loss events");
}

/// The same on a link that delays packets by up to so much more or less: its part of what it has of the link without that, and what was seen. Some packets
/// came after four later ones, and none was lost.
fn with_reordering(top_mbps: u64, jitter: &str, link: &str, one_way: Duration) -> (f64, Seen) {
    let (in_order, ..) = below_the_link(top_mbps, link, one_way, &[]);
    let link = format!("{link},jitter=uniform({jitter},reorder)");
    let (part, seen, counters) = below_the_link(top_mbps, &link, one_way, &[]);
    assert!(
        counters.lost == 0 && seen.overtaken as u64 * 10 > counters.delivered,
        "{} of {counters:?} came late",
        seen.overtaken
    );
    (part / in_order, seen)
}

/// A channel of a fast ladder sends many packets within 2 ms, so more than three overtake one that is late by that.
#[test]
fn packets_that_come_two_milliseconds_late_are_not_taken_for_lost_at_half_a_gigabit() {
    let link = "rate=550M,delay=0.1ms,buffer=100ms";
    let (part, Seen { loss_events, .. }) = with_reordering(500, "2ms", link, Duration::from_micros(100));
    assert!(part > 0.99 && loss_events == 0, "{part} of the rate in order, {loss_events} loss events");
}

/// As many as one has come after are waited for from then on.
#[test]
fn packets_that_come_ten_milliseconds_late_cost_nothing_once_some_have() {
    let link = "rate=110M,delay=20ms,buffer=100ms";
    let (part, Seen { loss_events, .. }) = with_reordering(100, "10ms", link, Duration::from_millis(20));
    assert!(part > 0.99 && loss_events < 3, "{part} of the rate in order, {loss_events} loss events");
}

/// Ten per cent might as well be other flows at a policer, so a receiver gives way to them and tells that it did not help. Its user may know better.
#[test]
fn a_tenth_of_random_loss_is_told_and_costs_little_more_than_that_once_it_is_known_to_be_the_path_s() {
    let link = "rate=20M,delay=1ms,buffer=100ms,loss=10%";
    let known = [Setting { key: "own_loss".to_owned(), value: "0.2".to_owned() }];
    let [unknown, known] = [&[][..], &known].map(|settings| {
        let (part, seen, counters) = below_the_link(16, link, Duration::from_millis(1), settings);
        assert!(counters.lost * 20 > counters.delivered, "{counters:?}");
        (part, seen.lossy)
    });
    assert!(unknown.0 < 0.5 && unknown.1.iter().any(|lost| (0.05..0.2).contains(lost)), "{unknown:?}");
    assert!(known.0 > 0.8 && known.1.is_empty(), "{known:?}");
}

#[test]
fn a_policer_that_a_session_has_to_itself_is_not_taken_for_a_path_that_loses_packets_by_itself() {
    let (part, seen, counters) = below_the_link(100, "rate=10M,burst=100ms,buffer=1p", Duration::from_millis(1), &[]);
    assert!(counters.dropped > 100, "{counters:?}");
    assert!(part > 0.08 && seen.lossy.is_empty(), "{part} of 100 Mbit/s, {:?}", seen.lossy);
}
