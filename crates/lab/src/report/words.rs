//! Numbers and verdicts as people read them.

use crate::claim::{Ruling, Verdict};

/// A measured number with as many digits as matter: `0`, `0.0312`, `1.24`, `2916`.
pub fn measured(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 999.5 || v == 0.0 => 0,
        v if v >= 99.95 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.00095 => 4,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number and half of its confidence interval: `0.345 ± 0.021`.
pub fn measured_within(value: f64, uncertainty: Option<f64>) -> String {
    match uncertainty.filter(|half| *half > 0.0) {
        Some(half) => format!("{} ± {}", measured(value), measured(half)),
        None => measured(value),
    }
}

/// The verdict as one sign.
pub fn verdict_mark(verdict: &Verdict) -> char {
    match verdict.verdict {
        Ruling::Holds => '✓',
        Ruling::Fails => '✗',
        Ruling::Reported => '·',
        Ruling::NotJudged => '–',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        let texts = [0.0, 1e-5, 0.03126, 0.5, 1.2345, 123.456, 2916.4, -0.25].map(measured);
        assert_eq!(texts, ["0", "1.00e-5", "0.0313", "0.5", "1.23", "123.5", "2916", "-0.25"]);
    }
}
