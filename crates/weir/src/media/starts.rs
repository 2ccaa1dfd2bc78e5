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
}

impl Starts {
    /// Of a session whose pictures go there: what is remembered lies next to a file, else in the user's folder of states.
    ///
    /// # Errors
    /// If what is remembered cannot be read.
    pub(super) fn open(description: &Description, output: &Output) -> io::Result<Starts> {
        let described = description.epoch.unwrap_or(0);
        let key = description.public_key.and_then(|key| PublicKey::from_bytes(&key).ok());
        let Some(key) = key.filter(|_| !description.sealing.seals.is_none()) else {
            return Ok(Starts { memory: None, described });
        };
        let folder = match output {
            Output::File(path) => path.parent().map(Path::to_owned),
            Output::Stdout | Output::Rtp(_) | Output::Udp(_) => folders::state(),
        };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| ".".into());
        let memory = EpochMemory::open(&folder, &key, u64::from(description.tsi))?;
        Ok(Starts { memory: Some(memory), described })
    }

    /// The lowest epoch that counts.
    pub(super) fn least(&self) -> u64 {
        self.memory.as_ref().map_or(0, EpochMemory::highest).max(self.described)
    }

    /// What the user is to know if the description is of an earlier start than the last one heard.
    pub(super) fn outdated(&self) -> Option<String> {
        (self.least() > self.described).then(|| {
            "the sender has started again since this description was made: packets of the start that it is of do not count any more, as others could \
             have recorded them; a later start is taken"
                .to_owned()
        })
    }

    /// A packet of this start came.
    ///
    /// # Errors
    /// If it cannot be remembered.
    pub(super) fn heard(&mut self, epoch: u64) -> io::Result<()> {
        self.memory.as_mut().map_or(Ok(()), |memory| memory.raise(epoch))
    }
}

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
        let open = |description: &Description| Starts::open(description, &output).expect("it can be read");
        let mut first = open(&sealed(5));
        assert_eq!((first.least(), first.outdated()), (5, None));
        first.heard(9).expect("it can be written");
        let later = open(&sealed(5));
        assert!(later.least() == 9 && later.outdated().is_some());
        assert_eq!((open(&sealed(10)).least(), open(&sealed(10)).outdated()), (10, None));
    }

    #[test]
    fn packets_without_seals_have_no_starts_to_remember() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::File(folder.path().join("out.ivf"));
        let plain = Description { sealing: Default::default(), epoch: None, ..sealed(0) };
        Starts::open(&plain, &output).and_then(|mut starts| starts.heard(9)).expect("nothing is written");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
    }
}
