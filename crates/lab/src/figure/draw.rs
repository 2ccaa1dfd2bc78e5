//! Draws a panel: title, legend, axes, curves. The legend has rows of its own above the data, so it never covers any.

use super::data::{Curve, Point, Words, swept_values};
use super::font::width;
use super::scale::{Ruler, number, range};
use super::style::{KINDS, Look, SMALL, TEXT};
use super::svg::{Svg, path, px};
use super::{Axis, Panel, Scale, Style};
use crate::results::Results;

/// A panel with all that decides how large its parts are.
pub(super) struct Drawing<'a> {
    panel: &'a Panel,
    curves: Vec<Curve>,
    words: Words,
    swept: Vec<f64>,
    /// What each curve looks like.
    looks: Vec<Look>,
    legend: Vec<Entry>,
}

/// An entry of the legend, at its place below the top of the panel.
struct Entry {
    name: String,
    look: Option<Look>,
    at: (f64, f64),
}

impl<'a> Drawing<'a> {
    /// `names` are the curves' kins of the whole figure so far: equal ones look alike in all its panels.
    pub(super) fn new(panel: &'a Panel, results: &Results, names: &mut Vec<String>) -> Drawing<'a> {
        let (curves, words) = panel.curves(results);
        let look = |curve: &Curve| {
            let known = names.iter().position(|name| *name == curve.kin);
            let kind = known.unwrap_or_else(|| {
                names.push(curve.kin.clone());
                names.len() - 1
            });
            Look { kind: kind % KINDS, order: curve.order }
        };
        let looks: Vec<Look> = curves.iter().map(look).collect();
        let mut entries: Vec<(String, Option<Look>)> = Vec::new();
        if curves.len() > 1 {
            entries.extend(curves.iter().zip(&looks).map(|(curve, look)| (curve.name.clone(), Some(*look))));
        }
        entries.extend(panel.guides.iter().map(|guide| (guide.name.clone(), None)));
        let swept = swept_values(results, panel);
        Drawing { panel, curves, words, swept, looks, legend: laid_out(entries) }
    }

    /// Draws it with its upper left corner at `at`; `id` must be unique in the document.
    pub(super) fn draw(&self, svg: &mut Svg, at: (f64, f64), id: &str) {
        svg.open("g", &[("transform", &format!("translate({} {})", px(at.0), px(at.1)))]);
        let y_values = self.curves.iter().flat_map(|curve| &curve.points).flat_map(|p| [p.y, p.low, p.high]);
        let y_values = y_values.chain(self.panel.guides.iter().map(|guide| guide.y));
        let y_range = range(self.panel.y.scale, y_values, (self.panel.y.min, self.panel.y.max));
        let top = self.header() + 8.0;
        let bottom = top + PLOT_HEIGHT;
        let y = Ruler::new(self.panel.y.scale, y_range, (bottom, top));
        let y_ticks = y.ticks(6);
        let widest = y_ticks.iter().map(|tick| width(&number(*tick), SMALL)).fold(0.0, f64::max);
        let (left, right) = (TEXT + 18.0 + widest, WIDTH - 16.0);
        let x = Ruler::new(self.panel.x.scale, self.x_range(), (left + INSET, right - INSET));
        self.grid(svg, (&x, &y), &y_ticks, [left, right, top, bottom]);
        let (w, h) = (right - left, bottom - top);
        svg.open("clipPath", &[("id", &id)]);
        // Marks on the frame are shown whole.
        let room = 7.0;
        svg.empty(
            "rect",
            &[
                ("x", &px(left - room)),
                ("y", &px(top - room)),
                ("width", &px(w + 2.0 * room)),
                ("height", &px(h + 2.0 * room)),
            ],
        );
        svg.close();
        svg.open("g", &[("clip-path", &format!("url(#{id})"))]);
        for guide in &self.panel.guides {
            if let Some(at) = y.at(guide.y) {
                svg.line("guide", (left, at), (right, at));
            }
        }
        for (curve, look) in self.curves.iter().zip(&self.looks) {
            self.curve(svg, curve, *look, (&x, &y));
        }
        svg.close();
        if self.curves.is_empty() {
            svg.label("middle", (f64::midpoint(left, right), f64::midpoint(top, bottom)), "no data");
        }
        self.head(svg);
        svg.close();
    }

    fn grid(&self, svg: &mut Svg, (x, y): (&Ruler, &Ruler), y_ticks: &[f64], [left, right, top, bottom]: [f64; 4]) {
        for tick in y_ticks {
            let at = y.at(*tick).expect("a tick has a place");
            svg.line("grid", (left, at), (right, at));
            svg.label("tick end", (left - 8.0, at + 0.35 * SMALL), number(*tick));
        }
        let mut free_from = f64::NEG_INFINITY;
        for (tick, text) in self.x_ticks(x, right - left) {
            let Some(at) = x.at(tick) else { continue };
            let half = width(&text, SMALL) / 2.0;
            svg.line("axis", (at, bottom), (at, bottom + 5.0));
            if at - half >= free_from {
                svg.label("tick middle", (at, bottom + 8.0 + SMALL), text);
                free_from = at + half + 8.0;
            }
        }
        svg.empty("path", &[("class", &"axis"), ("d", &path([(left, top), (left, bottom), (right, bottom)]))]);
        svg.label("middle", (f64::midpoint(left, right), bottom + 2.0 * SMALL + 18.0), in_words(&self.panel.x));
        let turned = format!("translate({} {}) rotate(-90)", px(TEXT), px(f64::midpoint(top, bottom)));
        svg.text("text", &[("class", &"middle"), ("transform", &turned)], in_words(&self.panel.y));
    }

    fn curve(&self, svg: &mut Svg, curve: &Curve, look: Look, (x, y): (&Ruler, &Ruler)) {
        svg.open("g", &[("class", &format!("c{}", look.kind))]);
        let place = |point: &Point| Some((x.at(point.x)?, y.at(point.y)?));
        let places: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
        let over_time = self.panel.is_over_time();
        let line = match self.panel.style {
            Style::Line => places.clone(),
            Style::Steps => steps(&places),
            Style::Points => Vec::new(),
        };
        if !line.is_empty() {
            let class = if over_time { "l thin" } else { "l" };
            let line = path(if over_time { thinned(&line) } else { line });
            svg.empty("path", &[("class", &class), ("stroke-dasharray", &look.dashes(over_time)), ("d", &line)]);
        }
        if !over_time {
            for point in curve.points.iter().filter(|point| point.low < point.high) {
                self.bar(svg, point, (x, y));
            }
            places.iter().for_each(|place| look.mark(svg, *place));
        }
        svg.close();
    }

    /// The confidence interval, or what the panel has bars for. A bar down to where the scale has no place ends where the axis does.
    fn bar(&self, svg: &mut Svg, point: &Point, (x, y): (&Ruler, &Ruler)) {
        let foot = self.header() + 8.0 + PLOT_HEIGHT;
        let (Some(x), Some(high)) = (x.at(point.x), y.at(point.high)) else { return };
        let low = y.at(point.low).unwrap_or(foot);
        let (a, b) = (x - 4.0, x + 4.0);
        let parts = [path([(x, low), (x, high)]), path([(a, low), (b, low)]), path([(a, high), (b, high)])];
        svg.empty("path", &[("class", &"b"), ("d", &parts.concat())]);
    }

    fn head(&self, svg: &mut Svg) {
        if !self.panel.title.is_empty() {
            svg.label("title", (8.0, 20.0), &self.panel.title);
        }
        for Entry { name, look, at: (x, y) } in &self.legend {
            let y = y + self.title_height();
            let middle = y - 0.35 * TEXT;
            match look {
                Some(look) => {
                    let over_time = self.panel.is_over_time();
                    svg.open("g", &[("class", &format!("c{}", look.kind))]);
                    if self.panel.style != Style::Points {
                        let line = path([(*x, middle), (x + SAMPLE, middle)]);
                        svg.empty(
                            "path",
                            &[("class", &"l"), ("stroke-dasharray", &look.dashes(over_time)), ("d", &line)],
                        );
                    }
                    if !over_time {
                        look.mark(svg, (x + SAMPLE / 2.0, middle));
                    }
                    svg.close();
                }
                None => svg.line("guide", (*x, middle), (x + SAMPLE, middle)),
            }
            svg.label("name", (x + SAMPLE + 7.0, y), name);
        }
    }

    fn x_range(&self) -> (f64, f64) {
        let Axis { scale, min, max, .. } = self.panel.x;
        if !self.words.is_empty() {
            return (-0.4, self.words.len() as f64 - 0.6);
        }
        let values = || self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
        let ends = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        // The values of a sweep and the length of a run are the axis: round ends would only waste room.
        let natural = ends.0 < ends.1
            && (self.panel.is_over_time() || !self.swept.is_empty())
            && (scale == Scale::Linear || ends.0 > 0.0);
        let from = |end: f64| natural.then_some(end);
        let from_zero = if scale == Scale::Linear && ends.0 > 0.0 && ends.0 < 0.25 * ends.1 { 0.0 } else { ends.0 };
        range(scale, values(), (min.or(from(from_zero)), max.or(from(ends.1))))
    }

    fn x_ticks(&self, x: &Ruler, length: f64) -> Vec<(f64, String)> {
        let labelled = |ticks: Vec<f64>| ticks.into_iter().map(|tick| (tick, number(tick))).collect();
        if !self.words.is_empty() {
            let named = |word: &String| self.panel.names.get(word).unwrap_or(word).clone();
            return self.words.iter().enumerate().map(|(i, word)| (i as f64, named(word))).collect();
        }
        let few = !self.swept.is_empty() && self.swept.len() <= 9;
        if self.panel.x.scale == Scale::Log && few {
            return labelled(self.swept.clone());
        }
        labelled(x.ticks((length / 58.0) as usize))
    }

    fn title_height(&self) -> f64 {
        if self.panel.title.is_empty() { 0.0 } else { 28.0 }
    }

    /// Height of title and legend.
    fn header(&self) -> f64 {
        self.title_height() + self.legend.last().map_or(0.0, |entry| entry.at.1 + 6.0)
    }

    /// Height of the whole.
    pub(super) fn height(&self) -> f64 {
        self.header() + 8.0 + PLOT_HEIGHT + 2.0 * SMALL + 28.0
    }
}

/// Entries in rows as wide as a panel.
fn laid_out(entries: Vec<(String, Option<Look>)>) -> Vec<Entry> {
    let (mut x, mut y) = (LEGEND_LEFT, TEXT + 4.0);
    let place = |(name, look): (String, Option<Look>)| {
        let room = SAMPLE + 7.0 + width(&name, TEXT);
        if x + room > WIDTH - 8.0 && x > LEGEND_LEFT {
            (x, y) = (LEGEND_LEFT, y + TEXT + 8.0);
        }
        let entry = Entry { name, look, at: (x, y) };
        x += room + 20.0;
        entry
    };
    entries.into_iter().map(place).collect()
}

fn steps(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = places.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(places.last().copied()).collect()
}

/// At most four points a pixel: of more, the first, the highest, the lowest and the last, which is all that can be seen.
fn thinned(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut thin: Vec<(f64, f64)> = Vec::new();
    for column in line.chunk_by(|a, b| a.0 as i64 == b.0 as i64) {
        if column.len() <= 4 {
            thin.extend(column);
            continue;
        }
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let extremes = [column.iter().min_by(by_height), column.iter().max_by(by_height)];
        let mut kept: Vec<(f64, f64)> = extremes.into_iter().flatten().copied().collect();
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        thin.push(column[0]);
        thin.extend(kept);
        thin.push(column[column.len() - 1]);
    }
    thin
}

/// `loss (%)`.
fn in_words(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// Width of a panel in pixels. On a phone, about 360 wide, its words are still some 10 pixels high.
pub(super) const WIDTH: f64 = 520.0;
const PLOT_HEIGHT: f64 = 290.0;
/// From the frame to the first and the last point.
const INSET: f64 = 12.0;
const LEGEND_LEFT: f64 = 12.0;
/// Length of a line in the legend.
const SAMPLE: f64 = 30.0;
