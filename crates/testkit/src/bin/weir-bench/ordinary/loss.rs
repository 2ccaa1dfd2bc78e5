//! What random loss at a round trip of 0 costs a file that is alone on a link.

use std::path::Path;

use serde_json::{Value, json};
use weir_link::{LinkConfig, Loss};
use weir_testkit::netns::Network;
use weir_units::Rate;

use super::files::times_ideal;
use crate::Options;
use crate::stream::mark;
use crate::summary::Spread;

/// Measures each scheme over each link. The path without loss goes through a modelled link too.
pub(super) fn measure(options: &Options, weir: &Path) -> Result<Vec<Value>, String> {
    println!(
        "\n{}, alone, slow leave, {} % random loss through a modelled link: times the ideal",
        options.unequal_size,
        LOSS * 100.0
    );
    println!(
        "{:<10}{:<14}{:<24}{:<24}{:<24}{:>8}  limit",
        "scheme", "link", "without", "with", "with over without", "lost"
    );
    let mut rows = Vec::new();
    for scheme in &options.ordinary.ordinary_schemes {
        for link in &options.links {
            rows.push(row(options, weir, scheme, *link)?);
        }
    }
    Ok(rows)
}

fn row(options: &Options, weir: &Path, scheme: &str, link: Rate) -> Result<Value, String> {
    let (mut without, mut with, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 1..=options.repeat {
        eprintln!("{scheme} over {link} without and with loss, {repetition} of {}", options.repeat);
        without.push(times_ideal(options, weir, scheme, link, &network(link, Loss::None))?);
        let lossy = network(link, Loss::Random(LOSS));
        with.push(times_ideal(options, weir, scheme, link, &lossy)?);
        lost.push(share_lost(&lossy)?);
    }
    let cost = Spread::of(with.iter().zip(&without).map(|(with, without)| with / without));
    let [without, with, lost] = [without, with, lost].map(Spread::of);
    let holds = cost.median <= LIMIT;
    let [told_without, told_with, told_cost] = [without, with, cost].map(|spread| spread.to_string());
    println!(
        "{scheme:<10}{:<14}{told_without:<24}{told_with:<24}{told_cost:<24}{:>7.2}%  {LIMIT} {}",
        link.to_string(),
        lost.median * 100.0,
        mark(holds)
    );
    Ok(json!({
        "scheme": scheme,
        "link_bps": link.bps(),
        "loss": LOSS,
        "lost": lost.json(),
        "times_ideal_without": without.json(),
        "times_ideal_with": with.json(),
        "cost": cost.json(),
        "limit": LIMIT,
        "holds": holds,
    }))
}

fn network(link: Rate, loss: Loss) -> Network {
    let there = LinkConfig { loss, ..LinkConfig::default() };
    Network::new().links([link]).fast_leave(false).modelled([there, LinkConfig::default()]).build()
}

/// What part of the packets to the receiver was lost. An error unless that is what was asked for, within five standard deviations.
fn share_lost(network: &Network) -> Result<f64, String> {
    let (lost, delivered) = network.lost_and_delivered(0);
    let all = (lost + delivered) as f64;
    let share = lost as f64 / all;
    let deviation = (LOSS * (1.0 - LOSS) / all).sqrt();
    if (share - LOSS).abs() <= 5.0 * deviation {
        Ok(share)
    } else {
        Err(format!("a loss of {LOSS} was asked for, and {lost} of {all} packets were lost"))
    }
}

const LOSS: f64 = 0.02;
const LIMIT: f64 = 1.15;
