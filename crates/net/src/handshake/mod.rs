//! How two hosts that know nothing of each other become peers: hello, offer with a cookie, start with the cookie back.
//!
//! Both sides are state machines without clock or socket; the messages are in [`weir_wire::rtcp::handshake`] and
//! `docs/wire.md` has the exchange. [`crate::host`] runs them.

pub mod admission;
pub mod contact;

/// What makes cookies, SSRCs and first sequence numbers, which others must not guess: random.
pub type Secret = [u8; 32];
