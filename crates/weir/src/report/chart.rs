//! The chart of one receiver: rates above, queuing delay and losses below, on one time axis.

use super::plot::{Frame, RatePlot, thin, time_axis};
use super::scale::{Scale, number};
use super::svg::{Svg, path, px};
use super::{Sample, Series};
use crate::progress::{percent, seconds};

/// The chart as an SVG element `width` pixels wide. `id` must be unique in the document.
pub(super) fn draw(series: &Series, width: f64, id: &str) -> String {
    let rates = Frame { left: LEFT, right: width - RIGHT, top: TOP, bottom: TOP + RATES_HEIGHT };
    let delays = Frame { top: rates.bottom + GAP, bottom: rates.bottom + GAP + DELAYS_HEIGHT, ..rates };
    let height = delays.bottom + BOTTOM;
    let plot = RatePlot::new(series, rates);
    let mut svg = Svg::default();
    svg.open(
        "svg",
        &[
            ("class", &"chart"),
            ("viewBox", &format!("0 0 {} {}", px(width), px(height))),
            ("role", &"img"),
            ("aria-labelledby", &format!("{id}-title {id}-text")),
        ],
    );
    svg.text("title", &[("id", &format!("{id}-title"))], format!("{}: rate over time", series.name));
    svg.text("desc", &[("id", &format!("{id}-text"))], in_words(series));
    let ticks = ((rates.right - rates.left) / TICK_PX) as usize;
    time_axis(&mut svg, plot.x, (rates.top, delays.bottom), delays.bottom + 18.0, ticks);
    plot.axes(&mut svg, 5);
    plot.series(&mut svg, &format!("{id}-clip"));
    draw_delays(&mut svg, series, plot.x, delays);
    draw_ends(&mut svg, series, plot.x, rates.top, delays.bottom);
    let free_of_marks = plot.x.at(series.end_s().max(series.ideal_seconds)) - 6.0;
    let above_link = plot.y.at(series.link.bps() as f64) - 6.0;
    svg.label("link-label end", (free_of_marks, above_link), format!("link {}", series.link_in_words()));
    svg.close();
    svg.finish()
}

/// What the chart shows, for those who cannot see it.
pub(super) fn in_words(series: &Series) -> String {
    let outcome = match series.seconds {
        Some(took) => format!(
            "The file was complete after {}; at least {} are needed",
            seconds(took),
            seconds(series.ideal_seconds)
        ),
        None => format!("The file was not complete when the record ends, after {}", seconds(series.end_s())),
    };
    let usual =
        series.usual_step().map_or(String::new(), |step| format!(" Longest at level {}, {}.", step.level, step.rate));
    format!(
        "Link of {}. {outcome}.{usual} {} of the packets were lost.",
        series.link_in_words(),
        percent(series.loss())
    )
}

fn draw_delays(svg: &mut Svg, series: &Series, x: Scale, frame: Frame) {
    let gap_s = x.max / ((frame.right - frame.left) / 2.0);
    let samples = thin(&series.samples, gap_s);
    let delays: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.t_s, sample.queuing_delay_ms)).collect();
    draw_strip(svg, x, frame, &delays, "queuing delay, ms");
    draw_losses(svg, &samples, x, frame.bottom);
}

/// A line through times in milliseconds, each with the second at which it was measured.
pub(super) fn draw_strip(svg: &mut Svg, x: Scale, frame: Frame, points: &[(f64, f64)], label: &str) {
    let most = points.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    let y = Scale::new(most.max(10.0) * 1.1, (frame.bottom, frame.top));
    for tick in y.ticks(STRIP_TICKS) {
        svg.line(if tick == 0.0 { "axis" } else { "grid" }, (frame.left, y.at(tick)), (frame.right, y.at(tick)));
        svg.label("tick end", (frame.left - 7.0, y.at(tick) + 4.0), number(tick));
    }
    svg.label("tick start strip-label", (frame.left, frame.top - 7.0), label);
    let points = points.iter().map(|(t_s, ms)| (x.at(*t_s), y.at(*ms)));
    svg.empty("path", &[("class", &"delay"), ("d", &path(points))]);
}

/// A mark on the axis at `bottom` where packets were lost.
pub(super) fn draw_losses(svg: &mut Svg, samples: &[Sample], x: Scale, bottom: f64) {
    let mut lost = 0;
    for sample in samples {
        if sample.lost_packets > lost {
            svg.line("loss", (x.at(sample.t_s), bottom), (x.at(sample.t_s), bottom - LOSS_MARK));
        }
        lost = sample.lost_packets;
    }
}

/// Upright lines where the file was complete, and where it would have been on a link that carries nothing but its bits.
fn draw_ends(svg: &mut Svg, series: &Series, x: Scale, top: f64, bottom: f64) {
    let mut mark = |class: &str, at_s: f64, row: f64, text: String| {
        let at = x.at(at_s);
        let anchor = if at_s > x.max / 2.0 { "end" } else { "start" };
        let beside = if at_s > x.max / 2.0 { at + 1.0 } else { at - 1.0 };
        svg.line(class, (at, top - row + 4.0), (at, bottom));
        svg.label(&format!("{class}-label {anchor}"), (beside, top - row), text);
    };
    mark("ideal", series.ideal_seconds, 9.0, format!("file ÷ link: {}", seconds(series.ideal_seconds)));
    match series.seconds {
        Some(took) if series.verified => mark("done", took, 25.0, format!("✓ verified after {}", seconds(took))),
        Some(took) => mark("failed", took, 25.0, format!("✗ not the file that was sent, {}", seconds(took))),
        None => mark("failed", series.end_s(), 25.0, format!("✗ not complete after {}", seconds(series.end_s()))),
    }
}

const LEFT: f64 = 50.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 24.0;
const GAP: f64 = 30.0;
const RATES_HEIGHT: f64 = 190.0;
const DELAYS_HEIGHT: f64 = 52.0;

/// Time axis: pixels from one number to the next, about.
const TICK_PX: f64 = 56.0;
/// With two, an axis of 40 to 50 ms has none but 0: round values are up to two and a half times apart.
pub(super) const STRIP_TICKS: usize = 3;

const LOSS_MARK: f64 = 9.0;
