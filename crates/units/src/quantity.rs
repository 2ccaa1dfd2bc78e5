//! Rates and byte counts: whole numbers, kilo = 1000.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;
use core::time::Duration;

use crate::span::write_exact;

/// Whole bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Nothing per second.
    pub const ZERO: Rate = Rate(0);

    /// Bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Kilobits per second.
    pub const fn from_kbps(kbps: u64) -> Rate {
        Rate(kbps.saturating_mul(1_000))
    }

    /// Megabits per second.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps.saturating_mul(1_000_000))
    }

    /// The rate of `packets_per_sec` packets of `size` each, rounded down; the largest rate if it is infinite.
    pub fn from_packets_per_sec(packets_per_sec: f64, size: Bytes) -> Rate {
        Rate((packets_per_sec * size.0 as f64 * 8.0) as u64)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The rate as `FromStr` reads it, exactly: `256k`, `1.5M`, `10G`, `999bit/s`.
    pub fn exact(self) -> impl fmt::Display {
        Exact(self)
    }

    /// Packets of `size` per second.
    pub fn packets_per_sec(self, size: Bytes) -> f64 {
        self.0 as f64 / (size.0 as f64 * 8.0)
    }

    /// This rate times `factor`, rounded to the nearest bit per second.
    #[must_use]
    pub fn scale(self, factor: f64) -> Rate {
        Rate(crate::math::round(self.0 as f64 * factor) as u64)
    }

    /// The difference, zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Rate) -> Rate {
        Rate(self.0.saturating_sub(other.0))
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0.saturating_add(other.0))
    }
}

impl Mul<Duration> for Rate {
    type Output = Bytes;
    /// What passes in `span`, rounded down to whole bytes.
    fn mul(self, span: Duration) -> Bytes {
        let bits = u128::from(self.0) * span.as_nanos() / 1_000_000_000;
        Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    /// Three significant digits and the unit, as people write it: `1.94 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, "bit/s")
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s", self.0)
    }
}

struct Exact(Rate);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0.0 {
            1_000_000_000.. => (1_000_000_000, "G"),
            1_000_000.. => (1_000_000, "M"),
            1_000.. => (1_000, "k"),
            _ => (1, "bit/s"),
        };
        write_exact(f, self.0.0.into(), unit)?;
        f.write_str(name)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    /// `256k`, `1.5M`, `2mbit`, `10G`, `64kbps`, `9600bit`, `9600`: bits per second.
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        let lower = Lower::new(text)?;
        let text = lower.as_str();
        let number = ["bit/s", "bps", "bit"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
        parse_scaled(number).map(Rate)
    }
}

/// Whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// None.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// How many.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The difference, zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// The rate that passes these bytes in `span`; zero if `span` is.
    pub fn per(self, span: Duration) -> Rate {
        let nanos = span.as_nanos();
        if nanos == 0 {
            return Rate::ZERO;
        }
        Rate(u64::try_from(u128::from(self.0) * 8_000_000_000 / nanos).unwrap_or(u64::MAX))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    /// Panics below zero: that is a broken account of ours.
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("a byte count never goes below zero"))
    }
}

impl Div<Rate> for Bytes {
    type Output = Duration;
    /// The time that these bytes take at `rate`, rounded up to a nanosecond; the longest span at rate zero.
    fn div(self, rate: Rate) -> Duration {
        if rate.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(self.0) * 8_000_000_000).div_ceil(u128::from(rate.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, "B")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// `32M`, `1.5GB`, `64kB`, `1000`; `KiB`, `MiB` and `GiB` count in 1024s.
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        let lower = Lower::new(text)?;
        let text = lower.as_str();
        for (unit, factor) in [("kib", 1u64 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40)] {
            if let Some(number) = text.strip_suffix(unit) {
                let number: f64 = number.trim_end().parse().map_err(|_| ParseQuantityError)?;
                return scaled(number, factor).map(Bytes);
            }
        }
        parse_scaled(text.strip_suffix('b').unwrap_or(text)).map(Bytes)
    }
}

/// A rate or byte count that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseQuantityError;

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number with an optional k, M, G or T, such as 256k or 1.5M")
    }
}

impl core::error::Error for ParseQuantityError {}

/// At most 24 characters in lower case, without an allocator.
struct Lower([u8; 24], usize);

impl Lower {
    fn new(text: &str) -> Result<Lower, ParseQuantityError> {
        let mut lower = Lower([0; 24], text.len());
        let room = lower.0.get_mut(..text.len()).ok_or(ParseQuantityError)?;
        room.copy_from_slice(text.as_bytes());
        room.make_ascii_lowercase();
        Ok(lower)
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0[..self.1]).expect("lower-casing ASCII keeps UTF-8 whole")
    }
}

fn parse_scaled(text: &str) -> Result<u64, ParseQuantityError> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'm') => (&text[..text.len() - 1], 1_000_000),
        Some(b'g') => (&text[..text.len() - 1], 1_000_000_000),
        Some(b't') => (&text[..text.len() - 1], 1_000_000_000_000),
        _ => (text, 1),
    };
    scaled(number.trim_end().parse().map_err(|_| ParseQuantityError)?, factor)
}

fn scaled(number: f64, factor: u64) -> Result<u64, ParseQuantityError> {
    let product = crate::math::round(number * factor as f64);
    if product.is_finite() && (0.0..1e18).contains(&product) { Ok(product as u64) } else { Err(ParseQuantityError) }
}

fn write_scaled(f: &mut fmt::Formatter<'_>, n: u64, unit: &str) -> fmt::Result {
    let (scale, prefix) = match n {
        0..=999 => return write!(f, "{n} {unit}"),
        1_000..=999_499 => (1e3, "k"),
        999_500..=999_499_999 => (1e6, "M"),
        999_500_000..=999_499_999_999 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let value = n as f64 / scale;
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    write!(f, "{value:.decimals$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, bps) in [("256k", 256_000), ("1.5M", 1_500_000), ("2mbit", 2_000_000), ("10G", 10_000_000_000)] {
            assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
        }
        for text in ["", "k", "fast", "-1M", "nan", "1e300", "256kk"] {
            assert_eq!(text.parse::<Rate>(), Err(ParseQuantityError), "{text}");
        }
    }

    #[test]
    fn rates_can_be_shown_as_they_are_read() {
        for text in ["0bit/s", "999bit/s", "1k", "256k", "1.5M", "9.600001M", "10G", "2500.000000001G"] {
            assert_eq!(text.parse::<Rate>().expect("a rate").exact().to_string(), text);
        }
    }

    #[test]
    fn byte_counts_know_both_kinds_of_kilo() {
        assert_eq!("32MiB".parse(), Ok(Bytes::new(32 << 20)));
        assert_eq!("32MB".parse(), Ok(Bytes::new(32_000_000)));
        assert_eq!("7".parse(), Ok(Bytes::new(7)));
    }

    #[test]
    fn quantities_are_shown_with_three_digits() {
        assert_eq!(Rate::from_kbps(1944).to_string(), "1.94 Mbit/s");
        assert_eq!(Rate::from_bps(999_600).to_string(), "1.00 Mbit/s");
        assert_eq!(Bytes::new(33_554_432).to_string(), "33.6 MB");
        assert_eq!(Bytes::new(0).to_string(), "0 B");
    }

    #[test]
    fn serialisation_time_rounds_up_and_never_divides_by_zero() {
        assert_eq!(Bytes::new(1000) / Rate::from_mbps(1), Duration::from_millis(8));
        assert_eq!(Bytes::new(1) / Rate::from_bps(3), Duration::from_nanos(2_666_666_667));
        assert_eq!(Bytes::new(1) / Rate::ZERO, Duration::MAX);
        assert_eq!(Bytes::new(1000).per(Duration::ZERO), Rate::ZERO);
    }
}
