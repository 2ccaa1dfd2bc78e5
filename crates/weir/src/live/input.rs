//! What a live stream is made of: bytes from a file or a pipe (`bytes.rs`), or RTP or bare datagrams from another program.

mod bytes;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use weir_units::{Rate, Time};
use weir_wire::rtcp;
use weir_wire::rtp::{Origin, Rtp};

use self::bytes::ByteSource;
pub(super) use self::bytes::{TS_PACKET, is_transport_stream};
use super::pace::{By, Pace, StreamClock};
use crate::args::ValueError;

/// Where a live stream comes from, as the user says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, or anything that is opened like one.
    File(PathBuf),
    /// RTP that is sent to this address.
    Rtp(SocketAddr),
    /// Datagrams of payload that are sent to this address.
    Udp(SocketAddr),
}

impl Input {
    /// Whether another program sends it, which neither waits nor says when it ends.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Input::Rtp(_) | Input::Udp(_))
    }
}

/// Whether a text looks like an address of some protocol rather than the name of a file.
pub(crate) fn is_url(text: &str) -> bool {
    let is_scheme =
        |scheme: &str| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

impl FromStr for Input {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Input, ValueError> {
        let address = |text: &str| text.parse().map_err(|_| ValueError::RtpAddress);
        match (text.strip_prefix("rtp://"), text.strip_prefix("udp://")) {
            (Some(at), _) => address(at).map(Input::Rtp),
            (_, Some(at)) => address(at).map(Input::Udp),
            _ if text == "-" => Ok(Input::Stdin),
            _ if is_url(text) => Err(ValueError::Protocol),
            _ => Ok(Input::File(text.into())),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str("standard input"),
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Rtp(address) => write!(f, "RTP to {address}"),
            Input::Udp(address) => write!(f, "datagrams to {address}"),
        }
    }
}

/// Where payloads come from.
pub(crate) trait Supply {
    /// What to wait on for more; `None` while there is no room for more, or no more will come.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// There is something to read.
    fn fill(&mut self, now: Time);

    /// How many payloads wait. It falls by [`Supply::next`] only: what replaces a payload takes its place.
    fn waiting(&self) -> u64;

    /// The payload that has waited longest, and what its RTP header says about it.
    fn next(&mut self, now: Time) -> Option<(Rtp, &[u8])>;

    /// Whether no more will come; some may wait.
    fn is_over(&self) -> bool;

    /// Payloads that were dropped because they had waited for too long or do not fit.
    fn dropped(&self) -> u64 {
        0
    }

    /// RTP payload type of the stream; `None` until the first bytes tell.
    fn payload_type(&self) -> Option<u8>;

    /// Bytes of a full payload.
    fn payload_len(&self) -> usize;
}

/// The payloads of a stream.
#[derive(Debug)]
pub(crate) enum Source {
    /// Cut from bytes.
    Bytes(Box<ByteSource>),
    /// As they come, one a datagram.
    Datagrams(Box<DatagramSource>),
}

/// When the bytes of a file or a pipe go. Datagrams go as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// As soon as they can.
    None,
    /// Those of a regular file by the clock of the transport stream that they are.
    OwnClock,
    /// At this rate.
    Rate(Rate),
}

impl Source {
    /// Opens an input for payloads of at most `room` bytes. `payload_type` is what the user wants; `random` is where RTP
    /// timestamps begin. Datagrams that have waited for `longest_wait` are of no use any more.
    pub(crate) fn open(
        input: &Input,
        room: usize,
        payload_type: Option<u8>,
        random: u32,
        pacing: Pacing,
        longest_wait: Duration,
    ) -> io::Result<Source> {
        let bytes = |file: File| -> io::Result<Source> {
            let by = match pacing {
                Pacing::Rate(rate) => Some(By::Rate(rate)),
                // What comes through a pipe comes when it is made.
                Pacing::OwnClock if file.metadata()?.is_file() => Some(By::Stream(StreamClock::default())),
                Pacing::OwnClock | Pacing::None => None,
            };
            let pace = by.map(Pace::new);
            Ok(Source::Bytes(Box::new(ByteSource::new(file, room, payload_type, random).paced(pace))))
        };
        Ok(match input {
            Input::Stdin => bytes(File::from(io::stdin().as_fd().try_clone_to_owned()?))?,
            Input::File(path) => bytes(File::open(path)?)?,
            Input::Rtp(address) => Source::datagrams(*address, room, payload_type, None, longest_wait)?,
            Input::Udp(address) => Source::datagrams(*address, room, payload_type, Some(random), longest_wait)?,
        })
    }

    fn datagrams(
        at: SocketAddr,
        room: usize,
        wanted_type: Option<u8>,
        bare_from: Option<u32>,
        longest_wait: Duration,
    ) -> io::Result<Source> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(Source::Datagrams(Box::new(DatagramSource::new(socket, room, wanted_type, bare_from, longest_wait))))
    }

    /// The bytes of this file, for payloads of `room` bytes.
    pub(crate) fn of_file(file: File, room: usize) -> Source {
        Source::Bytes(Box::new(ByteSource::new(file, room, None, 0)))
    }

    /// It is `now`, and somebody takes the stream or nobody does: what is due by then can go.
    pub(crate) fn pace(&mut self, now: Time, is_taken: bool) {
        if let Source::Bytes(source) = self {
            source.let_go(now, is_taken);
        }
    }

    /// When [`Source::pace`] wants to be called next.
    pub(crate) fn next_due(&self) -> Option<Time> {
        match self {
            Source::Bytes(source) => source.next_due(),
            Source::Datagrams(_) => None,
        }
    }

    /// Whether it is a file that should go by its own clock and has none.
    pub(crate) fn lacks_clock(&self) -> bool {
        matches!(self, Source::Bytes(source) if source.lacks_clock())
    }

    /// Payloads that do not fit a packet.
    pub(crate) fn too_large(&self) -> u64 {
        match self {
            Source::Bytes(_) => 0,
            Source::Datagrams(source) => source.too_large,
        }
    }

    /// What ended the input before its end.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        match self {
            Source::Bytes(source) => source.failure(),
            Source::Datagrams(source) => source.failure.as_ref(),
        }
    }

    fn supply(&self) -> &dyn Supply {
        match self {
            Source::Bytes(source) => &**source,
            Source::Datagrams(source) => &**source,
        }
    }

    fn supply_mut(&mut self) -> &mut dyn Supply {
        match self {
            Source::Bytes(source) => &mut **source,
            Source::Datagrams(source) => &mut **source,
        }
    }
}

impl Supply for Source {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.supply().readable()
    }

    fn fill(&mut self, now: Time) {
        self.supply_mut().fill(now);
    }

    fn waiting(&self) -> u64 {
        self.supply().waiting()
    }

    fn next(&mut self, now: Time) -> Option<(Rtp, &[u8])> {
        self.supply_mut().next(now)
    }

    fn is_over(&self) -> bool {
        self.supply().is_over()
    }

    fn dropped(&self) -> u64 {
        self.supply().dropped()
    }

    fn payload_type(&self) -> Option<u8> {
        self.supply().payload_type()
    }

    fn payload_len(&self) -> usize {
        self.supply().payload_len()
    }
}

/// RTP, or bare payloads, that another program sends. It does not wait for us, so what has waited for too long makes room.
#[derive(Debug)]
pub(crate) struct DatagramSource {
    socket: UdpSocket,
    /// Where RTP timestamps begin, if datagrams have none of their own.
    bare_from: Option<u32>,
    queue: Queue,
    room: usize,
    wanted_type: Option<u8>,
    seen_type: Option<u8>,
    /// The payload that was given out last.
    out: Vec<u8>,
    too_large: u64,
    failure: Option<io::Error>,
}

/// Payloads with the times of their arrival.
#[derive(Debug)]
struct Queue {
    /// How long a payload is of use.
    longest_wait: Duration,
    waiting: VecDeque<(Time, Rtp, Vec<u8>)>,
    dropped: u64,
}

impl Queue {
    fn new(longest_wait: Duration) -> Queue {
        Queue { longest_wait, waiting: VecDeque::new(), dropped: 0 }
    }

    /// Adds a payload. If the oldest has waited for too long, it goes: one comes, one goes, so that what was
    /// said to wait never shrinks.
    fn push(&mut self, now: Time, header: Rtp, payload: Vec<u8>) {
        if self.waiting.front().is_some_and(|(came, ..)| now.since(*came) > self.longest_wait)
            || self.waiting.len() >= MOST_WAITING
        {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back((now, header, payload));
    }
}

impl DatagramSource {
    fn new(
        socket: UdpSocket,
        room: usize,
        wanted_type: Option<u8>,
        bare_from: Option<u32>,
        longest_wait: Duration,
    ) -> DatagramSource {
        DatagramSource {
            socket,
            bare_from,
            queue: Queue::new(longest_wait),
            room,
            wanted_type,
            seen_type: None,
            out: Vec::new(),
            too_large: 0,
            failure: None,
        }
    }

    /// A datagram came.
    fn take(&mut self, now: Time, datagram: &[u8]) {
        let (header, payload) = match self.bare_from {
            None if rtcp::is_rtcp(datagram) => return,
            None => match Rtp::decode(datagram) {
                Ok(packet) => packet,
                Err(_) => return,
            },
            Some(from) => {
                let payload_type = if is_transport_stream(datagram) { MP2T } else { DYNAMIC };
                (Rtp { payload_type, timestamp: timestamp(from, now), ..Rtp::default() }, datagram)
            }
        };
        self.seen_type.get_or_insert(header.payload_type);
        if payload.len() <= self.room {
            self.queue.push(now, header, payload.to_vec());
        } else {
            self.too_large += 1;
        }
    }
}

/// What is told of a payload that the sender got at `came`; its number is the endpoint's.
fn origin(came: Time) -> Origin {
    Origin { micros: came.as_micros() as u32, ..Origin::default() }
}

/// The time in RTP's units of a 90 kHz clock.
fn timestamp(at_zero: u32, now: Time) -> u32 {
    at_zero.wrapping_add((now.as_micros() * 9 / 100) as u32)
}

impl Supply for DatagramSource {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.failure.is_none().then(|| self.socket.as_fd())
    }

    fn fill(&mut self, now: Time) {
        let mut datagram = [0; 65_536];
        for _ in 0..READS {
            match self.socket.recv(&mut datagram) {
                Ok(len) => self.take(now, &datagram[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused) => {
                }
                Err(error) => {
                    self.failure = Some(error);
                    return;
                }
            }
        }
    }

    fn waiting(&self) -> u64 {
        self.queue.waiting.len() as u64
    }

    fn next(&mut self, _now: Time) -> Option<(Rtp, &[u8])> {
        let (came, header, payload) = self.queue.waiting.pop_front()?;
        self.out = payload;
        let payload_type = self.wanted_type.unwrap_or(header.payload_type);
        Some((Rtp { payload_type, origin: Some(origin(came)), ..header }, &self.out))
    }

    fn is_over(&self) -> bool {
        self.failure.is_some()
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped + self.too_large
    }

    fn payload_type(&self) -> Option<u8> {
        self.wanted_type.or(self.seen_type)
    }

    fn payload_len(&self) -> usize {
        self.room
    }
}

/// An MPEG transport stream (RFC 3551 §6), which any player takes without further description.
pub(crate) const MP2T: u8 = 33;
/// The first of the payload types that are agreed on elsewhere (RFC 3551 §3).
const DYNAMIC: u8 = 96;
/// How long what another program sends may wait, where nobody says how long it is of use.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Payloads of RTP that wait at a time, lest a flood fills the memory.
const MOST_WAITING: usize = 16_384;
/// Datagrams read in one go.
const READS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_waited_for_a_second_makes_room_one_by_one() {
        let mut queue = Queue::new(Duration::from_secs(1));
        let push = |queue: &mut Queue, millis| queue.push(Time::from_millis(millis), Rtp::default(), Vec::new());
        (0..10).for_each(|step| push(&mut queue, step * 100));
        push(&mut queue, 1_000);
        assert_eq!((queue.waiting.len(), queue.dropped), (11, 0));
        push(&mut queue, 1_050);
        push(&mut queue, 1_150);
        assert_eq!((queue.waiting.len(), queue.dropped), (11, 2));
    }

    #[test]
    fn inputs_are_named_as_people_write_them() {
        assert_eq!("-".parse(), Ok(Input::Stdin));
        assert_eq!("movie.ts".parse(), Ok(Input::File("movie.ts".into())));
        assert_eq!("rtp://127.0.0.1:5004".parse(), Ok(Input::Rtp(([127, 0, 0, 1], 5004).into())));
        assert_eq!("rtp://host".parse::<Input>(), Err(ValueError::RtpAddress));
    }
}
