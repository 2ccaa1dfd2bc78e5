//! How much of a link an AVMRC receiver with the defaults for sockets uses, in virtual time: the table in
//! `docs/papers/avmrc.md`. Run it with `cargo run --release -p weir-testkit --example link_shares`.

use std::time::Duration;

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Session};
use weir_testkit::dumbbell::{Dumbbell, Member, Plan};
use weir_units::{Bytes, Rate, Time};
use weir_wire::CciForm;

const BUFFERS_MS: [u64; 3] = [50, 100, 200];

fn main() {
    println!("| link | ratio | highest level | buffer of 50 ms | 100 ms | 200 ms |");
    println!("|---|---|---|---|---|---|");
    for link in [2, 8, 32, 64, 100] {
        let link = Rate::from_mbps(link);
        for ratio in [1.5, 1.15] {
            let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), ratio).expect("a usable ladder");
            let highest = ladder.rates().iter().filter(|rate| **rate <= link).max().expect("the base layer fits");
            let best = highest.bps() as f64 / link.bps() as f64;
            let columns = BUFFERS_MS.map(|buffer_ms| {
                let shares = shares(&ladder, link, buffer_ms);
                let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                format!("{:.0} % ({:.0} %)", mean * 100.0, least * 100.0)
            });
            println!("| {link} | {ratio} | {:.0} % | {} |", best * 100.0, columns.join(" | "));
        }
    }
}

/// The mean rates over the first 30 s from the join on, as shares of the link: over three delays, four phases of the join
/// and two amounts of sender jitter.
fn shares(ladder: &Ladder, link: Rate, buffer_ms: u64) -> Vec<f64> {
    let mut shares = Vec::new();
    for delay_ms in [0, 20, 50] {
        for phase_ms in [1_300, 1_325, 1_350, 1_375] {
            for jitter_micros in [200, 3_000] {
                let joins = Time::from_millis(phase_ms);
                let config = format!("rate={},delay={delay_ms}ms,buffer={buffer_ms}ms", link.bps());
                let session = Session {
                    ladder: ladder.clone(),
                    packet_size: Bytes::new(1456),
                    form: CciForm::Short,
                    habitat: Habitat::Sockets,
                };
                let scheme = registry::find("avmrc").expect("it is registered");
                let member = Member { joins, delay: Duration::ZERO, clock_ahead: Duration::from_millis(777) };
                let mut run = Dumbbell::new(Plan {
                    receivers: vec![member],
                    sender_jitter: Duration::from_micros(jitter_micros),
                    members_at_entry: true,
                    ..Plan::new(scheme, session, config.parse().expect("a valid link"))
                });
                let end = joins + Duration::from_secs(30);
                run.run_until(end);
                shares.push(run.record(0).mean_bps(joins, end) / link.bps() as f64);
            }
        }
    }
    shares
}
