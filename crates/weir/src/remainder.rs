//! What is left to send when a file changes, or cannot be read any more, while a session sends it.
//!
//! Its digest is signed, so it cannot be sent any more, but the rest can: as another set of the session, in a later start of the sender, which
//! receivers follow as they follow a sender that was started again. The new set is made on a thread of its own; until it is there, nothing is sent.
//!
//! Not here: what a change is noticed by ([`weir_object::source`]), and what receivers do ([`weir_object::store`]).

use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use weir_object::carousel::{Carousel, CarouselError, CarouselOptions};
use weir_object::source::{SourceError, SourceFile, SourceSet};

use crate::{epoch, sent};

/// The set that is sent, and what has been left out of it.
#[derive(Debug)]
pub(crate) struct Remainder {
    sources: SourceSet,
    options: CarouselOptions,
    /// The file of the sender's key, next to which its starts are counted.
    key: Option<PathBuf>,
    left_out: Vec<SourceFile>,
    making: Option<JoinHandle<Made>>,
}

/// What has been made in place of a carousel that failed.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) carousel: Result<Carousel, CarouselError>,
    pub(crate) sources: SourceSet,
    /// Cycles of the files that are not sent again.
    pub(crate) skipped_cycles: u64,
    epoch: u64,
    /// The files that are left out now, with the reason.
    pub(crate) left_out: Vec<(&'static str, SourceFile)>,
    /// What to tell of the start.
    pub(crate) trouble: Option<String>,
}

impl Remainder {
    /// These files are sent with these options.
    pub(crate) fn new(sources: SourceSet, options: CarouselOptions, key: Option<PathBuf>) -> Remainder {
        Remainder { sources, options, key, left_out: Vec::new(), making: None }
    }

    /// The carousel has failed after so many cycles: makes another one without what was lost. Whether that can be: something has to be left.
    pub(crate) fn make(&mut self, failure: &SourceError, cycles: u64) -> bool {
        if self.making.is_some() {
            return true;
        }
        let Some(path) = failure.lost().filter(|_| self.sources.files().len() > 1) else { return false };
        let mut options = self.options.clone();
        // What receivers have of the files stays theirs, and is not sent again.
        options.skipped_cycles = options.skipped_cycles.saturating_add(cycles).saturating_add(sent::BEGUN);
        let (sources, key, lost) = (self.sources.clone(), self.key.clone(), (path.to_owned(), reason(failure)));
        let make = move || without(lost, sources, options, key.as_deref());
        self.making = Builder::new().name("weir-remainder".to_owned()).spawn(make).ok();
        self.making.is_some()
    }

    /// What has been made, once.
    pub(crate) fn take(&mut self) -> Option<Made> {
        let made = self.making.take_if(|making| making.is_finished())?.join();
        let made = made.unwrap_or_else(|fault| std::panic::resume_unwind(fault));
        self.sources = made.sources.clone();
        (self.options.skipped_cycles, self.options.epoch) = (made.skipped_cycles, made.epoch);
        self.left_out.extend(made.left_out.iter().map(|(_, file)| file.clone()));
        Some(made)
    }

    /// Everything that has been left out.
    pub(crate) fn left_out(&self) -> &[SourceFile] {
        &self.left_out
    }
}

/// The carousel of `sources` without the file that was lost, and without those that turn out to be lost as well.
fn without(
    lost: (PathBuf, &'static str),
    mut sources: SourceSet,
    mut options: CarouselOptions,
    key: Option<&Path>,
) -> Made {
    let (mut lost, mut left_out) = (Some(lost), Vec::new());
    let (epoch, trouble) = epoch::next(key, options.tsi);
    // Of a key that does not last, the clock alone counts, which may have been set back.
    options.epoch = epoch.max(options.epoch + 1);
    loop {
        if let Some((path, reason)) = lost.take() {
            let reason_of = |file: &SourceFile| if file.path() == path { reason } else { CHANGED };
            let changed = sources.leave_out_changed(&path).into_iter();
            left_out.extend(changed.map(|file| (reason_of(&file), file)));
        }
        let carousel = Carousel::new(sources.clone(), &options);
        if let Err(CarouselError::Source(failure)) = &carousel
            && let Some(path) = failure.lost()
            && sources.files().iter().any(|file| file.path() == path)
        {
            lost = Some((path.to_owned(), reason(failure)));
            continue;
        }
        let CarouselOptions { skipped_cycles, epoch, .. } = options;
        return Made { carousel, sources, skipped_cycles, epoch, left_out, trouble };
    }
}

fn reason(failure: &SourceError) -> &'static str {
    if matches!(failure, SourceError::Io { .. }) { UNREADABLE } else { CHANGED }
}

const CHANGED: &str = "it changed after the session began";
const UNREADABLE: &str = "it cannot be read any more";
