//! RTP congestion control feedback (RFC 8888 §3.1): which packets came, with which mark, and how long ago.
//!
//! The RFC's text gives the last sequence number of a report both as `begin_seq + num_reports` and as one less. Here, as in
//! the implementations that exist, `num_reports` is the number of reports.

use super::{Packet, header, of_type};
use crate::{DecodeError, Feedback, take, take_array};

/// Packet type of transport layer feedback (RFC 4585 §6.1).
pub const TYPE: u8 = 205;
/// Format of congestion control feedback within it.
pub const FORMAT: u8 = 11;
/// Bytes of the longest packet that [`encode`] writes.
pub const MAX_LEN: usize = FIXED_LEN + 2 * Feedback::MAX_REPORTS as usize;

/// Bytes of the packet that says `feedback`: 20, and 2 a report, in whole words.
pub const fn encoded_len(feedback: &Feedback) -> usize {
    FIXED_LEN + (2 * feedback.reports as usize).next_multiple_of(4)
}

/// Writes what `reporter` says of the packets of `source`, and says how long it is. `timestamp` is the reporter's clock: the
/// middle 32 bits of NTP time.
///
/// Of all packets but the newest the arrival time goes as "not available", as [`Feedback`] does not have it; what is not
/// marked goes as not ECN-capable.
///
/// # Panics
///
/// If `out` is shorter than [`encoded_len`], or there are more than [`Feedback::MAX_REPORTS`] reports.
pub fn encode(reporter: u32, source: u32, feedback: &Feedback, timestamp: u32, out: &mut [u8]) -> usize {
    let len = encoded_len(feedback);
    let reports = u16::from(feedback.reports);
    out[..4].copy_from_slice(&header(FORMAT, TYPE, len));
    out[4..8].copy_from_slice(&reporter.to_be_bytes());
    out[8..12].copy_from_slice(&source.to_be_bytes());
    out[12..14].copy_from_slice(&feedback.newest.wrapping_sub(reports.wrapping_sub(1)).to_be_bytes());
    out[14..16].copy_from_slice(&reports.to_be_bytes());
    let metrics = &mut out[16..len - 4];
    metrics.fill(0);
    for (age, metric) in (0..reports).rev().zip(metrics.chunks_exact_mut(2)) {
        metric.copy_from_slice(&word(feedback, age).to_be_bytes());
    }
    out[len - 4..len].copy_from_slice(&timestamp.to_be_bytes());
    len
}

/// The report on packet `newest` − `age`.
fn word(feedback: &Feedback, age: u16) -> u16 {
    let bit = 1 << age;
    if feedback.arrived & bit == 0 {
        return 0;
    }
    let offset = if age == 0 { feedback.held.min(Feedback::MAX_HELD) } else { OFFSET_UNKNOWN };
    let mark = if feedback.marked & bit != 0 { CE } else { 0 };
    RECEIVED | mark | offset
}

/// A feedback packet: what one receiver says of one or more streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report<'a> {
    /// Who says so.
    pub reporter: u32,
    /// The reporter's clock: the middle 32 bits of NTP time.
    pub timestamp: u32,
    streams: &'a [u8],
}

impl<'a> Report<'a> {
    /// What the packet says, if it is one.
    pub fn decode(packet: &Packet<'a>) -> Result<Report<'a>, DecodeError> {
        let mut rest = of_type(packet, TYPE)?;
        if packet.format != FORMAT {
            return Err(DecodeError::Value { field: "transport feedback format", value: u64::from(packet.format) });
        }
        let reporter = u32::from_be_bytes(take_array(&mut rest, "congestion feedback reporter")?);
        let (streams, timestamp) = rest.split_last_chunk().ok_or(DecodeError::Truncated {
            field: "congestion feedback timestamp",
            needed: 4,
            left: rest.len(),
        })?;
        Ok(Report { reporter, timestamp: u32::from_be_bytes(*timestamp), streams })
    }

    /// What it says of each stream. After an error there are no more.
    pub fn streams(&self) -> impl Iterator<Item = Result<StreamReport<'a>, DecodeError>> + use<'a> {
        let mut rest = self.streams;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let report = StreamReport::decode(&mut rest);
            if report.is_err() {
                rest = &[];
            }
            Some(report)
        })
    }
}

/// What a feedback packet says of one stream: of any number of packets, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReport<'a> {
    /// The stream.
    pub source: u32,
    /// The first packet that is reported on.
    pub begin: u16,
    metrics: &'a [u8],
}

impl<'a> StreamReport<'a> {
    fn decode(rest: &mut &'a [u8]) -> Result<StreamReport<'a>, DecodeError> {
        let source = u32::from_be_bytes(take_array(rest, "congestion feedback stream")?);
        let begin = u16::from_be_bytes(take_array(rest, "congestion feedback begin_seq")?);
        let reports = u16::from_be_bytes(take_array(rest, "congestion feedback num_reports")?);
        if reports > MAX_REPORTS {
            return Err(DecodeError::Value { field: "congestion feedback num_reports", value: u64::from(reports) });
        }
        let len = 2 * usize::from(reports);
        let words = take(rest, len.next_multiple_of(4), "congestion feedback reports")?;
        Ok(StreamReport { source, begin, metrics: &words[..len] })
    }

    /// The newest packet that came, and what is said of it and up to 31 before it; `None` if none came.
    ///
    /// An arrival time that is not available counts as now: a round trip is then measured too long rather than too short.
    pub fn feedback(&self) -> Option<Feedback> {
        let words = self.metrics.chunks_exact(2).map(|metric| u16::from_be_bytes([metric[0], metric[1]]));
        let newest = words.clone().rposition(|word| word & RECEIVED != 0)?;
        let reports = (newest + 1).min(usize::from(Feedback::MAX_REPORTS));
        let mut feedback =
            Feedback { newest: self.begin.wrapping_add(newest as u16), reports: reports as u8, ..Feedback::default() };
        for (age, word) in words.rev().skip(self.metrics.len() / 2 - 1 - newest).take(reports).enumerate() {
            let came = word & RECEIVED != 0;
            feedback.arrived |= u32::from(came) << age;
            feedback.marked |= u32::from(came && word & CE == CE) << age;
            if age == 0 {
                feedback.held = match word & OFFSET {
                    OFFSET_UNKNOWN => 0,
                    offset => offset.min(Feedback::MAX_HELD),
                };
            }
        }
        Some(feedback)
    }
}

/// Header, reporter, stream, begin_seq and num_reports, timestamp.
const FIXED_LEN: usize = 4 + 4 + 4 + 4 + 4;
/// RFC 8888 §3.1: more would make old and new numbers hard to tell apart.
const MAX_REPORTS: u16 = 16_384;
const RECEIVED: u16 = 0x8000;
const CE: u16 = 0x6000;
const OFFSET: u16 = 0x1fff;
const OFFSET_UNKNOWN: u16 = 0x1fff;

#[cfg(test)]
mod tests;
