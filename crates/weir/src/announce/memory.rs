//! What an always-on receiver remembers between runs: which sessions it has, and in which folders. It is in `.weir-announced` in the folder
//! of `--out`, which it has for itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use weir_object::keys::PublicKey;

use crate::exit::{Exit, Failure};
use crate::folders;
use crate::several;

/// A session: its sender and its number.
pub(super) type Id = ([u8; 32], u16);

/// What is remembered.
pub(super) struct Memory {
    out: PathBuf,
    sessions: BTreeMap<Id, Entry>,
    /// No other receiver has the folder.
    _lock: Flock<File>,
}

/// A session that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    sender_key: String,
    tsi: u16,
    folder: String,
    /// The last start of its sender of which everything is here.
    complete: Option<u64>,
}

impl Memory {
    /// What is remembered in this folder, which is made if it is missing.
    pub(super) fn open(out: &Path) -> Result<Memory, Failure> {
        let refused = |error: io::Error| Failure::new(Exit::Files, format!("{}: {error}", out.display()));
        fs::create_dir_all(out).map_err(refused)?;
        let folder = File::open(out).map_err(refused)?;
        let lock = Flock::lock(folder, FlockArg::LockExclusiveNonblock).map_err(|_| {
            let message =
                format!("another receiver of announced sessions has the folder {}: give each its own", out.display());
            Failure::new(Exit::Files, message)
        })?;
        let path = out.join(NAME);
        let entries: Vec<Entry> = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let message = format!(
                    "{} cannot be read: {error}; if it is removed, sessions that are complete are looked at once more",
                    path.display()
                );
                Failure::new(Exit::Files, message)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(refused(error)),
        };
        let known = entries.into_iter().filter_map(|entry| Some((entry.id()?, entry)));
        Ok(Memory { out: out.to_owned(), sessions: known.collect(), _lock: lock })
    }

    /// The last start of which everything is here.
    pub(super) fn complete(&self, id: &Id) -> Option<u64> {
        self.sessions.get(id)?.complete
    }

    /// The folder of a session, the same each time; no other session has it.
    pub(super) fn folder(&mut self, id: Id, key: &PublicKey, name: &str) -> io::Result<PathBuf> {
        if let Some(entry) = self.sessions.get(&id) {
            return Ok(self.out.join(&entry.folder));
        }
        let plain = several::folder(name);
        let is_free = |folder: &String| self.sessions.values().all(|entry| entry.folder != *folder);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(is_free);
        let folder = free.expect("one of all numbers is free");
        let path = self.out.join(&folder);
        self.sessions.insert(id, Entry { sender_key: key.to_string(), tsi: id.1, folder, complete: None });
        self.write()?;
        Ok(path)
    }

    /// Everything of this start is here.
    pub(super) fn note_complete(&mut self, id: &Id, epoch: u64) -> io::Result<()> {
        if let Some(entry) = self.sessions.get_mut(id) {
            entry.complete = entry.complete.max(Some(epoch));
        }
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let entries: Vec<&Entry> = self.sessions.values().collect();
        let text = serde_json::to_vec_pretty(&entries)?;
        folders::replace(&self.out.join(NAME), &text, 0o644)
    }
}

impl Entry {
    fn id(&self) -> Option<Id> {
        Some((self.sender_key.parse::<PublicKey>().ok()?.to_bytes(), self.tsi))
    }
}

/// No folder of a session begins with a dot.
const NAME: &str = ".weir-announced";

#[cfg(test)]
mod tests {
    use super::*;
    use weir_object::keys::SecretKey;

    #[test]
    fn folders_and_what_is_complete_are_remembered() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let out = scratch.path().join("out");
        let key = SecretKey::from_seed([1; 32]).public();
        let ids = [7, 8].map(|tsi| (key.to_bytes(), tsi));
        let mut memory = Memory::open(&out).expect("room");
        let folders = ids.map(|id| memory.folder(id, &key, "../maps").expect("room"));
        assert_eq!(folders, ["___maps", "___maps-2"].map(|name| out.join(name)));
        memory.note_complete(&ids[0], 5).expect("room");
        memory.note_complete(&ids[0], 4).expect("room");
        let refused = Memory::open(&out).err().expect("it is taken");
        assert!(refused.message.contains("another receiver"), "{refused}");
        drop(memory);
        let mut memory = Memory::open(&out).expect("it is free again");
        assert_eq!(ids.map(|id| memory.complete(&id)), [Some(5), None]);
        assert_eq!(memory.folder(ids[1], &key, "another name").expect("room"), folders[1]);
        drop(memory);
        fs::write(out.join(NAME), "{").expect("room");
        assert!(Memory::open(&out).err().expect("rubbish").message.contains("if it is removed"));
    }
}
