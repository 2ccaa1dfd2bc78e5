//! What a table of anyone may be like before a parser sees it: one look at every byte, no memory.
//!
//! A parser may take time with the square of what it is given: of the attributes of one element, say. What no file delivery
//! table needs is refused here. Not here: whether it is XML; what passes is still the parser's to refuse.

use crate::manifest::ManifestError;

/// Most files, folders and links that a receiver takes from the table, each.
pub(crate) const MAX_TABLE_ENTRIES: usize = 100_000;
/// Most of them that a receiver takes in bundles: it keeps some bytes of each.
pub(crate) const MAX_BUNDLED: u64 = 1_000_000;

/// Refuses XML with too deep elements, too many attributes, or a document type.
pub(crate) fn check(xml: &[u8]) -> Result<(), ManifestError> {
    let refuse = |what| Err(ManifestError::Excessive { what });
    let (mut rest, mut depth) = (xml, 0usize);
    while let Some(start) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[start + 1..];
        let skipped = SKIPPED.iter().find_map(|(before, after)| Some((rest.strip_prefix(*before)?, after)));
        if let Some((inside, after)) = skipped {
            let end = inside.windows(after.len()).position(|window| window == *after);
            rest = end.map_or(&[][..], |end| &inside[end + after.len()..]);
            continue;
        }
        if rest.starts_with(b"!") {
            return refuse("a document type");
        }
        let tag = Tag::read(rest);
        if tag.attributes > MAX_ATTRIBUTES {
            return refuse("more than 40 attributes in an element");
        }
        match (rest.starts_with(b"/"), tag.is_empty) {
            (true, _) => depth = depth.saturating_sub(1),
            (false, true) => {}
            (false, false) => depth += 1,
        }
        if depth > MAX_DEPTH {
            return refuse("elements nested more than 5 deep");
        }
        rest = &rest[tag.length..];
    }
    Ok(())
}

/// What stands between `<` and `>`.
struct Tag {
    length: usize,
    attributes: usize,
    is_empty: bool,
}

impl Tag {
    /// Reads up to the first `>` outside of quotes, or to the end.
    fn read(bytes: &[u8]) -> Tag {
        let (mut quote, mut attributes, mut last) = (None, 0, 0);
        for (length, byte) in bytes.iter().copied().enumerate() {
            match quote {
                Some(open) if byte == open => quote = None,
                Some(_) => {}
                None if byte == b'"' || byte == b'\'' => {
                    quote = Some(byte);
                    attributes += 1;
                }
                None if byte == b'>' => return Tag { length: length + 1, attributes, is_empty: last == b'/' },
                None => {}
            }
            last = byte;
        }
        Tag { length: bytes.len(), attributes, is_empty: false }
    }
}

/// What is no element: how it begins after its `<`, and how it ends.
const SKIPPED: [(&[u8], &[u8]); 3] = [(b"!--", b"-->"), (b"![CDATA[", b"]]>"), (b"?", b"?>")];
/// A file has some 25 attributes that anyone has heard of.
const MAX_ATTRIBUTES: usize = 40;
/// FDT instance, file, and what extensions put into a file.
const MAX_DEPTH: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(xml: &str) -> bool {
        check(xml.as_bytes()).is_err()
    }

    #[test]
    fn what_keeps_a_parser_busy_is_refused_and_the_rest_is_not() {
        let attributes = |count: usize| (0..count).map(|i| format!(" a{i}='>'")).collect::<String>();
        assert!(!refused(&format!("<?xml version='1.0'?><a{}/>", attributes(MAX_ATTRIBUTES))));
        assert!(refused(&format!("<a{}/>", attributes(MAX_ATTRIBUTES + 1))));
        assert!(!refused(&format!("{}{}", "<a>".repeat(MAX_DEPTH), "</a>".repeat(MAX_DEPTH))));
        assert!(refused(&"<a>".repeat(MAX_DEPTH + 1)));
        assert!(!refused(&format!("<a>{}</a>", "<b/><c></c>".repeat(1000))));
        assert!(refused("<!DOCTYPE a><a/>"));
        assert!(!refused("<!-- <!DOCTYPE> <a><a><a><a><a><a><a><a><a> --><a/><![CDATA[<!DOCTYPE>]]>"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_panic(bytes in proptest::collection::vec(prop_oneof![
            Just(b'<'), Just(b'>'), Just(b'/'), Just(b'!'), Just(b'-'), Just(b'?'), Just(b'"'), any::<u8>()
        ], 0..200)) {
            let _ = check(&bytes);
        }
    }
}
