//! Patterns for what of a folder is not sent, with the rules of gitignore.
//!
//! A pattern with a slash in it, other than at its end, is matched against the path inside the folder that is sent; any other against
//! every name in it. A slash at the end has it match folders only, `**` stands for any number of folders, and `!` at the beginning takes
//! back what an earlier pattern left out. What is in a folder that is left out is not looked at.

use std::path::Path;
use std::str::FromStr;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// A pattern for what is not sent.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    matcher: Gitignore,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It matches nothing at all.
    #[error("it is empty or a comment; begin it with \\# for a name that begins with #")]
    Blank,
    /// It cannot be read.
    #[error("{0}")]
    Glob(String),
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let bad = |error: ignore::Error| PatternError::Glob(error.to_string());
        let mut builder = GitignoreBuilder::new("");
        builder.add_line(None, text).map_err(bad)?;
        let matcher = builder.build().map_err(bad)?;
        if matcher.is_empty() { Err(PatternError::Blank) } else { Ok(Pattern { text: text.to_owned(), matcher }) }
    }
}

/// What patterns have left out of a set.
#[derive(Debug, Clone, Default)]
pub struct Excluded {
    /// How many files, folders and links; a folder is one, with everything in it.
    pub count: u64,
    /// The patterns that have matched nothing.
    pub idle: Vec<String>,
}

/// Patterns, and what they have matched.
#[derive(Debug, Default)]
pub(crate) struct Exclude {
    patterns: Vec<(Pattern, bool)>,
    count: u64,
}

impl Exclude {
    pub(crate) fn new(patterns: &[Pattern]) -> Exclude {
        Exclude { patterns: patterns.iter().map(|pattern| (pattern.clone(), false)).collect(), count: 0 }
    }

    /// Whether what has this path inside the folder that is sent is left out; the last pattern that matches decides.
    pub(crate) fn takes(&mut self, inside: &Path, is_folder: bool) -> bool {
        let mut is_out = false;
        for (pattern, has_matched) in &mut self.patterns {
            let found = pattern.matcher.matched(inside, is_folder);
            *has_matched |= !found.is_none();
            is_out = found.is_ignore() || (is_out && !found.is_whitelist());
        }
        self.count += u64::from(is_out);
        is_out
    }

    pub(crate) fn finish(self) -> Excluded {
        let idle = self.patterns.into_iter().filter(|(_, has_matched)| !has_matched);
        Excluded { count: self.count, idle: idle.map(|(pattern, _)| pattern.text).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(patterns: &[&str]) -> Exclude {
        let patterns: Vec<Pattern> = patterns.iter().map(|text| text.parse().expect("a pattern")).collect();
        Exclude::new(&patterns)
    }

    #[test]
    fn patterns_match_as_those_of_gitignore_do() {
        let table = [
            (&["*.o"][..], "a.o", true),
            (&["*.o"], "sub/a.o", true),
            (&["*.o"], "sub/a.c", false),
            (&["/a"], "a", true),
            (&["/a"], "sub/a", false),
            (&["sub/a"], "sub/a", true),
            (&["sub/a"], "other/sub/a", false),
            (&["**/sub/a"], "other/sub/a", true),
            (&["*.o", "!keep.o"], "sub/keep.o", false),
            (&["!keep.o", "*.o"], "sub/keep.o", true),
            (&["a/"], "a", false),
            (&["[ab].c"], "b.c", true),
            (&["\\#a"], "#a", true),
        ];
        for (patterns, path, is_out) in table {
            assert_eq!(exclude(patterns).takes(Path::new(path), false), is_out, "{patterns:?} {path}");
        }
        assert!(exclude(&["a/"]).takes(Path::new("sub/a"), true), "a slash at the end is for folders");
    }

    #[test]
    fn what_is_left_out_is_counted_and_patterns_that_match_nothing_are_named() {
        let mut exclude = exclude(&["*.o", "a.o", "*.obj"]);
        let taken = ["a.o", "b.o", "c"].map(|path| exclude.takes(Path::new(path), false));
        assert_eq!(taken, [true, true, false]);
        let Excluded { count, idle } = exclude.finish();
        assert_eq!((count, idle), (2, vec!["*.obj".to_owned()]));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for blank in ["", "  ", "# all"] {
            assert_eq!(blank.parse::<Pattern>().expect_err("matches nothing"), PatternError::Blank, "{blank:?}");
        }
        let error = "[z-a]".parse::<Pattern>().expect_err("no glob");
        assert!(matches!(&error, PatternError::Glob(text) if text.contains("[z-a]")), "{error}");
    }
}
