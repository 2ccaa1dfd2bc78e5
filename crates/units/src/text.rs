//! Text that several crates read and write: bytes in hexadecimal, and characters that no terminal should be given.

use core::fmt;

/// Bytes as hexadecimal digits, two each.
///
/// Example: `Hex(&[1, 0xab])` is `01ab`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// `N` bytes from twice as many hexadecimal digits and nothing else; `None` for any other text.
pub fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(bytes)
}

/// Whether a character moves what a terminal shows: controls, line feeds among them, and marks that turn the direction of text.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn bytes_come_back_from_their_digits_and_from_nothing_else() {
        let text = Hex(&[0, 0x1f, 0xff]).to_string();
        assert_eq!(
            (text.as_str(), parse_hex(&text), parse_hex("001FfF")),
            ("001fff", Some([0, 31, 255]), Some([0, 31, 255]))
        );
        for wrong in ["", "001ff", "001fff0", "001ffg", "001fff00", "+01fff", "00 1ff", "éééé"] {
            assert_eq!(parse_hex::<3>(wrong), None, "{wrong}");
        }
        assert_eq!(parse_hex("").map(|none: [u8; 0]| none.len()), Some(0));
    }

    #[test]
    fn what_moves_a_terminal_is_no_text() {
        assert!(['\u{1b}', '\n', '\0', '\u{9b}', '\u{202e}', '\u{2066}'].into_iter().all(is_unprintable));
        assert!(!['a', 'é', ' ', '\u{1f600}'].into_iter().any(is_unprintable));
    }
}
