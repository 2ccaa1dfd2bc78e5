//! What is to be sent: the regular files under the given paths, their names at the receiver, and their digests.
//!
//! Not here: sending. Everything that can go wrong with a path goes wrong here, before the first packet.

mod bundled;
mod hashing;
mod walk;

use std::fs::{File, Metadata};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::hazmat::ChainingValue;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use self::bundled::Bundled;
use self::walk::Walk;
use crate::attributes::Attributes;
use crate::device;
use crate::exclude::{Exclude, Excluded, Pattern};
use crate::links::{FolderEntry, LinkEntry};
use crate::name::{Name, NameError};
use crate::pieces::{self, BlockDigest, BlockHasher, LEAF};

/// The files and folders of a session, in the order of their names, hashed.
#[derive(Debug, Clone)]
pub struct SourceSet {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) folders: Vec<FolderEntry>,
    pub(crate) links: Vec<LinkEntry>,
    skipped: Vec<(PathBuf, &'static str)>,
    excluded: Excluded,
}

/// One file to be sent.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub(crate) path: PathBuf,
    /// Its name at the receiver.
    pub name: Name,
    /// Its length in bytes.
    pub length: u64,
    /// BLAKE3 over its content.
    pub digest: [u8; 32],
    /// MD5 over its content, where asked for.
    pub md5: Option<[u8; 16]>,
    /// Its permissions and its time.
    pub attributes: Attributes,
    stamp: Stamp,
    /// The values of its leaves, of which the digests of its blocks are made.
    leaves: Arc<[ChainingValue]>,
    /// The numbers of the leaves that are all zeros, in ranges that do not touch; none of a bundle.
    zeros: Arc<[Range<u64>]>,
    /// What is in it, if it is no file but a bundle of them.
    bundled: Option<Arc<Bundled>>,
}

/// What is open of a source.
#[derive(Debug)]
pub(crate) enum Open {
    File(File),
    /// Which file of a bundle was read last.
    Bundle(Option<(usize, File)>),
}

impl SourceSet {
    /// Finds and hashes what `paths` name: files as they are, folders with all regular files below them, under the
    /// folder's own name. With `md5`, each file is also hashed for receivers that know no other digest.
    ///
    /// A link that is given as a path is followed. A link inside a folder stays a link if it leads to something within that
    /// folder, and is otherwise skipped, as are devices, pipes and sockets: see [`SourceSet::skipped`].
    ///
    /// # Errors
    /// [`SourceError`] for a path that is missing, unreadable, cannot be named at a receiver, or too large, for two
    /// paths that would arrive under one name, and for an empty set.
    pub fn collect(paths: &[PathBuf], md5: bool) -> Result<SourceSet, SourceError> {
        SourceSet::collect_without(paths, &[], md5, &mut |_, _| ControlFlow::Continue(()))
    }

    /// The same without what these patterns match in the folders: see [`SourceSet::excluded`]. The paths themselves are sent, whatever
    /// their names. `watch` hears now and then how many bytes have been hashed, and of how many.
    ///
    /// # Errors
    /// As [`SourceSet::collect`], and [`SourceError::Stopped`] where `watch` breaks.
    pub fn collect_without(
        paths: &[PathBuf],
        patterns: &[Pattern],
        md5: bool,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<SourceSet, SourceError> {
        let mut walk = Walk { exclude: Exclude::new(patterns), ..Walk::default() };
        for path in paths {
            walk.add_root(path)?;
        }
        SourceSet::hash(walk, md5, watch)
    }

    fn hash(
        walk: Walk,
        md5: bool,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<SourceSet, SourceError> {
        if walk.files.is_empty() && walk.folders.is_empty() && walk.links.is_empty() {
            return Err(SourceError::Nothing);
        }
        let (mut hashed, of) = (0, walk.files.values().map(|(_, metadata)| metadata.len()).sum());
        let mut note = |bytes: u64| {
            hashed += bytes;
            watch(hashed, of)
        };
        let found: Vec<_> = walk.files.into_iter().collect();
        let files = hashing::hash(&found, md5, &mut note)?;
        let (folders, links, skipped) = (walk.folders, walk.links, walk.skipped);
        Ok(SourceSet { files, folders, links, skipped, excluded: walk.exclude.finish() })
    }

    /// Sends only these of its files; folders and links stay.
    pub fn retain(&mut self, wanted: impl FnMut(&SourceFile) -> bool) {
        self.files.retain(wanted);
    }

    /// Leaves out the file at this path, if it is one of them, and all that changed since they were hashed or cannot be opened any more.
    /// Returns them, in the order of their names.
    pub fn leave_out_changed(&mut self, path: &Path) -> Vec<SourceFile> {
        let is_lost = |file: &mut SourceFile| file.path == path || file.open_file().is_err();
        self.files.extract_if(.., is_lost).collect()
    }

    /// The files, in the order of their names.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }

    /// The same for the same content under the same names.
    pub fn fingerprint(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        for file in &self.files {
            hasher.update(&(file.name.as_bytes().len() as u64).to_be_bytes()).update(file.name.as_bytes());
            hasher.update(&file.length.to_be_bytes()).update(&file.digest);
        }
        *hasher.finalize().as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes")
    }

    /// What was found and not taken, with the reason.
    pub fn skipped(&self) -> &[(PathBuf, &'static str)] {
        &self.skipped
    }

    /// What patterns have left out.
    pub fn excluded(&self) -> &Excluded {
        &self.excluded
    }
}

impl SourceFile {
    /// The values of its leaves ([`pieces::leaf`]), in their order.
    pub fn leaves(&self) -> Arc<[[u8; 32]]> {
        Arc::clone(&self.leaves)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing but zeros is in these bytes of the file, by its leaves: it may be so of bytes that share theirs with others, too.
    pub(crate) fn is_zero(&self, bytes: &Range<u64>) -> bool {
        let leaves = bytes.start / LEAF..bytes.end.div_ceil(LEAF);
        let after = self.zeros.partition_point(|zeros| zeros.start <= leaves.start);
        !bytes.is_empty() && after > 0 && leaves.end <= self.zeros[after - 1].end
    }

    /// The digests of source blocks that take these bytes of the file. Reads little: what of a block is no whole leaf.
    pub(crate) fn block_digests(
        &self,
        blocks: impl Iterator<Item = Range<u64>>,
    ) -> Result<Vec<BlockDigest>, SourceError> {
        let mut open = self.open()?;
        let mut buffer = [0; LEAF as usize];
        let mut digests = Vec::new();
        for block in blocks {
            let mut hasher = BlockHasher::new();
            for piece in pieces::pieces(block) {
                let value = pieces::whole_leaf(&piece).and_then(|number| self.leaves.get(number as usize));
                if let Some(value) = value {
                    hasher.piece(value);
                    continue;
                }
                let bytes = &mut buffer[..(piece.end - piece.start) as usize];
                self.read(&mut open, bytes, piece.start)?;
                hasher.piece(&pieces::piece_value(&piece, false, bytes));
            }
            digests.push(hasher.finish());
        }
        Ok(digests)
    }

    /// Opens it; a file must still be the one that was hashed.
    pub(crate) fn open(&self) -> Result<Open, SourceError> {
        if self.bundled.is_some() { Ok(Open::Bundle(None)) } else { self.open_file().map(Open::File) }
    }

    fn open_file(&self) -> Result<File, SourceError> {
        let file = open(&self.path)?;
        self.check(&file)?;
        Ok(file)
    }

    /// Reads its bytes from `at` on. What is read is what was hashed.
    pub(crate) fn read(&self, open: &mut Open, bytes: &mut [u8], at: u64) -> Result<(), SourceError> {
        match (open, &self.bundled) {
            (Open::Bundle(last), Some(bundled)) => bundled.read(last, bytes, at),
            (Open::File(file), _) => self.read_file(file, bytes, at),
            (open, None) => {
                *open = self.open()?;
                self.read(open, bytes, at)
            }
        }
    }

    fn read_file(&self, file: &File, bytes: &mut [u8], at: u64) -> Result<(), SourceError> {
        file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.changed(),
            _ => SourceError::Io { path: self.path.clone(), source: error },
        })?;
        self.check(file)
    }

    /// Checks that the open file is unchanged since it was hashed.
    fn check(&self, file: &File) -> Result<(), SourceError> {
        let metadata = file.metadata().map_err(|source| SourceError::Io { path: self.path.clone(), source })?;
        if self.stamp.is_of(&metadata) { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> SourceError {
        SourceError::Changed { path: self.path.clone() }
    }
}

/// Opens a file that was found. What was put in its place meanwhile is not followed, if it is a link, nor waited for, if it is a pipe.
fn open(path: &Path) -> Result<File, SourceError> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    File::options().read(true).custom_flags(flags.bits()).open(path).map_err(|source| match source.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => SourceError::Changed { path: path.to_owned() },
        _ => SourceError::Io { path: path.to_owned(), source },
    })
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Whether the file is as it was. Nothing but its reading tells how long a device is.
    fn is_of(&self, metadata: &Metadata) -> bool {
        let now = Stamp::of(metadata);
        *self == if device::is_one(metadata) { Stamp { length: self.length, ..now } } else { now }
    }

    /// Whether both are of one file, which may have changed.
    fn is_same_file(&self, other: &Stamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Why a path cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Its watcher wanted no more.
    #[error("stopped while the files were hashed")]
    Stopped,
    /// There is nothing in the set.
    #[error("there is nothing to send: give at least one file or folder")]
    Nothing,
    /// The path cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The block device is mounted so that it can be written.
    #[error(
        "{} is mounted at {} and can be written while it is read, so that no whole file system would arrive; unmount it, or remount \
         it read-only (mount -o remount,ro), or send a snapshot",
        path.display(),
        at.display()
    )]
    Mounted {
        /// The path.
        path: PathBuf,
        /// Where it, or a part of it, is mounted.
        at: PathBuf,
    },
    /// The path is a character device, a pipe or a socket.
    #[error("{} is neither a file nor a folder nor a disk; send what comes out of it as standard input: weir send file - <{}", path.display(), path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is longer than any receiver takes.
    #[error("{} has {length} bytes; the limit is 2^40, so split it first", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// The path has no name that could be sent.
    #[error("{} has no name to send it under", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// The name would be refused by receivers.
    #[error("{}: {source}; rename it", path.display())]
    Name {
        /// The path.
        path: PathBuf,
        /// What is wrong with the name.
        source: NameError,
    },
    /// Two paths would arrive under the same name.
    #[error("{} and {} would both arrive as {name}; rename one or send them apart", first.display(), second.display())]
    SameName {
        /// The first path.
        first: PathBuf,
        /// The second path.
        second: PathBuf,
        /// Their common name.
        name: Name,
    },
    /// The file is not what it was when it was hashed.
    #[error("{} changed while it was being sent; start again when nobody writes to it", path.display())]
    Changed {
        /// The path.
        path: PathBuf,
    },
}

impl SourceError {
    /// The file that cannot be sent any more, where the error is that of one file that was hashed.
    pub fn lost(&self) -> Option<&Path> {
        match self {
            SourceError::Changed { path } | SourceError::Io { path, .. } => Some(path),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hashing::LARGE;
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(set: &SourceSet) -> Vec<String> {
        set.files().iter().map(|file| file.name.to_string()).collect()
    }

    #[test]
    fn a_folder_keeps_its_name_and_everything_in_it() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let tree = temporary.path().join("tree");
        fs::create_dir_all(tree.join("sub/empty")).expect("folders");
        let modes = [("", 0o755), ("sub", 0o700), ("sub/empty", 0o755)];
        for (folder, mode) in modes {
            fs::set_permissions(tree.join(folder), fs::Permissions::from_mode(mode)).expect("ours");
        }
        fs::write(tree.join("b"), b"bee").expect("file");
        fs::write(tree.join("sub/a"), b"").expect("file");
        let set = SourceSet::collect(&[tree], true).expect("readable");
        assert_eq!(names(&set), ["tree/b", "tree/sub/a"]);
        let folders = set.folders.iter().map(|folder| (folder.name.as_bytes(), folder.attributes.mode));
        let expected: [(&[u8], _); 2] = [(b"tree/sub", Some(0o700)), (b"tree/sub/empty", Some(0o755))];
        assert_eq!(folders.collect::<Vec<_>>(), expected);
        assert_eq!(set.files()[0].digest, *blake3::hash(b"bee").as_bytes());
        assert!(set.files()[0].md5.is_some() && set.bytes() == 3);
    }

    #[test]
    fn links_stay_links_within_the_tree_and_are_left_out_beyond() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let tree = temporary.path().join("tree");
        fs::create_dir(&tree).expect("folder");
        fs::write(tree.join("a"), b"a").expect("file");
        fs::write(temporary.path().join("secret"), b"s").expect("file");
        symlink("a", tree.join("inside")).expect("link");
        symlink("../secret", tree.join("outside")).expect("link");
        symlink("nowhere", tree.join("broken")).expect("link");
        symlink(".", tree.join("loop")).expect("link");
        symlink(tree.join("a"), tree.join("absolute")).expect("link");
        let set = SourceSet::collect(&[tree], false).expect("readable");
        assert_eq!(names(&set), ["tree/a"]);
        let links = set.links.iter().map(|link| (link.name.as_bytes(), &*link.target));
        let expected: [(&[u8], &[u8]); 2] = [(b"tree/inside", b"a"), (b"tree/loop", b".")];
        assert_eq!(links.collect::<Vec<_>>(), expected);
        assert_eq!(set.skipped().len(), 3);
    }

    #[test]
    fn what_patterns_match_is_left_out_and_the_folder_that_it_was_in_stays() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let tree = temporary.path().join("tree.o");
        fs::create_dir_all(tree.join("out/deep")).expect("folders");
        fs::create_dir_all(tree.join("sub")).expect("folders");
        for file in ["out/deep/a", "sub/a.o", "a.c", "b.o"] {
            fs::write(tree.join(file), file).expect("file");
        }
        // A name and a link that would be told of.
        fs::write(tree.join("b.weir-part"), b"b").expect("file");
        symlink("/etc/passwd", tree.join("link")).expect("link");
        let patterns = ["*.o", "/out", "*.weir-part", "link", "*.obj"].map(|text| text.parse().expect("a pattern"));
        let set = SourceSet::collect_without(&[tree], &patterns, false, &mut |_, _| ControlFlow::Continue(()))
            .expect("readable");
        assert_eq!(names(&set), ["tree.o/a.c"]);
        let folders: Vec<_> = set.folders.iter().map(|folder| folder.name.to_string()).collect();
        assert_eq!(folders, ["tree.o/sub"], "it is empty now");
        assert!(set.skipped().is_empty(), "{:?}", set.skipped());
        let Excluded { count, idle } = set.excluded();
        assert_eq!((*count, &idle[..]), (5, &["*.obj".to_owned()][..]));
    }

    /// Somebody who may write to the folder changes it between the first look at a file and its reading.
    #[test]
    fn what_is_put_in_the_place_of_a_file_is_not_sent() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let path = temporary.path().join("tree/a");
        let secret = temporary.path().join("secret");
        fs::create_dir(temporary.path().join("tree")).expect("folder");
        fs::write(&secret, b"s").expect("file");
        let sent_after = |change: &dyn Fn() -> io::Result<()>| {
            let _ = fs::remove_file(&path);
            fs::write(&path, b"a").expect("file");
            let mut walk = Walk::default();
            walk.add_root(&temporary.path().join("tree")).expect("readable");
            fs::rename(&path, temporary.path().join("old")).expect("ours");
            change().expect("it can be put there");
            SourceSet::hash(walk, false, &mut |_, _| ControlFlow::Continue(()))
        };
        let pipe = || nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).map_err(io::Error::from);
        let changes: [&dyn Fn() -> io::Result<()>; 3] =
            [&|| symlink(&secret, &path), &|| fs::hard_link(&secret, &path), &pipe];
        for (number, change) in changes.iter().enumerate() {
            let sent = sent_after(*change);
            assert!(matches!(sent, Err(SourceError::Changed { .. })), "change {number}: {sent:?}");
        }
        let same = sent_after(&|| fs::rename(temporary.path().join("old"), &path));
        assert_eq!(names(&same.expect("the same file")), ["tree/a"]);
    }

    #[test]
    fn whoever_watches_hears_how_far_it_is_and_can_stop_it() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let paths = ["a", "b"].map(|name| temporary.path().join(name));
        paths.iter().for_each(|path| fs::write(path, vec![7; LARGE as usize + 1]).expect("file"));
        let all = 2 * (LARGE + 1);
        let mut told = Vec::new();
        let mut watch = |hashed, of| {
            told.push((hashed, of));
            ControlFlow::Continue(())
        };
        SourceSet::collect_without(&paths, &[], false, &mut watch).expect("readable");
        assert_eq!((told.len(), told.last()), (10, Some(&(all, all))));
        assert!(told.is_sorted() && told.iter().all(|(_, of)| *of == all), "{told:?}");
        let mut calls = 0;
        let mut stop = |_, _| {
            calls += 1;
            if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = SourceSet::collect_without(&paths, &[], false, &mut stop);
        assert!(matches!(stopped, Err(SourceError::Stopped)) && calls == 2);
    }

    #[test]
    fn files_that_changed_or_vanished_since_they_were_hashed_are_left_out_with_the_one_that_is_named() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let path = |name: &str| temporary.path().join(name);
        ["a", "b", "c", "d"].iter().for_each(|name| fs::write(path(name), name).expect("file"));
        let mut set = SourceSet::collect(&["a", "b", "c", "d"].map(path), false).expect("readable");
        fs::write(path("b"), "longer").expect("ours");
        fs::remove_file(path("d")).expect("ours");
        let left_out = set.leave_out_changed(&path("a"));
        assert_eq!(left_out.iter().map(|file| file.name.to_string()).collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!(names(&set), ["c"]);
    }

    #[test]
    fn a_link_that_is_given_is_followed_under_its_own_name() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        fs::write(temporary.path().join("a"), b"a").expect("file");
        symlink("a", temporary.path().join("link")).expect("link");
        let set = SourceSet::collect(&[temporary.path().join("link")], false).expect("readable");
        assert_eq!((names(&set), set.bytes()), (vec!["link".to_owned()], 1));
    }

    #[test]
    fn mistakes_are_told_before_anything_is_sent() {
        let temporary = tempfile::tempdir().expect("temporary folder");
        let path = |name: &str| temporary.path().join(name);
        fs::create_dir_all(path("x")).expect("folder");
        fs::write(path("a"), b"a").expect("file");
        fs::write(path("x/a"), b"b").expect("file");
        fs::write(path("b.weir-part"), b"b").expect("file");
        let collect = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
            SourceSet::collect(&paths, false).expect_err("must be refused")
        };
        assert!(matches!(collect(&[]), SourceError::Nothing));
        assert!(matches!(collect(&["missing"]), SourceError::Io { .. }));
        assert!(matches!(collect(&["a", "x/a"]), SourceError::SameName { .. }));
        assert!(matches!(collect(&["b.weir-part"]), SourceError::Name { .. }));
        assert!(matches!(SourceSet::collect(&[PathBuf::from("/dev/null")], false), Err(SourceError::NotAFile { .. })));
    }
}
