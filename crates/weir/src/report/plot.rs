//! Rates over time in a frame: what arrived, the subscribed level, and the link that bounds both.

use weir_units::Rate;

use super::scale::{RateUnit, Scale, number};
use super::svg::{Svg, path, px};
use super::{Sample, Series};
use crate::progress::clock;

/// A rectangle to draw in, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Rates over time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RatePlot<'a> {
    pub(super) series: &'a Series,
    pub(super) frame: Frame,
    pub(super) x: Scale,
    pub(super) y: Scale,
    unit: RateUnit,
}

impl<'a> RatePlot<'a> {
    /// Scales that show all of the time and all of the link; a level far above the link is cut off.
    pub(super) fn new(series: &'a Series, frame: Frame) -> RatePlot<'a> {
        let link = series.link.bps() as f64;
        let highest = series.steps.iter().map(|step| step.rate.bps()).max().unwrap_or(0) as f64;
        let y_max = (link * 1.12).max(highest.min(link * 1.55) * 1.04);
        let x_max = series.end_s().max(series.ideal_seconds) * 1.015;
        RatePlot {
            series,
            frame,
            x: Scale::new(x_max, (frame.left, frame.right)),
            y: Scale::new(y_max, (frame.bottom, frame.top)),
            unit: RateUnit::for_max(y_max),
        }
    }

    /// Grid, axes and their numbers; units stand above the upright axis and next to the level one.
    pub(super) fn axes(&self, svg: &mut Svg, y_ticks: usize) {
        let Frame { left, right, top, .. } = self.frame;
        let in_units = self.y.in_units_of(self.unit.bps);
        for tick in in_units.ticks(y_ticks) {
            let y = in_units.at(tick);
            svg.line(if tick == 0.0 { "axis" } else { "grid" }, (left, y), (right, y));
            svg.label("tick end", (left - 7.0, y + 4.0), number(tick));
        }
        svg.label("tick end", (left - 7.0, top - 9.0), self.unit.name);
    }

    /// The three series, clipped to the frame by `clip_id`, which must be unique in the document.
    pub(super) fn series(&self, svg: &mut Svg, clip_id: &str) {
        let Frame { left, right, top, bottom } = self.frame;
        svg.open("clipPath", &[("id", &clip_id)]);
        let (width, height) = (px(right - left), px(bottom - top + 1.0));
        svg.empty("rect", &[("x", &px(left)), ("y", &px(top)), ("width", &width), ("height", &height)]);
        svg.close();
        svg.open("g", &[("clip-path", &format!("url(#{clip_id})"))]);
        let received = self.received();
        if let (Some(first), Some(last)) = (received.first(), received.last()) {
            let (first, last) = ((first.0, bottom), (last.0, bottom));
            let area = path([first].into_iter().chain(received.iter().copied()).chain([last])) + "Z";
            svg.empty("path", &[("class", &"received-area"), ("d", &area)]);
            svg.empty("path", &[("class", &"received"), ("d", &path(received))]);
        }
        svg.empty("path", &[("class", &"level"), ("d", &path(self.levels()))]);
        svg.close();
        let y = self.y.at(self.series.link.bps() as f64);
        svg.line("link", (left, y), (right, y));
    }

    /// The rates received, as places: at most one every [`POINT_PX`] pixels, each the mean over its stretch of time.
    fn received(&self) -> Vec<(f64, f64)> {
        let points = ((self.frame.right - self.frame.left) / POINT_PX).max(2.0);
        let means = thin(&self.series.samples, self.x.max / points);
        let ends: Vec<f64> = std::iter::once(0.0).chain(means.iter().map(|sample| sample.t_s)).collect();
        let middles = ends.windows(2).map(|stretch| f64::midpoint(stretch[0], stretch[1]));
        let place = |t_s: f64, sample: &Sample| (self.x.at(t_s), self.y.at(sample.received.bps() as f64));
        let last = means.last().map(|sample| place(sample.t_s, sample));
        middles.zip(&means).map(|(t_s, sample)| place(t_s, sample)).chain(last).collect()
    }

    fn levels(&self) -> Vec<(f64, f64)> {
        let end = self.series.end_s();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for step in self.series.steps.iter().filter(|step| step.t_s <= end) {
            let (x, y) = (self.x.at(step.t_s), self.y.at(step.rate.bps() as f64));
            if let Some(&(_, before)) = points.last() {
                points.push((x, before));
            }
            points.push((x, y));
        }
        if let Some(&(_, y)) = points.last() {
            points.push((self.x.at(end), y));
        }
        points
    }
}

/// Numbers below a time axis at `y`, with grid lines from `top` down to `bottom`.
pub(super) fn time_axis(svg: &mut Svg, x: Scale, span: (f64, f64), y: f64, count: usize) {
    let ticks = x.time_ticks(count);
    let in_minutes = x.max >= 120.0;
    for (i, tick) in ticks.iter().enumerate() {
        if i > 0 {
            svg.line("grid faint", (x.at(*tick), span.0), (x.at(*tick), span.1));
        }
        let text = if in_minutes { clock(*tick) } else { number(*tick) };
        let unit = if i == 0 && !in_minutes { " s" } else { "" };
        svg.label("tick middle", (x.at(*tick), y), format!("{text}{unit}"));
    }
}

/// `samples` with at most one every `gap_s` seconds: rates and delays averaged over their time, counts taken at its end.
pub(super) fn thin(samples: &[Sample], gap_s: f64) -> Vec<Sample> {
    let mut thinned = Vec::new();
    let mut from_s = 0.0;
    let (mut bits, mut delay, mut before_s) = (0.0, 0.0, 0.0);
    for (i, sample) in samples.iter().enumerate() {
        let span = (sample.t_s - before_s).max(0.0);
        before_s = sample.t_s;
        bits += sample.received.bps() as f64 * span;
        delay += sample.queuing_delay_ms * span;
        let covered = sample.t_s - from_s;
        if covered > 0.0 && (covered >= gap_s || i + 1 == samples.len()) {
            let received = Rate::from_bps((bits / covered) as u64);
            thinned.push(Sample { received, queuing_delay_ms: delay / covered, t_s: sample.t_s, ..*sample });
            (bits, delay, from_s) = (0.0, 0.0, sample.t_s);
        }
    }
    thinned
}

/// Finer than this nothing can be seen.
const POINT_PX: f64 = 2.0;
