//! Files for tests: made from a seed, in memory-backed storage, compared byte by byte.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use weir_units::Random;

/// A folder of its own, in memory-backed storage where there is some, that goes away with this value.
#[derive(Debug)]
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A new empty folder.
    pub fn new() -> Scratch {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Scratch::in_folder(&parent)
    }

    /// A new empty folder in `parent`.
    pub fn in_folder(parent: &Path) -> Scratch {
        let made = tempfile::Builder::new().prefix("weir-").tempdir_in(parent);
        Scratch(made.unwrap_or_else(|error| panic!("cannot make a folder in {}: {error}", parent.display())))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// A new empty folder in it.
    pub fn folder(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        path
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// Writes `bytes` random bytes of this seed to `path`: nothing can compress them, and no two blocks are alike.
pub fn generated_file(path: &Path, bytes: u64, seed: u64) {
    let mut random = Random::new(seed, "generated file");
    let file = File::create(path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut left = bytes;
    while left > 0 {
        let word = random.bits().to_le_bytes();
        let count = left.min(8);
        out.write_all(&word[..count as usize]).expect("room for a generated file");
        left -= count;
    }
    out.flush().expect("room for a generated file");
}

/// Whether two files have the same bytes. A file that cannot be read is not the same as any.
pub fn same_content(one: &Path, other: &Path) -> bool {
    let (Ok(mut one), Ok(mut other)) = (File::open(one), File::open(other)) else { return false };
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        match (fill(&mut one, &mut left), fill(&mut other, &mut right)) {
            (Some(a), Some(b)) if a == b && left[..a] == right[..b] => {
                if a == 0 {
                    return true;
                }
            }
            _ => return false,
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]).ok()? {
            0 => break,
            read => filled += read,
        }
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_functions_of_size_and_seed() {
        let scratch = Scratch::new();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| scratch.join(name));
        generated_file(&a, 1_500_001, 1);
        generated_file(&b, 1_500_001, 1);
        generated_file(&c, 1_500_001, 2);
        generated_file(&d, 1_500_000, 1);
        assert!(same_content(&a, &b));
        assert!(!same_content(&a, &c) && !same_content(&a, &d) && !same_content(&a, &scratch.join("none")));
        assert_eq!(std::fs::metadata(&a).expect("was written").len(), 1_500_001);
    }
}
