//! Every form of a claim, green and red, against tables made by hand.

use std::collections::BTreeMap;

use super::*;
use crate::results::{Results, Row, Value};

/// A claim as a scenario's file has it.
fn claim(keys: &str) -> Claim {
    toml::from_str(&format!("id = \"c\"\nsays = \"it is so\"\n{keys}")).expect("a claim")
}

/// A table from lines: parameters, then `|`, then metrics: `variant=avmrc clients=2 | loss=0.5`. Lines with equal
/// parameters get the seeds 1, 2, 3 …
fn table(lines: &str) -> Results {
    let mut rows: Vec<Row> = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (point, metrics) = line.split_once('|').expect("a bar");
        let pairs = |text: &str| -> Vec<(String, String)> {
            let split = text.split_whitespace().map(|pair| pair.split_once('=').expect("name=value"));
            split.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let value = |text: String| text.parse().map_or(Value::Word(text), Value::Number);
        let point: BTreeMap<_, _> = pairs(point).into_iter().map(|(name, text)| (name, value(text))).collect();
        let metrics = pairs(metrics).into_iter().map(|(name, text)| (name, text.parse().expect("a number"))).collect();
        let seed = 1 + rows.iter().filter(|row| row.point == point).count() as u64;
        rows.push(Row { point, seed, metrics, series: BTreeMap::new() });
    }
    Results { scenario: "paper/fig".to_owned(), rows }
}

/// What is measured, and whether it holds.
fn verdict(keys: &str, lines: &str) -> (Option<f64>, Option<bool>) {
    let verdict = judge(&claim(keys), &table(lines));
    (verdict.measured, verdict.holds)
}

/// The claim holds with the first band and does not with the second; both measure `value`.
#[track_caller]
fn green_and_red(keys: &str, lines: &str, value: f64, green: &str, red: &str) {
    for (band, holds) in [(green, true), (red, false)] {
        let (measured, held) = verdict(&format!("{keys}\nholds = {band}"), lines);
        let measured = measured.expect("a number");
        assert!((measured - value).abs() < 1e-9, "{keys}: {measured} is not {value}");
        assert_eq!(held, Some(holds), "{keys}, {band}: {measured}");
    }
}

const CONVERGENCE: &str = "
    variant=avmrc clients=1 | time=9
    variant=avmrc clients=1 | time=11
    variant=rmrc clients=1 | time=10
    variant=rmrc clients=1 | time=10
    variant=avmrc clients=2 | time=2
    variant=avmrc clients=2 | time=4
    variant=rmrc clients=2 | time=6
    variant=rmrc clients=2 | time=6
    variant=avmrc clients=4 | time=3
    variant=avmrc clients=4 | time=3
    variant=rmrc clients=4 | time=4
    variant=rmrc clients=4 | time=8";

#[test]
fn a_ratio_of_two_variants_is_taken_point_by_point_and_its_mean_over_the_points_meant() {
    let keys = "metric = 'time'\nwhere = { variant = 'avmrc', clients = { min = 2 } }
        ratio_to = { where = { variant = 'rmrc' } }\npoints = 'mean'";
    green_and_red(keys, CONVERGENCE, 0.5, "{ max = 0.5 }", "{ below = 0.5 }");
}

#[test]
fn a_difference_is_taken_like_a_ratio() {
    let keys = "metric = 'time'\nwhere = { variant = 'avmrc' }\ndifference_to = { where = { variant = 'rmrc' } }\npoints = 'min'";
    green_and_red(keys, CONVERGENCE, -3.0, "{ min = -3 }", "{ above = -3 }");
}

#[test]
fn every_point_must_hold_and_the_worst_is_shown() {
    let keys = "metric = 'time'\nwhere = { variant = 'avmrc' }";
    green_and_red(keys, CONVERGENCE, 10.0, "{ max = 10 }", "{ max = 9.9 }");
    let red = judge(&claim(&format!("{keys}\nholds = {{ max = 9 }}")), &table(CONVERGENCE));
    assert_eq!((red.detail.as_str(), red.is_red()), ("at clients = 1, the 95 % interval straddles the band", true));
}

#[test]
fn some_point_is_enough_and_the_best_is_shown() {
    let keys = "metric = 'time'\nwhere = { variant = 'avmrc' }\npoints = 'some'";
    green_and_red(keys, CONVERGENCE, 3.0, "{ max = 3 }", "{ max = 2 }");
}

#[test]
fn points_have_a_median_a_smallest_a_largest_and_a_spread() {
    let lines = "n=1 | v=2\nn=2 | v=8\nn=3 | v=3";
    green_and_red("metric = 'v'\npoints = 'median'", lines, 3.0, "{ exact = 3 }", "{ exact = 2 }");
    green_and_red("metric = 'v'\npoints = 'min'", lines, 2.0, "{ max = 2 }", "{ above = 2 }");
    green_and_red("metric = 'v'\npoints = 'max'", lines, 8.0, "{ min = 8 }", "{ below = 8 }");
    green_and_red("metric = 'v'\npoints = 'spread'", lines, 4.0, "{ max = 4 }", "{ max = 3.9 }");
    green_and_red("metric = 'v'\npoints = 'range'", lines, 6.0, "{ max = 6 }", "{ below = 6 }");
    let within = "metric = 'v'\npoints = { share_within = { min = 2, max = 3 } }";
    green_and_red(within, lines, 2.0 / 3.0, "{ min = 0.66 }", "{ min = 0.67 }");
    assert_eq!(judge(&claim(within), &table(lines)).detail, "2 of 3 points");
}

/// Cells of two queues and three rates: a session, and a TCP in its place.
const CELLS: &str = "variant=session queue=fifo rate=1 | v=1
    variant=session queue=fifo rate=2 | v=2
    variant=session queue=fifo rate=3 | v=4
    variant=session queue=fair rate=1 | v=8
    variant=session queue=fair rate=2 | v=3
    variant=session queue=fair rate=3 | v=3
    variant=tcp queue=fifo rate=1 | v=2
    variant=tcp queue=fifo rate=2 | v=2
    variant=tcp queue=fifo rate=3 | v=2
    variant=tcp queue=fair rate=1 | v=1
    variant=tcp queue=fair rate=2 | v=3
    variant=tcp queue=fair rate=3 | v=3";

#[test]
fn points_are_kept_apart_by_a_parameter_and_the_rest_is_reduced_in_turn() {
    let keys = "metric = 'v'\nwhere = { variant = 'session' }\nratio_to = { where = { variant = 'tcp' } }
        points = 'geometric_mean'\nby = 'queue'";
    // Behind fifo 0.5, 1 and 2, whose geometric mean is 1; behind fair 8, 1 and 1.
    green_and_red(keys, CELLS, 2.0, "{ min = 0.5, max = 2.1 }", "{ min = 0.9, max = 1.1 }");
    let red = judge(&claim(&format!("{keys}\nholds = {{ max = 1.1 }}")), &table(CELLS));
    assert_eq!(red.detail, "at queue = fair");
    assert!(
        (judge(&claim(&format!("{keys}\nrest = 'min'")), &table(CELLS)).measured.unwrap_or(0.0) - 1.0).abs() < 1e-9
    );
}

#[test]
fn points_are_left_out_by_what_they_are_or_by_what_the_other_side_is_there() {
    let keys = "metric = 'v'\nwhere = { variant = 'session' }\npoints = 'max'";
    let other = |when: &str| format!("{keys}\nratio_to = {{ where = {{ variant = 'tcp' }}, when = {when} }}");
    green_and_red(&other("{ min = 0 }"), CELLS, 8.0, "{ max = 8 }", "{ max = 2 }");
    green_and_red(&other("{ min = 2 }"), CELLS, 2.0, "{ max = 2 }", "{ max = 1 }");
    let none = judge(&claim(&other("{ min = 9 }")), &table(CELLS));
    assert_eq!(none.detail, "at no point is the other side what it must be");
    let except = "except = [{ queue = 'fair', rate = 1 }, { rate = { min = 3 } }]";
    green_and_red(&format!("{keys}\n{except}"), CELLS, 3.0, "{ max = 3 }", "{ max = 2 }");
    let words = claim(&format!("{}\n{except}", other("{ min = 2 }"))).in_words();
    assert!(words.contains(", but not where queue = fair, rate = 1, but not where rate ≥ 3"), "{words}");
    assert!(words.contains("over that at variant = tcp when that is ≥ 2; largest over points"), "{words}");
}

const SEEDS: &str =
    "variant=a | v=1\nvariant=a | v=2\nvariant=a | v=6\nvariant=b | v=1\nvariant=b | v=1\nvariant=b | v=2";

#[test]
fn seeds_have_a_mean_a_median_and_extremes_and_each_can_be_asked() {
    let of_a = |seeds: &str| format!("metric = 'v'\nwhere = {{ variant = 'a' }}\nseeds = '{seeds}'");
    green_and_red(&of_a("mean"), SEEDS, 3.0, "{ min = 3 }", "{ above = 3 }");
    green_and_red(&of_a("median"), SEEDS, 2.0, "{ max = 2 }", "{ below = 2 }");
    green_and_red(&of_a("min"), SEEDS, 1.0, "{ max = 1 }", "{ min = 1.5 }");
    green_and_red(&of_a("max"), SEEDS, 6.0, "{ max = 6 }", "{ below = 6 }");
    assert_eq!(verdict(&format!("{}\nholds = {{ below = 7 }}", of_a("every")), SEEDS), (Some(6.0), Some(true)));
    assert_eq!(verdict(&format!("{}\nholds = {{ above = 1 }}", of_a("every")), SEEDS), (Some(1.0), Some(false)));
}

#[test]
fn means_are_compared_as_means_and_extremes_seed_by_seed() {
    let ratio = |seeds: &str| {
        format!(
            "metric = 'v'\nwhere = {{ variant = 'a' }}\nseeds = '{seeds}'\nratio_to = {{ where = {{ variant = 'b' }} }}"
        )
    };
    green_and_red(&ratio("mean"), SEEDS, 9.0 / 4.0, "{ min = 2 }", "{ max = 2 }");
    green_and_red(&ratio("max"), SEEDS, 3.0, "{ max = 3 }", "{ below = 3 }");
    green_and_red(&ratio("min"), SEEDS, 1.0, "{ min = 1 }", "{ above = 1 }");
    let unequal = format!("{SEEDS}\nvariant=a | v=5");
    assert_eq!(verdict(&(ratio("max") + "\nholds = { max = 9 }"), &unequal), (None, Some(false)));
}

#[test]
fn two_metrics_are_divided_run_by_run_or_compared_after_their_means() {
    let lines = "| ours=2 theirs=1\n| ours=2 theirs=2";
    green_and_red("metric = 'ours'\nper = 'theirs'", lines, 1.5, "{ max = 1.5 }", "{ max = 1.4 }");
    let means = "metric = 'ours'\nratio_to = { metric = 'theirs' }";
    green_and_red(means, lines, 4.0 / 3.0, "{ max = 1.4 }", "{ min = 1.4 }");
}

#[test]
fn a_ratio_may_go_to_another_metric_of_another_variant() {
    let lines = "variant=avmrc n=1 | session=8\nvariant=ftp n=1 | flow=10\nvariant=avmrc n=2 | session=3\nvariant=ftp n=2 | flow=4";
    let keys = "metric = 'session'\nwhere = { variant = 'avmrc' }\nratio_to = { where = { variant = 'ftp' }, metric = 'flow' }";
    green_and_red(keys, lines, 0.75, "{ min = 0.5, max = 2 }", "{ min = 0.8 }");
}

#[test]
fn the_distance_from_a_number_is_compared_like_any_value() {
    let lines = "fine=no | ratio=0.6\nfine=yes | ratio=1.1";
    let keys = "metric = 'ratio'\ndistance_from = 1\nwhere = { fine = 'yes' }\nratio_to = { where = { fine = 'no' } }";
    green_and_red(keys, lines, 0.25, "{ below = 1 }", "{ below = 0.2 }");
}

#[test]
fn a_trend_is_its_steepest_step_the_wrong_way_in_the_order_of_the_numbers() {
    let falls = "n=16 | loss=1\nn=2 | loss=4\nn=8 | loss=2";
    let flat = "n=16 | loss=2\nn=2 | loss=4\nn=8 | loss=2";
    assert_eq!(verdict("metric = 'loss'\nalong = 'n'\npoints = 'falling'", falls), (Some(-1.0), Some(true)));
    assert_eq!(verdict("metric = 'loss'\nalong = 'n'\npoints = 'falling'", flat), (Some(0.0), Some(false)));
    assert_eq!(verdict("metric = 'loss'\nalong = 'n'\npoints = 'rising'", falls), (Some(-2.0), Some(false)));
    let rises = "n=2 | loss=1\nn=4 | loss=3";
    assert_eq!(verdict("metric = 'loss'\nalong = 'n'\npoints = 'rising'", rises), (Some(2.0), Some(true)));
    let one = verdict("metric = 'loss'\nalong = 'n'\npoints = 'rising'", "n=2 | loss=1");
    assert_eq!(one, (None, Some(false)), "one point is no trend");
}

#[test]
fn the_value_at_one_place_is_put_over_that_at_another() {
    let lines = "n=16 | time=10\nn=32 | time=12\nn=64 | time=15";
    let keys = "metric = 'time'\nalong = 'n'\npoints = { quotient = { at = 64, over = 32 } }";
    green_and_red(keys, lines, 1.25, "{ max = 1.3 }", "{ max = 1.2 }");
    let nowhere = "metric = 'time'\nalong = 'n'\npoints = { quotient = { at = 128, over = 32 } }\nholds = { max = 9 }";
    assert_eq!(verdict(nowhere, lines), (None, Some(false)));
}

#[test]
fn rank_correlation_goes_with_a_parameter_or_with_a_metric() {
    let lines = "n=1 | ratio=3 window=5\nn=2 | ratio=2 window=9\nn=3 | ratio=1 window=7";
    green_and_red("metric = 'ratio'\npoints = { spearman = 'n' }", lines, -1.0, "{ max = -0.7 }", "{ min = -0.7 }");
    green_and_red(
        "metric = 'ratio'\npoints = { spearman = 'window' }",
        lines,
        -0.5,
        "{ max = -0.5 }",
        "{ max = -0.7 }",
    );
}

#[test]
fn one_parameter_is_reduced_first_and_then_the_rest() {
    let lines = "period=25 n=1 | rate=10\nperiod=50 n=1 | rate=12\nperiod=25 n=2 | rate=6\nperiod=50 n=2 | rate=3";
    let keys = "metric = 'rate'\nalong = 'period'\npoints = 'spread'";
    green_and_red(keys, lines, 2.0, "{ max = 2 }", "{ max = 1.25 }");
    green_and_red(&format!("{keys}\nrest = 'min'"), lines, 1.2, "{ max = 1.25 }", "{ max = 1.1 }");
}

#[test]
fn one_value_of_a_parameter_must_serve_all_of_another() {
    let lines = "max_p=0.01 n=16 | ratio=1.3\nmax_p=0.01 n=32 | ratio=1\nmax_p=0.1 n=16 | ratio=1.05\nmax_p=0.1 n=32 | ratio=0.95";
    let keys = "metric = 'ratio'\nalong = 'n'\npoints = 'every'\nrest = 'some'";
    let (_, holds) = verdict(&format!("{keys}\nholds = {{ min = 0.9, max = 1.1 }}"), lines);
    assert_eq!(holds, Some(true), "max_p = 0.1 serves both");
    let (_, holds) = verdict(&format!("{keys}\nholds = {{ min = 0.96, max = 1.04 }}"), lines);
    assert_eq!(holds, Some(false), "each n is served, but not by one max_p");
}

#[test]
fn reduced_numbers_of_two_variants_can_be_compared() {
    let lines = "variant=fixed n=30 | rate=8\nvariant=fixed n=150 | rate=6\nvariant=avmrc n=30 | rate=8\nvariant=avmrc n=150 | rate=4";
    let keys =
        "metric = 'rate'\nwhere = { variant = 'fixed' }\nalong = 'n'\npoints = { quotient = { at = 150, over = 30 } }
        ratio_to = { where = { variant = 'avmrc' }, reduced = true }";
    green_and_red(keys, lines, 1.5, "{ above = 1 }", "{ above = 1.5 }");
}

#[test]
fn several_variants_each_compare_with_the_same_other() {
    let lines = "variant=a n=1 | v=2\nvariant=b n=1 | v=9\nvariant=ftp n=1 | v=3";
    let keys = "metric = 'v'\nwhere = { variant = ['a', 'b'] }\nratio_to = { where = { variant = 'ftp' } }";
    green_and_red(keys, lines, 3.0, "{ max = 3 }", "{ max = 2 }");
}

#[test]
fn without_a_band_the_number_is_reported() {
    let reported = judge(&claim("metric = 'v'\npoints = 'mean'"), &table("n=1 | v=2\nn=2 | v=4"));
    assert_eq!((reported.measured, reported.holds, reported.band), (Some(3.0), None, None));
    assert!(!reported.is_red());
}

#[test]
fn missing_data_is_red_whatever_the_band() {
    let green = "metric = 'v'\nholds = { min = 0 }";
    assert_eq!(verdict(green, "| v=1"), (Some(1.0), Some(true)), "the same claim with its data");
    for (keys, lines, why) in [
        (green, "", "no run"),
        (green, "| w=1", "1 of 1 runs have no value of v"),
        (green, "| v=1\n| w=1", "1 of 2 runs have no value of v"),
        (green, "| v=NaN", "1 of 1 runs have no value of v"),
        (green, "| v=inf", "1 of 1 runs have no value of v"),
        ("metric = 'v'", "| w=1", "1 of 1 runs have no value of v"),
        ("metric = 'v'\nwhere = { n = 3 }\nholds = { min = 0 }", "n=2 | v=1", "no run has n = 3"),
        ("metric = 'v'\nper = 'w'\nholds = { min = 0 }", "| v=1", "no value of w"),
        ("metric = 'v'\nper = 'w'\nholds = { min = 0 }", "| v=1 w=0", "w is 0"),
        ("metric = 'v'\nratio_to = { metric = 'w' }\nholds = { min = 0 }", "| v=0 w=0", "w is 0"),
        (
            "metric = 'v'\npoints = { spearman = 'n' }\nholds = { max = 1 }",
            "n=1 | v=1\nn=2 | v=1",
            "not a finite number",
        ),
        (
            "metric = 'v'\nseeds = 'max'\nratio_to = { metric = 'w' }\nholds = { min = 0 }",
            "| v=1 w=1\n| v=0 w=0",
            "w is 0",
        ),
        (
            "metric = 'v'\nwhere = { variant = 'a' }\nratio_to = { where = { variant = 'b' } }\nholds = { min = 0 }",
            "variant=a | v=1",
            "there is no run at variant = b",
        ),
    ] {
        let verdict = judge(&claim(keys), &table(lines));
        assert_eq!((verdict.measured, verdict.holds), (None, Some(false)), "{keys} on {lines}");
        assert!(verdict.detail.contains(why), "{keys} on {lines}: {}", verdict.detail);
    }
}

#[test]
fn several_numbers_without_band_or_reduction_are_red_and_not_chosen_from() {
    let verdict = judge(&claim("metric = 'v'"), &table("n=1 | v=2\nn=2 | v=4"));
    assert!(verdict.is_red() && verdict.detail.contains("no band"), "{}", verdict.detail);
}

#[test]
fn a_name_that_does_not_exist_is_an_error_with_what_exists() {
    let names = Names::of_results(&table("variant=a clients=1 | loss=1 time=2"));
    let error = |keys: &str| claim(keys).check(&names).expect_err(keys).to_string();
    assert_eq!(
        error("metric = 'los'\nholds = { min = 0 }"),
        "claim \"c\": there is no metric \"los\"; there are loss, time; did you mean \"loss\"?"
    );
    assert_eq!(
        error("metric = 'loss'\nwhere = { client = 1 }\nholds = { min = 0 }"),
        "claim \"c\": there is no swept parameter \"client\"; there are clients, variant; did you mean \"clients\"?"
    );
    for keys in [
        "metric = 'loss'\nper = 'x'",
        "metric = 'loss'\nalong = 'x'\npoints = 'mean'",
        "metric = 'loss'\nratio_to = { metric = 'x' }",
        "metric = 'loss'\ndifference_to = { where = { x = 1 } }",
        "metric = 'loss'\npoints = { spearman = 'x' }",
    ] {
        assert!(error(keys).contains("\"x\""), "{keys}");
    }
    claim("metric = 'loss'\npoints = { spearman = 'time' }").check(&names).expect("a metric may be ranked against");
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let names = Names::of_results(&table("variant=a n=1 | v=1 w=1"));
    for (keys, why) in [
        ("metric = 'v'\nratio_to = { metric = 'w' }\ndifference_to = { metric = 'w' }", "exclude"),
        ("metric = 'v'\npoints = 'rising'", "need along"),
        ("metric = 'v'\npoints = { quotient = { at = 1, over = 2 } }", "need along"),
        ("metric = 'v'\nrest = 'mean'", "needs along"),
        ("metric = 'v'\nalong = 'n'\npoints = 'mean'\nrest = 'rising'", "one of"),
        ("metric = 'v'\nholds = { min = 2, max = 1 }", "band"),
        ("metric = 'v'\nseeds = 'every'", "needs a band"),
        ("metric = 'v'\nratio_to = {}", "itself"),
        ("metric = 'v'\nratio_to = { metric = 'w', reduced = true }\nholds = { max = 1 }", "reduction"),
    ] {
        let error = claim(keys).check(&names).expect_err(keys).to_string();
        assert!(error.contains(why), "{keys}: {error}");
    }
}

#[test]
fn unknown_keys_are_refused() {
    let read = |keys: &str| toml::from_str::<Claim>(&format!("id = 'c'\nsays = ''\nmetric = 'v'\n{keys}"));
    assert!(read("").is_ok());
    for keys in ["bands = 1", "points = 'avg'", "holds = { atmost = 1 }", "ratio_to = { variant = 'a' }"] {
        assert!(read(keys).is_err(), "{keys}");
    }
}

#[test]
fn how_it_was_measured_can_be_read() {
    let text = claim(
        "metric = 'time'\nwhere = { variant = 'avmrc', clients = { min = 2 } }\nratio_to = { where = { variant = 'rmrc' } }
        points = 'mean'",
    );
    let words =
        "mean over seeds of time where clients ≥ 2, variant = avmrc, over that at variant = rmrc; mean over points";
    assert_eq!(text.in_words(), words);
}

#[test]
fn a_verdict_tells_machines_all_of_it() {
    let verdict = judge(&claim("metric = 'v'\nholds = { max = 2 }"), &table("| v=NaN"));
    let json = serde_json::to_value(&verdict).expect("plain data");
    assert_eq!(json["id"], "paper/fig/c");
    assert_eq!(json["claim"], "it is so");
    assert_eq!((&json["measured"], &json["holds"]), (&serde_json::Value::Null, &serde_json::Value::Bool(false)));
    assert_eq!(json["band"], serde_json::json!({ "max": 2.0 }));
}

#[test]
fn a_verdict_that_other_seeds_might_have_turned_says_so() {
    let results = |rates: &[f64]| Results {
        scenario: "x".to_owned(),
        rows: (1..)
            .zip(rates)
            .map(|(seed, rate)| Row {
                point: BTreeMap::new(),
                seed,
                metrics: [("rate".to_owned(), *rate)].into(),
                series: BTreeMap::new(),
            })
            .collect(),
    };
    let claim = |rest: &str| {
        let text = format!("id = 'a'\nsays = 'b'\nmetric = 'rate'\nholds = {{ min = 1 }}\n{rest}");
        toml::from_str::<Claim>(&text).expect("a claim")
    };
    let close = judge(&claim(""), &results(&[0.9, 1.3]));
    assert_eq!((close.holds, close.straddles), (Some(true), true), "{close:?}");
    // t(0.975, 1) = 12.706, and the standard error is 0.2.
    assert!(close.uncertainty.is_some_and(|half| (half - 2.541).abs() < 1e-3), "{close:?}");
    assert!(close.detail.contains("straddles the band"), "{}", close.detail);
    let clear = judge(&claim(""), &results(&[1.30, 1.31]));
    assert_eq!((clear.holds, clear.straddles, clear.detail.as_str()), (Some(true), false, ""));
    let red = judge(&claim(""), &results(&[0.5, 1.3]));
    assert_eq!((red.holds, red.straddles), (Some(false), true));
    for other in [judge(&claim(""), &results(&[1.0])), judge(&claim("seeds = 'min'"), &results(&[0.9, 1.3]))] {
        assert_eq!((other.uncertainty, other.straddles), (None, false), "one run, or an extreme, has no interval");
    }
}
