//! From values to places on the paper, and the round numbers that axes show.

use std::ops::RangeInclusive;

/// A linear scale from 0 to `max` in some unit onto a stretch of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The value at the far end.
    pub(super) max: f64,
    origin_px: f64,
    end_px: f64,
}

impl Scale {
    /// 0 at the start of `pixels`, `max` at its end; the stretch may run backwards, as heights do.
    pub(super) fn new(max: f64, pixels: (f64, f64)) -> Scale {
        Scale { max: if max > 0.0 { max } else { 1.0 }, origin_px: pixels.0, end_px: pixels.1 }
    }

    /// Where `value` stands. Values outside are put outside.
    pub(super) fn at(self, value: f64) -> f64 {
        self.origin_px + (self.end_px - self.origin_px) * value / self.max
    }

    /// The same stretch of pixels, counted in units of `unit` of the present one.
    pub(super) fn in_units_of(self, unit: f64) -> Scale {
        Scale { max: self.max / unit, ..self }
    }

    /// About `count` round values from 0 to the far end, each 1, 2 or 5 times a power of ten apart.
    pub(super) fn ticks(self, count: usize) -> Vec<f64> {
        multiples(self.max, STEPS.into_iter().flat_map(|power| [1.0, 2.0, 5.0].map(|k| k * power)), count)
    }

    /// About `count` round times in seconds: as clocks are divided, from a tenth of a second to hours.
    pub(super) fn time_ticks(self, count: usize) -> Vec<f64> {
        let seconds = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];
        let longer = [60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0];
        multiples(self.max, seconds.into_iter().chain(longer), count)
    }
}

fn multiples(max: f64, steps: impl Iterator<Item = f64>, count: usize) -> Vec<f64> {
    let fits = |step: &f64| max / step <= count as f64;
    let step = steps.into_iter().find(fits).unwrap_or(max / count as f64);
    let tick_numbers: RangeInclusive<u32> = 0..=(max / step + 1e-9) as u32;
    tick_numbers.map(|i| f64::from(i) * step).collect()
}

/// A unit that makes a range of rates readable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateUnit {
    /// What stands on the axis.
    pub(super) name: &'static str,
    /// Bits per second in one of it.
    pub(super) bps: f64,
}

impl RateUnit {
    /// For rates up to `max_bps`.
    pub(super) fn for_max(max_bps: f64) -> RateUnit {
        match max_bps {
            max if max < 1e6 => RateUnit { name: "kbit/s", bps: 1e3 },
            max if max < 1e9 => RateUnit { name: "Mbit/s", bps: 1e6 },
            _ => RateUnit { name: "Gbit/s", bps: 1e9 },
        }
    }
}

/// A tick's number without needless digits: `0`, `0.5`, `20`.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const STEPS: [f64; 10] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
