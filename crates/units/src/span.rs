//! Spans of time as people write them.

use core::fmt;
use core::time::Duration;

/// Reads a span: a number of 0 or more followed by `ns`, `us`, `ms`, `s`, `m` or `h`, such as `20ms`, `2.5s`, `10m`.
///
/// A bare number is refused, since nobody can tell what it means; `0` alone is allowed, since it means the same in all.
/// Rounded to a nanosecond; at most 292 years.
pub fn parse_span(text: &str) -> Result<Duration, ParseSpanError> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(ParseSpanError)?;
    let (number, unit) = text.split_at(unit_at);
    let nanos_per_unit = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(ParseSpanError),
    };
    let number: f64 = number.trim_end().parse().map_err(|_| ParseSpanError)?;
    let nanos = crate::math::round(number * nanos_per_unit);
    if (0.0..9.2e18).contains(&nanos) { Ok(Duration::from_nanos(nanos as u64)) } else { Err(ParseSpanError) }
}

/// A span as [`parse_span`] reads it, exactly: `100ms`, `2.5s`, `10m`.
///
/// In minutes and hours only if they are whole ones; otherwise in the largest unit of which there is at least one.
pub fn show_span(span: Duration) -> impl fmt::Display {
    Shown(span)
}

struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (unit, name) = match nanos {
            0 => (NANOS_PER_SEC, "s"),
            _ if nanos.is_multiple_of(3600 * NANOS_PER_SEC) => (3600 * NANOS_PER_SEC, "h"),
            _ if nanos.is_multiple_of(60 * NANOS_PER_SEC) => (60 * NANOS_PER_SEC, "m"),
            NANOS_PER_SEC.. => (NANOS_PER_SEC, "s"),
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "us"),
            _ => (1, "ns"),
        };
        write_exact(f, nanos, unit)?;
        f.write_str(name)
    }
}

/// `n` in units of `unit`, a power of ten or a divisor of `n`, with all decimals that it has.
pub(crate) fn write_exact(f: &mut fmt::Formatter<'_>, n: u128, unit: u128) -> fmt::Result {
    write!(f, "{}", n / unit)?;
    let (mut rest, mut digit) = (n % unit, unit / 10);
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        write!(f, "{}", rest / digit)?;
        (rest, digit) = (rest % digit, digit / 10);
    }
    Ok(())
}

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A span that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseSpanError;

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number and a unit (ns, us, ms, s, m, h), such as 20ms or 2.5s")
    }
}

impl core::error::Error for ParseSpanError {}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_are_shown_as_they_are_read() {
        for text in ["0s", "1ns", "1.5us", "100ms", "2.5s", "90s", "1m", "10m", "36h", "1000000.000000001s"] {
            assert_eq!(show_span(parse_span(text).expect("a span")).to_string(), text);
        }
    }

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, millis) in
            [("20ms", 20), ("2.5s", 2_500), ("10m", 600_000), ("0", 0), ("5000 us", 5), ("1h", 3_600_000)]
        {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn spans_without_a_meaning_are_refused() {
        for text in ["", "20", "ms", "-1s", "nans", "1e30s", "1 fortnight", "infs"] {
            assert_eq!(parse_span(text), Err(ParseSpanError), "{text}");
        }
    }
}
