//! Why packets may not come: what the system says of its network, what reaches an interface, and whether groups work on it.
//!
//! Everything here only looks. Not here: what to tell the user, and what to do about it.

mod echo;
mod facts;
mod watch;

pub use echo::{Echo, Heard, Hello};
pub use facts::{Facts, IgmpVersion, ReversePath, facts};
pub use watch::{Seen, Watch};
