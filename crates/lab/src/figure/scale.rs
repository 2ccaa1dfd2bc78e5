//! From values to places on the paper, and the round numbers that axes show.

use weir_units::math::{ceil, floor, ln, pow, round};

use super::Scale;

/// An axis with its range, from a place on the paper to another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
}

impl Ruler {
    /// From `low` to `high` over `pixels`; the stretch may run backwards, as heights do.
    pub(super) fn new(scale: Scale, (low, high): (f64, f64), pixels: (f64, f64)) -> Ruler {
        Ruler { scale, low, high, from_px: pixels.0, to_px: pixels.1 }
    }

    /// Where `value` stands; `None` if it has no place, as zero on a logarithmic scale. Values outside are put outside.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => ln(value / self.low) / ln(self.high / self.low),
            Scale::Log => return None,
        };
        Some(self.from_px + (self.to_px - self.from_px) * share)
    }

    /// At most about `count` round values, equally far apart in their scale's sense.
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, count),
            Scale::Log => log_ticks(self.low, self.high, count),
        }
    }
}

/// The range that shows `values`, with round ends: a linear scale begins at 0 if the values come near it.
pub(super) fn range(scale: Scale, values: impl Iterator<Item = f64>, given: (Option<f64>, Option<f64>)) -> (f64, f64) {
    let shown = values.filter(|value| value.is_finite() && (scale == Scale::Linear || *value > 0.0));
    let (mut low, mut high) =
        shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        (low, high) = if scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
    }
    match scale {
        Scale::Linear => {
            if low > 0.0 && low < 0.6 * high {
                low = 0.0;
            }
            if low == high {
                (low, high) = (low.min(0.0), if high > 0.0 { 1.2 * high } else { 1.0 });
            }
            let step = step((given.1.unwrap_or(high) - given.0.unwrap_or(low)).abs(), 6);
            (low, high) = (tidy(step * floor(low / step + 1e-9)), tidy(step * ceil(high / step - 1e-9)));
        }
        Scale::Log => (low, high) = (round_down(low), round_up(high)),
    }
    let (low, high) = (given.0.unwrap_or(low), given.1.unwrap_or(high));
    if low < high { (low, high) } else { (low, low + low.abs().max(1.0)) }
}

/// The step of 1, 2 or 5 times a power of ten that goes at most `count` times into `span`.
fn step(span: f64, count: usize) -> f64 {
    let least = (span / count as f64).max(f64::MIN_POSITIVE);
    let power = pow(10.0, floor(ln(least) / ln(10.0) + 1e-12));
    let steps = [1.0, 2.0, 5.0, 10.0].map(|k| k * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let step = step(high - low, count.max(1));
    let (first, last) = (ceil(low / step - 1e-9) as i64, floor(high / step + 1e-9) as i64);
    (first..=last).map(|i| tidy(i as f64 * step)).collect()
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let ticks_of = |factors: &[f64]| -> Vec<f64> {
        let (first, last) = (floor(ln(low) / ln(10.0) + 1e-9) as i32, ceil(ln(high) / ln(10.0) - 1e-9) as i32);
        let all = (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| tidy(factor * pow(10.0, f64::from(power)))));
        all.filter(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9)).collect()
    };
    let fine = ticks_of(&[1.0, 2.0, 5.0]);
    let decades = ticks_of(&[1.0]);
    if fine.len() <= count.max(2) || decades.len() < 2 { fine } else { decades }
}

fn round_down(value: f64) -> f64 {
    let power = pow(10.0, floor(ln(value) / ln(10.0) + 1e-9));
    tidy([5.0, 2.0, 1.0].map(|k| k * power).into_iter().find(|tick| *tick <= value * (1.0 + 1e-9)).unwrap_or(power))
}

fn round_up(value: f64) -> f64 {
    let power = pow(10.0, floor(ln(value) / ln(10.0) + 1e-9));
    tidy(
        [1.0, 2.0, 5.0, 10.0]
            .map(|k| k * power)
            .into_iter()
            .find(|tick| *tick >= value * (1.0 - 1e-9))
            .unwrap_or(10.0 * power),
    )
}

/// Without the dust of decimal fractions.
fn tidy(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

/// A number as an axis shows it: no needless digits, thousands apart: `0.05`, `12`, `10 000`.
pub(super) fn number(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-4 || value.abs() >= 1e7) {
        return format!("{value:e}").replace('-', "−");
    }
    let text = format!("{:.6}", round(value.abs() * 1e6) / 1e6);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && whole.len() > 4 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_few() {
        assert_eq!(linear_ticks(0.0, 1.1, 6), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(linear_ticks(0.0, 64.0, 5), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(linear_ticks(-1.0, 1.0, 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn log_ticks_show_the_decades_and_between_them_if_there_is_room() {
        assert_eq!(log_ticks(1.0, 1000.0, 5), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(0.1, 2.0, 6), [0.1, 0.2, 0.5, 1.0, 2.0]);
        assert_eq!(log_ticks(2.0, 5.0, 6), [2.0, 5.0]);
    }

    #[test]
    fn ranges_hold_the_data_and_end_on_round_numbers() {
        let linear = |values: &[f64]| range(Scale::Linear, values.iter().copied(), (None, None));
        assert_eq!(linear(&[0.3, 1.1]), (0.0, 1.2));
        assert_eq!(linear(&[95.0, 99.0]), (95.0, 99.0));
        assert_eq!(linear(&[0.0, 0.0]), (0.0, 1.0));
        assert_eq!(linear(&[]), (0.0, 1.0));
        assert_eq!(range(Scale::Log, [0.0, 0.03, 7.0].into_iter(), (None, None)), (0.02, 10.0));
        assert_eq!(range(Scale::Linear, [3.0].into_iter(), (Some(1.0), Some(9.0))), (1.0, 9.0));
    }

    #[test]
    fn a_logarithmic_scale_has_no_place_for_zero() {
        let ruler = Ruler::new(Scale::Log, (1.0, 100.0), (0.0, 200.0));
        assert_eq!((ruler.at(0.0), ruler.at(10.0)), (None, Some(100.0)));
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        let texts = [0.0, 0.1, -2.5, 1500.0, 12_000.0, 0.00002, 0.3].map(number);
        assert_eq!(texts, ["0", "0.1", "−2.5", "1500", "12\u{202f}000", "2e−5", "0.3"]);
    }
}
