//! A small writer of SVG: elements, attributes, escaping. Coordinates are written to a tenth of a pixel.

use std::fmt::{Display, Write};

use weir_units::is_unprintable;

/// SVG text under construction. Elements close in the order that XML asks for.
#[derive(Debug, Default)]
pub struct Svg {
    text: String,
    open: Vec<&'static str>,
}

/// Attributes of an element.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

impl Svg {
    /// Opens an element.
    pub fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes, ">");
        self.open.push(tag);
    }

    /// Closes the element opened last.
    pub fn close(&mut self) {
        let tag = self.open.pop().expect("every close has its open");
        self.text += &format!("</{tag}>");
    }

    /// An element without content.
    pub fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes, "/>");
    }

    /// An element with text in it.
    pub fn text(&mut self, tag: &'static str, attributes: Attributes<'_>, text: impl Display) {
        self.open(tag, attributes);
        self.text += &escape(&text.to_string());
        self.close();
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(px);
        self.empty("line", &[("class", &class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
    }

    /// Words at a place; `class` carries colour and anchor.
    pub fn label(&mut self, class: &str, at: (f64, f64), text: impl Display) {
        self.text("text", &[("class", &class), ("x", &px(at.0)), ("y", &px(at.1))], text);
    }

    /// The finished text.
    pub fn finish(self) -> String {
        assert!(self.open.is_empty(), "unclosed elements: {:?}", self.open);
        self.text
    }

    fn tag(&mut self, tag: &str, attributes: Attributes<'_>, end: &str) {
        self.text += "<";
        self.text += tag;
        for (name, value) in attributes {
            write!(self.text, " {name}=\"{}\"", escape(&value.to_string())).expect("writing to a string cannot fail");
        }
        self.text += end;
    }
}

/// The data of a path through `points`.
pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    points.into_iter().enumerate().fold(String::new(), |mut data, (i, (x, y))| {
        let command = if i == 0 { 'M' } else { 'L' };
        write!(data, "{command}{} {}", px(x), px(y)).expect("writing to a string cannot fail");
        data
    })
}

/// A coordinate with one decimal, none if it is whole.
pub fn px(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `text` as it may stand in XML and HTML, in content and in attributes. Control characters, marks that turn the direction
/// of writing, and what XML forbids are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' => escaped.push('\n'),
            // The last two are no characters of XML.
            c if is_unprintable(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
