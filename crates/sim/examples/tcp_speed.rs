//! How long a sender and its sink take for a segment and its acknowledgement, without any network.
//!
//! `cargo run --release -p weir-sim --example tcp_speed`; the smallest of several measurements counts. With the name of a
//! flavour, one run of it without loss: for `perf stat -e task-clock`, where the machine is busy.

use std::hint::black_box;
use std::time::Duration;

use weir_sim::tcp::{Config, Flavour, Sender, Sink};
use weir_units::{Random, Time};

const SEGMENTS: u64 = 5_000_000;

fn main() {
    let only = std::env::args().nth(1);
    if let Some(flavour) = Flavour::ALL.into_iter().find(|flavour| only.as_deref() == Some(flavour.name())) {
        println!("{} segments of {}: {:.1} ns each", SEGMENTS, flavour.name(), measure(flavour, 0.0));
        return;
    }
    for (what, loss) in [("no loss", 0.0), ("loss 0.01", 0.01)] {
        println!("{what}: nanoseconds a segment");
        for flavour in Flavour::ALL {
            let best = (0..5).map(|_| measure(flavour, loss)).fold(f64::INFINITY, f64::min);
            println!("  {:8} {best:.1}", flavour.name());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(flavour: Flavour, loss: f64) -> f64 {
    let config = Config { max_window: 64, ..Config::ns2(flavour) };
    let mut sender = Sender::new(config, Random::new(1, "sender"));
    let mut sink = Sink::new(&config);
    let mut random = Random::new(1, "loss");
    let (mut flying, mut acks) = (Vec::with_capacity(256), Vec::with_capacity(256));
    let mut now = Time::ZERO;
    let begin = std::time::Instant::now();
    sender.start(now, &mut |segment| flying.push(segment));
    while sender.counters().sent < SEGMENTS {
        now += Duration::from_millis(10);
        for segment in flying.drain(..) {
            if loss == 0.0 || !random.chance(loss) {
                sink.receive(now, &segment, false, &mut |ack| acks.push(ack));
            }
        }
        for ack in acks.drain(..) {
            sender.receive(now, &ack, &mut |segment| flying.push(segment));
        }
        if black_box(sender.deadline()).is_some_and(|at| at <= now || flying.is_empty()) {
            now = now.max(sender.deadline().expect("it is there"));
            sender.expire(now, &mut |segment| flying.push(segment));
        }
    }
    begin.elapsed().as_nanos() as f64 / sender.counters().sent as f64
}
