//! The rate of a link over time, from a file: what a mobile network carried, or anything else that somebody has measured.
//!
//! Two forms are read; lines that are empty or begin with `#` say nothing.
//!
//! - Two columns: a time in seconds, and the rate from then on (`1.5M`, or bits per second), separated by blanks or a comma.
//! - One column, as Mahimahi's `mm-link` takes it: each line is a time in whole milliseconds at which a packet of 1500 bytes may
//!   leave. The rate is that of every 100 ms; where nothing may leave for longer, that of one packet in the gap.

use std::time::Duration;

use weir_units::Rate;

/// The rate from each time on, the times rising from the start of the trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RateTrace(pub Vec<(Duration, Rate)>);

impl RateTrace {
    /// Reads `text`; the error names the line.
    pub(super) fn read(text: &str) -> Result<RateTrace, String> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let lines: Vec<(usize, Vec<&str>)> = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(number, line)| (number, line.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect()))
            .collect();
        let trace = match lines.first() {
            None => return Err("it has no line with a time in it".to_owned()),
            Some((_, first)) if first.len() == 1 => opportunities(&lines)?,
            Some(_) => steps(&lines)?,
        };
        match trace.windows(2).position(|two| two[1].0 <= two[0].0) {
            Some(at) => Err(format!("its times do not rise: {:?} comes after {:?}", trace[at + 1].0, trace[at].0)),
            None => Ok(RateTrace(trace)),
        }
    }
}

type Line<'a> = (usize, Vec<&'a str>);

fn steps(lines: &[Line<'_>]) -> Result<Vec<(Duration, Rate)>, String> {
    let step = |(number, words): &Line<'_>| {
        let [at, rate] = &words[..] else { return Err(format!("line {number}: expected a time and a rate")) };
        let at = at.parse().ok().and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        let at = at.ok_or_else(|| format!("line {number}: {:?} is no time in seconds", words[0]))?;
        let rate = rate.parse().ok().filter(|rate: &Rate| *rate > Rate::ZERO);
        let rate = rate.ok_or_else(|| format!("line {number}: {:?} is no rate above 0", words[1]))?;
        Ok((at, rate))
    };
    lines.iter().map(step).collect()
}

fn opportunities(lines: &[Line<'_>]) -> Result<Vec<(Duration, Rate)>, String> {
    let mut counts: Vec<u64> = Vec::new();
    for (number, words) in lines {
        let at: Option<u64> = if let [word] = &words[..] { word.parse().ok() } else { None };
        let at = at.ok_or_else(|| format!("line {number}: expected a time in whole milliseconds"))?;
        let bin = (at / BIN_MILLIS) as usize;
        if bin > LONGEST_BINS {
            return Err(format!("line {number}: {at} ms is more than a day"));
        }
        counts.resize(counts.len().max(bin + 1), 0);
        counts[bin] += 1;
    }
    let mut steps = Vec::new();
    let mut next = 0;
    while next < counts.len() {
        let empty = counts[next..].iter().take_while(|count| **count == 0).count();
        let (bins, packets) = if empty > 0 { (empty as u64, 1) } else { (1, counts[next]) };
        let rate = Rate::from_bps(packets * PACKET_BITS * 1000 / (bins * BIN_MILLIS));
        steps.push((Duration::from_millis(next as u64 * BIN_MILLIS), rate.max(Rate::from_bps(1))));
        next += bins as usize;
    }
    Ok(steps)
}

const BIN_MILLIS: u64 = 100;
const PACKET_BITS: u64 = 1500 * 8;
/// A day.
const LONGEST_BINS: usize = 864_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u128, u64)> {
        let RateTrace(steps) = RateTrace::read(text).expect(text);
        steps.iter().map(|(at, rate)| (at.as_millis(), rate.bps())).collect()
    }

    #[test]
    fn two_columns_are_times_and_rates() {
        assert_eq!(read("# a comment\n0 2M\n\n0.5, 300000\n2\t1k\n"), [(0, 2_000_000), (500, 300_000), (2000, 1_000)]);
    }

    #[test]
    fn one_column_is_when_packets_may_leave() {
        assert_eq!(read("10\n20\n20\n150\n"), [(0, 360_000), (100, 120_000)]);
        assert_eq!(read("10\n390\n"), [(0, 120_000), (100, 60_000), (300, 120_000)], "one packet in a gap of 200 ms");
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, why) in [
            ("", "no line"),
            ("# nothing", "no line"),
            ("0 2M\n1", "line 2: expected a time and a rate"),
            ("0 0", "line 1: \"0\" is no rate"),
            ("soon 2M", "line 1: \"soon\" is no time"),
            ("1 2M\n1 3M", "do not rise"),
            ("5\nsix", "line 2: expected a time in whole"),
            ("99999999999", "more than a day"),
        ] {
            let error = RateTrace::read(text).expect_err(text);
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
