//! The output folder, opened so that no name and no link leads out of it.
//!
//! Every component below the folder is opened relative to the one before it and never through a link, so neither a name
//! from the network nor a link that somebody puts in the way can make a file appear elsewhere.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, FallocateFlags, Flock, FlockArg, OFlag, fallocate, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use rustix::fs::{RenameFlags, renameat_with};

use crate::attributes::{self, PERMISSIONS, USUAL_FOLDER};
use crate::name::{self, Name};

/// The output folder.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    /// The device that the bytes of the file go to.
    device: Option<PathBuf>,
    root: OwnedFd,
    /// The folders below it that this process has made.
    made: RefCell<BTreeSet<Vec<u8>>>,
    /// Those of them that are their owner's alone, as nothing has told yet what permissions they had; and whether the set that is
    /// received now has them.
    closed: RefCell<BTreeMap<Vec<u8>, bool>>,
}

impl OutFolder {
    /// Opens the folder, making it if it is not there.
    pub(crate) fn open(path: &Path) -> io::Result<OutFolder> {
        std::fs::create_dir_all(path)?;
        let root = openat(nix::fcntl::AT_FDCWD, path, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(OutFolder {
            path: path.to_owned(),
            device: None,
            root,
            made: RefCell::default(),
            closed: RefCell::default(),
        })
    }

    /// Has the bytes of the file go to this device.
    pub(crate) fn with_device(self, device: Option<PathBuf>) -> OutFolder {
        OutFolder { device, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The device that the bytes of the file go to, if they do not stay in the folder.
    pub(crate) fn device(&self) -> Option<&Path> {
        self.device.as_deref()
    }

    /// Where what is received ends up.
    pub(crate) fn place(&self) -> &Path {
        self.device().unwrap_or(&self.path)
    }

    /// Opens the folder that `name` lies in, making what is missing, and gives the last component.
    pub(crate) fn parent<'n>(&self, name: &'n Name) -> io::Result<(OwnedFd, &'n OsStr)> {
        let (folders, last) = name.split();
        let mut parent = self.root.try_clone()?;
        let mut path = Vec::new();
        for component in name::components(folders) {
            path.extend([component.as_bytes(), b"/"].concat());
            parent = self.enter(&parent, component, &path)?;
        }
        Ok((parent, last))
    }

    /// Makes the folder `name` and those that it lies in. One that this process has made gets these permissions, less those of the
    /// umask; its owner can always put files in it. One that was there keeps those that it has. Says why permissions are refused, if they
    /// are.
    pub(crate) fn make_folder(&self, name: &Name, mode: Option<u16>, umask: u32) -> io::Result<Option<io::Error>> {
        let (parent, last) = self.parent(name)?;
        let path = [name.as_bytes(), b"/"].concat();
        let folder = self.enter(&parent, last, &path)?;
        if !self.made.borrow().contains(&path) {
            return Ok(None);
        }
        self.closed.borrow_mut().remove(&path);
        attributes::refusal(permit(&folder, mode.unwrap_or(USUAL_FOLDER), umask))
    }

    /// Another set begins: what it says of folders that were made before is still to come.
    pub(crate) fn begin_set(&self) {
        self.closed.borrow_mut().values_mut().for_each(|is_used| *is_used = false);
    }

    /// Whether folders wait for [`OutFolder::open_folders`].
    pub(crate) fn has_closed(&self) -> bool {
        !self.closed.borrow().is_empty()
    }

    /// All was told of the folders of this set: those of which nothing was said get the permissions that folders have mostly. Gives
    /// those for which they are refused.
    pub(crate) fn open_folders(&self, umask: u32) -> Vec<(String, io::Error)> {
        let all = std::mem::take(&mut *self.closed.borrow_mut());
        let (of_set, others): (BTreeMap<_, _>, _) = all.into_iter().partition(|(_, is_used)| *is_used);
        *self.closed.borrow_mut() = others;
        let opened = of_set.into_keys().map(|path| {
            let opened = self.walk(&path).and_then(|folder| permit(&folder, USUAL_FOLDER, umask));
            (name::shown(path.strip_suffix(b"/").unwrap_or(&path)), opened)
        });
        opened.filter_map(|(path, opened)| Some((path, opened.err()?))).collect()
    }

    /// Opens a folder that is there.
    fn walk(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let mut folder = self.root.try_clone()?;
        for component in name::components(path) {
            folder = openat(&folder, component, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Makes a symbolic link, unless it is there already. With `overwrite` it replaces another link, and never anything else.
    pub(crate) fn make_link(&self, name: &Name, target: &[u8], overwrite: bool) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        match symlinkat(target, &parent, last) {
            Err(Errno::EEXIST) => {}
            made => return Ok(made?),
        }
        match readlinkat(&parent, last) {
            Ok(there) if there.as_bytes() == target => Ok(()),
            Ok(_) if overwrite => replace_link(&parent, last, target),
            _ => Err(Errno::EEXIST.into()),
        }
    }

    fn enter(&self, parent: &OwnedFd, component: &OsStr, path: &[u8]) -> io::Result<OwnedFd> {
        if let Some(is_used) = self.closed.borrow_mut().get_mut(path) {
            *is_used = true;
        }
        match openat(parent, component, FOLDER, Mode::empty()) {
            // Until it is known what permissions it had, it is nobody else's to look into.
            Err(Errno::ENOENT) => match mkdirat(parent, component, Mode::S_IRWXU) {
                Ok(()) => {
                    self.made.borrow_mut().insert(path.to_owned());
                    self.closed.borrow_mut().insert(path.to_owned(), true);
                    Ok(openat(parent, component, FOLDER, Mode::empty())?)
                }
                Err(Errno::EEXIST) => Ok(openat(parent, component, FOLDER, Mode::empty())?),
                Err(error) => Err(error.into()),
            },
            opened => Ok(opened?),
        }
    }

    /// Opens a file of the receiver's own in the folder itself; `None` if it is not there and is not to be made.
    pub(crate) fn open_own(&self, name: impl AsRef<OsStr>, how: How) -> io::Result<Option<File>> {
        match open_at(&self.root, name, how) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of what is in the folder itself, in no order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Removes a file of the receiver's own from the folder itself, if it is there.
    pub(crate) fn remove_own(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        remove_at(&self.root, name)
    }

    /// Waits until no other process has the folder locked, and locks it.
    pub(crate) fn lock(&self) -> io::Result<Flock<OwnedFd>> {
        let folder = openat(&self.root, ".", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Flock::lock(folder, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
    }

    /// Writes a file of the receiver's own in the folder itself. A reader finds all of it or what was there before, whatever happens. The caller
    /// holds the folder's lock.
    pub(crate) fn replace_own(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("new{name}");
        // One that was left by somebody who was killed.
        remove_at(&self.root, &new)?;
        let mut file = open_at(&self.root, &new, How::Create)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        rename_at(&self.root, new.as_ref(), name.as_ref(), true)?;
        sync_folder(&self.root)
    }

    /// Whether `folder` is on the file system of the output folder.
    pub(crate) fn has_file_system_of(&self, folder: &OwnedFd) -> io::Result<bool> {
        Ok(fstat(folder)?.st_dev == fstat(&self.root)?.st_dev)
    }

    /// The folder, for another thread.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// Writes everything on the file system of the output folder through to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync_file_system(&self.root)
    }

    /// Bytes that can still be written, as far as the file system tells.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.root)?;
        Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }
}

/// Puts a link in the place of another. What somebody has put there meanwhile, which is none, comes back.
fn replace_link(parent: &OwnedFd, name: &OsStr, target: &[u8]) -> io::Result<()> {
    let new = name::working(name, name::NEW_LINK);
    // Of a receiver that was killed; what is no link stays, and is in the way.
    if readlinkat(parent, new.as_os_str()).is_ok() {
        remove_at(parent, &new)?;
    }
    symlinkat(target, parent, new.as_os_str())?;
    let exchange = || rename_with(parent, new.as_os_str(), name, RenameFlags::EXCHANGE);
    match exchange() {
        Ok(()) if readlinkat(parent, new.as_os_str()).is_ok() => remove_at(parent, &new),
        Ok(()) => {
            exchange()?;
            remove_at(parent, &new)?;
            Err(Errno::EEXIST.into())
        }
        // A file system that cannot exchange.
        Err(Errno::EINVAL) => {
            remove_at(parent, name)?;
            Ok(rename_with(parent, new.as_os_str(), name, RenameFlags::empty())?)
        }
        Err(error) => {
            remove_at(parent, &new)?;
            Err(error.into())
        }
    }
}

/// Gives a folder permissions, less those of the umask. Its owner can always put files in it, and it hands on the group of the folder that
/// it lies in, if that does.
fn permit(folder: &OwnedFd, mode: u16, umask: u32) -> io::Result<()> {
    let now = Mode::from_bits_truncate(fstat(folder)?.st_mode);
    let wanted = Mode::from_bits_truncate(u32::from(mode) & PERMISSIONS & !umask);
    Ok(fchmod(folder, wanted | Mode::S_IRWXU | (now & Mode::S_ISGID))?)
}

/// What is at `name` in `parent`, itself, not what it links to; `None` where there is nothing.
pub(crate) fn stat_at(parent: &OwnedFd, name: impl AsRef<OsStr>) -> io::Result<Option<FileStat>> {
    match fstatat(parent, name.as_ref(), AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether `stat` is of a regular file.
pub(crate) fn is_file(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

/// Opens a regular file for reading and writing, or just reading; never through a link, never a device or a pipe.
pub(crate) fn open_at(parent: &OwnedFd, name: impl AsRef<OsStr>, how: How) -> io::Result<File> {
    let flags = match how {
        How::Read => OFlag::O_RDONLY,
        How::Write => OFlag::O_RDWR,
        How::Create => OFlag::O_RDWR | OFlag::O_CREAT,
    };
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    // What is not complete is nobody else's to read: it gets its permissions with its name.
    let file = File::from(openat(parent, name.as_ref(), flags, Mode::from_bits_truncate(0o600))?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Makes an empty file for writing in the place of one that was left by somebody who was killed; not of one that is being written.
pub(crate) fn create_at(parent: &OwnedFd, name: impl AsRef<OsStr>) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match openat(parent, name.as_ref(), flags, Mode::from_bits_truncate(0o600)) {
        Err(Errno::EEXIST) => {}
        made => return Ok(File::from(made?)),
    }
    let left = open_at(parent, name, How::Write)?;
    let left = Flock::lock(left, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
    left.set_len(0)?;
    left.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    left.unlock().map_err(|(_, error)| error.into())
}

/// How to open a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Read,
    Write,
    Create,
}

/// As rename(2) with flags, which nix has for the GNU C library alone.
fn rename_with(parent: &OwnedFd, from: &OsStr, to: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
    renameat_with(parent, from, parent, to, flags).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

/// Renames within `parent`; an existing file is replaced only with `overwrite`.
pub(crate) fn rename_at(parent: &OwnedFd, from: &OsStr, to: &OsStr, overwrite: bool) -> io::Result<()> {
    let flags = if overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    match rename_with(parent, from, to, flags) {
        // Some file systems cannot refuse in the same step. There was nothing when the file was begun.
        Err(Errno::EINVAL) if !overwrite && stat_at(parent, to)?.is_none() => {
            Ok(rename_with(parent, from, to, RenameFlags::empty())?)
        }
        renamed => Ok(renamed?),
    }
}

/// Removes a file; that there is none is no error.
pub(crate) fn remove_at(parent: &OwnedFd, name: impl AsRef<OsStr>) -> io::Result<()> {
    match unlinkat(parent, name.as_ref(), UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a file `length` bytes long, where there is room for them.
///
/// Claims the space, where the file system can. In memory (tmpfs) that would cost a second walk over all pages and gain
/// nothing, as there are no extents to keep together: there the free space is looked at, and a file that outgrows it later,
/// because of others, fails when it is written.
pub(crate) fn allocate(file: &File, length: u64) -> io::Result<()> {
    let signed = i64::try_from(length).map_err(|_| io::Error::from(Errno::EFBIG))?;
    if fstatfs(file)?.filesystem_type() == TMPFS_MAGIC {
        let stat = fstatvfs(file)?;
        // A tmpfs without a limit says that it has no blocks at all.
        let free = stat.blocks_available().saturating_mul(stat.fragment_size());
        if stat.blocks() > 0 && length > free {
            return Err(Errno::ENOSPC.into());
        }
    } else if signed > 0 {
        match fallocate(file.as_fd(), FallocateFlags::empty(), 0, signed) {
            Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    file.set_len(length)
}

/// Writes everything on the file system of `folder` through to the disk.
pub(crate) fn sync_file_system(folder: &OwnedFd) -> io::Result<()> {
    Ok(nix::unistd::syncfs(folder)?)
}

/// Writes the directory of `parent` through to the disk.
pub(crate) fn sync_folder(parent: &OwnedFd) -> io::Result<()> {
    Ok(nix::unistd::fsync(parent)?)
}

/// How folders are opened: never through a link.
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_replaces_a_link_and_nothing_that_was_put_there_meanwhile() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let folder = OutFolder::open(temporary.path()).expect("a folder");
        let path = temporary.path().join("link");
        let name = Name::new("link").expect("a name");
        let leads = || std::fs::read_link(&path).ok().and_then(|target| target.to_str().map(str::to_owned));
        folder.make_link(&name, b"a", false).expect("nothing is there");
        assert_eq!(
            folder.make_link(&name, b"b", false).expect_err("a link is there").kind(),
            io::ErrorKind::AlreadyExists
        );
        folder.make_link(&name, b"b", true).expect("it may be replaced");
        assert_eq!(leads().as_deref(), Some("b"));
        // What a killed receiver left is in nobody's way.
        std::os::unix::fs::symlink("old", temporary.path().join("link.weir-link")).expect("link");
        folder.make_link(&name, b"c", true).expect("it may be replaced");
        assert_eq!(leads().as_deref(), Some("c"));

        std::fs::remove_file(&path).expect("ours");
        std::fs::write(&path, "theirs").expect("file");
        let refused = replace_link(&folder.root, OsStr::new("link"), b"d").expect_err("it is no link any more");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "theirs");
        assert_eq!(std::fs::read_dir(temporary.path()).expect("folder").count(), 1, "nothing is left over");
    }
}
