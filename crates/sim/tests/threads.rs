//! Threads make no difference to a run.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_link::LinkConfig;
use weir_sim::trace::Trace;
use weir_sim::traffic::{ReaderConfig, WhenFull};
use weir_sim::{AgentId, EndpointConfig, Membership, Monitor, Network, Packet, SessionConfig, Times};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

/// A session to a router with 2500 hosts at the same distance, every fiftieth of which only counts, and another fiftieth of
/// which has an application that takes its time.
fn star() -> Network {
    let link = |text: &str| text.parse::<LinkConfig>().expect("a valid link");
    let mut net = Network::new(1);
    let (source, router) = (net.add_node(), net.add_node());
    let bottleneck = link("rate=1M,delay=10ms,buffer=20p");
    net.connect(source, router, &bottleneck, &bottleneck);
    let access = link("rate=100M,delay=5ms,buffer=100p");
    let hosts: Vec<_> = (0..2500).map(|_| net.add_node()).collect();
    hosts.iter().for_each(|host| _ = net.connect(router, *host, &access, &access));
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("nine rates");
    let parts = Session { ladder, packet_size: Bytes::new(1000), form: CciForm::Short, habitat: Habitat::Lab };
    let config = SessionConfig { channels: 9, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(source, config).expect("nine channels");
    let scheme = registry::find("avmrc").expect("AVMRC is registered");
    let sender = scheme.sender(&parts, &[], net.random_for("sender")).expect("defaults are valid");
    net.add_sender(session, sender, EndpointConfig::default());
    // Backwards, so that packets do not reach the agents in the order of their numbers.
    for (number, host) in hosts.iter().rev().enumerate() {
        if number % 50 == 0 {
            net.add_listener(session, *host, 2, Time::ZERO).expect("a way");
        } else {
            let receiver = scheme
                .receiver(&parts, &[], net.random_for(&format!("receiver {number}")))
                .expect("defaults are valid");
            let times = Times::from(Time::from_micros(number as u64 * 100));
            let slow = ReaderConfig {
                capacity: 1000,
                when_full: WhenFull::Refuses,
                gap: Duration::from_millis(20),
                pauses: None,
            };
            let reader = (number % 50 == 1).then_some(slow);
            let config = EndpointConfig { times, reader, ..EndpointConfig::default() };
            net.add_receiver(session, *host, receiver, config).expect("a way");
        }
    }
    net
}

/// The most packets that reach agents in one instant.
#[derive(Default)]
struct Busiest {
    instant: Time,
    packets: usize,
    most: usize,
}

impl Monitor for Busiest {
    fn arrive(&mut self, now: Time, _agent: AgentId, _packet: &Packet) {
        self.packets = if now == self.instant { self.packets + 1 } else { 1 };
        self.instant = now;
        self.most = self.most.max(self.packets);
    }
}

fn run(threads: usize) -> (Vec<u8>, usize) {
    let mut net = star();
    net.use_threads(threads);
    let (mut trace, mut busiest) = (Trace::new(Vec::new()), Busiest::default());
    net.run_until(Time::from_secs(1), &mut (&mut trace, &mut busiest));
    (trace.finish().expect("memory takes everything"), busiest.most)
}

#[test]
fn a_run_with_several_threads_is_the_run_with_one_to_the_last_byte_of_its_trace() {
    let (trace, most) = run(1);
    assert_eq!(most, 2500, "few packets in an instant are handled by one thread");
    let text = std::str::from_utf8(&trace).expect("lines are text");
    assert!(text.contains("drop"), "levels change, packets are lost");
    for threads in [2, 3] {
        assert!(run(threads).0 == trace, "{threads} threads");
    }
}
