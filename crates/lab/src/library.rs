//! The scenarios at hand, by id: those of a folder, or those that are built in.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use crate::dossier::{Dossier, DossierError};
use crate::scenario::{Override, did_you_mean};

/// Scenario files by id, in the order of their ids. The id of a file is its path in the folder without `.toml`.
#[derive(Debug, Clone, Default)]
pub struct Library {
    files: Vec<File>,
}

/// A scenario file.
#[derive(Debug, Clone)]
struct File {
    id: String,
    name: String,
    text: Cow<'static, str>,
}

/// An id that no scenario has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scenario {id:?}{suggestion}")]
pub struct UnknownId {
    /// The id.
    pub id: String,
    suggestion: String,
}

/// A scenario that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error(transparent)]
    Unknown(#[from] UnknownId),
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] DossierError),
}

impl Library {
    /// The scenarios of `folder`, if one is named, or of `scenarios` in the current folder, or the built-in ones.
    pub fn find(folder: Option<&Path>) -> io::Result<Library> {
        let here = Path::new("scenarios");
        match folder.or_else(|| here.is_dir().then_some(here)) {
            Some(folder) => Library::read(folder)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()))),
            None => Ok(Library::built_in()),
        }
    }

    /// Those of `scenarios` when this was built.
    pub fn built_in() -> Library {
        Library::of_texts(BUILT_IN)
    }

    /// Pairs of path and text.
    fn of_texts(files: &[(&'static str, &'static str)]) -> Library {
        let files = files.iter().map(|(path, text)| File {
            id: id_of(path),
            name: (*path).to_owned(),
            text: Cow::Borrowed(*text),
        });
        Library { files: files.collect() }.sorted()
    }

    /// All `.toml` files in `folder` and the folders in it.
    pub fn read(folder: &Path) -> io::Result<Library> {
        let mut library = Library::default();
        library.read_into(folder, "")?;
        Ok(library.sorted())
    }

    fn read_into(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let inner = format!("{prefix}{name}");
            if path.is_dir() {
                self.read_into(&path, &format!("{inner}/"))?;
            } else if name.ends_with(".toml") {
                let text = Cow::Owned(std::fs::read_to_string(&path)?);
                self.files.push(File { id: id_of(&inner), name: path.display().to_string(), text });
            }
        }
        Ok(())
    }

    fn sorted(mut self) -> Library {
        self.files.sort_by(|a, b| a.id.cmp(&b.id));
        self
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.id.as_str())
    }

    /// The ids that `name` means: itself, or with `avmrc` all that begin with `avmrc/`.
    pub fn ids_of(&self, name: &str) -> Result<Vec<&str>, UnknownId> {
        let below = format!("{}/", name.trim_end_matches('/'));
        let found: Vec<&str> = self.ids().filter(|id| *id == name || id.starts_with(&below)).collect();
        if found.is_empty() { Err(self.unknown(name)) } else { Ok(found) }
    }

    /// The scenario of this id.
    pub fn open(&self, id: &str, overrides: &[Override]) -> Result<Dossier, OpenError> {
        let file = self.files.iter().find(|file| file.id == id).ok_or_else(|| self.unknown(id))?;
        Ok(Dossier::parse(&file.name, &file.text, overrides)?)
    }

    fn unknown(&self, id: &str) -> UnknownId {
        UnknownId { id: id.to_owned(), suggestion: did_you_mean(id, self.ids()) }
    }
}

fn id_of(path: &str) -> String {
    path.strip_suffix(".toml").unwrap_or(path).to_owned()
}

/// What the build script found in `scenarios`.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_that_is_built_in_can_be_opened() {
        let library = Library::built_in();
        assert!(library.ids().any(|id| id == "avmrc/fig02"), "AVMRC's are there");
        for id in library.ids() {
            let dossier = library.open(id, &[]).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert_eq!(dossier.id(), id, "a scenario's id is its path");
        }
    }

    fn library() -> Library {
        Library::of_texts(&[("avmrc/fig10.toml", "x = 1"), ("avmrc/fig02.toml", "x = 2"), ("rap/fig03.toml", "x = 3")])
    }

    #[test]
    fn an_id_or_a_paper_is_found_and_the_nearest_is_suggested() {
        let library = library();
        assert_eq!(library.ids_of("avmrc/fig02").expect("it exists"), ["avmrc/fig02"]);
        assert_eq!(library.ids_of("avmrc").expect("a paper"), ["avmrc/fig02", "avmrc/fig10"]);
        let error = library.ids_of("avmrc/fig2").expect_err("it does not exist");
        assert_eq!(error.to_string(), "there is no scenario \"avmrc/fig2\"; did you mean \"avmrc/fig02\"?");
        assert!(library.open("rap", &[]).is_err(), "a paper is not a scenario");
    }

    #[test]
    fn a_folder_is_read_to_its_leaves_and_only_its_scenarios() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("mine/deep")).expect("room");
        for name in ["mine/deep/b.toml", "mine/a.toml", "mine/notes.txt", "c.toml"] {
            std::fs::write(folder.path().join(name), "").expect("room");
        }
        let library = Library::read(folder.path()).expect("it can be read");
        assert_eq!(library.ids().collect::<Vec<_>>(), ["c", "mine/a", "mine/deep/b"]);
        assert!(Library::read(&folder.path().join("nowhere")).is_err());
    }
}
