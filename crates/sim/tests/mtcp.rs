//! MTCP over simulated trees.

mod tree;

use std::time::Duration;

use tree::{Notes, Plan, build, fig_9};
use weir_sim::traffic::Supply;
use weir_units::Time;

#[test]
fn probe() {
    for one in [false, true] {
        for n in [1, 3, 5, 10, 25, 50, 100] {
            for literal in [false, true] {
                let mut plan = fig_9(n, one);
                if literal {
                    plan.settings
                        .insert(0, weir_core::registry::Setting { key: "rules".into(), value: "literal".into() });
                }
                let mut site = build(&plan, 1);
                let mut notes = Notes::default();
                site.net.run_until(Time::from_secs(100), &mut notes);
                let least = site.members.iter().map(|m| notes.delivered.get(m).copied().unwrap_or(0)).min().unwrap();
                println!("one={one} n={n} literal={literal} {} kB/s", least as f64 * 0.972 / 99.0);
            }
        }
    }
}
