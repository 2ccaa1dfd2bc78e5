//! Prints the tables of `docs/tcp.md`: every flavour alone and against random loss, next to what ns-2.35 measured.
//!
//! `cargo run --release -p weir-sim --example tcp_agreement [SECONDS SEEDS]`

#[path = "../tests/tcp/path.rs"]
mod path;

use path::{lossy, run, solo};
use weir_sim::tcp::{Config, Flavour};

/// Goodput alone, then at a loss rate of 0.001, 0.01, 0.02 and 0.1 as mean and half the width of its 95 % interval, in packets per
/// second (ns-2.35, 300 s, 25 seeds).
const NS2: [(Flavour, f64, [[f64; 2]; 4]); 6] = [
    (Flavour::Tahoe, 168.5, [[350.8, 6.0], [95.8, 1.0], [64.6, 0.7], [23.0, 0.4]]),
    (Flavour::Reno, 184.6, [[395.1, 7.0], [107.5, 1.1], [69.2, 0.8], [22.0, 0.4]]),
    (Flavour::NewReno, 184.8, [[406.1, 6.3], [116.9, 1.1], [78.0, 0.9], [25.0, 0.4]]),
    (Flavour::Sack, 185.6, [[405.9, 6.5], [116.8, 1.2], [77.4, 0.9], [23.7, 0.4]]),
    (Flavour::Sack1, 185.6, [[405.9, 6.5], [116.8, 1.2], [77.4, 0.9], [23.7, 0.4]]),
    (Flavour::Vegas, 185.5, [[583.9, 7.9], [170.0, 1.7], [109.6, 1.3], [23.4, 1.1]]),
];

const LOSSES: [f64; 4] = [0.001, 0.01, 0.02, 0.1];

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
            alone(flavour, outcome.goodput),
            path.dropped(),
            path.sender.counters().timeouts,
            outcome.mean_cwnd,
        );
    }
    println!(
        "\nloss, {secs} s, {seeds} seeds\n| flavour | loss | packets/s | ± | ns-2 | ± | difference, % | ± | time-outs/s |"
    );
    for flavour in Flavour::ALL {
        for (column, loss) in LOSSES.into_iter().enumerate() {
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
            let width = 1.96 * (variance / (seeds.max(2) - 1) as f64).sqrt();
            println!(
                "| {} | {loss} | {mean:.1} | {width:.1} | {} | {:.3} |",
                flavour.name(),
                compared(flavour, column, mean, width),
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

fn alone(flavour: Flavour, measured: f64) -> String {
    match NS2.iter().find(|(known, ..)| *known == flavour) {
        Some((_, goodput, _)) => format!("{goodput} | {:.3}", measured / goodput),
        None => "– | –".to_owned(),
    }
}

/// ns-2's goodput, how much more ours is, and half the width of the difference's interval.
fn compared(flavour: Flavour, column: usize, measured: f64, width: f64) -> String {
    match NS2.iter().find(|(known, ..)| *known == flavour) {
        Some((.., losses)) => {
            let [mean, its_width] = losses[column];
            let difference = (measured / mean - 1.0) * 100.0;
            format!("{mean} | {its_width} | {difference:+.1} | {:.1}", width.hypot(its_width) / mean * 100.0)
        }
        None => "– | – | – | –".to_owned(),
    }
}
