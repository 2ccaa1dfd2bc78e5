//! Pictures as RTP payloads and back: RFC 9628 (VP9), RFC 7798 (HEVC), RFC 6184 (H.264).

use crate::{Codec, ParameterSets, Picture, PictureInfo};

/// The payload of one RTP packet, and what its header says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Whether it is the first of its picture. The receiver's [`Arrival`] wants it, so Weir's header extension carries it.
    pub starts: bool,
    /// RTP's marker bit: whether it is the last of its picture.
    pub marker: bool,
    /// The payload, without the RTP header.
    pub data: Vec<u8>,
}

/// Makes RTP payloads of pictures. One serves all layers of a stream.
#[derive(Debug, Clone)]
pub struct Packetizer {
    codec: Codec,
}

impl Packetizer {
    /// Payloads of at most `max_payload` bytes, RTP header not counted, and at least 64.
    pub fn new(codec: Codec, _max_payload: usize) -> Packetizer {
        Packetizer { codec }
    }

    /// The payloads of a picture, in order. Pictures come in decode order. One that has no data makes none.
    pub fn packetize(&mut self, _picture: &Picture) -> Vec<Payload> {
        let _ = self.codec;
        Vec::new()
    }
}

/// An RTP packet of one layer's stream as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// RTP's sequence number. The packets of a layer's stream are numbered without gaps.
    pub sequence: u16,
    /// RTP's timestamp.
    pub timestamp: u32,
    /// RTP's marker bit.
    pub marker: bool,
    /// Whether the packet is the first of its picture ([`Payload::starts`]).
    pub starts: bool,
    /// What the header extension says of the picture.
    pub info: PictureInfo,
    /// The payload.
    pub payload: &'a [u8],
}

/// What an assembler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssemblerCounts {
    /// Pictures that were put together.
    pub pictures: u64,
    /// Pictures of which something was missing when they were given up.
    pub incomplete: u64,
    /// Pictures whose packets contradicted each other or the payload format, or that were too long.
    pub malformed: u64,
    /// Packets that came twice, or after their picture was done with.
    pub late: u64,
}

/// Puts the pictures of one layer's stream together from its packets, which may arrive in any order and several times.
#[derive(Debug)]
pub struct Assembler {
    counts: AssemblerCounts,
}

impl Assembler {
    /// One that has seen nothing. A stream that begins again (another SSRC) wants another one.
    pub fn new(_codec: Codec) -> Assembler {
        Assembler { counts: AssemblerCounts::default() }
    }

    /// A packet arrived: the picture that it completes, if it does. Pictures come out as they are complete, so perhaps not in
    /// decode order.
    pub fn push(&mut self, _arrival: Arrival<'_>) -> Option<Picture> {
        None
    }

    /// What was done so far.
    pub fn counts(&self) -> AssemblerCounts {
        self.counts
    }
}

/// The `a=` lines of a session description that tell a standard receiver how to read a stream: `rtpmap`, and `fmtp` with the
/// parameter sets where the codec has such. Without line ends.
pub fn sdp_lines(codec: Codec, payload_type: u8, _parameter_sets: &ParameterSets) -> Vec<String> {
    vec![format!("a=rtpmap:{payload_type} {}/90000", codec.encoding_name())]
}
