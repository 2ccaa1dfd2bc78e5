//! The sessions that one host receives, under one manager (PSLM §2): those with a higher priority get more of what the host gets
//! altogether, and layers change less often.
//!
//! A [`Manager`] is an endpoint over endpoints. The receivers below it are those of any layered schemes; each says what it would
//! take ([`Wish`](crate::observation::Wish)) and is told what it may have ([`Allotment`](crate::Allotment)). What a receiver must give up it gives up by itself, at once.
//! `sharing` divides what there is (the paper's session manager), `stability` decides when more is taken (its layer manager).
//! What the paper leaves vague is decided in `docs/papers/pslm.md`, to which "decision n" refers. Not here: how a receiver finds
//! its share, which is the schemes'.

mod config;
mod endpoint;
mod sharing;
mod stability;

pub use config::{Config, help, read};
pub use endpoint::{Managed, Manager};
pub use sharing::Sharing;
pub use stability::Stability;
