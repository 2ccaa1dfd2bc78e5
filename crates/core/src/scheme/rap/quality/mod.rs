//! The layer manager and the receiver's buffer of the paper's Fig. 1: how many layers of a stored stream go out, and which of them the
//! next packet carries (Rejaie, Handley, Estrin: "Quality Adaptation for Congestion Controlled Video Playback over the Internet",
//! SIGCOMM 1999).
//!
//! RAP's rate is a sawtooth, and a layer plays at a constant rate. While the rate is above what the active layers play, the receiver's
//! buffers fill; while it is below, they drain. A layer is added when the average rate carries it and the buffers would survive some
//! back-offs with it, and the top one is dropped when the buffers cannot cover the deficit any more. Not here: RAP, packets, and what
//! is in them. A sender of real pictures asks [`LayerManager::next`] which layer goes next, and tells it what a packet carried.

mod config;
mod deficit;
mod layer;
mod manager;
mod patience;

pub use config::{LayerRates, QualityConfig};
pub use layer::{Account, Carried};
pub use manager::{LayerManager, Turn};
