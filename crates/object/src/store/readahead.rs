//! Has the system read what will be needed again, before it is: a symbol that comes late is written into pages of which the rest may be on the
//! disk alone, and the pieces around it are hashed once they are whole.
//!
//! All of it is advice: what cannot be asked is read when it is needed.

use std::fs::File;
use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::fs::{Advice, fadvise};

/// Asks the system to read, on a thread of its own: the system takes its time where a disk has much to do.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    thread: Option<SyncSender<Request>>,
}

/// A file, and which of its bytes are to be read.
type Request = (File, Vec<Range<u64>>);

impl ReadAhead {
    /// Has these bytes of a file read, if they are not in memory. Never waits: while many requests are open, others are dropped.
    pub(super) fn ask(&mut self, file: &File, ranges: Vec<Range<u64>>) {
        if self.thread.is_none() {
            self.thread = start();
        }
        if let (Some(thread), Ok(file)) = (&self.thread, file.try_clone()) {
            let _ = thread.try_send((file, ranges));
        }
    }

    /// Whether it was ever asked.
    #[cfg(test)]
    pub(super) fn was_asked(&self) -> bool {
        self.thread.is_some()
    }
}

/// The thread ends with its store. `None` if the system has no thread left.
fn start() -> Option<SyncSender<Request>> {
    let (sender, requests) = sync_channel(MOST_OPEN);
    std::thread::Builder::new().name("readahead".into()).spawn(|| work(requests)).ok()?;
    Some(sender)
}

fn work(requests: Receiver<Request>) {
    for (file, ranges) in requests {
        for range in ranges {
            let _ = fadvise(&file, range.start, NonZero::new(range.end - range.start), Advice::WillNeed);
        }
    }
}

/// Requests that wait: each holds a file descriptor, of which a process often has 1024.
const MOST_OPEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_descriptors_are_held_than_a_process_can_spare_however_much_is_asked() {
        // A disk that never gets to it.
        let (thread, requests) = sync_channel(MOST_OPEN);
        let mut read_ahead = ReadAhead { thread: Some(thread) };
        let file = tempfile::tempfile().expect("a temporary file");
        (0..5_000).for_each(|at| read_ahead.ask(&file, vec![at..at + 1, at + 2..at + 3]));
        assert_eq!(requests.try_iter().count(), MOST_OPEN);
    }
}
