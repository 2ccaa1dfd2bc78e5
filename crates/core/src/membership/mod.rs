//! What the receivers of layered schemes share: the channels that they are members of, and what follows from joins and
//! leaves.
//!
//! Not here: when to join and when to leave, which the schemes decide.

mod channel;
mod host_drops;
mod leaves;
mod memberships;
mod reordering;
mod sent_since;
mod silence;
mod work;

pub(crate) use channel::{Membership, Received};
pub(crate) use host_drops::{HostDrops, is_too_much};
pub(crate) use leaves::{Fall, LONGEST_LEAVE, Leaves};
pub(crate) use memberships::{Memberships, Rejoin};
pub(crate) use reordering::Reordering;
pub(crate) use sent_since::was_sent_since;
pub(crate) use work::{Work, WorkDone};

use core::time::Duration;

/// What is longer tells nothing of how long joins and leaves take: hosts answer a router's query within this time (RFC 3376
/// §8.3).
pub(crate) const SLOWEST_CHANGE: Duration = Duration::from_secs(10);
