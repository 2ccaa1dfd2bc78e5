//! One picture of all receivers side by side, for a README: an SVG file that stands alone.

use super::plot::{Frame, RatePlot, time_axis};
use super::svg::{Svg, px};
use super::{Report, Series};
use crate::progress::seconds;

/// The picture.
pub(super) fn svg(report: &Report) -> String {
    let rows = report.receivers.len().div_ceil(COLUMNS).max(1);
    let height = HEADER + rows as f64 * PANEL.1;
    let mut svg = Svg::default();
    svg.open(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &"chart paper"),
            ("viewBox", &format!("0 0 {} {}", px(WIDTH), px(height))),
            ("width", &px(WIDTH)),
            ("height", &px(height)),
            ("role", &"img"),
            ("aria-labelledby", &"overview-title overview-text"),
        ],
    );
    let title = format!("{}, {}, to {} receivers", report.file, report.bytes, report.receivers.len());
    svg.text("title", &[("id", &"overview-title")], &title);
    let words: Vec<String> = report.receivers.iter().map(in_words).collect();
    svg.text("desc", &[("id", &"overview-text")], words.join(" "));
    svg.text("style", &[], plain(STYLE));
    svg.empty("rect", &[("class", &"card"), ("width", &"100%"), ("height", &"100%"), ("rx", &"10")]);
    svg.label("headline", (MARGIN, 34.0), "One sender, one file, each receiver at the rate of its own link");
    legend(&mut svg);
    for (i, series) in report.receivers.iter().enumerate() {
        let (column, row) = ((i % COLUMNS) as f64, (i / COLUMNS) as f64);
        panel(&mut svg, series, (column * PANEL.0, HEADER + row * PANEL.1), &format!("overview-{i}"));
    }
    svg.close();
    svg.finish()
}

/// The style with its light colours written out, for programs that show pictures and know no variables: the card is opaque, so that it
/// is seen on any ground.
fn plain(style: &str) -> String {
    let (light, rest) = style.split_once('\n').expect("the light colours are the first line");
    let (_dark, rules) = rest.split_once('\n').expect("the dark colours are the second");
    let colours = light.trim_start_matches(":root{").trim_end_matches('}').split(';');
    colours
        .filter_map(|colour| colour.split_once(':'))
        .filter(|(name, _)| name.starts_with("--"))
        .fold(rules.to_owned(), |rules, (name, value)| rules.replace(&format!("var({name})"), value))
}

fn panel(svg: &mut Svg, series: &Series, at: (f64, f64), id: &str) {
    let frame =
        Frame { left: at.0 + 54.0, right: at.0 + PANEL.0 - MARGIN, top: at.1 + 42.0, bottom: at.1 + PANEL.1 - 36.0 };
    let plot = RatePlot::new(series, frame);
    svg.label("panel-title", (frame.left, at.1 + 18.0), format!("{} link", series.link_in_words()));
    let verdict = if series.verified { "done-label end" } else { "failed-label end" };
    svg.label(verdict, (frame.right, at.1 + 18.0), verdict_text(series));
    let ticks = ((frame.right - frame.left) / 52.0) as usize;
    time_axis(svg, plot.x, (frame.top, frame.bottom), frame.bottom + 18.0, ticks);
    plot.axes(svg, 4);
    plot.series(svg, id);
    if let Some(took) = series.seconds {
        let class = if series.verified { "done" } else { "failed" };
        svg.line(class, (plot.x.at(took), frame.top), (plot.x.at(took), frame.bottom));
    }
}

fn legend(svg: &mut Svg) {
    let entries = [("link", "link"), ("level", "subscribed level"), ("received", "received")];
    let mut x = MARGIN;
    for (class, text) in entries {
        if class == "received" {
            svg.empty(
                "rect",
                &[("class", &"received-area"), ("x", &px(x)), ("y", &"50"), ("width", &"24"), ("height", &"9")],
            );
            svg.line(class, (x, 50.0), (x + 24.0, 50.0));
        } else {
            svg.line(class, (x, 54.5), (x + 24.0, 54.5));
        }
        svg.label("tick start", (x + 32.0, 59.0), text);
        x += 60.0 + 7.2 * text.len() as f64;
    }
}

fn verdict_text(series: &Series) -> String {
    match series.seconds {
        Some(took) if series.verified => format!("✓ {} verified", seconds(took)),
        Some(took) => format!("✗ {}, not verified", seconds(took)),
        None => "✗ not complete".to_owned(),
    }
}

fn in_words(series: &Series) -> String {
    super::chart::in_words(series)
}

const COLUMNS: usize = 2;
const WIDTH: f64 = 880.0;
const PANEL: (f64, f64) = (440.0, 232.0);
const HEADER: f64 = 78.0;
const MARGIN: f64 = 20.0;

/// The colours and lines of all charts; the page has the same.
pub(super) const STYLE: &str = include_str!("chart.css");
