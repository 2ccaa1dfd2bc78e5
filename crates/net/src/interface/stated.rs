//! What the system states about an interface, in the files of `/sys/class/net`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use weir_units::Rate;

/// How fast an interface is, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSpeed {
    /// A device that states its speed.
    Stated(Rate),
    /// No device stands behind the interface: loopback, bridge, tunnel, an end of a veth pair. What it states is no link's speed.
    Virtual,
    /// A device that states no speed, as most Wi-Fi devices, or an interface about which the system says nothing here.
    Unknown,
}

/// The files about one interface.
#[derive(Debug)]
pub(super) struct Stated {
    folder: PathBuf,
}

impl Stated {
    /// The files below `root`; `None` where they are of another interface.
    pub(super) fn of(root: &Path, name: &str, index: u32) -> Option<Stated> {
        // An alias (`eth0:1`) has no files of its own.
        let device = name.split(':').next().unwrap_or(name);
        let stated = Stated { folder: root.join(device) };
        // What is mounted there may be of another network namespace.
        (stated.number("ifindex") == Some(index)).then_some(stated)
    }

    /// The number in this file.
    pub(super) fn number<T: FromStr>(&self, file: &str) -> Option<T> {
        std::fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }

    /// The speed of the link.
    pub(super) fn speed(&self) -> LinkSpeed {
        if !self.folder.join("device").exists() {
            return LinkSpeed::Virtual;
        }
        // Megabits per second. Without a link the kernel says -1, as some drivers do without sign, or nothing at all.
        let stated = self.number::<u32>("speed").filter(|mbps| ![0, u32::MAX].contains(mbps));
        stated.map_or(LinkSpeed::Unknown, |mbps| LinkSpeed::Stated(Rate::from_mbps(mbps.into())))
    }
}

/// Where the kernel has these files.
pub(super) const ROOT: &str = "/sys/class/net";

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface `e0` with these files, and the folder that it is in.
    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("e0");
        std::fs::create_dir(&folder).expect("a folder in it");
        for (name, content) in files {
            std::fs::write(folder.join(name), content).expect("written");
        }
        root
    }

    fn speed(name: &str, index: u32, files: &[(&str, &str)]) -> Option<LinkSpeed> {
        Stated::of(with(files).path(), name, index).map(|stated| stated.speed())
    }

    #[test]
    fn a_device_has_the_speed_that_it_states() {
        let table = [
            ("1000\n", LinkSpeed::Stated(Rate::from_mbps(1000))),
            ("10\n", LinkSpeed::Stated(Rate::from_mbps(10))),
            ("400000\n", LinkSpeed::Stated(Rate::from_mbps(400_000))),
            ("-1\n", LinkSpeed::Unknown),
            ("4294967295\n", LinkSpeed::Unknown),
            ("0\n", LinkSpeed::Unknown),
            ("", LinkSpeed::Unknown),
        ];
        for (text, expected) in table {
            let files = [("ifindex", "7\n"), ("device", ""), ("speed", text)];
            assert_eq!(speed("e0", 7, &files), Some(expected), "{text:?}");
            assert_eq!(speed("e0:1", 7, &files), Some(expected), "an alias, {text:?}");
        }
        assert_eq!(speed("e0", 7, &[("ifindex", "7\n"), ("device", "")]), Some(LinkSpeed::Unknown));
    }

    #[test]
    fn what_is_virtual_has_no_speed_whatever_it_states() {
        assert_eq!(speed("e0", 7, &[("ifindex", "7\n"), ("speed", "10000\n")]), Some(LinkSpeed::Virtual));
    }

    #[test]
    fn another_namespace_s_files_tell_nothing() {
        let files = [("ifindex", "8\n"), ("device", ""), ("speed", "1000\n")];
        assert_eq!((speed("e0", 7, &files), speed("e1", 8, &files)), (None, None));
    }
}
