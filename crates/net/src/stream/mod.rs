//! Paced unicast streams over one UDP socket at each end: RTP one way, RTCP both ways (`docs/wire.md`).
//!
//! [`source`] runs a source's endpoint and feeds it what an application supplies; [`sink`] runs a sink's endpoint and gives the
//! application what comes. How the two meet is in [`door`] and [`visit`]. Not here: when to send, which the
//! endpoint decides, and where the payloads come from and go to.

pub mod door;
pub mod order;
pub mod sink;
pub mod source;
pub mod visit;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use weir_capture::{Capture, Datagram};
use weir_units::Time;
use weir_wire::DecodeError;
use weir_wire::rtcp::congestion::{self, Report};
use weir_wire::rtcp::meeting::Message;
use weir_wire::rtcp::{self, App, Bye, Packet};

use crate::clock::Clock;
use crate::error::NetError;
use crate::socket::Received;

/// Packets and bytes that went one way, all headers included.
pub use crate::sender::Sent as Amount;

/// A correspondent that says nothing for this long is gone, unless the application says otherwise.
pub const SILENCE: Duration = Duration::from_secs(10);

/// What came and was ignored. Nothing of it is the network's doing: it is noise, or somebody means harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Datagrams, or packets in them, that cannot be read.
    pub undecodable: u64,
    /// From another address than the correspondent's, or about another stream.
    pub foreign: u64,
    /// Feedback for packets that were never sent.
    pub impossible: u64,
}

impl Ignored {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.undecodable + self.foreign + self.impossible
    }
}

/// The SSRC, sequence numbers, cookies: all that others must not guess.
pub type Secret = [u8; 32];

/// An RTCP packet that means something here.
#[derive(Debug)]
enum Word<'a> {
    Message(Message),
    Bye(Bye),
    Report(Report<'a>),
    Other,
}

impl<'a> Word<'a> {
    fn read(packet: &Packet<'a>) -> Result<Word<'a>, DecodeError> {
        match (packet.packet_type, packet.format) {
            (App::TYPE, _) => Message::decode(packet).map(Word::Message),
            (Bye::TYPE, _) => Bye::decode(packet).map(Word::Bye),
            (congestion::TYPE, congestion::FORMAT) => Report::decode(packet).map(Word::Report),
            _ => Ok(Word::Other),
        }
    }
}

/// Whether `ssrc` takes leave in this datagram.
fn says_bye(datagram: &[u8], ssrc: u32) -> bool {
    rtcp::is_rtcp(datagram)
        && rtcp::packets(datagram).flatten().any(|packet| Bye::decode(&packet).is_ok_and(|bye| bye.ssrc == ssrc))
}

/// The own address as a capture shows it beside `other`: of the same family.
fn own_address(local: SocketAddr, other: SocketAddr) -> SocketAddr {
    match local.is_ipv4() == other.is_ipv4() {
        true => local,
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), local.port()),
    }
}

/// Writes down a datagram that is sent.
fn record_sent(
    capture: &mut Option<Capture>,
    clock: &Clock,
    local: SocketAddr,
    to: SocketAddr,
    payload: &[u8],
) -> Result<(), NetError> {
    let Some(capture) = capture else { return Ok(()) };
    let unix_nanos = clock.unix_nanos(clock.now());
    Ok(capture.record(&Datagram { unix_nanos, from: own_address(local, to), to, ttl: TTL, payload, comment: None })?)
}

/// The middle 32 bits of NTP time: 16 of seconds, 16 of fractions (RFC 3550 §4).
fn ntp_middle(clock: &Clock, now: Time) -> u32 {
    let micros = clock.ntp_micros(now);
    let fraction = (micros % 1_000_000) * 65_536 / 1_000_000;
    ((micros / 1_000_000) << 16 | fraction) as u32
}

/// Writes down a datagram that came.
fn record_received(
    capture: &mut Option<Capture>,
    clock: &Clock,
    local: SocketAddr,
    received: &Received,
    payload: &[u8],
) -> Result<(), NetError> {
    let Some(capture) = capture else { return Ok(()) };
    let to = own_address(local, received.from);
    let unix_nanos = received.stamp_nanos.unwrap_or_else(|| clock.unix_nanos(received.time));
    Ok(capture.record(&Datagram { unix_nanos, from: received.from, to, ttl: TTL, payload, comment: None })?)
}

/// What a capture shows where the real one is not known.
const TTL: u8 = 64;

/// A farewell may be lost, so it is said again until it is answered, ever more slowly: 1.5 s in all.
const FAREWELLS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_timestamp_is_the_middle_of_ntp_time() {
        let clock = Clock::new();
        let (now, later) = (clock.now(), clock.now() + Duration::from_secs(2));
        let apart = ntp_middle(&clock, later).wrapping_sub(ntp_middle(&clock, now));
        assert!((131_071..137_000).contains(&apart), "{apart} of 65536 a second");
    }
}
