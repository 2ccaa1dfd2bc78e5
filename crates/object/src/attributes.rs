//! What a file is besides its content: who may do what with it, when it was changed, and whether it has holes.
//!
//! A file arrives with the permissions that it had, less those that the receiver's umask takes from every new file: never more open than
//! it was, but that its owner can always read it. Set-user-ID, set-group-ID and sticky bits do not travel. Owners do not either. Some file
//! systems (FAT, shares of other systems) take neither permissions nor times: content arrives there all the same.

use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

/// What a sender says of a file or folder besides its content; nothing from senders of other makers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Permissions: the nine bits from `rwx` of the owner to `rwx` of all others.
    pub mode: Option<u16>,
    /// When its content was last changed.
    pub modified: Option<Modified>,
    /// It has holes, which are to take no room at the receiver either.
    pub sparse: bool,
}

/// A time of the wall clock, since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modified {
    /// Seconds, negative before 1970.
    pub secs: i64,
    /// Nanoseconds after them, below a thousand million.
    pub nanos: u32,
}

impl Attributes {
    /// Those of a file.
    pub(crate) fn of(metadata: &Metadata) -> Attributes {
        let nanos = u32::try_from(metadata.mtime_nsec()).unwrap_or(0);
        Attributes {
            mode: Some((metadata.mode() & PERMISSIONS) as u16),
            modified: Some(Modified { secs: metadata.mtime(), nanos }),
            sparse: false,
        }
    }

    /// Permissions alone.
    pub(crate) fn mode_only(self) -> Attributes {
        Attributes { modified: None, ..self }
    }

    /// As XML attributes, of this prefix.
    pub(crate) fn to_xml(self) -> String {
        let mut out = String::new();
        if let Some(mode) = self.mode {
            out.push_str(&format!(" weir:mode=\"{mode:03o}\""));
        }
        if let Some(Modified { secs, nanos }) = self.modified {
            out.push_str(&format!(" weir:modified=\"{secs}.{nanos:09}\""));
        }
        if self.sparse {
            out.push_str(" weir:sparse=\"1\"");
        }
        out
    }

    /// Reads the texts of the XML attributes for permissions and time. What is no such thing is left out: a file is not refused for it.
    pub(crate) fn read(mode: Option<&str>, modified: Option<&str>) -> Attributes {
        let mode = mode.and_then(|text| u16::from_str_radix(text, 8).ok()).map(|mode| mode & PERMISSIONS as u16);
        let modified = modified.and_then(|text| {
            let (secs, nanos) = text.split_once('.')?;
            let nanos = nanos.parse().ok().filter(|_| nanos.len() == 9)?;
            secs.parse().ok().map(|secs| Modified { secs, nanos })
        });
        Attributes { mode, modified, sparse: false }
    }

    /// Gives them to a file that is complete. Without any it gets what a new file gets. Says why they are refused, if they are; what
    /// is not refused is done then all the same.
    pub(crate) fn apply(self, file: &File, umask: u32) -> io::Result<Option<io::Error>> {
        let mode = self.mode.map_or(NEW_FILE, u32::from) & !umask | OWNER_READS;
        let permitted = refusal(file.set_permissions(Permissions::from_mode(mode)))?;
        let modified = self.modified.and_then(Modified::to_system_time);
        let timed = modified.map_or(Ok(()), |modified| file.set_times(FileTimes::new().set_modified(modified)));
        Ok(permitted.or(refusal(timed)?))
    }
}

/// Why a file system, or the lack of a right to it, keeps a file from having permissions or a time, if that is all that is wrong.
pub(crate) fn refusal(given: io::Result<()>) -> io::Result<Option<io::Error>> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match given {
        Ok(()) => Ok(None),
        Err(error) if matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

impl Modified {
    fn to_system_time(self) -> Option<SystemTime> {
        let whole = Duration::from_secs(self.secs.unsigned_abs());
        let at = match self.secs {
            0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
            _ => SystemTime::UNIX_EPOCH.checked_sub(whole),
        };
        at?.checked_add(Duration::from_nanos(self.nanos.into()))
    }
}

/// The permissions that are taken from every new file of this process.
pub(crate) fn umask() -> u32 {
    // Asking the system sets it for a moment, for all threads; its own file about us does not.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(USUAL_UMASK)
}

/// Reading, writing and executing, for owner, group and others.
pub(crate) const PERMISSIONS: u32 = 0o777;
/// The permissions that folders have mostly. They need not be said.
pub(crate) const USUAL_FOLDER: u16 = 0o755;
/// What a program asks for that makes a file.
const NEW_FILE: u32 = 0o666;
/// What nobody could read cannot be looked at again by a later run, and no receipt could be made of it.
const OWNER_READS: u32 = 0o400;
const USUAL_UMASK: u32 = 0o022;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_from_their_text_and_bits_of_others_are_dropped() {
        let before = Attributes { mode: Some(0o640), modified: Some(Modified { secs: -5, nanos: 7 }), sparse: false };
        assert_eq!(before.to_xml(), r#" weir:mode="640" weir:modified="-5.000000007""#);
        assert_eq!(Attributes::read(Some("640"), Some("-5.000000007")), before);
        assert_eq!(Attributes::read(Some("6755"), None).mode, Some(0o755));
        for (mode, modified) in [("rwx", "now"), ("", ""), ("-1", "5.1"), ("99", "5.0000000001")] {
            assert_eq!(Attributes::read(Some(mode), Some(modified)), Attributes::default(), "{mode} {modified}");
        }
    }

    #[test]
    fn a_file_gets_what_it_had_less_what_the_umask_takes() {
        let file = tempfile::tempfile().expect("temporary file");
        let modified = Some(Modified { secs: 1_000_000_000, nanos: 123_000_000 });
        let apply = |mode, umask| {
            assert!(Attributes { mode, modified, sparse: false }.apply(&file, umask).expect("it is ours").is_none());
            let metadata = file.metadata().expect("readable");
            (metadata.mode() & 0o7777, metadata.mtime(), metadata.mtime_nsec())
        };
        let at = |mode| (mode, 1_000_000_000, 123_000_000);
        assert_eq!(apply(Some(0o600), 0o022), at(0o600));
        assert_eq!(apply(Some(0o777), 0o027), at(0o750));
        assert_eq!(apply(None, 0o022), at(0o644));
        assert_eq!([apply(Some(0), 0o022), apply(Some(0o200), 0o777)], [at(0o400); 2], "its owner can read it");
    }

    #[test]
    fn a_refusal_is_no_failure_and_a_failure_is() {
        use nix::errno::Errno;
        let judged = |errno: Errno| refusal(Err(errno.into())).map(|refused| refused.is_some());
        for errno in [Errno::EPERM, Errno::EACCES, Errno::ENOTSUP, Errno::ENOSYS, Errno::EINVAL] {
            assert!(judged(errno).expect("refused"), "{errno}");
        }
        assert!([Errno::EIO, Errno::EROFS, Errno::ENOSPC].map(judged).iter().all(Result::is_err));
        assert!(refusal(Ok(())).expect("done").is_none());
    }
}
