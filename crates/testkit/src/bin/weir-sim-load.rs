//! One run of the simulator whose cost somebody else measures: prints what was simulated, as a line of JSON.
//!
//! `weir-bench` starts it, on a core of its own, next to ns-2 with the same load.

use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_link::LinkConfig;
use weir_sim::tcp::{self, Flavour};
use weir_sim::traffic::{Pattern, UdpConfig};
use weir_sim::{EndpointConfig, Membership, Network, SessionConfig, Times, topology};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

/// Runs the simulator under a load.
#[derive(Debug, Parser)]
#[command(name = "weir-sim-load")]
struct Options {
    #[command(subcommand)]
    load: Load,
    /// Simulated seconds.
    #[arg(long, global = true, default_value_t = 60)]
    seconds: u64,
    /// Threads that handle packets which arrive in one instant.
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
}

#[derive(Debug, Subcommand)]
enum Load {
    /// 64 endless TCP connections over 50 Mbit/s and 20 ms, a host for each sender and each sink.
    Tcp,
    /// 3 Mbit/s of datagrams down a tree in which every router has ten branches.
    Tree {
        /// Levels of routers and hosts below the root: 10^levels receivers.
        #[arg(long, default_value_t = 3)]
        levels: u32,
    },
    /// An AVMRC session over 3 Mbit/s to the leaves of such a tree.
    Session {
        /// Levels of routers and hosts below the root: 10^levels receivers.
        #[arg(long, default_value_t = 3)]
        levels: u32,
    },
}

fn main() {
    let options = Options::parse();
    let figures = match options.load {
        Load::Tcp => tcp_load(options.seconds),
        Load::Tree { levels } => tree_load(levels, options.seconds),
        Load::Session { levels } => session_load(levels, options.seconds, options.threads),
    };
    println!("{figures}");
}

fn tcp_load(seconds: u64) -> Value {
    let mut net = Network::new(1);
    let bell = topology::dumbbell(
        &mut net,
        &link("rate=50M,delay=20ms,buffer=274p"),
        &link("rate=50M,delay=20ms,buffer=100000p"),
    );
    let access = link("rate=1G,delay=1ms,buffer=100000p");
    let config = tcp::Config { segment_size: Bytes::new(1040), max_window: 100_000, ..tcp::Config::ns2(Flavour::Sack) };
    let connections: Vec<_> = (0..64)
        .map(|number| {
            let from = topology::add_host(&mut net, bell.left, &access);
            let to = topology::add_host(&mut net, bell.right, &access);
            net.add_tcp(from, to, config, Times::from(Time::from_nanos(number * 1_000_000_000 / 64)))
                .expect("a dumbbell joins all")
        })
        .collect();
    net.run_until(Time::from_secs(seconds), &mut ());
    let acknowledged = connections.iter().map(|connection| net.tcp(connection.sender).acknowledged());
    let (sum, squares) =
        acknowledged.fold((0.0, 0.0), |(sum, squares), n| (sum + n as f64, squares + (n as f64).powi(2)));
    let bottleneck = net.link_counters(bell.forward);
    json!({
        "delivered": bottleneck.delivered,
        "dropped": bottleneck.dropped,
        "acknowledged": sum,
        "jain": sum * sum / (64.0 * squares),
    })
}

fn tree_load(levels: u32, seconds: u64) -> Value {
    let mut net = Network::new(1);
    let tree = topology::tree(&mut net, 10, levels as usize, &link("rate=100M,delay=5ms,buffer=100p"));
    let config = SessionConfig { channels: 1, form: CciForm::Short, membership: Membership::default() };
    let session = net.add_session(tree.root, config).expect("one channel");
    let listeners: Vec<_> = tree
        .leaves()
        .iter()
        .map(|leaf| net.add_listener(session, *leaf, 1, Time::from_millis(500)).expect("the root reaches its tree"))
        .collect();
    let datagrams = UdpConfig { packet_size: Bytes::new(1000), rate: Rate::from_mbps(3), pattern: Pattern::Constant };
    let stop = Time::from_secs(1 + seconds);
    net.add_datagrams_to_channel(session, 0, datagrams, Times { start: Time::from_secs(1), stop: Some(stop) });
    net.run_until(stop + Duration::from_millis(200), &mut ());
    let delivered: u64 = listeners.iter().map(|listener| net.received(*listener).packets).sum();
    json!({ "receivers": listeners.len(), "delivered": delivered, "traversals": net.link_traversals() })
}

fn session_load(levels: u32, seconds: u64, threads: usize) -> Value {
    let mut net = Network::new(1);
    net.use_threads(threads);
    let tree = topology::tree(&mut net, 10, levels as usize, &link("rate=100M,delay=5ms,buffer=100p"));
    let source = net.add_node();
    let bottleneck = link("rate=3M,delay=5ms,buffer=80p");
    net.connect(source, tree.root, &bottleneck, &bottleneck);
    let form = CciForm::Long;
    let config = SessionConfig { channels: 9, form, membership: Membership::default() };
    let session = net.add_session(source, config).expect("nine channels");
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("nine rates");
    let parts = Session { ladder, packet_size: Bytes::new(1000), form, habitat: Habitat::Lab };
    let scheme = registry::find("avmrc").expect("AVMRC is registered");
    let sender = scheme.sender(&parts, &[], net.random_for("sender")).expect("defaults are valid");
    let lateness = Duration::from_millis(1);
    net.add_sender(session, sender, EndpointConfig { lateness, ..EndpointConfig::default() });
    let leaves = tree.leaves();
    let receivers: Vec<_> = leaves
        .iter()
        .enumerate()
        .map(|(number, leaf)| {
            let receiver = scheme
                .receiver(&parts, &[], net.random_for(&format!("receiver {number}")))
                .expect("defaults are valid");
            // All within the first five seconds.
            let start = Time::from_micros(number as u64 * 5_000_000 / leaves.len() as u64);
            let config = EndpointConfig { times: Times::from(start), ..EndpointConfig::default() };
            net.add_receiver(session, *leaf, receiver, config).expect("the source reaches the tree")
        })
        .collect();
    net.run_until(Time::from_secs(seconds), &mut ());
    let delivered: u64 = receivers.iter().map(|receiver| net.received(*receiver).packets).sum();
    json!({ "receivers": receivers.len(), "delivered": delivered, "traversals": net.link_traversals() })
}

fn link(text: &str) -> LinkConfig {
    text.parse().expect("a valid link")
}
