//! Where a party can be contacted, as parties tell each other.

use crate::{DecodeError, take_array};

/// An address and a port. Protocols carry locators from party to party and do not look into them: to the simulator they are
/// other things than to sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Locator(
    /// On sockets an IPv6 address, or an IPv4 address mapped to one (RFC 4291 §2.5.5.2), and a port, big-endian.
    pub [u8; 18],
);

impl Locator {
    /// Splits a locator off the front of `rest`.
    pub(crate) fn take(rest: &mut &[u8]) -> Result<Locator, DecodeError> {
        take_array(rest, "locator").map(Locator)
    }
}
