//! What can be wrong with a stream of pictures.

use crate::Codec;

/// What is wrong with media that came in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The first bytes are of no known format. Nothing more comes.
    #[error(
        "this is no format that Weir can split: it knows VP9 and AV1 in IVF, and HEVC or H.264 as raw Annex B bytes; this makes one: ffmpeg \
         -i INPUT -an -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -error-resilient 1 -lag-in-frames 0 -b:v 1500k \
         -minrate 1500k -maxrate 1500k -bufsize 1500k -g 60 -ts-parameters \
         ts_number_layers=3:ts_target_bitrate=600,1000,1500:ts_rate_decimator=4,2,1:ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3 \
         -f ivf -"
    )]
    UnknownFormat,
    /// An IVF file of another codec, whose four characters are given. Nothing more comes.
    #[error("this IVF file holds {0:?}, and Weir splits VP9 and AV1; ffmpeg's -c:v libvpx-vp9 -f ivf makes it")]
    UnknownFourcc(String),
    /// A picture or unit is longer than [`crate::MAX_PICTURE_BYTES`]. Nothing more comes.
    #[error("a picture of more than {limit} bytes: the stream is damaged, or no video")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A picture could not be read and is left out. The next one has its number.
    #[error("{codec:?} picture left out: {what}")]
    Damaged {
        /// The codec of the stream.
        codec: Codec,
        /// What could not be read.
        what: &'static str,
    },
    /// The stream's layers cannot be told apart safely: from this picture on, everything is of layer 0.
    #[error("from picture {number} on the stream counts as one layer: {why}")]
    NotLayered {
        /// The first picture that counts so, which follows.
        number: u16,
        /// What a receiver of fewer layers could not have decoded.
        why: &'static str,
    },
    /// Neither the stream nor the caller says how many pictures a second there are: 25 are taken for granted.
    #[error("the stream does not say its frame rate, and none was given: 25 pictures a second are assumed")]
    NoFrameRate,
}

impl MediaError {
    /// Whether nothing more comes out of the splitter.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, MediaError::UnknownFormat | MediaError::UnknownFourcc(_) | MediaError::TooLong { .. })
    }
}
