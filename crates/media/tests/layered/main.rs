//! Layered media through real encoders, lossy channels, real decoders and standard receivers. Needs ffmpeg.

mod common;

mod decode_order;
mod hostile;
mod layers;
mod standard_receivers;
