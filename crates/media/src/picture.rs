//! Pictures, and what a receiver has to know of one before it sees the others.

/// The most temporal layers that a picture may name: HEVC's `nuh_temporal_id_plus1`, AV1's `temporal_id` and VP9's TID have three bits.
pub const MAX_LAYERS: u8 = 8;

/// The most bytes of one picture. Longer ones are refused by splitters and assemblers.
pub const MAX_PICTURE_BYTES: usize = 16 << 20;

/// A video codec whose temporal layers are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// VP9, in IVF files; RTP payloads of RFC 9628.
    Vp9,
    /// AV1, in IVF files; RTP payloads of the Alliance for Open Media's format.
    Av1,
    /// H.265, as a byte stream of its Annex B; RTP payloads of RFC 7798.
    Hevc,
    /// H.264, as a byte stream of its Annex B; RTP payloads of RFC 6184. Only IDR pictures count as key pictures: x264's
    /// `open-gop=1` makes one at the start, so that nobody can join later.
    H264,
}

impl Codec {
    /// All of them.
    pub const ALL: [Codec; 4] = [Codec::Vp9, Codec::Av1, Codec::Hevc, Codec::H264];

    /// The encoding name of RTP maps: `VP9`, `AV1`, `H265`, `H264`.
    pub const fn encoding_name(self) -> &'static str {
        match self {
            Codec::Vp9 => "VP9",
            Codec::Av1 => "AV1",
            Codec::Hevc => "H265",
            Codec::H264 => "H264",
        }
    }
}

/// What every packet of a picture says of it, so that a receiver knows what depends on a picture that it never saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PictureInfo {
    /// The place in decode order, over all layers: each picture is one above the one before it, modulo 2^16. The first is 0.
    pub number: u16,
    /// How many pictures earlier in decode order, over all layers, the picture is that this one needs: the most recent one of its
    /// own or a lower layer that it may depend on. That picture's own needs are implied. 0 for one that needs none.
    ///
    /// A picture of layer 0 needs the one of layer 0 before it; any other needs the latest of a lower layer, which may be
    /// of any lower layer.
    pub needs: u8,
    /// The temporal layer, from 0. A receiver that has layers 0 to n decodes without those above.
    pub layer: u8,
    /// Whether decoding may begin here. Then `needs` is 0 and `layer` is 0.
    pub is_key: bool,
    /// Whether the picture needs the latest key picture as well as the earlier picture that `needs` names: HEVC's RASL pictures,
    /// which follow a key picture in decode order and precede it in presentation. False for all else.
    pub is_leading: bool,
}

/// A coded picture with all that a decoder is given with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its place, what it needs, and its layer.
    pub info: PictureInfo,
    /// The presentation time in units of 1/90000 s, modulo 2^32. In decode order it may go back where the codec reorders.
    pub timestamp: u32,
    /// VP9: a frame, or a superframe with its index. AV1: a temporal unit, its delimiter in front, each unit with its size.
    /// HEVC and H.264: an access unit in Annex B, each NAL unit behind a start code of four bytes, with parameter sets and
    /// other non-VCL units in front.
    pub data: Vec<u8>,
}

/// The parameter sets of a stream, each a NAL unit without start code, as session descriptions carry them. Empty for VP9; AV1 has its
/// sequence header, a unit with its size, among the sequence parameter sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterSets {
    /// Video parameter sets (HEVC only), in the order of their appearance, the last content of each.
    pub vps: Vec<Vec<u8>>,
    /// Sequence parameter sets.
    pub sps: Vec<Vec<u8>>,
    /// Picture parameter sets.
    pub pps: Vec<Vec<u8>>,
}
