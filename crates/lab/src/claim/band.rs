//! A band: the numbers in which a claim holds, or that a selection takes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bounds of a number. All that are given must be met; not-a-number meets none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// At least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// At most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// More than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// This, to the last bit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<f64>,
    /// Less than the first of these, or more than the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<(f64, f64)>,
}

impl Band {
    /// Whether `value` is in it.
    pub fn contains(&self, value: f64) -> bool {
        !value.is_nan()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
            && self.above.is_none_or(|above| value > above)
            && self.below.is_none_or(|below| value < below)
            && self.exact.is_none_or(|exact| value == exact)
            && self.outside.is_none_or(|(low, high)| value < low || value > high)
    }

    /// How far inside `value` is, in its unit; negative outside. Not-a-number is as far outside as can be.
    pub(super) fn margin(&self, value: f64) -> f64 {
        if value.is_nan() {
            return f64::NEG_INFINITY;
        }
        let lower = [self.min, self.above].into_iter().flatten().map(|bound| value - bound);
        let upper = [self.max, self.below].into_iter().flatten().map(|bound| bound - value);
        let exact = self.exact.into_iter().map(|exact| -(value - exact).abs());
        let outside = self.outside.into_iter().map(|(low, high)| (low - value).max(value - high));
        lower.chain(upper).chain(exact).chain(outside).fold(f64::INFINITY, f64::min)
    }

    /// Whether it can hold at all: it bounds something, and its bounds leave something.
    pub(super) fn is_sound(&self) -> bool {
        let lower = [self.min, self.above, self.exact].into_iter().flatten();
        let upper = [self.max, self.below, self.exact].into_iter().flatten();
        let (lower, upper) = (lower.fold(f64::NEG_INFINITY, f64::max), upper.fold(f64::INFINITY, f64::min));
        let open = self.above.is_some() || self.below.is_some();
        let bounded = lower > f64::NEG_INFINITY || upper < f64::INFINITY;
        let within = if open { lower < upper } else { lower <= upper };
        match self.outside {
            // Besides other bounds it would need more thought than any claim has asked for.
            Some((low, high)) => !bounded && low <= high,
            None => bounded && within,
        }
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(min), Some(max), None, None, None) = (self.min, self.max, self.above, self.below, self.exact) {
            return write!(f, "{min} to {max}");
        }
        if let Some((low, high)) = self.outside {
            return write!(f, "outside {low} to {high}");
        }
        let parts = [("≥", self.min), ("≤", self.max), (">", self.above), ("<", self.below), ("=", self.exact)];
        let parts: Vec<String> =
            parts.into_iter().filter_map(|(sign, bound)| bound.map(|bound| format!("{sign} {bound}"))).collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(toml: &str) -> Band {
        serde_json::from_str(toml).expect("a band")
    }

    #[test]
    fn bounds_are_met_at_their_ends_and_limits_are_not() {
        let closed = band(r#"{"min":0.5,"max":2}"#);
        assert!(closed.contains(0.5) && closed.contains(2.0) && !closed.contains(2.1) && !closed.contains(0.49));
        let open = band(r#"{"above":0,"below":1}"#);
        assert!(!open.contains(0.0) && open.contains(0.5) && !open.contains(1.0));
        assert!(band(r#"{"exact":0}"#).contains(0.0) && !band(r#"{"exact":0}"#).contains(1e-9));
    }

    #[test]
    fn not_a_number_is_in_no_band() {
        for text in [r#"{"min":0}"#, r#"{"max":0}"#, r#"{"above":0}"#, r#"{"below":0}"#, r#"{"exact":0}"#, "{}"] {
            assert!(!band(text).contains(f64::NAN), "{text}");
            assert_eq!(band(text).margin(f64::NAN), f64::NEG_INFINITY);
        }
    }

    #[test]
    fn outside_is_below_the_one_or_above_the_other() {
        let outside = band(r#"{"outside":[0.5,2]}"#);
        assert!(outside.contains(0.4) && outside.contains(2.1) && !outside.contains(0.5) && !outside.contains(2.0));
        assert_eq!((outside.margin(3.0), outside.margin(1.0)), (1.0, -0.5));
        assert_eq!(outside.to_string(), "outside 0.5 to 2");
        assert!(!outside.contains(f64::NAN));
    }

    #[test]
    fn the_margin_is_the_distance_to_the_nearest_bound() {
        let closed = band(r#"{"min":1,"max":4}"#);
        assert_eq!((closed.margin(2.0), closed.margin(5.0), closed.margin(0.5)), (1.0, -1.0, -0.5));
        assert_eq!(band(r#"{"exact":3}"#).margin(2.0), -1.0);
    }

    #[test]
    fn a_band_that_bounds_nothing_or_leaves_nothing_is_unsound() {
        for text in [
            "{}",
            r#"{"min":2,"max":1}"#,
            r#"{"above":1,"below":1}"#,
            r#"{"exact":1,"min":2}"#,
            r#"{"outside":[2,1]}"#,
            r#"{"outside":[1,2],"min":0}"#,
        ] {
            assert!(!band(text).is_sound(), "{text}");
        }
        for text in [r#"{"min":1,"max":1}"#, r#"{"exact":0}"#, r#"{"above":0}"#, r#"{"outside":[1,2]}"#] {
            assert!(band(text).is_sound(), "{text}");
        }
        assert!(serde_json::from_str::<Band>(r#"{"minimum":1}"#).is_err());
    }

    #[test]
    fn bands_read_as_people_write_them() {
        assert_eq!(band(r#"{"min":0.5,"max":2}"#).to_string(), "0.5 to 2");
        assert_eq!(band(r#"{"above":0,"max":1.5}"#).to_string(), "≤ 1.5, > 0");
        assert_eq!(band(r#"{"exact":0}"#).to_string(), "= 0");
    }
}
