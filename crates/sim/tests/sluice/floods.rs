//! Ports of a switch that floods, behind which no queue shows.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::observation::{CeilingCause, Observation};
use weir_link::LinkConfig;
use weir_sim::{AgentId, EndpointConfig, Monitor, Network, Times};
use weir_units::{Rate, Time};

/// What a receiver gets, and how often the sender withholds levels for a flood.
struct Told {
    receiver: Option<AgentId>,
    packets: u64,
    floods: usize,
}

impl Monitor for Told {
    fn observe(&mut self, now: Time, agent: AgentId, observation: &Observation) {
        match observation {
            Observation::Ceiling { cause: CeilingCause::Flooded, .. } => self.floods += 1,
            Observation::Slot(slot) if Some(agent) == self.receiver && now >= COUNTED_FROM => {
                self.packets += slot.received_packets;
            }
            _ => {}
        }
    }
}

/// A switch has a receiver on a port of 200 Mbit/s from the first second on, and another one, which joins after this time, on a port with this link. The
/// Mbit/s of the second one from one minute on until two, and how often levels were withheld for a flood.
fn on_the_slow_port(link: &str, joins: Time, floods: bool) -> (f64, usize) {
    let mut net = Network::new(1);
    let [root, switch, slow, fast] = [(); 4].map(|()| net.add_node());
    let of = |link: &str| link.parse::<LinkConfig>().expect("a valid link");
    let [near, far] =
        [1, 20].map(|millis| LinkConfig { delay: Duration::from_millis(millis), ..LinkConfig::default() });
    net.connect(root, switch, &of("rate=1G,delay=1ms,buffer=10000p"), &near);
    net.connect(switch, slow, &of(link), &far);
    net.connect(switch, fast, &of("rate=200M,delay=1ms,buffer=10000p"), &near);
    net.split_sessions_by_channel();
    if floods {
        net.flood(switch);
    }
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(1_000), 1.15).expect("a ladder");
    let (id, session) = super::open(&mut net, root, ladder, &[]);
    super::join(&mut net, id, &session, fast, EndpointConfig::default(), &[]);
    let late = EndpointConfig { times: Times::from(joins), ..EndpointConfig::default() };
    let receiver = super::join(&mut net, id, &session, slow, late, &[]);
    let mut told = Told { receiver: Some(receiver), packets: 0, floods: 0 };
    net.run_until(COUNTED_FROM + Duration::from_secs(60), &mut told);
    ((told.packets * session.packet_size.count()) as f64 * 8e-6 / 60.0, told.floods)
}

const COUNTED_FROM: Time = Time::from_secs(60);

/// It knows no empty path, and nearly all that is sent to it is lost.
#[test]
fn who_joins_when_a_flooded_port_with_codel_is_full_already_is_heard() {
    let link = "rate=2M,delay=20ms,buffer=1000p,queue=codel";
    let joins = Time::from_secs(20);
    let (alone, floods) = on_the_slow_port(link, joins, false);
    assert!(alone > 1.7 && floods == 0, "{alone} of 2 Mbit/s where nothing floods, and {floods} cuts");
    let (flooded, floods) = on_the_slow_port(link, joins, true);
    assert!(floods > 0, "nothing was flooded");
    assert!(flooded > 0.8, "{flooded} of 2 Mbit/s");
}

/// There is neither a queue nor a loss in the channels that it has.
#[test]
fn a_flood_behind_a_fair_queue_is_found_by_the_share_of_one_flow() {
    let link = "rate=6M,delay=20ms,buffer=10000p,queue=fq_codel";
    let (alone, floods) = on_the_slow_port(link, Time::from_millis(200), false);
    assert!(alone > 5.0 && floods == 0, "{alone} of 6 Mbit/s where nothing floods, and {floods} cuts");
    let (flooded, floods) = on_the_slow_port(link, Time::from_millis(200), true);
    assert!(floods > 0, "nothing was flooded");
    assert!(flooded > 1.5, "{flooded} of 6 Mbit/s");
}
