//! An encoder's output in, pictures with their layers out.

use crate::{Codec, MediaError, ParameterSets, Picture};

/// How the bytes are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// VP9 in an IVF file.
    IvfVp9,
    /// HEVC in Annex B.
    AnnexBHevc,
    /// H.264 in Annex B.
    AnnexBH264,
}

/// Pictures a second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRate {
    /// Pictures …
    pub pictures: u32,
    /// … in so many seconds.
    pub seconds: u32,
}

/// What the caller knows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SplitOptions {
    /// The layout; `None` finds it out from the first bytes.
    pub format: Option<Format>,
    /// The frame rate of a stream in Annex B; `None` takes it from the stream's timing information. IVF files have times.
    pub frame_rate: Option<FrameRate>,
}

/// Takes the bytes of an encoder as they come, and gives out pictures.
///
/// As an iterator it gives out what can be told from the bytes so far: `None` asks for more, with [`Splitter::push`]. Errors
/// that are not fatal ([`MediaError::is_fatal`]) are told in their place, and pictures follow.
#[derive(Debug)]
pub struct Splitter {
    options: SplitOptions,
}

impl Splitter {
    /// One that has seen nothing.
    pub fn new(options: SplitOptions) -> Splitter {
        Splitter { options }
    }

    /// The next bytes of the stream, in pieces of any size. Take out the pictures after each piece, or they gather here.
    pub fn push(&mut self, _bytes: &[u8]) {}

    /// Nothing more is pushed: the last picture can come out.
    pub fn finish(&mut self) {}

    /// The layout, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.options.format
    }

    /// The codec, once it is known.
    pub fn codec(&self) -> Option<Codec> {
        None
    }

    /// How many layers the pictures that came out are of, up to now: 1 at first.
    pub fn layers(&self) -> u8 {
        1
    }

    /// The parameter sets that were seen.
    pub fn parameter_sets(&self) -> &ParameterSets {
        const { &ParameterSets { vps: Vec::new(), sps: Vec::new(), pps: Vec::new() } }
    }
}

impl Iterator for Splitter {
    type Item = Result<Picture, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}
