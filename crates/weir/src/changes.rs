//! What was sent the last time, so that a folder that is sent again is sent as what has changed: `--changes FILE`.
//!
//! The file has the name and the digest of everything that was sent. It is written when a sender ends as it was asked to.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_object::source::{SourceFile, SourceSet};
use weir_units::Hex;

use crate::exit::{Exit, Failure};
use crate::folders;

/// The set that is sent, and where it is to be remembered.
#[derive(Debug)]
pub(crate) struct Changes {
    file: PathBuf,
    set: Remembered,
    /// Files of the set that are as they were.
    pub(crate) unchanged: usize,
}

/// What the file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    /// BLAKE3 digests, in hexadecimal, by name, which is percent-encoded as in a URI.
    files: BTreeMap<String, String>,
}

impl Changes {
    /// Takes out of the set what was sent the last time.
    pub(crate) fn since(file: &Path, sources: &mut SourceSet) -> Result<Changes, Failure> {
        let known = Remembered::read(file)?;
        let digests = sources.files().iter().map(|file| (file.name.to_location(), Hex(&file.digest).to_string()));
        let set = Remembered { files: digests.collect() };
        let all = sources.files().len();
        sources.retain(|file| {
            let name = file.name.to_location();
            known.files.get(&name).is_none_or(|digest| *digest != set.files[&name])
        });
        Ok(Changes { file: file.to_owned(), unchanged: all - sources.files().len(), set })
    }

    /// The set has been sent, but for these files: what differs from it is what changed.
    pub(crate) fn remember_without(&mut self, left_out: &[SourceFile]) -> Result<(), Failure> {
        left_out.iter().for_each(|file| _ = self.set.files.remove(&file.name.to_location()));
        let text = serde_json::to_string_pretty(&self.set).expect("names and digests are plain data");
        let failed = format!("cannot remember what was sent in {}", self.file.display());
        folders::replace(&self.file, text.as_bytes(), 0o666).map_err(Failure::of(Exit::Files, failed))
    }
}

impl Remembered {
    fn read(file: &Path) -> Result<Remembered, Failure> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Remembered::default()),
            text => text.map_err(Failure::of(Exit::Files, file.display()))?,
        };
        serde_json::from_str(&text).map_err(|error| {
            let advice = "--changes names a file that an earlier session wrote, or one that is not there yet";
            Failure::new(Exit::Files, format!("{} does not say what was sent: {error}; {advice}", file.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_it_was_is_taken_out_and_what_the_file_cannot_say_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tree, state) = (folder.path().join("tree"), folder.path().join("state"));
        fs::create_dir(&tree).expect("a folder");
        for name in ["a", "b"] {
            fs::write(tree.join(name), name).expect("room");
        }
        let names = || {
            let mut set = SourceSet::collect(std::slice::from_ref(&tree), false).expect("readable");
            let changes = Changes::since(&state, &mut set).expect("readable");
            (set.files().iter().map(|file| file.name.to_string()).collect::<Vec<_>>(), changes)
        };
        let (first, mut changes) = names();
        assert_eq!((first.len(), changes.unchanged), (2, 0));
        changes.remember_without(&[]).expect("room");
        fs::write(tree.join("b"), "other").expect("room");
        fs::write(tree.join("c"), "c").expect("room");
        let (second, mut changes) = names();
        assert_eq!((second, changes.unchanged), (vec!["tree/b".to_owned(), "tree/c".to_owned()], 1));
        assert_eq!(names().0.len(), 2, "nothing is remembered of a session that did not end");
        changes.remember_without(&[]).expect("room");
        assert!(names().0.is_empty());

        fs::write(&state, "{\"file\": {}}").expect("room");
        let mut set = SourceSet::collect(&[tree], false).expect("readable");
        let failure = Changes::since(&state, &mut set).expect_err("it is no such file");
        assert!(failure.exit == Exit::Files && failure.message.contains("--changes"), "{failure}");
    }
}
