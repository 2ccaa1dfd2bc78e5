//! Names of files as they travel: relative paths that can never point out of the folder they are created in.
//!
//! A name is bytes, as those of Linux are: whatever is in a tree can be sent, also names with line breaks and names that are no UTF-8.
//!
//! Not here: the file system. A [`Name`] is checked; [`crate::store`] opens it component by component without
//! following links.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A relative path, checked: components separated by `/`, none of them special anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] for anything that is not a plain relative path: absolute, empty, with `.` or `..` or a zero byte, too long, or ending
    /// as the receiver's own working files do.
    pub fn new(name: impl AsRef<[u8]>) -> Result<Name, NameError> {
        let name = name.as_ref();
        let refuse = |reason| Err(NameError { name: shorten(name), reason });
        let components = || name.split(is_slash);
        if name.len() > MAX_NAME || components().count() > MAX_DEPTH {
            return refuse(Reason::Long);
        }
        for component in components() {
            match component {
                b"" => return refuse(Reason::Absolute),
                b"." | b".." => return refuse(Reason::Dots),
                _ if component.contains(&0) => return refuse(Reason::Zero),
                _ if component.len() > MAX_COMPONENT => return refuse(Reason::Long),
                _ if is_working(component) => return refuse(Reason::Working),
                _ => {}
            }
        }
        Ok(Name(name.into()))
    }

    /// The path, byte by byte.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for the file system.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The folder that it lies in, empty for the outermost, and the last component.
    pub(crate) fn split(&self) -> (&[u8], &OsStr) {
        match self.0.iter().rposition(is_slash) {
            Some(slash) => (&self.0[..slash], OsStr::from_bytes(&self.0[slash + 1..])),
            None => (&[], OsStr::from_bytes(&self.0)),
        }
    }

    /// The name as a URI reference: everything but unreserved characters and `/` percent-encoded (RFC 3986 §2).
    pub fn to_location(&self) -> String {
        escape(&self.0)
    }

    /// Reads a Content-Location: a relative reference, or a URI of any scheme, of which the path counts. Query and
    /// fragment are cut off.
    ///
    /// # Errors
    /// As [`Name::new`], and for what is no URI reference.
    pub fn from_location(location: &str) -> Result<Name, NameError> {
        let path = location.split(['?', '#']).next().unwrap_or("");
        let path = match path.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => path,
        };
        match unescape(path) {
            Some(name) => Name::new(name),
            None => Err(NameError { name: shorten(location.as_bytes()), reason: Reason::Escape }),
        }
    }
}

/// Bytes in a URI reference: everything but unreserved characters and `/` percent-encoded (RFC 3986 §2).
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// What [`escape`] has written, or another sender, with as many percent escapes as it likes; `None` if one is broken.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(if byte == b'%' { (digit()? * 16 + digit()?) as u8 } else { byte });
    }
    Some(bytes)
}

/// Whether a component ends like a working file of a receiver, which a file system that ignores case would take for one.
fn is_working(component: &[u8]) -> bool {
    let ends_with = |suffix: &&str| {
        let at = component.len().checked_sub(suffix.len());
        at.is_some_and(|at| component[at..].eq_ignore_ascii_case(suffix.as_bytes()))
    };
    WORKING_SUFFIXES.iter().any(ends_with)
}

/// What a receiver calls a working file for the file `last`. Where that would be longer than file systems allow, a digest stands for the
/// end of the name.
pub(crate) fn working(last: &OsStr, suffix: &str) -> OsString {
    let bytes = last.as_bytes();
    let mut name = OsString::new();
    if bytes.len() + suffix.len() <= MAX_COMPONENT {
        name.push(last);
    } else {
        let digest = blake3::hash(bytes);
        name.push(OsStr::from_bytes(&bytes[..SHORTENED]));
        name.push(&digest.to_hex()[..DIGEST_DIGITS]);
    }
    name.push(suffix);
    name
}

/// One line for people: U+FFFD stands for control characters and for what is no UTF-8.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// A path as [`Name`] shows it.
pub(crate) fn shown(path: &[u8]) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(path).chars().map(visible).collect()
}

/// The components of a path without empty ones.
pub(crate) fn components(path: &[u8]) -> impl Iterator<Item = &OsStr> {
    path.split(is_slash).filter(|component| !component.is_empty()).map(OsStr::from_bytes)
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

/// A name that no file may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} cannot be used: {reason}")]
pub struct NameError {
    /// The name, cut to a length that can be shown.
    pub name: String,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// More bytes or more components than anybody takes.
    #[error("it is too long")]
    Long,
    /// It begins or ends with a slash, or has two next to each other.
    #[error("it is absolute or has an empty component")]
    Absolute,
    /// It leads up, or nowhere.
    #[error("it has a component . or ..")]
    Dots,
    /// No file system has it.
    #[error("it has a zero byte")]
    Zero,
    /// It is one of a receiver's own.
    #[error("it ends like a receiver's working file ({})", WORKING_SUFFIXES.join(", "))]
    Working,
    /// It is no URI reference.
    #[error("it has a broken percent escape")]
    Escape,
}

/// What of a name can be shown in a message.
pub(crate) fn shorten(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(80).collect()
}

/// What the suffix of a file is while it is received, of its journal, and of a link that is about to replace another.
pub(crate) const PARTIAL: &str = ".weir-part";
pub(crate) const JOURNAL: &str = ".weir-journal";
pub(crate) const NEW_LINK: &str = ".weir-link";
/// What the file is called in which a receiver keeps what it has heard of starts.
pub(crate) const EPOCHS: &str = ".weir-epochs";
const WORKING_SUFFIXES: [&str; 4] = [PARTIAL, JOURNAL, NEW_LINK, EPOCHS];
const MAX_NAME: usize = 3000;
const MAX_DEPTH: usize = 64;
/// What file systems of Linux allow.
const MAX_COMPONENT: usize = 255;
/// Bytes of a long name, and hexadecimal digits of its digest, in the name of its working file.
const SHORTENED: usize = 200;
const DIGEST_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_point_elsewhere_are_refused() {
        for name in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a/.",
            "a\0b",
            "x.weir-part",
            "x.WEIR-PART/y",
            "x.weir-journal",
            "x.weir-link",
            ".weir-epochs",
        ] {
            assert!(Name::new(name).is_err(), "{name:?}");
        }
        assert!(Name::new("a/".repeat(100)).is_err() && Name::new("a".repeat(256)).is_err());
    }

    #[test]
    fn every_name_that_a_file_system_has_can_be_sent() {
        let longest = "a".repeat(255);
        let names: [&[u8]; 9] = [
            b"system-systemd\\x2dcryptsetup.slice",
            b"c:",
            b"a\nb",
            b"Icon\r",
            b"caf\xe9",
            b"x.part",
            b"...",
            b" ",
            longest.as_bytes(),
        ];
        for name in names {
            let name = Name::new(name).expect("it is plain");
            assert_eq!(Name::from_location(&name.to_location()), Ok(name));
        }
        assert_eq!(Name::new(b"caf\xe9\n\x1b[2J").expect("it is plain").to_string(), "caf\u{fffd}\u{fffd}\u{fffd}[2J");
    }

    #[test]
    fn working_files_have_names_of_their_own_however_long_those_of_files_are() {
        let long = |last: char| OsString::from(format!("{}{last}", "a".repeat(254)));
        let names = [OsString::from("a"), "a".repeat(245).into(), "a".repeat(246).into(), long('b'), long('c')];
        let working: Vec<_> = names.iter().map(|name| working(name, PARTIAL)).collect();
        assert_eq!(working[0], "a.weir-part");
        for (i, name) in working.iter().enumerate() {
            assert!(name.len() <= 255 && Name::new(name.as_bytes()).is_err(), "{name:?}");
            assert!(!working[..i].contains(name), "{name:?}");
        }
    }

    #[test]
    fn locations_of_other_senders_lose_their_scheme_and_host() {
        for (location, name) in [
            ("file:///hello.txt", "hello.txt"),
            ("http://example.org/a/b%20c?x=1#y", "a/b c"),
            ("dir/%C3%A9?part=2", "dir/é"),
        ] {
            assert_eq!(Name::from_location(location).expect("valid").as_bytes(), name.as_bytes());
        }
        for location in ["file:///../x", "/etc/passwd", "%2e%2e/x", "a%2F..%2Fb", "a%zz", "%f", "http://host", "a%"] {
            assert!(Name::from_location(location).is_err(), "{location:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_survives_its_location(name in prop::collection::vec(any::<u8>(), 1..40)) {
            if let Ok(name) = Name::new(name) {
                prop_assert_eq!(Name::from_location(&name.to_location()), Ok(name));
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = Name::from_location(&text);
        }
    }
}
