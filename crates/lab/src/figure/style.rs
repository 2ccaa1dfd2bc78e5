//! Colours, marks and dashes. Curves differ in colour and in mark, so that neither print nor eyes that do not tell colours
//! apart lose anything. The colours are those of Okabe and Ito (2008), without yellow, which paper swallows.

use std::fmt::Write;

use super::font::FAMILIES;
use super::svg::{Svg, px};

/// Light colours and dark ones, curve by curve.
const CURVES: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#009e73", "#2fd6a3"),
    ("#b0569a", "#e39bd0"),
    ("#c98500", "#f0b93a"),
    ("#2a2a2a", "#e6e6e6"),
    ("#3c8dbc", "#9ad1f5"),
];

const DASHES: [&str; 4] = ["none", "7 3", "2 2.5", "9 3 2 3"];

/// How many curves look different.
pub(super) const KINDS: usize = CURVES.len();

/// The rules for figures that stand alone: dark on white, for paper and for any viewer.
pub(super) fn alone() -> String {
    rules(CURVES.map(|(light, _)| light), ["#ffffff", "#1b1f24", "#57606a", "#e1e4e8", "#8c959f"])
}

/// The rules for a page, which follow its reader's choice of light or dark.
pub(crate) fn for_page() -> String {
    let light = rules(
        CURVES.map(|(light, _)| light),
        ["var(--card)", "var(--ink)", "var(--muted)", "var(--grid)", "var(--muted)"],
    );
    let mut dark = String::new();
    for (i, (_, dark_color)) in CURVES.iter().enumerate() {
        write!(dark, ".figure .c{i}{{color:{dark_color}}}").expect("writing to a string cannot fail");
    }
    format!("{light}@media(prefers-color-scheme:dark){{{dark}}}\n")
}

fn rules(curves: [&str; KINDS], [paper, ink, muted, grid, axis]: [&str; 5]) -> String {
    let mut text = format!(
        ".figure text{{font-family:{FAMILIES};fill:{ink};font-size:{TEXT}px}}.figure .tick{{fill:{muted};font-size:{SMALL}px}}\
         .figure .title{{font-size:{TITLE}px}}.figure .middle{{text-anchor:middle}}.figure .end{{text-anchor:end}}\
         .figure .paper{{fill:{paper}}}.figure .grid{{stroke:{grid};stroke-width:1}}.figure .axis{{stroke:{axis};stroke-width:1.2;fill:none}}\
         .figure .guide{{stroke:{muted};stroke-width:1.4;stroke-dasharray:5 4;fill:none}}\
         .figure .l{{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}}.figure .thin{{stroke-width:1.4}}\
         .figure .b{{fill:none;stroke:currentColor;stroke-width:1.4;stroke-opacity:0.65}}\
         .figure .m{{fill:currentColor;stroke:{paper};stroke-width:1}}.figure .hollow{{fill:{paper};stroke:currentColor;stroke-width:2}}"
    );
    for (i, color) in curves.iter().enumerate() {
        write!(text, ".figure .c{i}{{color:{color}}}").expect("writing to a string cannot fail");
    }
    text + "\n"
}

/// What a curve looks like: one colour and mark for what shares its parameters, dashes for the second of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// Which colour and mark, below [`KINDS`].
    pub(super) kind: usize,
    /// Which of several metrics, from 0.
    pub(super) order: usize,
}

impl Look {
    /// Its dashes. Over time there are no marks, and dashes tell the colours apart too.
    pub(super) fn dashes(self, over_time: bool) -> &'static str {
        DASHES[(if over_time { self.kind + self.order } else { self.order }) % DASHES.len()]
    }

    /// Draws its mark at a place.
    pub(super) fn mark(self, svg: &mut Svg, (x, y): (f64, f64)) {
        let class = if (self.kind + self.order).is_multiple_of(2) { "m" } else { "m hollow" };
        let corners: &[(f64, f64)] = match self.kind {
            0 => return svg.empty("circle", &[("class", &class), ("cx", &px(x)), ("cy", &px(y)), ("r", &"4.6")]),
            1 => &[(-4.2, -4.2), (4.2, -4.2), (4.2, 4.2), (-4.2, 4.2)],
            2 => &[(0.0, -5.8), (5.4, 4.2), (-5.4, 4.2)],
            3 => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
            4 => &[(0.0, 5.8), (5.4, -4.2), (-5.4, -4.2)],
            5 => &[(0.0, -5.4), (5.2, -1.6), (3.2, 4.5), (-3.2, 4.5), (-5.2, -1.6)],
            _ => &[(-2.6, -5.2), (2.6, -5.2), (5.2, 0.0), (2.6, 5.2), (-2.6, 5.2), (-5.2, 0.0)],
        };
        let path = super::svg::path(corners.iter().map(|(dx, dy)| (x + dx, y + dy))) + "Z";
        svg.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// Size of words, in pixels.
pub(super) const TEXT: f64 = 15.0;
/// Size of the numbers on the axes.
pub(super) const SMALL: f64 = 14.0;
/// Size of titles.
pub(super) const TITLE: f64 = 17.0;
