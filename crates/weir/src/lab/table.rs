//! Tables for people, in plain text.

use weir_lab::claim::Verdict;
use weir_lab::interval;
use weir_lab::report::{measured, measured_within, verdict_mark};
use weir_lab::results::{Results, Row, Value};

/// Columns as wide as their widest cell, two spaces apart; the last one is as long as it is.
pub(super) fn plain(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A line a point: its parameters, then each metric's mean over the seeds and, if they differ, half of its 95 % confidence interval and
/// their extremes. A single point has a line a metric.
pub(super) fn of_results(results: &Results) -> String {
    let Some(first) = results.rows.first() else { return "no runs\n".to_owned() };
    let parameters: Vec<&String> = first.point.keys().collect();
    let mut metrics: Vec<&String> = results.rows.iter().flat_map(|row| row.metrics.keys()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let points: Vec<&[Row]> = results.rows.chunk_by(|a, b| a.point == b.point).collect();
    if let ([runs], true) = (&points[..], metrics.len() > 1) {
        let line = |metric: &&String| vec![metric.to_string(), over_seeds(runs, metric)];
        let place = parameters.iter().filter_map(|name| Some(vec![name.to_string(), value(runs[0].point.get(*name)?)]));
        return plain(&place.chain(metrics.iter().map(line)).collect::<Vec<_>>());
    }
    let mut rows = vec![parameters.iter().chain(&metrics).map(ToString::to_string).collect::<Vec<_>>()];
    for runs in points {
        let point = parameters.iter().map(|name| runs[0].point.get(*name).map_or("—".to_owned(), value));
        rows.push(point.chain(metrics.iter().map(|metric| over_seeds(runs, metric))).collect());
    }
    plain(&rows)
}

/// The verdicts as a table in Markdown.
pub(super) fn markdown(verdicts: &[Verdict]) -> String {
    let mut text = "| id | the paper says | measured | holds when | |\n|---|---|---|---|---|\n".to_owned();
    for verdict in verdicts {
        let [number, band] = numbers(verdict);
        let detail = if verdict.detail.is_empty() { String::new() } else { format!(" ({})", verdict.detail) };
        let cells = [verdict.id.as_str(), &format!("{}{detail}", verdict.claim), &number, &band, &mark(verdict)];
        text += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text
}

/// The verdict's sign, with a word where the sign alone says too little.
fn mark(verdict: &Verdict) -> String {
    let sign = verdict_mark(verdict);
    if verdict.is_not_judged() { format!("{sign} not judged") } else { sign.to_string() }
}

/// What was measured, and the band for it.
pub(super) fn numbers(verdict: &Verdict) -> [String; 2] {
    let none = if verdict.is_not_judged() { "not judged" } else { "no value" };
    [
        verdict.measured.map_or(none.to_owned(), |value| measured_within(value, verdict.uncertainty)),
        verdict.band.map_or("reported".to_owned(), |band| band.to_string()),
    ]
}

fn value(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Word(word) => word.clone(),
    }
}

fn over_seeds(runs: &[Row], metric: &str) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|row| row.metrics.get(metric).copied()).collect();
    if values.is_empty() {
        return "—".to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let missing = match runs.len() - values.len() {
        0 => String::new(),
        n => format!(", {n} without"),
    };
    if low == high && missing.is_empty() {
        return measured(mean);
    }
    let mean = measured_within(mean, interval::of_mean(&values));
    format!("{mean} [{}–{}{missing}]", measured(low), measured(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn columns_line_up_and_lines_end_without_spaces() {
        let rows = vec![vec!["a".to_owned(), "long cell".to_owned()], vec!["bbb".to_owned(), "c".to_owned()]];
        assert_eq!(plain(&rows), "a    long cell\nbbb  c\n");
    }

    #[test]
    fn a_point_is_a_line_with_means_extremes_and_what_is_missing() {
        let row = |seed: u64, loss: Option<f64>| Row {
            point: BTreeMap::from([("clients".to_owned(), Value::Number(2.0))]),
            seed,
            metrics: loss.map(|loss| ("loss".to_owned(), loss)).into_iter().chain([("rate".to_owned(), 5.0)]).collect(),
            series: BTreeMap::new(),
        };
        let rows = vec![row(1, Some(0.5)), row(2, Some(1.5)), row(3, None)];
        let of = |rows| of_results(&Results { scenario: "x".to_owned(), rows });
        let alone = of(rows.clone());
        assert_eq!(alone, "clients  2\nloss     1 ± 6.35 [0.5–1.5, 1 without]\nrate     5\n");
        let other = Row { point: BTreeMap::from([("clients".to_owned(), Value::Number(4.0))]), ..row(1, Some(2.0)) };
        let two = of(rows.into_iter().chain([other]).collect());
        assert_eq!(
            two,
            "clients  loss                           rate\n2        1 ± 6.35 [0.5–1.5, 1 without]  5\n4        2                              5\n"
        );
    }
}
