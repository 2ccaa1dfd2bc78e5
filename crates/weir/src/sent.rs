//! What a sender has sent with a key, in passes over the set, so that one that is started again sends what nobody has yet.
//!
//! Next to the key there is a folder, and in it a file a session, with the set's fingerprint and a number of passes that is never
//! below what was sent: it is written ahead. A sender that is killed loses some numbers of symbols and repeats none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_object::source::SourceSet;
use weir_units::{Bytes, Hex, Rate};

use crate::args::SendFile;
use crate::exit::Failure;
use crate::session::Offer;
use crate::{folders, key};

/// The account of one session.
#[derive(Debug)]
pub(crate) struct Sent {
    file: PathBuf,
    set: String,
    /// Passes of earlier runs.
    before: u64,
    /// Passes that the file speaks of.
    reserved: u64,
    /// How many are written down at a time.
    ahead: u64,
}

/// What was sent of the session before, where its key lasts.
pub(crate) fn account(
    args: &SendFile,
    offer: &Offer,
    sources: &SourceSet,
    tell: impl FnOnce(String),
) -> Result<Option<Sent>, Failure> {
    let Some(key) = key::file(args.key.as_deref()) else { return Ok(None) };
    let rate = offer.channel_rates()?.into_iter().fold(Rate::ZERO, |sum, rate| sum + rate);
    let ahead = passes_ahead(rate, Bytes::new(sources.bytes()));
    match Sent::open(&key, offer.description.tsi, sources.fingerprint(), ahead) {
        Ok(sent) => Ok(Some(sent)),
        Err(error) => {
            tell(format!(
                "what is sent cannot be noted next to the key, so that a sender started again repeats it: {error}"
            ));
            Ok(None)
        }
    }
}

impl Sent {
    /// The account of session `tsi` of a key; `ahead` is how many passes may be sent before [`Sent::note`] is called again.
    fn open(key: &Path, tsi: u16, set: [u8; 16], ahead: u64) -> io::Result<Sent> {
        let file = folders::beside(key, ".sent").join(tsi.to_string());
        let set = Hex(&set).to_string();
        let before = match fs::read_to_string(&file) {
            Ok(text) => passes(&text, &set).ok_or_else(|| unreadable(&file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let mut sent = Sent { file, set, before, reserved: before, ahead: ahead.max(1) };
        sent.note(0)?;
        Ok(sent)
    }

    /// Passes that earlier runs may have sent.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Another set is sent from here on, of whose files so many passes may have been sent.
    pub(crate) fn go_on_with(&mut self, set: [u8; 16], before: u64) -> io::Result<()> {
        (self.set, self.before, self.reserved) = (Hex(&set).to_string(), before, before);
        self.note(0)
    }

    /// This run has sent so many passes, and a part of the next.
    pub(crate) fn note(&mut self, passes: u64) -> io::Result<()> {
        let needed = self.before.saturating_add(passes).saturating_add(BEGUN + self.ahead);
        if needed <= self.reserved {
            return Ok(());
        }
        self.reserved = needed.saturating_add(self.ahead);
        folders::make_for(&self.file)?;
        folders::replace(&self.file, format!("{} {}\n", self.set, self.reserved).as_bytes(), 0o644)
    }
}

/// The passes that a file speaks of: 0 if it is of another set, and `None` if it cannot be read.
fn passes(text: &str, set: &str) -> Option<u64> {
    let (of, passes) = text.trim().split_once(' ')?;
    let passes = passes.parse().ok()?;
    Some(if of == set { passes } else { 0 })
}

fn unreadable(file: &Path) -> io::Error {
    let message = format!(
        "{} is damaged; remove it, and give another --tsi if receivers may still wait for the rest of this session",
        file.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Passes over `bytes` at this rate while nobody looks.
fn passes_ahead(rate: Rate, bytes: Bytes) -> u64 {
    (rate * UNLOOKED).count().div_ceil(bytes.count().max(1)).max(1)
}

/// A pass that has begun counts, and blocks are not all equally far in it.
pub(crate) const BEGUN: u64 = 2;
/// The longest time between two looks, with room.
const UNLOOKED: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_sent_is_never_sent_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = folder.path().join("sender.key");
        let open = |tsi, set| Sent::open(&key, tsi, [set; 16], 3).expect("it can be written");
        let mut first = open(7, 1);
        assert_eq!(first.before(), 0);
        first.note(10).expect("it can be written");
        // It is killed up to three passes later.
        let mut second = open(7, 1);
        assert!((10 + 3 + BEGUN..30).contains(&second.before()), "{}", second.before());
        second.note(1).expect("it can be written");
        let third = open(7, 1);
        assert!(third.before() > second.before() + 1 + 3, "{} after {}", third.before(), second.before());
        assert_eq!(
            (open(8, 1).before(), open(7, 2).before(), open(7, 1).before()),
            (0, 0, 0),
            "others, and one replaced"
        );
    }

    #[test]
    fn a_damaged_account_is_said_and_not_taken_for_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = folder.path().join("sender.key");
        let open = |set| Sent::open(&key, 7, [set; 16], 3);
        open(1).expect("it can be written");
        let file = folder.path().join("sender.key.sent").join("7");
        let text = fs::read_to_string(&file).expect("it was written");
        for damaged in ["", "\0\0\0\0", &text[..33], text.replace(' ', " x").as_str()] {
            fs::write(&file, damaged).expect("room");
            let error = open(1).expect_err(damaged);
            assert!(error.to_string().contains("damaged"), "{error}");
        }
    }

    #[test]
    fn a_small_set_is_gone_through_often_while_nobody_looks() {
        assert_eq!(passes_ahead(Rate::from_mbps(100), Bytes::new(100_000)), 250);
        assert_eq!(passes_ahead(Rate::from_mbps(1), Bytes::new(100_000_000)), 1);
    }
}
