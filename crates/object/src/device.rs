//! Block devices as what is sent: a disk or a partition, from its first byte to its last.
//!
//! A device that is mounted so that it can be written changes while it is read, and what would arrive is no file system.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

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
