//! Has the system read what will be needed again, before it is: a symbol that comes late is written into pages of which the rest may be on the
//! disk alone, and the pieces around it are hashed once they are whole.

use std::fs::File;
use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::fs::{Advice, fadvise};

/// Asks the system to read, on a thread of its own: the system takes its time where a disk has much to do.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    thread: Option<Sender<(File, Vec<Range<u64>>)>>,
}

impl ReadAhead {
    /// Has these bytes of a file read, if they are not in memory.
    pub(super) fn ask(&mut self, file: File, ranges: Vec<Range<u64>>) {
        if self.thread.is_none() {
            self.thread = start();
        }
        if let Some(thread) = &self.thread {
            // A thread that has gone reads nothing, and nobody depends on it.
            let _ = thread.send((file, ranges));
        }
    }

    /// Whether it was ever asked.
    #[cfg(test)]
    pub(super) fn was_asked(&self) -> bool {
        self.thread.is_some()
    }
}

/// The thread ends with its store. `None` if the system has no thread left.
fn start() -> Option<Sender<(File, Vec<Range<u64>>)>> {
    let (sender, requests) = channel();
    std::thread::Builder::new().name("readahead".into()).spawn(|| work(requests)).ok()?;
    Some(sender)
}

fn work(requests: Receiver<(File, Vec<Range<u64>>)>) {
    for (file, ranges) in requests {
        for range in ranges {
            // A file system that takes no advice reads later.
            let _ = fadvise(&file, range.start, NonZero::new(range.end - range.start), Advice::WillNeed);
        }
    }
}
