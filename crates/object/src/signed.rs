//! The sender's signature over a file delivery table, as bytes: it is checked before anything else looks at them.
//!
//! A signed table is an FDT instance in XML and after it a comment of fixed length, `<!--weir:ed25519 SIGNATURE-->` with the
//! signature in base64, and a line feed. XML allows comments after the root element, so other receivers read the table as it
//! is. What is signed is the text `weir table 1`, the TSI as 64 bits, and every byte of the table before the comment.
//!
//! Not here: what the table says.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::keys::{PublicKey, SecretKey};

/// Signs a table of session `tsi`.
pub(crate) fn seal(xml: String, key: &SecretKey, tsi: u64) -> Vec<u8> {
    let signature = STANDARD.encode(key.sign(&message(xml.as_bytes(), tsi)));
    let mut out = xml.into_bytes();
    out.extend([BEFORE, signature.as_bytes(), AFTER].concat());
    out
}

/// The table without its signature, if that is `key`'s for session `tsi`.
pub(crate) fn open<'t>(table: &'t [u8], key: &PublicKey, tsi: u64) -> Option<&'t [u8]> {
    let (xml, comment) = table.split_at_checked(table.len().checked_sub(COMMENT)?)?;
    let text = comment.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    let signature = STANDARD.decode(text).ok()?.try_into().ok()?;
    key.verifies(&message(xml, tsi), &signature).then_some(xml)
}

fn message(xml: &[u8], tsi: u64) -> Vec<u8> {
    [b"weir table 1", &tsi.to_be_bytes()[..], xml].concat()
}

const BEFORE: &[u8] = b"<!--weir:ed25519 ";
const AFTER: &[u8] = b"-->\n";
/// Bytes of the comment: 64 bytes in base64 are 88.
const COMMENT: usize = BEFORE.len() + 88 + AFTER.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_table_opens_for_its_key_and_session_alone_and_is_still_xml() {
        let key = SecretKey::from_seed([1; 32]);
        let xml = "<a>é</a>\n";
        let sealed = seal(xml.to_owned(), &key, 7);
        assert_eq!(sealed.len(), xml.len() + COMMENT);
        assert_eq!(open(&sealed, &key.public(), 7), Some(xml.as_bytes()));
        assert_eq!(open(&sealed, &key.public(), 8), None, "another session");
        assert_eq!(open(&sealed, &SecretKey::from_seed([2; 32]).public(), 7), None, "another sender");
        let text = std::str::from_utf8(&sealed).expect("text");
        assert_eq!(roxmltree::Document::parse(text).expect("XML").root_element().text(), Some("é"));
    }

    #[test]
    fn every_byte_is_under_the_signature() {
        let key = SecretKey::from_seed([1; 32]);
        let sealed = seal("<a b=\"c\"/>".to_owned(), &key, 7);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&changed, &key.public(), 7), None, "byte {at}");
            assert_eq!(open(&sealed[..at], &key.public(), 7), None, "the first {at} bytes");
        }
    }
}
