//! What the receivers of layered schemes share: the channels that they are members of, and what follows from joins and
//! leaves.
//!
//! Not here: when to join and when to leave, which the schemes decide.

mod channel;
mod host_drops;
mod leaves;
mod memberships;
mod sent_since;
mod silence;

pub(crate) use channel::{Membership, Received};
pub(crate) use host_drops::{HostDrops, is_too_much};
pub(crate) use leaves::Leaves;
pub(crate) use memberships::Memberships;
pub(crate) use sent_since::was_sent_since;
pub(crate) use silence::Silence;
