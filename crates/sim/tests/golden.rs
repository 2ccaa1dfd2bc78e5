//! Digests of whole traces: the same on every machine, in every build, whatever else changes.
//!
//! A digest that changes means that runs come out otherwise than before. If that is meant, the message of the failed test
//! has the new one.

use std::io::{self, Write};
use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_link::LinkConfig;
use weir_sim::tcp::{self, Flavour};
use weir_sim::trace::Trace;
use weir_sim::traffic::{Distribution, HttpConfig, Pattern, UdpConfig};
use weir_sim::{EndpointConfig, Membership, Network, SessionConfig, Times, topology};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

/// Takes a trace in and keeps its digest only.
struct Digest(blake3::Hasher);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn link(text: &str) -> LinkConfig {
    text.parse().expect("a valid link")
}

/// A dumbbell with an AVMRC session of three receivers, a TCP of every flavour, a user of the web and a source of bursts.
fn everything(seed: u64, bottleneck: &str) -> Network {
    let mut net = Network::new(seed);
    let bottleneck = link(bottleneck);
    let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
    let access = |delay: u64| link(&format!("rate=100M,delay={delay}ms,buffer=1000p"));
    let source = topology::add_host(&mut net, bell.left, &access(1));
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("nine rates");
    let parts = Session { ladder, packet_size: Bytes::new(1000), form: CciForm::Short, habitat: Habitat::Lab };
    let config = SessionConfig { channels: 9, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(source, config).expect("nine channels");
    let scheme = registry::find("avmrc").expect("AVMRC is registered");
    let lateness = Duration::from_millis(1);
    let sender = scheme.sender(&parts, &[], net.random_for("sender")).expect("defaults are valid");
    net.add_sender(session, sender, EndpointConfig { lateness, ..EndpointConfig::default() });
    for number in 0..3 {
        let host = topology::add_host(&mut net, bell.right, &access(5 + 20 * number));
        let receiver =
            scheme.receiver(&parts, &[], net.random_for(&format!("receiver {number}"))).expect("defaults are valid");
        let times = Times::from(Time::from_millis(700 * number));
        let config = EndpointConfig { times, clock_ahead: Duration::from_secs(number), ..EndpointConfig::default() };
        net.add_receiver(session, host, receiver, config).expect("a way");
    }
    for (number, flavour) in Flavour::ALL.into_iter().enumerate() {
        let from = topology::add_host(&mut net, bell.left, &access(2));
        let to = topology::add_host(&mut net, bell.right, &access(3 + number as u64));
        let config = tcp::Config { max_window: 64, ..tcp::Config::ns2(flavour) };
        let start = Times::from(Time::from_millis(100 * number as u64));
        net.add_tcp(from, to, config, start).expect("a way");
        net.add_http(from, to, HttpConfig::avmrc(config), start).expect("a way");
    }
    let (from, to) = (source, topology::add_host(&mut net, bell.right, &access(1)));
    let on = Distribution::Exponential { mean: 0.5 };
    let pattern = Pattern::OnOff { on, off: Distribution::Pareto { mean: 1.0, shape: 1.5 } };
    let bursts = UdpConfig { packet_size: Bytes::new(500), rate: Rate::from_mbps(1), pattern };
    net.add_datagrams(from, to, bursts, Times::default()).expect("a way");
    net
}

fn digest(seed: u64, bottleneck: &str) -> String {
    let mut net = everything(seed, bottleneck);
    let mut trace = Trace::new(io::BufWriter::new(Digest(blake3::Hasher::new())));
    net.run_until(Time::from_secs(10), &mut trace);
    let out = trace.finish().expect("a digest takes everything");
    let hash = out.into_inner().map_err(|_| "flush").expect("a digest takes everything").0.finalize();
    hash.to_hex()[..16].to_owned()
}

#[test]
fn everything_at_once_over_drop_tail_comes_out_as_ever() {
    assert_eq!(digest(1, "rate=10M,delay=20ms,buffer=50p"), "cff44092846096df");
}

#[test]
fn everything_at_once_over_red_comes_out_as_ever() {
    assert_eq!(digest(1, "rate=10M,delay=20ms,buffer=100p,queue=red(min=10,max=40,maxp=0.1)"), "eff7548ff7a87ce0");
}

#[test]
fn everything_at_once_over_fair_queues_with_bursts_of_loss_and_jitter_comes_out_as_ever() {
    let bottleneck =
        "rate=10M,delay=20ms,buffer=100p,queue=fq_codel,loss=gilbert(enter=1%,leave=25%),jitter=normal(2ms)";
    assert_eq!(digest(1, bottleneck), "55fb01d3ad4582c2");
}
