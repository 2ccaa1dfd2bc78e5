//! Small figures: what they show, and that it can be seen.

use std::collections::BTreeMap;

use super::*;
use crate::claim::Names;
use crate::results::{Results, Row, Value};

fn figure(text: &str) -> Figure {
    toml::from_str(text).expect("a figure")
}

fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

/// Two variants at 1, 2, 4 … 64 clients with three seeds each.
fn sweep() -> Results {
    let mut rows = Vec::new();
    for clients in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        for (variant, factor) in [("avmrc", 1.0), ("rmrc", 3.0), ("avmrc-sustained", 0.8)] {
            for seed in 1..=3u64 {
                let point = BTreeMap::from([
                    ("clients".to_owned(), Value::Number(clients)),
                    ("variant".to_owned(), word(variant)),
                ]);
                let time = factor * (4.0 + 0.1 * clients) + 0.4 * seed as f64;
                let loss = if variant == "avmrc-sustained" { 0.0 } else { 0.3 * factor };
                let metrics = BTreeMap::from([("time".to_owned(), time), ("loss".to_owned(), loss)]);
                let level =
                    (0..400).map(|i| (f64::from(i) * 0.5, f64::from(7 + (i / 40) % 2) * factor / 2.0)).collect();
                rows.push(Row { point, seed, metrics, series: BTreeMap::from([("level".to_owned(), level)]) });
            }
        }
    }
    Results { scenario: "paper/fig".to_owned(), rows }
}

const SWEEP: &str = r#"
title = "Convergence and loss"
[[panel]]
title = "Convergence time"
x = { of = "clients", label = "clients", scale = "log" }
y = { of = "time", label = "convergence time", unit = "s" }
names = { avmrc = "AVMRC", rmrc = "RMRC", avmrc-sustained = "AVMRC, sustained" }
[[panel]]
title = "Steady-state loss"
x = { of = "clients", label = "clients" }
y = { of = "loss", label = "loss", unit = "%" }
names = { avmrc = "AVMRC", rmrc = "RMRC", avmrc-sustained = "AVMRC, sustained" }
[[panel]]
title = "One run"
where = { clients = 1 }
style = "steps"
x = { of = "time", label = "time", unit = "s" }
y = { of = "level", label = "level" }
names = { avmrc = "AVMRC", rmrc = "RMRC", avmrc-sustained = "AVMRC, sustained" }
guide = [{ y = 7, name = "highest that fits" }]
"#;

#[test]
fn a_small_figure_is_drawn_as_it_was() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/figure/golden.svg");
    let small = r#"
        [[panel]]
        title = "Convergence time"
        where = { clients = { max = 4 }, variant = ["avmrc", "rmrc"] }
        x = { of = "clients", label = "clients", scale = "log" }
        y = { of = "time", label = "time", unit = "s" }
        names = { avmrc = "AVMRC", rmrc = "RMRC" }
        guide = [{ y = 10, name = "ten" }]"#;
    let drawn = figure(small).svg(&sweep(), "One session");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(golden, &drawn).expect("the source tree can be written");
    }
    let before = std::fs::read_to_string(golden).expect("WEIR_BLESS=1 cargo test writes it");
    assert!(drawn == before, "look at the picture; if it is right, run with WEIR_BLESS=1");
}

#[test]
fn a_curve_has_the_mean_of_its_runs_and_its_confidence_interval() {
    let figure = figure(SWEEP);
    let (curves, _) = figure.panels[0].curves(&sweep());
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["AVMRC", "RMRC", "AVMRC, sustained"]);
    let first = curves[0].points[0];
    assert_eq!((first.x, curves[0].points.len()), (1.0, 7));
    // Three runs from 4.5 to 5.3: t(0.975, 2) = 4.303 standard errors of 0.2309.
    for (value, expected) in [(first.low, 4.9 - 0.9937), (first.y, 4.9), (first.high, 4.9 + 0.9937)] {
        assert!((value - expected).abs() < 1e-4, "{value} is not {expected}");
    }
}

#[test]
fn over_time_one_run_is_shown_and_its_steps_hold_until_the_next() {
    let figure = figure(SWEEP);
    let (curves, _) = figure.panels[2].curves(&sweep());
    assert_eq!((curves.len(), curves[0].points.len()), (3, 400));
    let svg = figure.svg(&sweep(), "");
    assert_eq!(svg.matches("class=\"l thin\"").count(), 3);
}

#[test]
fn several_metrics_and_words_on_the_axis_are_told_apart() {
    let text = "[[panel]]\nwhere = { clients = 1 }\nx = { of = 'variant', label = 'scheme' }\n\
        y = { of = ['time', 'loss'], label = 'value' }\nnames = { time = 'convergence time', avmrc = 'AVMRC' }";
    let figure = figure(text);
    let (curves, words) = figure.panels[0].curves(&sweep());
    assert_eq!(curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>(), ["convergence time", "loss"]);
    assert_eq!(words, ["avmrc", "rmrc", "avmrc-sustained"]);
    let svg = figure.svg(&sweep(), "");
    assert!(svg.contains(">AVMRC</text>") && svg.contains(">rmrc</text>"));
}

#[test]
fn a_variant_looks_alike_for_all_of_its_metrics_and_in_all_panels() {
    let both = SWEEP.replace("of = \"loss\"", "of = [\"time\", \"loss\"]");
    let figure = figure(&both);
    let (curves, _) = figure.panels[1].curves(&sweep());
    let looks: Vec<(&str, usize)> = curves.iter().map(|curve| (curve.kin.as_str(), curve.order)).collect();
    assert_eq!(looks[..3], [("AVMRC", 0), ("AVMRC", 1), ("RMRC", 0)]);
    assert_eq!(curves[1].name, "AVMRC, loss");
    let svg = figure.svg(&sweep(), "");
    assert!(svg.contains("class=\"c2\"") && !svg.contains("class=\"c3\""), "three variants have three colours");
}

#[test]
fn a_metric_is_not_named_where_each_curve_has_one() {
    let mut results = sweep();
    results.rows.retain(|row| row.point["variant"] != word("avmrc-sustained"));
    for row in &mut results.rows {
        let other = if row.point["variant"] == word("avmrc") { "loss" } else { "time" };
        row.metrics.remove(other);
    }
    let text = "[[panel]]\nx = { of = 'clients', label = 'n' }\ny = { of = ['time', 'loss'], label = 'value' }";
    let (curves, _) = figure(text).panels[0].curves(&results);
    assert_eq!(curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>(), ["avmrc", "rmrc"]);
}

#[test]
fn over_a_metric_a_sweep_is_a_cloud_parted_by_words_only() {
    let text = "[[panel]]\nstyle = 'points'\nx = { of = 'loss', label = 'loss' }\ny = { of = 'time', label = 'time' }";
    let (curves, _) = figure(text).panels[0].curves(&sweep());
    assert_eq!(curves.iter().map(|curve| curve.points.len()).collect::<Vec<_>>(), [7, 7, 7]);
}

#[test]
fn runs_without_a_value_leave_a_gap_and_no_data_is_said() {
    let mut results = sweep();
    results.rows.retain(|row| row.point["variant"] == word("avmrc"));
    for row in results.rows.iter_mut().filter(|row| row.point["clients"] == Value::Number(64.0)) {
        row.metrics.remove("time");
    }
    let figure = figure(SWEEP);
    assert_eq!(figure.panels[0].curves(&results).0[0].points.len(), 6);
    results.rows.clear();
    assert_eq!(figure.svg(&results, "").matches("no data").count(), 3);
}

#[test]
fn names_that_do_not_exist_are_errors_of_their_panel() {
    let names = Names::of_results(&sweep());
    figure(SWEEP).check(&names).expect("all names exist");
    for (wrong, what) in [
        ("of = \"time\", label = \"convergence", "no metric \"tim\"; there are loss, time; did you mean \"time\"?"),
        ("of = \"level\"", "no series \"tim\"; there are level"),
        ("of = \"clients\", label = \"clients\" }", "no metric \"tim\""),
    ] {
        let right = wrong.split('"').nth(1).expect("a quote");
        let text = SWEEP.replacen(wrong, &wrong.replacen(right, "tim", 1), 1);
        let error = figure(&text).check(&names).expect_err(wrong).to_string();
        assert!(error.starts_with("figure, panel") && error.contains(what), "{error}");
    }
}

#[test]
fn the_legend_never_covers_data() {
    let many = SWEEP.replace("AVMRC, sustained", &"a very long name indeed ".repeat(3));
    let svg = figure(&many).svg(&sweep(), "");
    let document = svg_document(&svg);
    for panel in document.root_element().children().filter(|node| node.has_tag_name("g")) {
        let y = |class: &str| {
            let marked = panel.children().filter(move |node| node.attribute("class") == Some(class));
            marked
                .filter_map(|node| node.attribute("y").or(node.attribute("y1"))?.parse::<f64>().ok())
                .collect::<Vec<_>>()
        };
        let lowest_name = y("name").into_iter().fold(0.0, f64::max);
        let highest_line = y("grid").into_iter().fold(f64::INFINITY, f64::min);
        assert!(lowest_name > 0.0 && lowest_name < highest_line, "{lowest_name} {highest_line}");
    }
}

#[test]
fn an_image_is_twice_as_large_as_its_drawing() {
    let figure = figure(SWEEP);
    let (svg, png) = (figure.svg(&sweep(), ""), figure.png(&sweep(), ""));
    let size = |name: &str| {
        svg_document(&svg).root_element().attribute(name).expect("a size").parse::<f64>().expect("a number")
    };
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(&png[1..4], b"PNG");
    assert!((f64::from(side(16)) - 2.0 * size("width")).abs() <= 1.0);
    assert!((f64::from(side(20)) - 2.0 * size("height")).abs() <= 2.0);
}

fn svg_document(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).expect("valid XML")
}

#[test]
fn over_a_metric_a_curve_is_what_the_panel_says_and_bars_go_between_the_metrics_that_it_names() {
    let panel = r#"
        [[panel]]
        where = { clients = { max = 4 }, variant = ["avmrc", "rmrc"] }
        curves = ["variant"]
        x = { of = "loss", label = "loss" }
        y = { of = "time", label = "time" }
        bars = { time = ["loss", "time"] }"#;
    let figure = figure(panel);
    assert_eq!(figure.check(&Names::of_results(&sweep())), Ok(()));
    let (curves, _) = figure.panels[0].curves(&sweep());
    assert_eq!(curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>(), ["avmrc", "rmrc"]);
    let first = curves[0].points[0];
    assert_eq!((curves[0].points.len(), first.x, first.low), (3, 0.3, 0.3), "the bar begins at the least loss");
    assert!((first.high - 5.3).abs() < 1e-12, "and ends at the longest time: {first:?}");
    let unknown = self::figure(&panel.replace("\"loss\", \"time\"]", "\"lost\", \"time\"]"));
    assert!(
        unknown
            .check(&Names::of_results(&sweep()))
            .is_err_and(|error| error.to_string().contains("did you mean \"loss\"?"))
    );
}
