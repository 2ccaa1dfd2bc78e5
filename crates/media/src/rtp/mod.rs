//! Pictures as RTP payloads and back: RFC 9628 (VP9), RFC 7798 (HEVC), RFC 6184 (H.264), and that of the Alliance
//! for Open Media (AV1).

mod assemble;
mod av1;
mod nal;
mod sdp;
mod vp9;

pub use assemble::{Arrival, Assembler, AssemblerCounts};
pub use sdp::sdp_lines;

use nal::Layout;

use crate::{Codec, Picture};

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

/// Makes RTP payloads of pictures. One serves one RTP stream: that of a layer, or one of several layers together for a player.
#[derive(Debug, Clone)]
pub struct Packetizer {
    codec: Codec,
    max_payload: usize,
    /// VP9's picture ID: how many pictures there were in this RTP stream.
    pictures: u16,
}

impl Packetizer {
    /// Payloads of at most `max_payload` bytes, RTP header not counted, and at least 64.
    pub fn new(codec: Codec, max_payload: usize) -> Packetizer {
        Packetizer { codec, max_payload: max_payload.max(64), pictures: 0 }
    }

    /// The payloads of a picture, in order. Pictures come in decode order. One that has no data makes none.
    pub fn packetize(&mut self, picture: &Picture) -> Vec<Payload> {
        let payloads = match self.codec {
            Codec::Vp9 => vp9::payloads(picture, self.pictures, self.max_payload),
            Codec::Av1 => av1::payloads(picture, self.max_payload),
            Codec::Hevc => nal::payloads(&nal::HEVC, &picture.data, self.max_payload),
            Codec::H264 => nal::payloads(&nal::H264, &picture.data, self.max_payload),
        };
        self.pictures = self.pictures.wrapping_add(1);
        let last = payloads.len().saturating_sub(1);
        let numbered = payloads.into_iter().enumerate();
        numbered.map(|(n, data)| Payload { starts: n == 0, marker: n == last, data }).collect()
    }
}

/// The data of a picture from its payloads, in order; `None` if they are not as the codec's payload format says.
pub fn depacketize<'a>(codec: Codec, payloads: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let layout: &Layout = match codec {
        Codec::Vp9 => return vp9::picture(payloads),
        Codec::Av1 => return av1::picture(payloads),
        Codec::Hevc => &nal::HEVC,
        Codec::H264 => &nal::H264,
    };
    nal::picture(layout, payloads)
}
