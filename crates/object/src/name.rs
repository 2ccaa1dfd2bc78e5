//! Names of files as they travel: relative paths that can never point out of the folder they are created in.
//!
//! Not here: the file system. A [`Name`] is checked text; [`crate::store`] opens it component by component without
//! following links.

use std::fmt;

/// A relative path, checked: components separated by `/`, none of them special anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] for anything that is not a plain relative path: absolute, empty, with `.` or `..`, with control
    /// characters, backslashes or drive letters, too long, or ending as the receiver's own working files do.
    pub fn new(name: &str) -> Result<Name, NameError> {
        let refuse = |reason| Err(NameError { name: shorten(name), reason });
        if name.len() > MAX_NAME || name.split('/').count() > MAX_DEPTH {
            return refuse("it is too long");
        }
        for component in name.split('/') {
            match component {
                "" => return refuse("it is absolute or has an empty component"),
                "." | ".." => return refuse("it has a component . or .."),
                _ => {}
            }
            if component.len() > MAX_COMPONENT {
                return refuse("a component is too long");
            }
            if component.contains(|c: char| c.is_control() || c == '\\') {
                return refuse("it has a control character or a backslash");
            }
            if component.as_bytes().get(1) == Some(&b':') && component.as_bytes()[0].is_ascii_alphabetic() {
                return refuse("it starts like a drive letter");
            }
            let lower = component.to_ascii_lowercase();
            if WORKING_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix)) {
                return refuse("a component ends like a receiver's working file (.part, .part.journal, .weir-epochs)");
            }
        }
        Ok(Name(name.to_owned()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders on the way and the last component.
    pub(crate) fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (folders, last) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (folders.split('/').filter(|component| !component.is_empty()), last)
    }

    /// The name as a URI reference: everything but unreserved characters and `/` percent-encoded (RFC 3986 §2).
    pub fn to_location(&self) -> String {
        let mut out = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    /// Reads a Content-Location: a relative reference, or a URI of any scheme, of which the path counts. Query and
    /// fragment are cut off.
    ///
    /// # Errors
    /// As [`Name::new`].
    pub fn from_location(location: &str) -> Result<Name, NameError> {
        let refuse = |reason| Err(NameError { name: shorten(location), reason });
        let path = location.split(['?', '#']).next().unwrap_or("");
        let path = match path.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => path,
        };
        let mut bytes = Vec::with_capacity(path.len());
        let mut rest = path.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => return refuse("it has a broken percent escape"),
            }
        }
        match String::from_utf8(bytes) {
            Ok(name) => Name::new(&name),
            Err(_) => refuse("it is not UTF-8"),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that no file may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} cannot be used: {reason}")]
pub struct NameError {
    /// The name, cut to a length that can be shown.
    pub name: String,
    /// What is wrong.
    pub reason: &'static str,
}

fn shorten(name: &str) -> String {
    name.chars().take(80).collect()
}

const MAX_NAME: usize = 3000;
const MAX_DEPTH: usize = 64;
/// Room is left for `.part.journal` within the 255 bytes that file systems allow.
const MAX_COMPONENT: usize = 255 - 13;
const WORKING_SUFFIXES: [&str; 3] = [".part", ".part.journal", ".weir-epochs"];

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
            "a\\b",
            "..\\x",
            "C:",
            "c:x",
            "x.part",
            "x.PART/y",
            "x.part.journal",
            "a\nb",
        ] {
            assert!(Name::new(name).is_err(), "{name:?}");
        }
        assert!(Name::new(&"a/".repeat(100)).is_err() && Name::new(&"a".repeat(250)).is_err());
    }

    #[test]
    fn locations_of_other_senders_lose_their_scheme_and_host() {
        for (location, name) in [
            ("file:///hello.txt", "hello.txt"),
            ("http://example.org/a/b%20c?x=1#y", "a/b c"),
            ("dir/%C3%A9?part=2", "dir/é"),
        ] {
            assert_eq!(Name::from_location(location).expect("valid").as_str(), name);
        }
        for location in ["file:///../x", "/etc/passwd", "%2e%2e/x", "a%2F..%2Fb", "a%zz", "%ff", "http://host", "a%"] {
            assert!(Name::from_location(location).is_err(), "{location:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_survives_its_location(name in "[^/\u{0}-\u{1f}]{1,20}(/[^/\u{0}-\u{1f}]{1,20}){0,3}") {
            if let Ok(name) = Name::new(&name) {
                prop_assert_eq!(Name::from_location(&name.to_location()), Ok(name));
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = Name::from_location(&text);
        }
    }
}
