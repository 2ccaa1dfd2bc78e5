//! Block devices as what is sent, a disk or a partition from its first byte to its last, and as where a file is written to.
//!
//! A device that is mounted so that it can be written changes while it is read, and what would arrive is no file system. One that anything uses
//! is not written to.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};

/// Why a device cannot be written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It cannot be opened, read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no block device")]
    Other,
    /// The system does not give it to one program alone.
    #[error(
        "it is in use: it, or a partition of it, is mounted or swapped to, or is part of a RAID or of logical volumes, or another program has \
         it for itself; lsblk shows which"
    )]
    InUse,
    /// The file is longer.
    #[error("it has {length} bytes, and the file {needed}")]
    TooSmall {
        /// Bytes of the device.
        length: u64,
        /// Bytes of the file.
        needed: u64,
    },
    /// It takes one file, and nothing else has a place.
    #[error(
        "a device takes a session of one file, and this one has folders, links or several files: name a folder for it"
    )]
    NotOneFile,
}

/// Opens a device of which all is to be written over, and gives its length in bytes. Nothing else has it as long as it is open.
pub(crate) fn open_alone(path: &Path) -> Result<(File, u64), DeviceError> {
    if !is_one(&fs::metadata(path)?) {
        return Err(DeviceError::Other);
    }
    let opened = File::options().read(true).write(true).custom_flags(OFlag::O_EXCL.bits()).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => DeviceError::InUse,
        _ => DeviceError::Io(error),
    })?;
    if !is_one(&file.metadata()?) {
        return Err(DeviceError::Other);
    }
    let length = length(&mut file)?;
    Ok((file, length))
}

/// Whether it is one.
pub(crate) fn is_one(metadata: &Metadata) -> bool {
    metadata.file_type().is_block_device()
}

/// Its bytes. Moves the position to the start.
pub(crate) fn length(device: &mut File) -> io::Result<u64> {
    let length = device.seek(SeekFrom::End(0))?;
    device.rewind()?;
    Ok(length)
}

/// Where the device, a partition of it, or what is made of it (LVM, RAID, encryption) is mounted so that it can be written.
pub(crate) fn written_at(metadata: &Metadata) -> io::Result<Option<PathBuf>> {
    let mut numbers = Vec::new();
    collect(&format!("{}:{}", major(metadata.rdev()), minor(metadata.rdev())), &mut numbers);
    Ok(mounted(&fs::read_to_string("/proc/self/mountinfo")?, &numbers))
}

/// The numbers of a device and of all that is made of it, as `/sys/dev/block` has them.
fn collect(number: &str, numbers: &mut Vec<String>) {
    if numbers.iter().any(|known| known == number) {
        return;
    }
    numbers.push(number.to_owned());
    let device = Path::new("/sys/dev/block").join(number);
    for folder in [device.join("holders"), device] {
        for below in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Ok(number) = fs::read_to_string(below.path().join("dev")) {
                collect(number.trim(), numbers);
            }
        }
    }
}

/// The first mount of one of the devices whose file system can be written, by the lines of `mountinfo` (proc(5)).
fn mounted(mountinfo: &str, numbers: &[String]) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        let [_, _, number, _, at, ..] = fields[..] else { return None };
        let options = file_system.split(' ').nth(2)?;
        let is_written = options.split(',').any(|option| option == "rw");
        (is_written && numbers.iter().any(|known| known == number)).then(|| PathBuf::from(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        22 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n\
        23 22 0:5 / /dev rw,nosuid - devtmpfs udev rw,size=1\n\
        24 22 7:0 / /mnt/image ro,relatime - squashfs /dev/loop0 ro\n\
        25 22 7:1 / /mnt/bound ro,relatime - ext4 /dev/loop1 rw\n";

    #[test]
    fn only_file_systems_that_can_be_written_are_in_the_way() {
        let at = |number: &str| mounted(MOUNTS, &[number.to_owned()]);
        assert_eq!(at("253:1"), Some(PathBuf::from("/")));
        assert_eq!(at("7:0"), None, "read-only");
        assert_eq!(at("7:1"), Some(PathBuf::from("/mnt/bound")), "read-only here, and perhaps not elsewhere");
        assert_eq!(at("253:0"), None, "not mounted");
        assert_eq!(mounted("rubbish\n- - -\n", &["253:1".to_owned()]), None);
    }
}
