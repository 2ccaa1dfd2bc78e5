//! What a description says of layered media: its format, and which layer each channel carries.

use std::fmt;
use std::ops::RangeInclusive;

use super::read::{Expected, number};

/// The format of a session's media, which goes as RTP. A session without it is of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaFormat {
    /// Encoding name of its RTP payloads, such as `VP9` (the registry of RFC 3551 and its successors).
    pub encoding: String,
    /// Payload type of pictures, 96 to 126; that of repair is one more.
    pub payload_type: u8,
    /// By channel: the layers whose pictures it carries. Where channels carry all of them, any channels bring the layers from the base up
    /// that their rates together are enough for.
    pub layers: Vec<RangeInclusive<u8>>,
    /// How long after the sender got them pictures are given out, milliseconds.
    pub latency_ms: u16,
}

impl MediaFormat {
    /// Payload type of repair packets.
    pub fn repair_type(&self) -> u8 {
        self.payload_type + 1
    }

    /// How many layers there are.
    pub fn layer_count(&self) -> usize {
        self.layers.iter().map(|layers| usize::from(*layers.end()) + 1).max().unwrap_or(0)
    }

    /// The value of `a=weir-media`.
    pub(super) fn read(value: &str) -> Result<MediaFormat, Expected> {
        const EXPECTED: Expected =
            "a=weir-media:ENCODING TYPE and a layer from 0 to 7 for each channel, or several such as 0-2";
        let mut words = value.split_ascii_whitespace();
        let encoding = words.next().filter(|name| is_name(name)).ok_or(EXPECTED)?.to_owned();
        let payload_type = words.next().and_then(number).filter(|kind| (96..=126).contains(kind)).ok_or(EXPECTED)?;
        let layers: Option<Vec<_>> = words.map(layers).collect();
        let layers = layers.filter(|layers| layers.iter().any(|layers| layers.contains(&0))).ok_or(EXPECTED)?;
        Ok(MediaFormat { encoding, payload_type, layers, latency_ms: 0 })
    }

    /// The attributes of the session.
    pub(super) fn write_session(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a=weir-media:{} {}", self.encoding, self.payload_type)?;
        self.layers.iter().try_for_each(|layers| match (layers.start(), layers.end()) {
            (lowest, highest) if lowest == highest => write!(f, " {lowest}"),
            (lowest, highest) => write!(f, " {lowest}-{highest}"),
        })?;
        write!(f, "\r\na=weir-latency:{}\r\na=group:DDP", self.latency_ms)?;
        (0..self.layers.len()).try_for_each(|channel| write!(f, " {}", mid(channel)))?;
        write!(f, "\r\n")
    }

    /// The `m=` line of a channel, without its end.
    pub(super) fn write_line(&self, f: &mut fmt::Formatter<'_>, port: u16) -> fmt::Result {
        write!(f, "m=video {port} RTP/AVP {} {}", self.payload_type, self.repair_type())
    }

    /// The attributes of a channel: what its payloads are, and of which other channels its decoding depends, or which it improves (RFC 5583).
    pub(super) fn write_channel(&self, f: &mut fmt::Formatter<'_>, channel: usize) -> fmt::Result {
        let (pictures, repair) = (self.payload_type, self.repair_type());
        write!(f, "a=rtpmap:{pictures} {}/90000\r\na=rtpmap:{repair} weir-repair/90000\r\n", self.encoding)?;
        write!(f, "a=mid:{}\r\n", mid(channel))?;
        if channel > 0 {
            let is_alike = self.layers[channel].start() < self.layers[channel].end();
            write!(f, "a=depend:{pictures} {}", if is_alike { "mdc" } else { "lay" })?;
            (0..channel).try_for_each(|below| write!(f, " {}:{pictures}", mid(below)))?;
            write!(f, "\r\n")?;
        }
        write!(f, "a=extmap:3 urn:weir:rtp:control:1\r\na=extmap:4 urn:weir:rtp:place:1\r\na=recvonly\r\n")
    }
}

/// What other lines call a channel.
fn mid(channel: usize) -> String {
    format!("c{channel}")
}

/// The layers of a channel: `1`, or `0-2`.
fn layers(word: &str) -> Option<RangeInclusive<u8>> {
    let (lowest, highest) = word.split_once('-').unwrap_or((word, word));
    let (lowest, highest) = (number(lowest)?, number(highest)?);
    let is_plain = !word.contains('-') || lowest < highest;
    (is_plain && highest < MOST_LAYERS).then_some(lowest..=highest)
}

fn is_name(name: &str) -> bool {
    name.len() <= 16 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// As many as a packet can number.
const MOST_LAYERS: u8 = 8;
