//! The least constant rates that carry a stream's layers within a delay.

use std::time::Duration;

use weir_units::Rate;

/// A picture as its sender has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it may be sent, since any instant. Times do not go back from one sample to the next.
    pub at: Duration,
    /// Its layer.
    pub layer: u8,
    /// Its bytes.
    pub bytes: usize,
}

/// How pictures fill packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// Bytes of a picture in one packet, at least 1.
    pub payload_bytes: usize,
    /// Bytes of a packet besides these, on the path: all headers. Packets are padded to full size.
    pub overhead_bytes: usize,
}

/// The least constant rate of each of `layers` layers such that a leaky bucket at the sum of layers 0 to k delays no picture of
/// these layers by more than `delay`, for every k.
pub fn least_rates(_samples: &[Sample], layers: u8, _packing: Packing, _delay: Duration) -> Vec<Rate> {
    vec![Rate::default(); usize::from(layers)]
}
