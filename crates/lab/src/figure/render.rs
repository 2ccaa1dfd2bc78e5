//! Whole figures: SVG for a page, SVG that stands alone, PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::draw::{Drawing, WIDTH};
use super::style::{self, TITLE};
use super::svg::{Svg, px};
use super::{Figure, Panel, font};
use crate::results::Results;

impl Figure {
    /// The figure as an SVG file. `default_title` stands above it if it has no title of its own.
    pub fn svg(&self, results: &Results, default_title: &str) -> String {
        let title = if self.title.is_empty() { default_title } else { &self.title };
        let mut names = Vec::new();
        let drawings: Vec<Drawing<'_>> =
            self.panels.iter().map(|panel| Drawing::new(panel, results, &mut names)).collect();
        let columns = if drawings.len() > 1 { 2 } else { 1 };
        let title_height = TITLE + 26.0;
        let rows: Vec<f64> =
            drawings.chunks(columns).map(|row| row.iter().map(Drawing::height).fold(0.0, f64::max)).collect();
        let (width, height) = (WIDTH * columns as f64, title_height + rows.iter().sum::<f64>());
        let mut svg = Svg::default();
        let size = [("width", px(width)), ("height", px(height))];
        svg.open(
            "svg",
            &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("class", &"figure"),
                ("viewBox", &format!("0 0 {} {}", size[0].1, size[1].1)),
                (size[0].0, &size[0].1),
                (size[1].0, &size[1].1),
                ("role", &"img"),
            ],
        );
        svg.text("title", &[], title);
        svg.text("style", &[], "");
        svg.empty("rect", &[("class", &"paper"), ("width", &"100%"), ("height", &"100%")]);
        svg.label("title middle", (width / 2.0, TITLE + 10.0), title);
        let mut top = title_height;
        for (row, height) in drawings.chunks(columns).zip(&rows) {
            for (i, drawing) in row.iter().enumerate() {
                drawing.draw(&mut svg, (i as f64 * WIDTH, top), &format!("clip-{}-{i}", px(top)));
            }
            top += height;
        }
        svg.close();
        // The rules hold quotes, which are plain text inside a style.
        svg.finish().replacen("<style></style>", &format!("<style>{}</style>", style::alone()), 1) + "\n"
    }

    /// The figure as an image, twice as large as its SVG.
    pub fn png(&self, results: &Results, default_title: &str) -> Vec<u8> {
        let mut options = Options { font_family: "DejaVu Sans".to_owned(), ..Options::default() };
        options.fontdb_mut().load_font_data(font::DATA.to_vec());
        let tree = Tree::from_str(&self.svg(results, default_title), &options).expect("what is drawn is valid SVG");
        let size = tree.size().to_int_size().scale_by(ZOOM).expect("a figure has a size");
        let mut pixmap = Pixmap::new(size.width(), size.height()).expect("a figure has a size");
        resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut pixmap.as_mut());
        pixmap.encode_png().expect("an image in memory can be written to memory")
    }

    /// The panels as SVG elements for a page, each with what it shows in words. `id` must be unique in the page.
    pub(crate) fn elements(&self, results: &Results, id: &str) -> Vec<String> {
        let mut names = Vec::new();
        let panels = self.panels.iter().enumerate();
        panels.map(|(i, panel)| element(panel, results, &mut names, &format!("{id}-{i}"))).collect()
    }
}

fn element(panel: &Panel, results: &Results, names: &mut Vec<String>, id: &str) -> String {
    let drawing = Drawing::new(panel, results, names);
    let mut svg = Svg::default();
    let view = format!("0 0 {} {}", px(WIDTH), px(drawing.height()));
    svg.open("svg", &[("class", &"figure"), ("viewBox", &view), ("role", &"img")]);
    let words = format!("{} over {}", panel.y.label, panel.x.label);
    svg.text("title", &[], if panel.title.is_empty() { words } else { format!("{}: {words}", panel.title) });
    drawing.draw(&mut svg, (0.0, 0.0), id);
    svg.close();
    svg.finish()
}

/// Pixels of an image for one of its SVG: sharp in print and on any screen.
const ZOOM: f32 = 2.0;
