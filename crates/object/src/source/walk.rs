//! Finds the files, folders and links under the paths that are given.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SourceError;
use crate::attributes::{Attributes, USUAL_FOLDER};
use crate::device;
use crate::exclude::Exclude;
use crate::links::{FolderEntry, LinkEntry, LinkError};
use crate::name::{Name, NameError, Reason};

/// What was found.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) files: BTreeMap<Name, (PathBuf, Metadata)>,
    pub(super) folders: Vec<FolderEntry>,
    pub(super) links: Vec<LinkEntry>,
    pub(super) skipped: Vec<(PathBuf, &'static str)>,
    pub(super) exclude: Exclude,
}

/// A folder that is given.
struct Top<'a> {
    path: &'a Path,
    /// The same without links.
    canonical: PathBuf,
}

impl Walk {
    /// Takes a path that is given: a file, a device, or a folder with what is in it.
    pub(super) fn add_root(&mut self, path: &Path) -> Result<(), SourceError> {
        let io_error = |source| SourceError::Io { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(io_error)?;
        let last = match path.file_name() {
            Some(name) => name.to_owned(),
            None => {
                let absolute = path.canonicalize().map_err(io_error)?;
                absolute.file_name().ok_or(SourceError::NoName { path: path.to_owned() })?.to_owned()
            }
        };
        let name = check_name(path, last.as_bytes())?;
        if metadata.is_dir() {
            let canonical = path.canonicalize().map_err(io_error)?;
            self.add_folder(&Top { path, canonical }, path, &name)
        } else if metadata.is_file() || device::is_one(&metadata) {
            if device::is_one(&metadata)
                && let Some(at) = device::written_at(&metadata).map_err(io_error)?
            {
                return Err(SourceError::Mounted { path: path.to_owned(), at });
            }
            let is_link = fs::symlink_metadata(path).map_err(io_error)?.is_symlink();
            let file = if is_link { path.canonicalize().map_err(io_error)? } else { path.to_owned() };
            self.add_file(file, name, metadata)
        } else {
            Err(SourceError::NotAFile { path: path.to_owned() })
        }
    }

    fn add_file(&mut self, path: PathBuf, name: Name, metadata: Metadata) -> Result<(), SourceError> {
        if let Some((first, _)) = self.files.get(&name) {
            return Err(SourceError::SameName { first: first.clone(), second: path, name });
        }
        self.files.insert(name, (path, metadata));
        Ok(())
    }

    /// Takes a link below `root` as it is, if it leads to something there.
    fn add_link(&mut self, root: &Path, path: &Path, name: Name) -> io::Result<()> {
        let target = fs::read_link(path)?;
        let reason = match (LinkEntry::new(name, target.as_os_str().as_bytes()), path.canonicalize()) {
            (Ok(link), Ok(end)) if end.starts_with(root) => {
                self.links.push(link);
                return Ok(());
            }
            (Ok(_), Ok(_)) => LinkError::Outside.reason(),
            (Ok(_), Err(_)) => "a link to nothing",
            (Err(error), _) => error.reason(),
        };
        self.skipped.push((path.to_owned(), reason));
        Ok(())
    }

    fn add_folder(&mut self, top: &Top<'_>, folder: &Path, name: &Name) -> Result<(), SourceError> {
        let io_error = |source| SourceError::Io { path: folder.to_owned(), source };
        let mut entries = self.entries(top, folder).map_err(io_error)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let attributes = Attributes::of(&fs::metadata(folder).map_err(io_error)?).mode_only();
        if entries.is_empty() || attributes.mode != Some(USUAL_FOLDER) {
            self.folders.push(FolderEntry { name: name.clone(), attributes });
        }
        for entry in entries {
            let path = entry.path();
            let io_error = |source| SourceError::Io { path: path.clone(), source };
            let child = [name.as_bytes(), b"/", entry.file_name().as_bytes()].concat();
            let child = match Name::new(child) {
                Err(NameError { reason: Reason::Working, .. }) => {
                    self.skipped.push((path, "the name is that of a working file of Weir"));
                    continue;
                }
                child => child.map_err(|source| SourceError::Name { path: path.clone(), source })?,
            };
            let metadata = fs::symlink_metadata(&path).map_err(io_error)?;
            if metadata.is_symlink() {
                self.add_link(&top.canonical, &path, child).map_err(io_error)?;
            } else if metadata.is_dir() {
                self.add_folder(top, &path, &child)?;
            } else if metadata.is_file() {
                self.add_file(path, child, metadata)?;
            } else {
                self.skipped.push((path, "neither a file nor a folder"));
            }
        }
        Ok(())
    }

    /// What is in a folder, without what is left out.
    fn entries(&mut self, top: &Top<'_>, folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let inside = path.strip_prefix(top.path).unwrap_or(&path);
            if !self.exclude.takes(inside, entry.file_type()?.is_dir()) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }
}

fn check_name(path: &Path, name: &[u8]) -> Result<Name, SourceError> {
    Name::new(name).map_err(|source| SourceError::Name { path: path.to_owned(), source })
}
