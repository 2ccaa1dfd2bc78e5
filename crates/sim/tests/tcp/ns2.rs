//! TCP agrees with ns-2.35 on goodput: within 2 % alone behind a drop-tail queue, within 5 % against random loss.
//!
//! The numbers are ns-2's, measured with its agents at their defaults (`docs/tcp.md` has the commands).

use crate::path::{lossy, run, solo};
use weir_sim::tcp::{Config, Flavour};

fn assert_agrees(what: &str, measured: f64, ns2: f64, tolerance: f64) {
    let ratio = measured / ns2;
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {measured:.1} packets/s, and ns-2 has {ns2}: {ratio:.3}");
}

#[test]
fn alone_every_flavour_has_the_goodput_losses_and_window_of_ns2() {
    // Goodput packets/s, drops, time-outs, mean window after 10 s.
    for (flavour, goodput, drops, timeouts, cwnd) in [
        (Flavour::Tahoe, 168.5, 65, 0, 27.4),
        (Flavour::Reno, 184.6, 67, 1, 31.2),
        (Flavour::NewReno, 184.8, 67, 1, 31.2),
        (Flavour::Sack, 185.6, 68, 0, 31.2),
        (Flavour::Sack1, 185.6, 68, 0, 31.2),
        (Flavour::Vegas, 185.5, 0, 0, 23.2),
    ] {
        let mut path = solo(Config::ns2(flavour), 1);
        let outcome = run(&mut path, 100);
        let name = flavour.name();
        assert_agrees(name, outcome.goodput, goodput, 0.02);
        assert!(path.dropped().abs_diff(drops) <= 2, "{name}: {} drops, and ns-2 has {drops}", path.dropped());
        assert_eq!(path.sender.counters().timeouts, timeouts, "{name}");
        assert!((outcome.mean_cwnd - cwnd).abs() <= 0.05 * cwnd, "{name}: mean window {}", outcome.mean_cwnd);
    }
}

/// Mean goodput over seeds against random loss, in packets/s.
fn against_loss(flavour: Flavour, loss: f64, secs: u64, seeds: u64) -> f64 {
    let goodputs = (1..=seeds).map(|seed| {
        let mut path = lossy(Config::ns2(flavour), loss, seed);
        let goodput = run(&mut path, secs).goodput;
        assert!(path.lost > 0, "the loss struck");
        goodput
    });
    goodputs.sum::<f64>() / seeds as f64
}

// A run of 300 s varies by 6 % at a loss rate of 0.001, 4 % at 0.01 and 12 % at 0.1 (standard deviation over seeds), ns-2's as ours.
// The means of 25 runs of each differ by chance by up to 3 %, and by up to 5 % for Vegas at 0.1.
const SECS: u64 = 300;
const SEEDS: u64 = 25;

#[test]
fn against_a_loss_of_a_thousandth_goodput_is_that_of_ns2() {
    for (flavour, ns2) in [
        (Flavour::Tahoe, 350.8),
        (Flavour::Reno, 395.1),
        (Flavour::NewReno, 406.1),
        (Flavour::Sack, 405.9),
        (Flavour::Sack1, 405.9),
        (Flavour::Vegas, 583.9),
    ] {
        assert_agrees(flavour.name(), against_loss(flavour, 0.001, SECS, SEEDS), ns2, 0.05);
    }
}

#[test]
fn against_a_loss_of_a_hundredth_goodput_is_that_of_ns2() {
    for (flavour, ns2) in [
        (Flavour::Tahoe, 95.8),
        (Flavour::Reno, 107.5),
        (Flavour::NewReno, 116.9),
        (Flavour::Sack, 116.8),
        (Flavour::Sack1, 116.8),
        (Flavour::Vegas, 170.0),
    ] {
        assert_agrees(
            flavour.name(),
            against_loss(flavour, 0.01, SECS, SEEDS),
            ns2,
            if flavour == Flavour::NewReno { 0.03 } else { 0.05 },
        );
    }
}

#[test]
fn against_a_loss_of_a_fiftieth_goodput_is_that_of_ns2() {
    for (flavour, ns2) in [
        (Flavour::Tahoe, 64.6),
        (Flavour::Reno, 69.2),
        (Flavour::NewReno, 78.0),
        (Flavour::Sack, 77.4),
        (Flavour::Sack1, 77.4),
        (Flavour::Vegas, 109.6),
    ] {
        assert_agrees(
            flavour.name(),
            against_loss(flavour, 0.02, SECS, SEEDS),
            ns2,
            if flavour == Flavour::NewReno { 0.03 } else { 0.05 },
        );
    }
}

#[test]
fn against_a_loss_of_a_tenth_goodput_is_that_of_ns2() {
    for (flavour, ns2) in [
        (Flavour::Tahoe, 23.0),
        (Flavour::Reno, 22.0),
        (Flavour::NewReno, 25.0),
        (Flavour::Sack, 23.7),
        (Flavour::Sack1, 23.7),
        (Flavour::Vegas, 23.4),
    ] {
        assert_agrees(flavour.name(), against_loss(flavour, 0.1, SECS, SEEDS), ns2, 0.05);
    }
}
