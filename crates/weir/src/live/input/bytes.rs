//! Bytes from a file or a pipe, cut into payloads. When they go: `pace.rs`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use weir_units::Time;
use weir_wire::rtp::Rtp;

use super::{DYNAMIC, MP2T, Supply, origin, timestamp};
use crate::live::pace::Pace;

/// Bytes, cut into payloads. Only as much is read as will go soon, so that whoever writes waits for the stream.
#[derive(Debug)]
pub(crate) struct ByteSource {
    file: File,
    /// Read and not sent, from `start` on.
    bytes: Vec<u8>,
    start: usize,
    cut: Cut,
    wanted_type: Option<u8>,
    timestamp_at_zero: u32,
    is_at_end: bool,
    failure: Option<io::Error>,
    /// When they go; without one, as soon as they can.
    pace: Option<Pace>,
    /// Payloads among those that were read whose time has come.
    due: u64,
    /// Bytes given out so far.
    given: u64,
    /// Bytes that were looked through for the stream's clock.
    looked_through: u64,
}

/// How bytes are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Not known before the first bytes.
    Unknown { room: usize },
    /// Whole packets of an MPEG transport stream.
    TransportStream { len: usize },
    /// Full payloads.
    Plain { len: usize },
}

impl ByteSource {
    pub(super) fn new(file: File, room: usize, wanted_type: Option<u8>, timestamp_at_zero: u32) -> ByteSource {
        ByteSource {
            file,
            bytes: Vec::new(),
            start: 0,
            cut: Cut::Unknown { room },
            wanted_type,
            timestamp_at_zero,
            is_at_end: false,
            failure: None,
            pace: None,
            due: 0,
            given: 0,
            looked_through: 0,
        }
    }

    /// The same, sent when `pace` says; without one, as soon as it can be.
    pub(super) fn paced(self, pace: Option<Pace>) -> ByteSource {
        ByteSource { pace, ..self }
    }

    /// Whether something else than its viewers says when its bytes go.
    pub(in crate::live) fn has_clock(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| !pace.lacks_clock())
    }

    /// What ended the file before its end.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Payloads that were read, whether their time has come or not.
    fn read(&self) -> u64 {
        if matches!(self.cut, Cut::Unknown { .. }) {
            return 0;
        }
        let (bytes, len) = (self.unread().len(), self.payload_len());
        let payloads = if self.is_at_end { bytes.div_ceil(len) } else { bytes / len };
        payloads as u64
    }

    /// Where the first payload begins whose time has not come, if it was read.
    fn next_position(&self) -> Option<u64> {
        (self.due < self.read()).then(|| self.given + self.due * self.payload_len() as u64)
    }

    /// It is `now`, and somebody takes the stream or nobody does: what is due by then can go.
    pub(super) fn let_go(&mut self, now: Time, is_taken: bool) {
        let Some(mut pace) = self.pace.take() else { return };
        pace.turn(now, is_taken);
        while self.next_position().is_some_and(|position| pace.is_due(position)) {
            self.due += 1;
        }
        self.pace = Some(pace);
    }

    /// When [`ByteSource::let_go`] wants to be called next.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.pace.as_ref()?.due_at(self.next_position()?)
    }

    /// Whether it should go by its own clock and has none: it is no transport stream, or one in which none is found for long.
    pub(super) fn lacks_clock(&self) -> bool {
        let is_searched = match self.cut {
            Cut::Unknown { .. } => false,
            Cut::TransportStream { .. } => self.is_at_end || self.looked_through >= LONGEST_SEARCH,
            Cut::Plain { .. } => true,
        };
        is_searched && self.read() > 0 && self.pace.as_ref().is_some_and(Pace::lacks_clock)
    }

    /// Looks for the clock in what was read, if it is a transport stream that goes by it.
    fn look_for_clock(&mut self) {
        let Some(clock) = self.pace.as_mut().and_then(Pace::stream_clock) else { return };
        if !matches!(self.cut, Cut::TransportStream { .. }) {
            return;
        }
        let skip = (self.looked_through - self.given) as usize;
        for packet in self.bytes[self.start + skip..].chunks_exact(TS_PACKET) {
            clock.read(self.looked_through, packet);
            self.looked_through += TS_PACKET as u64;
        }
        clock.forget(self.given);
    }

    fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Looks whether the bytes are a transport stream, once there are enough to tell.
    fn recognise(&mut self) {
        let Cut::Unknown { room } = self.cut else { return };
        let is_enough = self.unread().len() > TS_PROBES * TS_PACKET || self.is_at_end;
        if !is_enough {
            return;
        }
        let is_ts = is_transport_stream(self.unread());
        let packets = (room / TS_PACKET).min(TS_PACKETS);
        self.cut = match is_ts && packets > 0 {
            true => Cut::TransportStream { len: packets * TS_PACKET },
            false => Cut::Plain { len: room },
        };
    }
}

/// Whether bytes look like an MPEG transport stream: a sync byte every 188 bytes.
pub(in crate::live) fn is_transport_stream(bytes: &[u8]) -> bool {
    bytes.len() >= TS_PACKET && bytes.iter().step_by(TS_PACKET).take(TS_PROBES + 1).all(|byte| *byte == TS_SYNC)
}

impl Supply for ByteSource {
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        let is_full = self.read() >= PAYLOADS_AHEAD / 2;
        (!is_full && !self.is_at_end).then(|| self.file.as_fd())
    }

    fn fill(&mut self, _now: Time) {
        self.bytes.drain(..self.start);
        self.start = 0;
        let before = self.bytes.len();
        self.bytes.resize(before + PAYLOADS_AHEAD as usize / 2 * self.payload_len(), 0);
        let read = self.file.read(&mut self.bytes[before..]);
        self.bytes.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => self.is_at_end = true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => {
                self.is_at_end = true;
                self.failure = Some(error);
            }
        }
        self.recognise();
        self.look_for_clock();
    }

    fn waiting(&self) -> u64 {
        if self.pace.is_some() { self.due } else { self.read() }
    }

    fn next(&mut self, now: Time) -> Option<(Rtp, &[u8])> {
        if self.waiting() == 0 {
            return None;
        }
        let len = self.payload_len().min(self.unread().len());
        let payload_type = self.payload_type()?;
        let start = self.start;
        self.start += len;
        self.given += len as u64;
        self.due = self.due.saturating_sub(1);
        let timestamp = timestamp(self.timestamp_at_zero, now);
        let origin = Some(origin(now));
        Some((Rtp { payload_type, timestamp, origin, ..Rtp::default() }, &self.bytes[start..start + len]))
    }

    fn is_over(&self) -> bool {
        self.is_at_end && (self.pace.is_none() || self.next_position().is_none())
    }

    fn payload_type(&self) -> Option<u8> {
        self.wanted_type.or(match self.cut {
            Cut::TransportStream { .. } => Some(MP2T),
            Cut::Plain { .. } => Some(DYNAMIC),
            Cut::Unknown { .. } => None,
        })
    }

    fn payload_len(&self) -> usize {
        match self.cut {
            Cut::Unknown { room: len } | Cut::TransportStream { len } | Cut::Plain { len } => len,
        }
    }
}

/// Bytes of a packet of a transport stream.
pub(in crate::live) const TS_PACKET: usize = 188;
const TS_SYNC: u8 = 0x47;
/// Sync bytes after the first that must be there.
const TS_PROBES: usize = 3;
/// Packets of a transport stream that an Ethernet frame carries.
const TS_PACKETS: usize = 7;
/// Payloads that are read ahead: 40 ms of 100 Mbit/s.
const PAYLOADS_AHEAD: u64 = 256;
/// Bytes of a transport stream in which the first reading of its clock must come: 100 ms (ISO/IEC 13818-1 §2.7.2) of 80 Mbit/s.
const LONGEST_SEARCH: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::pace::{By, StreamClock};
    use std::io::Write;

    fn source(bytes: &[u8], room: usize) -> ByteSource {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it takes bytes");
        io::Seek::rewind(&mut file).expect("it has a beginning");
        let mut source = ByteSource::new(file, room, None, 0);
        while source.readable().is_some() {
            source.fill(Time::ZERO);
        }
        source
    }

    fn lengths(source: &mut ByteSource) -> Vec<usize> {
        std::iter::from_fn(|| source.next(Time::ZERO).map(|(_, bytes)| bytes.len())).collect()
    }

    fn transport_stream(packets: usize) -> Vec<u8> {
        let mut bytes = vec![0; packets * TS_PACKET];
        bytes.iter_mut().step_by(TS_PACKET).for_each(|byte| *byte = TS_SYNC);
        bytes
    }

    #[test]
    fn a_transport_stream_is_cut_into_seven_packets() {
        let mut stream = source(&transport_stream(16), 1_396);
        assert_eq!((stream.payload_type(), stream.waiting()), (Some(MP2T), 3));
        assert_eq!(lengths(&mut stream), [1_316, 1_316, 376]);
        assert!(stream.is_over() && stream.waiting() == 0);
        assert_eq!(lengths(&mut source(&transport_stream(4), 500)), [376, 376], "as many as fit");
    }

    #[test]
    fn anything_else_is_cut_into_full_payloads() {
        let mut text = source(&[b'x'; 3_000], 1_396);
        assert_eq!((text.payload_type(), lengths(&mut text)), (Some(DYNAMIC), vec![1_396, 1_396, 208]));
        let mut almost = transport_stream(16);
        almost[TS_PACKET] = 0;
        assert_eq!(source(&almost, 1_396).payload_type(), Some(DYNAMIC));
        assert!(lengths(&mut source(b"", 1_396)).is_empty());
    }

    #[test]
    fn no_more_is_read_than_will_go_soon() {
        let mut big = source(&vec![b'x'; 10_000_000], 1_000);
        assert!(big.waiting() <= PAYLOADS_AHEAD, "{}", big.waiting());
        let mut total: usize = 0;
        while let Some((_, bytes)) = big.next(Time::ZERO) {
            total += bytes.len();
            if big.readable().is_some() {
                big.fill(Time::ZERO);
            }
        }
        assert_eq!(total, 10_000_000);
    }

    #[test]
    fn a_transport_stream_is_said_to_lack_a_clock_only_after_a_search() {
        let paced = |bytes: &[u8]| source(bytes, 1_396).paced(Some(Pace::new(By::Stream(StreamClock::default()))));
        assert!(paced(&[b'x'; 3_000]).lacks_clock(), "no transport stream");
        assert!(paced(&transport_stream(16)).lacks_clock(), "at its end");
        let mut long = paced(&transport_stream(10_000));
        assert!(!long.lacks_clock(), "a tenth of a second at 20 Mbit/s may pass before the first reading");
        while long.looked_through < LONGEST_SEARCH {
            long.start = long.bytes.len();
            long.given = long.looked_through;
            long.fill(Time::ZERO);
        }
        assert!(long.lacks_clock());
    }
}
