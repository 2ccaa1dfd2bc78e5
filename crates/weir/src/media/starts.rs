//! Which start of a sealed programme's sender was heard last, from one run to the next: what was recorded of an earlier one does not count again.

use std::io;
use std::path::Path;

use weir_net::description::Description;
use weir_object::keys::PublicKey;
use weir_object::store::EpochMemory;

use crate::folders;
use crate::live::Output;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Starts {
    /// Of a programme whose packets say which start they are of.
    memory: Option<EpochMemory>,
    described: u64,
    /// What the user is to know.
    told: Option<String>,
}

impl Starts {
    /// Of a session whose pictures go there: what is remembered lies next to a file, else in the user's folder of states. Where that cannot be
    /// read, nothing is remembered, and the user is told.
    pub(super) fn open(description: &Description, output: &Output) -> Starts {
        let described = description.epoch.unwrap_or(0);
        let nothing = |told| Starts { memory: None, described, told };
        let key = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
        let Some(key) = key.filter(|_| !description.sealing.seals.is_none()) else { return nothing(None) };
        let folder = match output {
            Output::File(path) => path.parent().map(Path::to_owned),
            Output::Stdout | Output::Rtp(_) | Output::Udp(_) => folders::state(),
        };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| ".".into());
        match EpochMemory::open(&folder, &key, u64::from(description.tsi)) {
            Ok(memory) => {
                let told = (memory.highest() > described).then(|| OUTDATED.to_owned());
                Starts { memory: Some(memory), described, told }
            }
            Err(error) => nothing(Some(forgotten(&error))),
        }
    }

    /// The lowest epoch that counts.
    pub(super) fn least(&self) -> u64 {
        self.memory.as_ref().map_or(0, EpochMemory::highest).max(self.described)
    }

    /// A packet of this start came.
    pub(super) fn heard(&mut self, epoch: u64) {
        if let Some(memory) = &mut self.memory
            && let Err(error) = memory.raise(epoch)
        {
            self.told = Some(forgotten(&error));
        }
    }

    /// What the user is to know, once.
    pub(super) fn told(&mut self) -> Option<String> {
        self.told.take()
    }
}

fn forgotten(error: &io::Error) -> String {
    format!("which start of the sender was heard last cannot be remembered from one run to the next: {error}")
}

const OUTDATED: &str = "the sender has started again since this description was made; packets of the start that it describes are refused, as they \
                        could be recordings, and packets of later starts are accepted";

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::seal::{Members, Seals};
    use weir_object::keys::SecretKey;

    fn sealed(epoch: u64) -> Description {
        let text = "v=0\ns=x\na=weir-tsi:7\na=weir-media:VP9 98 0\na=weir-cc:sluice\na=weir-cci:clocked\na=weir-packet:1200\n\
                    a=weir-ladder:600000\nm=video 5004 RTP/AVP 98 99\nc=IN IP4 239.255.0.1/4\n";
        let mut description: Description = text.parse().expect("a description");
        description.public_key = Some(SecretKey::from_seed([1; 32]).public().to_bytes());
        description.epoch = Some(epoch);
        description.sealing.seals = Seals { members: Some(Members::Tag), source: false };
        description
    }

    #[test]
    fn a_start_that_was_heard_counts_in_the_next_run_though_the_description_is_older() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::File(folder.path().join("out.ivf"));
        let open = |epoch| Starts::open(&sealed(epoch), &output);
        let mut first = open(5);
        first.heard(9);
        assert_eq!((first.least(), first.told()), (9, None));
        let mut later = open(5);
        assert_eq!((later.least(), later.told().as_deref()), (9, Some(OUTDATED)));
        assert_eq!((open(10).least(), open(10).told()), (10, None));
    }

    #[test]
    fn packets_without_seals_have_no_starts_to_remember() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::File(folder.path().join("out.ivf"));
        let plain = Description { sealing: Default::default(), epoch: None, ..sealed(0) };
        let mut starts = Starts::open(&plain, &output);
        starts.heard(9);
        assert_eq!(starts.told(), None);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told_and_keeps_nobody_from_watching() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut starts = Starts::open(&sealed(5), &Output::File(file.path().join("out.ivf")));
        assert_eq!(starts.least(), 5);
        assert!(starts.told().is_some_and(|told| told.contains("cannot be remembered")));
    }
}
