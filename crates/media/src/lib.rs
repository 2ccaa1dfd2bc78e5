//! Layered media: pictures and their temporal layers, RTP payloads, repair, and which pictures a decoder may be given.
//!
//! A sender splits an encoder's output into pictures ([`Splitter`]), whose layers may come apart ([`DecodeOrder`]), makes RTP payloads of
//! each ([`Packetizer`]) and repair payloads of each layer's packets ([`Protector`]). A receiver gets lost packets back ([`Recovery`]), puts
//! the pictures of each layer together ([`Assembler`]), withholds what depends on a lost picture ([`Gate`]) and writes the rest for a
//! standard decoder ([`Writer`]).
//!
//! Not here: sockets, clocks and threads. Bytes, packets and times come in as arguments.

mod error;
mod gate;
mod picture;
mod rates;
mod repair;
mod rtp;
mod split;
mod write;

pub use error::MediaError;
pub use gate::Gate;
pub use picture::{Codec, MAX_LAYERS, MAX_PICTURE_BYTES, ParameterSets, Picture, PictureInfo};
pub use rates::{Packing, Sample, least_channel_rates, least_rates};
pub use repair::{
    Block, MAX_BLOCK_PACKETS, MAX_SYMBOL_BYTES, Protector, REPAIR_OVERHEAD, Recovered, Recovery, RecoveryCounts,
};
pub use rtp::{Arrival, Assembler, AssemblerCounts, Packetizer, Payload, depacketize, sdp_lines};
pub use split::{AccessUnit, AccessUnits, Ambiguous, DecodeOrder, Format, FrameRate, Head, SplitOptions, Splitter};
pub use write::Writer;
