//! Prints the tables of `docs/tcp.md`: every flavour alone and against random loss, next to what ns-2.35 measured.
//!
//! `cargo run --release -p weir-sim --example tcp_agreement [SECONDS SEEDS]`

#[path = "../tests/tcp_path/mod.rs"]
mod tcp_path;

use tcp_path::{lossy, run, solo};
use weir_sim::tcp::{Config, Flavour};

/// Goodput alone, then at a loss rate of 0.001, 0.01 and 0.1, in packets per second (ns-2.35, `tcp_ref.tcl`).
const NS2: [(Flavour, [f64; 4]); 5] = [
    (Flavour::Tahoe, [168.5, 357.6, 95.6, 23.0]),
    (Flavour::Reno, [184.6, 402.5, 108.0, 22.0]),
    (Flavour::NewReno, [184.8, 413.5, 117.3, 25.0]),
    (Flavour::Sack, [185.6, 414.4, 117.0, 23.6]),
    (Flavour::Vegas, [185.5, 592.0, 170.7, 22.6]),
];

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let secs = arguments.next().and_then(Result::ok).unwrap_or(300);
    let seeds = arguments.next().and_then(Result::ok).unwrap_or(10);
    println!("alone, 100 s\n| flavour | packets/s | ns-2 | ratio | drops | time-outs | mean cwnd |");
    for flavour in Flavour::ALL {
        let mut path = solo(config(flavour), 1);
        let outcome = run(&mut path, 100);
        println!(
            "| {} | {:.1} | {} | {} | {} | {:.1} |",
            flavour.name(),
            outcome.goodput,
            beside(flavour, 0, outcome.goodput),
            path.dropped(),
            path.sender.counters().timeouts,
            outcome.mean_cwnd,
        );
    }
    println!("\nloss, {secs} s, {seeds} seeds\n| flavour | loss | packets/s | ± | ns-2 | ratio | time-outs/s |");
    for flavour in Flavour::ALL {
        for (column, loss) in [(1, 0.001), (2, 0.01), (3, 0.1)] {
            let mut timeouts = 0;
            let goodputs: Vec<f64> = (1..=seeds)
                .map(|seed| {
                    let mut path = lossy(config(flavour), loss, seed);
                    let goodput = run(&mut path, secs).goodput;
                    timeouts += path.sender.counters().timeouts;
                    goodput
                })
                .collect();
            let mean = goodputs.iter().sum::<f64>() / seeds as f64;
            let variance = goodputs.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / seeds as f64;
            println!(
                "| {} | {loss} | {mean:.1} | {:.1} | {} | {:.3} |",
                flavour.name(),
                1.96 * (variance / (seeds.max(2) - 1) as f64).sqrt(),
                beside(flavour, column, mean),
                timeouts as f64 / (secs * seeds) as f64,
            );
        }
    }
}

/// ns-2's flavours with its defaults; the later ones as hosts have them, every segment acknowledged.
fn config(flavour: Flavour) -> Config {
    match flavour {
        Flavour::Cubic | Flavour::Bbr => Config { timestamps: true, initial_window: 10, ..Config::ns2(flavour) },
        _ => Config::ns2(flavour),
    }
}

fn beside(flavour: Flavour, column: usize, measured: f64) -> String {
    match NS2.iter().find(|(known, _)| *known == flavour) {
        Some((_, values)) => format!("{} | {:.3}", values[column], measured / values[column]),
        None => "– | –".to_owned(),
    }
}
