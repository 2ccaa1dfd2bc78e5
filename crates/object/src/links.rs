//! Folders and symbolic links of a set: what they are called, and where a link may lead.
//!
//! A link leads up first and then down (`../../a/b`), relative to the folder that it lies in, and never out of the tree that it came in.
//! That the steps up come first makes it certain: they start in a real folder, and a link that is passed on the way down obeys the
//! same rule.

use crate::attributes::Attributes;
use crate::name::{self, Name};

/// A folder that has to be said: one with nothing in it, or of other permissions than folders have mostly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name.
    pub name: Name,
    /// Its permissions.
    pub attributes: Attributes,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEntry {
    /// Its name.
    pub name: Name,
    /// Where it leads.
    pub target: Box<[u8]>,
}

impl LinkEntry {
    /// A link, if it stays within its tree: the first component of its name.
    pub fn new(name: Name, target: impl AsRef<[u8]>) -> Result<LinkEntry, LinkError> {
        let target = target.as_ref();
        if target.len() > LONGEST_TARGET || target.contains(&0) {
            return Err(LinkError::Unusable);
        }
        let components = || target.split(|byte| *byte == b'/');
        let ups = components().take_while(|component| *component == b"..").count();
        if target.is_empty() || target.starts_with(b"/") {
            return Err(LinkError::Outside);
        }
        if components().skip(ups).any(|component| component == b"..") {
            return Err(LinkError::UpAfterDown);
        }
        // The folders that the link lies in, less one, for the tree's own must stay.
        let depth = name::components(name.as_bytes()).count() - 1;
        if ups >= depth.max(1) {
            return Err(LinkError::Outside);
        }
        Ok(LinkEntry { name, target: target.into() })
    }
}

/// Why a link does not travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// It leads out of the tree.
    #[error("a link out of the tree")]
    Outside,
    /// It goes up after it has gone down, so that nobody can tell where it leads.
    #[error("a link that goes up after it has gone down; make it a direct one")]
    UpAfterDown,
    /// Its target cannot be written down.
    #[error("a link whose target is too long or has a zero byte")]
    Unusable,
}

impl LinkError {
    /// For lists of what was left out.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            LinkError::Outside => "a link out of the tree",
            LinkError::UpAfterDown => "a link that goes up after it has gone down; make it a direct one",
            LinkError::Unusable => "a link whose target is too long or has a zero byte",
        }
    }
}

const LONGEST_TARGET: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, target: &str) -> Result<LinkEntry, LinkError> {
        LinkEntry::new(Name::new(name).expect("a name"), target)
    }

    #[test]
    fn links_stay_within_their_tree() {
        for (name, target) in
            [("t/a", "b"), ("t/a", "sub/b"), ("t/s/a", "../b"), ("t/s/u/a", "../../b/c"), ("t/a", ".")]
        {
            assert!(link(name, target).is_ok(), "{name} -> {target}");
        }
        for (name, target) in
            [("t/a", "../b"), ("t/s/a", "../.."), ("t/s/a", "../../t2"), ("t/a", "/etc/passwd"), ("t/a", "")]
        {
            assert_eq!(link(name, target), Err(LinkError::Outside), "{name} -> {target}");
        }
        assert_eq!(link("t/s/a", "b/../../c"), Err(LinkError::UpAfterDown));
        assert_eq!(link("t/a", "b\0c"), Err(LinkError::Unusable));
        assert_eq!(link("t/a", &"b".repeat(1_001)), Err(LinkError::Unusable));
        assert!(link("t/a", "b\nc").is_ok(), "a file can have such a name");
        assert_eq!(link("a", ".."), Err(LinkError::Outside));
    }
}
