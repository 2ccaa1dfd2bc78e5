//! Where things are kept between runs: the folders of the XDG Base Directory Specification.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
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

/// The folder that the variable names, if that is absolute; or else the one below the home folder.
fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(below_home)))
}
