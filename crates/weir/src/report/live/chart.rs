//! The chart of one receiver of a programme: rates, pictures a second by layer, lag and losses, on one time axis.

use super::super::chart::{draw_losses, draw_strip};
use super::super::plot::{Frame, RatePlot, time_axis};
use super::super::scale::{Scale, number};
use super::super::svg::{Svg, path, px};
use super::{LiveReport, LiveSeries};

/// The chart as an SVG element `width` pixels wide. `id` must be unique in the document.
pub(super) fn draw(report: &LiveReport, receiver: &LiveSeries, width: f64, id: &str) -> String {
    let rates = Frame { left: LEFT, right: width - RIGHT, top: TOP, bottom: TOP + RATES_HEIGHT };
    let pictures = Frame { top: rates.bottom + GAP, bottom: rates.bottom + GAP + PICTURES_HEIGHT, ..rates };
    let lags = Frame { top: pictures.bottom + GAP, bottom: pictures.bottom + GAP + LAGS_HEIGHT, ..rates };
    let series = &receiver.series;
    let plot = RatePlot::new(series, rates);
    let mut svg = Svg::default();
    svg.open(
        "svg",
        &[
            ("class", &"chart"),
            ("viewBox", &format!("0 0 {} {}", px(width), px(lags.bottom + BOTTOM))),
            ("role", &"img"),
            ("aria-labelledby", &format!("{id}-title {id}-text")),
        ],
    );
    svg.text("title", &[("id", &format!("{id}-title"))], format!("{}: rates and pictures over time", series.name));
    svg.text("desc", &[("id", &format!("{id}-text"))], in_words(report, receiver));
    let ticks = ((rates.right - rates.left) / TICK_PX) as usize;
    time_axis(&mut svg, plot.x, (rates.top, lags.bottom), lags.bottom + 18.0, ticks);
    plot.axes(&mut svg, 5);
    plot.series(&mut svg, &format!("{id}-clip"));
    let above_link = plot.y.at(series.link.bps() as f64) - 6.0;
    svg.label("link-label end", (rates.right - 6.0, above_link), format!("link {}", series.link_in_words()));
    draw_pictures(&mut svg, report, receiver, plot.x, pictures);
    draw_strip(&mut svg, plot.x, lags, &receiver.lags, "lag, ms");
    draw_losses(&mut svg, &series.samples, plot.x, lags.bottom);
    svg.close();
    svg.finish()
}

/// What the chart shows, for those who cannot see it.
pub(super) fn in_words(report: &LiveReport, receiver: &LiveSeries) -> String {
    let level = receiver.series.usual_step();
    format!(
        "Link of {}. {} pictures came out, {:.1} a second, in {} of {} layers at the end.{}",
        receiver.series.link_in_words(),
        receiver.decoded,
        receiver.frame_rate,
        receiver.layers,
        report.layers,
        level.map_or(String::new(), |step| format!(" Longest at level {}, {}.", step.level, step.rate)),
    )
}

/// Areas on top of one another, the base layer lowest.
fn draw_pictures(svg: &mut Svg, report: &LiveReport, receiver: &LiveSeries, x: Scale, frame: Frame) {
    let rates = receiver.frame_rates(WINDOW_S);
    let most = rates.iter().map(|(_, rates)| rates.iter().sum()).fold(report.frame_rate, f64::max);
    let y = Scale::new(most * 1.12, (frame.bottom, frame.top));
    for layer in (0..report.layers).rev() {
        let top = |rates: &[f64]| y.at(rates.iter().take(layer + 1).sum());
        let mut points = vec![(x.at(0.0), frame.bottom)];
        for (until, rates) in &rates {
            let before = points.last().map_or(frame.left, |(x, _)| *x);
            points.extend([(before, top(rates)), (x.at(*until), top(rates))]);
        }
        points.push((points.last().map_or(frame.left, |(x, _)| *x), frame.bottom));
        svg.empty("path", &[("class", &format!("layer layer-{layer}")), ("d", &(path(points) + "Z"))]);
    }
    for tick in y.ticks(4) {
        svg.line(if tick == 0.0 { "axis" } else { "grid" }, (frame.left, y.at(tick)), (frame.right, y.at(tick)));
        svg.label("tick end", (frame.left - 7.0, y.at(tick) + 4.0), number(tick));
    }
    let sent = y.at(report.frame_rate);
    svg.line("ideal", (frame.left, sent), (frame.right, sent));
    svg.label(
        "tick start strip-label",
        (frame.left, frame.top - 7.0),
        "pictures a second, by layer; dotted: the clip’s",
    );
}

const LEFT: f64 = 50.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
const GAP: f64 = 32.0;
const RATES_HEIGHT: f64 = 170.0;
const PICTURES_HEIGHT: f64 = 100.0;
const LAGS_HEIGHT: f64 = 44.0;
/// Time axis: pixels from one number to the next, about.
const TICK_PX: f64 = 56.0;
/// Pictures are counted over so long.
const WINDOW_S: f64 = 0.95;
