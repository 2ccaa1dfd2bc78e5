//! What came of the files that the sender offers, and what the user is told of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{io, mem};

use weir_object::name::Name;
use weir_object::store::{Event, RefuseReason};
use weir_units::Bytes;

use super::{Wanted, words};
use crate::events::FileDone;
use crate::exit::Exit;
use crate::proof::{About, Content as Held, Leaves};

/// What has come so far.
#[derive(Debug)]
pub(super) struct Came {
    out: PathBuf,
    /// The device that the only file is written to, and not the folder.
    device: Option<PathBuf>,
    /// Only what the sender's key has signed is taken.
    is_signed: bool,
    set: Set,
    told: Told,
}

/// What came of one set of files. Another set that the sender offers begins with nothing.
#[derive(Debug, Default)]
struct Set {
    files: u64,
    bytes: u64,
    /// Bytes of files that an earlier run had received.
    resumed: BTreeMap<Name, u64>,
    /// The files that are there, of which the receipt proves that they are.
    held: Held,
    /// What went wrong with a file while others went on.
    worst: Option<Exit>,
}

/// What has been told once, and is not told again.
#[derive(Debug, Default)]
struct Told {
    /// That packets were forged or damaged.
    bad_blocks: bool,
    /// That the file system takes no permissions or times.
    attributes: bool,
}

/// What the user is told.
#[derive(Debug)]
pub(super) enum Said {
    /// A file is complete.
    File(FileDone),
    /// In words, and with which code the run ends for it.
    Trouble(String, Option<Exit>),
}

impl Came {
    /// Nothing of this session.
    pub(super) fn new(wanted: &Wanted, is_signed: bool) -> Came {
        let Wanted { out, device, .. } = wanted;
        Came { out: out.clone(), device: device.clone(), is_signed, set: Set::default(), told: Told::default() }
    }

    /// Whether only what the sender's key has signed is taken.
    pub(super) fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Files that are complete.
    pub(super) fn files(&self) -> u64 {
        self.set.files
    }

    /// Bytes of those.
    pub(super) fn bytes(&self) -> u64 {
        self.set.bytes
    }

    /// What went wrong with a file while others went on.
    pub(super) fn worst(&self) -> Option<Exit> {
        self.set.worst
    }

    /// Proves to the sender that the files are there.
    pub(super) fn proof(&self, about: &About<'_>) -> io::Result<[u8; 32]> {
        self.set.held.proof(about)
    }

    /// The store has told this, `t_s` seconds after the start. What the user is told of it.
    pub(super) fn take(&mut self, t_s: f64, event: Event) -> Option<Said> {
        let set = &mut self.set;
        let message = match event {
            Event::Done { name, bytes, digest, already_there } => {
                set.files += 1;
                set.bytes += bytes;
                let path = self.device.clone().unwrap_or_else(|| self.out.join(name.as_path()));
                set.held.add(name.clone(), Leaves::OnDisk(path.clone(), bytes));
                let before = set.resumed.remove(&name).unwrap_or(0);
                return Some(Said::File(FileDone {
                    t_s,
                    name: String::from_utf8_lossy(name.as_bytes()).into_owned(),
                    path,
                    bytes,
                    new_bytes: if already_there { 0 } else { bytes.saturating_sub(before) },
                    seconds: t_s,
                    blake3: digest.map_or_else(String::new, |digest| blake3::Hash::from_bytes(digest).to_string()),
                    verified: digest.is_some() && self.is_signed,
                }));
            }
            Event::Refused { name, reason } => {
                let exit = match reason {
                    RefuseReason::Manifest(_)
                    | RefuseReason::Spec(_)
                    | RefuseReason::Bundle(_)
                    | RefuseReason::NamedTwice => Exit::Unverified,
                    _ => Exit::Files,
                };
                let advice =
                    if matches!(reason, RefuseReason::TargetExists) { " (--overwrite replaces it)" } else { "" };
                set.worst.get_or_insert(exit);
                return Some(Said::Trouble(format!("{name} is not received: {reason}{advice}"), Some(exit)));
            }
            Event::Resumed { name, bytes, after_power_loss } => {
                let doubt =
                    if after_power_loss { "; this machine went down meanwhile, so its digest will decide" } else { "" };
                set.resumed.insert(name.clone(), bytes);
                format!("{name} goes on from the {} that are there already{doubt}", Bytes::new(bytes))
            }
            Event::Restarted { name, reason } => {
                set.resumed.remove(&name);
                format!("{name} is begun afresh: {reason}")
            }
            Event::BadBlock { name, .. } if !mem::replace(&mut self.told.bad_blocks, true) => words::bad_block(&name),
            Event::AttributesRefused { name, error } if !mem::replace(&mut self.told.attributes, true) => {
                words::attributes_refused(&name, &error)
            }
            Event::OldTable => words::OLD_TABLE.to_owned(),
            Event::ExpiredTable { ago_secs } => words::expired_table(ago_secs),
            Event::NewSet => {
                self.set = Set::default();
                "the sender offers other files than before; what was incomplete stays on disk".to_owned()
            }
            _ => return None,
        };
        Some(Said::Trouble(message, None))
    }
}
