//! Prints what a packet costs on a link, in nanoseconds: into it and out of it, on a busy link with a queue.
//!
//!     cargo run --release -p weir-link --example ns_per_packet

use std::hint::black_box;

use weir_link::{Label, Link};
use weir_units::{Bytes, Random, Time};

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn main() {
    println!("an idle link takes {} bytes, and its configuration", size_of::<Link<u32>>());
    for text in [
        "rate=100M,delay=5ms,buffer=100p",
        "rate=100M,delay=5ms,buffer=150kB",
        "rate=100M,delay=5ms,buffer=12ms",
        "rate=100M,delay=5ms,buffer=100p,loss=1%",
        "delay=5ms",
        "rate=100M,delay=5ms,buffer=100p,jitter=1ms",
        "rate=100M,delay=5ms,buffer=100p,queue=red(min=5,max=15)",
        "rate=100M,delay=5ms,buffer=100p,queue=drr",
        "rate=100M,delay=5ms,buffer=100p,queue=fq",
        "rate=100M,delay=5ms,buffer=100p,queue=codel",
        "rate=100M,delay=5ms,buffer=100p,queue=fq_codel",
    ] {
        let mut link: Link<u32> =
            Link::new(text.parse::<weir_link::LinkConfig>().expect("a valid link"), Random::new(1, "bench"));
        // Alternating sizes, one packet every 64 µs: a load of 1.02, so the buffer is full most of the time.
        let mut dropped = 0u64;
        let mut pass = |from: u64, packets: u64| {
            for i in from..from + packets {
                let now = Time::from_nanos(i * 64_000);
                while let Some(out) = link.dequeue(now, &mut |_| dropped += 1) {
                    black_box(out.packet);
                }
                black_box(link.next_arrival());
                let size = Bytes::new(if i % 16 == 0 { 40 } else { 868 });
                let label = Label { flow: i % 8, ..Label::default() };
                link.enqueue(now, size, label, i as u32, &mut |_| dropped += 1);
            }
        };
        // The best of some passes: the others shared the processor with somebody.
        let mut best = f64::INFINITY;
        for number in 0..PASSES {
            let start = std::time::Instant::now();
            pass(number * PACKETS, PACKETS);
            best = best.min(start.elapsed().as_nanos() as f64 / PACKETS as f64);
        }
        let share = 100.0 * dropped as f64 / (PASSES * PACKETS) as f64;
        println!("{best:6.1} ns  {text}  ({share:.1} % dropped)");
    }
}

const PASSES: u64 = 100;
const PACKETS: u64 = 50_000;
