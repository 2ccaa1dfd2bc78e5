//! Users of the web next to one long transfer, as ns-2.35 has them (AVMRC §4.2–4.3): what the transfer gets, what is lost.
//!
//! ns-2, 10 Mbit/s, 150 packets, 20 to 300 s, ten seeds: with 30 users the transfer gets 3341 kbit/s [2616–3900], 0.58 % of
//! packets are lost and the link is used to 0.953; with 90 users 323 kbit/s [294–390], 6.4 %, 1.0.

use std::time::Duration;

use weir_link::LinkConfig;
use weir_sim::tcp::{Config, Flavour};
use weir_sim::traffic::HttpConfig;
use weir_sim::{Network, Times, topology};
use weir_units::{Random, Time};

const SEEDS: u64 = 4;

struct Figures {
    transfer_kbps: f64,
    loss: f64,
    used: f64,
}

/// One run: users at round-trip times of 20 to 460 ms that come within 2 s, a transfer at 80 ms that comes at 5 to 10 s.
fn run(users: usize, seed: u64) -> Figures {
    let link = |text: &str| text.parse::<LinkConfig>().expect("a valid link");
    let mut net = Network::new(seed);
    let mut random = Random::new(seed, "set-up");
    // ns-2 counts the packet that is being sent.
    let bell = topology::dumbbell(
        &mut net,
        &link("rate=10M,delay=5ms,buffer=149p"),
        &link("rate=10M,delay=5ms,buffer=100000p"),
    );
    let tcp = Config { max_window: 64, ..Config::ns2(Flavour::NewReno) };
    let pair = |net: &mut Network, rtt: f64| {
        let delay = Duration::from_secs_f64(rtt / 2.0 - 0.006).as_micros();
        let from = topology::add_host(net, bell.left, &link(&format!("rate=100M,delay={delay}us,buffer=100000p")));
        (from, topology::add_host(net, bell.right, &link("rate=100M,delay=1ms,buffer=100000p")))
    };
    for _ in 0..users {
        let (from, to) = pair(&mut net, random.uniform(0.020, 0.460));
        let start = Times::from(Time::from_nanos((random.uniform(0.0, 2.0) * 1e9) as u64));
        net.add_http(from, to, HttpConfig::avmrc(tcp), start).expect("a way");
    }
    let (from, to) = pair(&mut net, 0.080);
    let start = Times::from(Time::from_nanos((random.uniform(5.0, 10.0) * 1e9) as u64));
    let transfer = net.add_tcp(from, to, tcp, start).expect("a way");
    net.run_until(Time::from_secs(20), &mut ());
    let before = (net.tcp(transfer.sender).acknowledged(), net.link_counters(bell.forward));
    net.run_until(Time::from_secs(300), &mut ());
    let after = (net.tcp(transfer.sender).acknowledged(), net.link_counters(bell.forward));
    let came = after.1.received - before.1.received;
    Figures {
        transfer_kbps: (after.0 - before.0) as f64 * 8.0 / 280.0,
        loss: (after.1.dropped - before.1.dropped) as f64 / came as f64,
        used: (after.1.delivered - before.1.delivered) as f64 * 8_000.0 / (280.0 * 10e6),
    }
}

fn mean(users: usize) -> Figures {
    let runs: Vec<Figures> = (1..=SEEDS).map(|seed| run(users, seed)).collect();
    let mean = |of: fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / SEEDS as f64;
    Figures { transfer_kbps: mean(|run| run.transfer_kbps), loss: mean(|run| run.loss), used: mean(|run| run.used) }
}

#[test]
fn beside_30_users_the_transfer_gets_what_it_gets_in_ns2() {
    let Figures { transfer_kbps, loss, used } = mean(30);
    eprintln!("30 users: {transfer_kbps:.0} kbit/s, loss {loss:.4}, used {used:.3}");
    assert!((2616.0..=3900.0).contains(&transfer_kbps), "{transfer_kbps} kbit/s");
    assert!((0.004..0.008).contains(&loss), "{loss}");
    assert!((0.90..=1.0).contains(&used), "{used}");
}

#[test]
fn beside_90_users_the_transfer_gets_what_it_gets_in_ns2() {
    let Figures { transfer_kbps, loss, used } = mean(90);
    eprintln!("90 users: {transfer_kbps:.0} kbit/s, loss {loss:.4}, used {used:.3}");
    assert!((294.0..=390.0).contains(&transfer_kbps), "{transfer_kbps} kbit/s");
    assert!((0.058..0.070).contains(&loss), "{loss}");
    assert!(used > 0.99, "{used}");
}
