//! The font of figures. It is embedded, so that the same results give the same picture on every machine.

use std::sync::LazyLock;

use ttf_parser::Face;

/// DejaVu Sans; its licence stands next to it.
pub(super) const DATA: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Families in the order of preference: where DejaVu is not there, fonts that are not wider.
pub(super) const FAMILIES: &str = "'DejaVu Sans',Verdana,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

/// How wide `text` is when set in `size` pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    static FACE: LazyLock<Face<'_>> = LazyLock::new(|| Face::parse(DATA, 0).expect("the embedded font is sound"));
    let advance =
        |c: char| FACE.glyph_index(c).and_then(|glyph| FACE.glyph_hor_advance(glyph)).unwrap_or(FACE.units_per_em());
    text.chars().map(|c| f64::from(advance(c))).sum::<f64>() * size / f64::from(FACE.units_per_em())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_equally_wide_and_width_grows_with_size() {
        assert_eq!(width("0", 10.0), width("9", 10.0));
        assert!((width("1000", 20.0) - 8.0 * width("1", 10.0)).abs() < 1e-9);
        assert_eq!(width("", 10.0), 0.0);
    }
}
