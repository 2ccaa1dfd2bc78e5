//! Where things are kept between runs: the folders of the XDG Base Directory Specification; and how files are put there, whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The sender's usual key.
pub(crate) fn usual_key() -> Option<PathBuf> {
    base("XDG_CONFIG_HOME", ".config").map(|base| base.join("weir").join("sender.key"))
}

/// Where what was learned is kept: known senders, this receiver's own number.
pub(crate) fn state() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state").map(|base| base.join("weir"))
}

/// Makes the folder that `file` lies in, for nobody else to look into.
pub(crate) fn make_for(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
        }
        _ => Ok(()),
    }
}

/// A file with something behind its name.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether something is there, be it a link to nothing.
pub(crate) fn is_there(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts a file in its place, instead of what is there: nobody ever reads half of it, and a link that is there is replaced, not followed.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (new, _) = write_beside(path, bytes, mode)?;
    or_removed(&new, fs::rename(&new, path))
}

/// The same, through to the disk, where nothing is there; else the error is that it exists already.
pub(crate) fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (new, file) = write_beside(path, bytes, mode)?;
    or_removed(&new, file.sync_all())?;
    match fs::hard_link(&new, path) {
        // A file system without hard links: what somebody else puts there in this moment is replaced.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            let there =
                is_there(path).and_then(|there| if there { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) });
            or_removed(&new, there.and_then(|()| fs::rename(&new, path)))
        }
        linked => linked.and(fs::remove_file(&new)).or_else(|error| or_removed(&new, Err(error))),
    }
}

/// Writes to a file next to it that nobody else has.
fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<(PathBuf, File)> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let new = beside(path, &format!(".new{:016x}", u64::from_be_bytes(random)));
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&new)?;
    or_removed(&new, file.write_all(bytes))?;
    Ok((new, file))
}

/// What could not be put in its place is removed; if that fails too, it is no worse.
fn or_removed(new: &Path, done: io::Result<()>) -> io::Result<()> {
    if done.is_err() {
        let _ = fs::remove_file(new);
    }
    done
}

/// The folder that the variable names, if that is absolute; or else the one below the home folder.
fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_put_in_its_place_whole_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("others"), "theirs").expect("room");
        fs::write(path("key.new"), "theirs").expect("room");
        symlink("others", path("key")).expect("room");
        assert_eq!(
            create(&path("key"), b"a", 0o600).expect_err("a link is there").kind(),
            io::ErrorKind::AlreadyExists
        );
        replace(&path("key"), b"a", 0o600).expect("room");
        assert_eq!(create(&path("key"), b"b", 0o600).expect_err("it is there").kind(), io::ErrorKind::AlreadyExists);
        create(&path("another"), b"b", 0o600).expect("room");
        let text = |name: &str| fs::read_to_string(path(name)).expect("it is there");
        assert_eq!(["key", "another", "others", "key.new"].map(text), ["a", "b", "theirs", "theirs"]);
        for name in ["key", "another"] {
            let metadata = fs::symlink_metadata(path(name)).expect("it is there");
            assert!(metadata.is_file() && metadata.permissions().mode() & 0o777 == 0o600, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4, "nothing is left over");
        assert!(replace(&path("missing/key"), b"a", 0o600).is_err());
    }
}
