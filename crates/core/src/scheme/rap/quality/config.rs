//! What can be set.

use core::fmt;
use core::time::Duration;

use weir_units::Rate;

/// What a layer manager works by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityConfig {
    /// The layers.
    pub layers: LayerRates,
    /// From the first packet that comes until the receiver plays.
    pub start_up_delay: Duration,
    /// K_max: how many back-offs the buffers are to survive with a layer more before it is added.
    pub k_max: u64,
    /// A layer of which this much is at the receiver gets no more.
    pub max_buffer: Duration,
    /// Of a live stream, how long the content lasts that comes at once, such as a picture: a buffer falls short of its limit by so much,
    /// and a layer that is added begins where the others are (decision 22). `None` is a stored stream.
    pub live: Option<Duration>,
    /// Over what time RAP's rate is averaged before a layer is added.
    pub average_over: Duration,
    /// RAP's β: what a back-off leaves of the rate.
    pub decrease: f64,
    /// For how long after it was sent first what was lost goes again, if it can arrive before it plays; `None` sends nothing again.
    pub repair: Option<Duration>,
}

/// The rates of a stream's layers, the base first. Each rate is that layer's own, headers of packets included.
#[derive(Clone, Copy, PartialEq)]
pub struct LayerRates {
    rates: [Rate; LayerRates::MOST],
    count: usize,
}

impl LayerRates {
    /// The most layers that a stream can have.
    pub const MOST: usize = 16;

    /// These layers; `None` without any, with more than [`LayerRates::MOST`], or with one without a rate.
    pub fn new(rates: &[Rate]) -> Option<LayerRates> {
        let is_valid = (1..=LayerRates::MOST).contains(&rates.len()) && !rates.contains(&Rate::ZERO);
        let mut all = [Rate::ZERO; LayerRates::MOST];
        all.get_mut(..rates.len()).filter(|_| is_valid)?.copy_from_slice(rates);
        Some(LayerRates { rates: all, count: rates.len() })
    }

    /// The layers' rates, the base first.
    pub fn as_slice(&self) -> &[Rate] {
        &self.rates[..self.count]
    }
}

impl fmt::Debug for LayerRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
