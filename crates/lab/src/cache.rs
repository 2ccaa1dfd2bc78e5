//! Results of runs that have been made: a file a run, named by the digest of set-up, seed and code. What is there is true:
//! other code, other seed or other set-up is another name.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Metrics by name.
    pub metrics: BTreeMap<String, f64>,
    /// Series by name.
    #[serde(default)]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// A folder of results.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// The name of a run's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The run of this set-up with this seed by the code at hand.
    pub fn new(setup: &str, seed: u64) -> Key {
        Key::of(CODE_VERSION, setup, seed)
    }

    fn of(code: &str, setup: &str, seed: u64) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in [code.as_bytes(), setup.as_bytes(), &seed.to_le_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Key(hasher.finalize().to_hex().to_string())
    }
}

/// As text, 64 hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Cache {
    /// `weir/lab` where the user's caches are; `None` if there is no such place.
    pub fn user_folder() -> Option<PathBuf> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        caches.or_else(|| set("HOME").map(|home| home.join(".cache"))).map(|caches| caches.join("weir/lab"))
    }

    /// The cache in `folder`, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// What the run of this name gave, if it is there and whole.
    pub fn get(&self, key: &Key) -> Option<Outcome> {
        let text = fs::read(self.path(key)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps what a run gave. A reader sees all of it or nothing, also if this is interrupted.
    pub fn put(&self, key: &Key, outcome: &Outcome) -> io::Result<()> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // Two processes may make the same run at the same time: each has a name of its own until it is whole.
        let part = folder.join(format!("{}.{}.part", key.0, std::process::id()));
        fs::write(&part, serde_json::to_vec(outcome)?)?;
        fs::rename(&part, &path)
    }

    fn path(&self, key: &Key) -> PathBuf {
        let (start, rest) = key.0.split_at(2);
        self.folder.join(start).join(format!("{rest}.json"))
    }
}

/// The digest of everything that decides a run's result; the build script makes it.
pub const CODE_VERSION: &str = env!("WEIR_CODE_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        // 1943.9999999999998 needs serde_json's float_roundtrip: without it, it comes back as 1944.
        let metrics = BTreeMap::from([("rate".to_owned(), 1_943.999_999_999_999_8), ("level".to_owned(), 7.0)]);
        Outcome { metrics, series: BTreeMap::from([("rate".to_owned(), vec![(0.5, 1e-300)])]) }
    }

    #[test]
    fn what_is_kept_comes_back_to_the_last_bit() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().join("results"));
        let key = Key::new("{}", 1);
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &outcome()).expect("it can be written");
        assert_eq!(cache.get(&key), Some(outcome()));
    }

    #[test]
    fn set_up_seed_and_code_each_make_another_name() {
        let key = Key::of("code", "setup", 1);
        assert_eq!(key, Key::of("code", "setup", 1));
        for other in [Key::of("code", "setup", 2), Key::of("code", "setup2", 1), Key::of("code2", "setup", 1)] {
            assert_ne!(key, other);
        }
        assert_ne!(Key::of("ab", "c", 1), Key::of("a", "bc", 1), "parts do not run into each other");
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path());
        let key = Key::new("{}", 1);
        cache.put(&key, &outcome()).expect("it can be written");
        fs::write(cache.path(&key), b"{\"metrics\":{\"lo").expect("it can be written");
        assert_eq!(cache.get(&key), None);
    }
}
