//! An encoder's output in, pictures with their layers out.

mod access_units;
mod annexb;
pub(crate) mod av1;
mod bits;
mod decode_order;
mod h264;
mod hevc;
pub(crate) mod ivf;
mod layering;
mod order;
mod probe;
pub(crate) mod vp9;

use std::collections::VecDeque;

pub(crate) use access_units::START_CODE;
pub use access_units::{AccessUnit, AccessUnits};
pub use decode_order::{Ambiguous, DecodeOrder, Head};

use annexb::AnnexB;
use av1::Av1;
use h264::H264;
use hevc::Hevc;
use ivf::Ivf;
use vp9::Vp9;

use crate::{Codec, MediaError, ParameterSets, Picture};

/// How the bytes are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// VP9 in an IVF file.
    IvfVp9,
    /// AV1 in an IVF file.
    IvfAv1,
    /// HEVC in Annex B.
    AnnexBHevc,
    /// H.264 in Annex B.
    AnnexBH264,
}

/// Pictures a second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRate {
    /// Pictures …
    pictures: u32,
    /// … in so many seconds.
    seconds: u32,
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
///
/// Pictures before the first key picture are left out, and units of extensions (scalable, multiview). A picture in Annex B comes out when the one behind it begins.
#[derive(Debug)]
pub struct Splitter {
    options: SplitOptions,
    stage: Stage,
    out: Output,
    layers: u8,
}

/// Pictures and errors in their order.
type Output = VecDeque<Result<Picture, MediaError>>;

#[derive(Debug)]
enum Stage {
    /// The first bytes, until they say what they are.
    Probing(Vec<u8>),
    Vp9(Box<Ivf<Vp9>>),
    Av1(Box<Ivf<Av1>>),
    Hevc(Box<AnnexB<Hevc>>),
    H264(Box<AnnexB<H264>>),
    /// Nothing more comes, for the stream was damaged or is over.
    Over(Option<Format>, ParameterSets),
}

impl Format {
    /// The codec of its pictures.
    pub const fn codec(self) -> Codec {
        match self {
            Format::IvfVp9 => Codec::Vp9,
            Format::IvfAv1 => Codec::Av1,
            Format::AnnexBHevc => Codec::Hevc,
            Format::AnnexBH264 => Codec::H264,
        }
    }
}

impl FrameRate {
    /// `pictures` in `seconds`. `None` if that is above 1000 a second, or below one in 1000 seconds.
    pub const fn new(pictures: u32, seconds: u32) -> Option<FrameRate> {
        let (many, long) = (pictures as u64, seconds as u64);
        if many == 0 || long == 0 || many > 1000 * long || long > 1000 * many {
            return None;
        }
        Some(FrameRate { pictures, seconds })
    }
}

impl Splitter {
    /// One that has seen nothing.
    pub fn new(options: SplitOptions) -> Splitter {
        let stage = options.format.map_or(Stage::Probing(Vec::new()), |format| Stage::of(format, &options));
        Splitter { options, stage, out: VecDeque::new(), layers: 1 }
    }

    /// The next bytes of the stream, in pieces of any size. Take out the pictures after each piece, or they gather here.
    pub fn push(&mut self, bytes: &[u8]) {
        bytes.chunks(PIECE).for_each(|piece| self.push_piece(piece));
    }

    fn push_piece(&mut self, bytes: &[u8]) {
        let seen = self.out.len();
        match &mut self.stage {
            Stage::Probing(first) => {
                first.extend_from_slice(bytes);
                if let Some(probed) = probe::format(first, false) {
                    let first = std::mem::take(first);
                    self.begin(probed, &first);
                }
            }
            Stage::Vp9(ivf) => ivf.push(bytes, &mut self.out),
            Stage::Av1(ivf) => ivf.push(bytes, &mut self.out),
            Stage::Hevc(stream) => stream.push(bytes, &mut self.out),
            Stage::H264(stream) => stream.push(bytes, &mut self.out),
            Stage::Over(..) => {}
        }
        self.settle(seen);
    }

    fn begin(&mut self, probed: Result<Format, MediaError>, first: &[u8]) {
        match probed {
            Ok(format) => {
                self.stage = Stage::of(format, &self.options);
                self.push(first);
            }
            Err(error) => self.out.push_back(Err(error)),
        }
    }

    /// Nothing more is pushed: the last picture can come out.
    pub fn finish(&mut self) {
        let seen = self.out.len();
        if let Stage::Probing(first) = &mut self.stage {
            let first = std::mem::take(first);
            if let Some(probed) = probe::format(&first, true) {
                self.begin(probed, &first);
            }
        }
        match &mut self.stage {
            Stage::Vp9(ivf) => ivf.finish(&mut self.out),
            Stage::Av1(ivf) => ivf.finish(&mut self.out),
            Stage::Hevc(stream) => stream.finish(&mut self.out),
            Stage::H264(stream) => stream.finish(&mut self.out),
            Stage::Probing(_) | Stage::Over(..) => {}
        }
        self.settle(seen);
        self.close();
    }

    /// Looks at what was put out since there were `seen`, and ends where an error is fatal.
    fn settle(&mut self, seen: usize) {
        let mut fresh = self.out.range(seen..);
        let layers = fresh.clone().flatten().map(|picture| picture.info.layer + 1).max();
        self.layers = self.layers.max(layers.unwrap_or(1));
        let is_fatal = |item: &Result<Picture, MediaError>| item.as_ref().is_err_and(MediaError::is_fatal);
        if let Some(at) = fresh.position(is_fatal) {
            self.out.truncate(seen + at + 1);
            self.close();
        }
    }

    fn close(&mut self) {
        self.stage = Stage::Over(self.format(), self.parameter_sets());
    }

    /// The layout, once it is known.
    pub fn format(&self) -> Option<Format> {
        match self.stage {
            Stage::Probing(_) => None,
            Stage::Vp9(_) => Some(Format::IvfVp9),
            Stage::Av1(_) => Some(Format::IvfAv1),
            Stage::Hevc(_) => Some(Format::AnnexBHevc),
            Stage::H264(_) => Some(Format::AnnexBH264),
            Stage::Over(format, _) => format,
        }
    }

    /// The codec, once it is known.
    pub fn codec(&self) -> Option<Codec> {
        self.format().map(Format::codec)
    }

    /// How many layers the pictures are of that came up to now: 1 at first. One group of pictures shows all layers; those that
    /// ffmpeg's encoders make are there after five pictures.
    pub fn layers(&self) -> u8 {
        self.layers
    }

    /// The parameter sets that were seen.
    pub fn parameter_sets(&self) -> ParameterSets {
        match &self.stage {
            Stage::Av1(ivf) => ivf.frames().parameter_sets(),
            Stage::Hevc(stream) => stream.parameter_sets(),
            Stage::H264(stream) => stream.parameter_sets(),
            Stage::Over(_, sets) => sets.clone(),
            Stage::Probing(_) | Stage::Vp9(_) => ParameterSets::default(),
        }
    }
}

impl Stage {
    fn of(format: Format, options: &SplitOptions) -> Stage {
        let rate = options.frame_rate;
        match format {
            Format::IvfVp9 => Stage::Vp9(Box::default()),
            Format::IvfAv1 => Stage::Av1(Box::default()),
            Format::AnnexBHevc => Stage::Hevc(Box::new(AnnexB::new(Codec::Hevc, rate))),
            Format::AnnexBH264 => Stage::H264(Box::new(AnnexB::new(Codec::H264, rate))),
        }
    }
}

impl Iterator for Splitter {
    type Item = Result<Picture, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.out.pop_front()
    }
}

/// Longer pieces are taken apart, so that what is buffered stays within the limit on a picture and a piece.
const PIECE: usize = 1 << 20;
