//! The program between hosts: network namespaces with links between them, real kernels, real time. Needs root; see
//! `weir_testkit::netns::require_root`.
//!
//! Not here: tests that want the processors for themselves, in `netns_flood.rs` and `netns_stair.rs`.

mod accidents;
mod announced;
mod asked;
mod attacks;
mod delivery;
mod interfaces;
mod layers;
mod live;
mod media;
mod plm;
mod raw;
mod seals;
mod secret_live;
mod silence;
mod small;
mod stream;

use std::time::Duration;

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const MINUTE: Duration = Duration::from_secs(60);

/// A count that an event has.
fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} is a count: {event}"))
}
