//! Captures: what is sent and what has arrived is written down, with the addresses that it has on the network.

use std::net::{Ipv4Addr, SocketAddr};

use weir_capture::{Capture, Datagram};

use crate::clock::Clock;
use crate::error::Result;
use crate::socket::Arrival;

/// Writes to a capture, if there is one.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) capture: Option<Capture>,
    clock: Clock,
}

impl Recorder {
    pub(super) fn new(clock: Clock) -> Recorder {
        Recorder { capture: None, clock }
    }

    /// Whether there is one.
    pub(super) fn is_on(&self) -> bool {
        self.capture.is_some()
    }

    /// A datagram is sent now from a socket to an address, with this TTL.
    #[inline]
    pub(super) fn sent(&mut self, socket: SocketAddr, to: SocketAddr, ttl: u8, payload: &[u8]) -> Result<()> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let unix_nanos = self.clock.unix_nanos(self.clock.now());
        let from = own_address(socket, to);
        Ok(capture.record(&Datagram { unix_nanos, from, to, ttl, payload, comment: None })?)
    }

    /// A datagram has arrived at a socket, and perhaps goes no further.
    pub(super) fn arrived(
        &mut self,
        arrival: &Arrival,
        socket: SocketAddr,
        ttl: u8,
        payload: &[u8],
        is_dropped: bool,
    ) -> Result<()> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let unix_nanos = arrival.stamp_nanos.unwrap_or_else(|| self.clock.unix_nanos(arrival.time));
        let (from, to) = (arrival.from, own_address(socket, arrival.from));
        let comment = is_dropped.then_some(DROPPED);
        Ok(capture.record(&Datagram { unix_nanos, from, to, ttl, payload, comment })?)
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        Ok(self.capture.as_mut().map_or(Ok(()), Capture::flush)?)
    }
}

/// The address of a socket as a capture shows it next to `other`: of the same family.
fn own_address(socket: SocketAddr, other: SocketAddr) -> SocketAddr {
    match socket.is_ipv4() == other.is_ipv4() {
        true => socket,
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), socket.port()),
    }
}

/// What a capture says of a packet that goes no further.
const DROPPED: &str = "dropped by the emulated link";
