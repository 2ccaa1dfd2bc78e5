//! Starts writing data to the disk while more arrives. A file takes its name only when all of it is on the disk, so whatever is left for the
//! end delays it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

/// Has the system write what it holds in memory, on a thread of its own.
#[derive(Debug, Default)]
pub(super) struct Writeback {
    /// Bytes that were given to the system since it was last asked to write.
    bytes: u64,
    thread: Option<SyncSender<File>>,
}

impl Writeback {
    /// So many bytes of a file were given to the system.
    pub(super) fn on_written(&mut self, file: &File, bytes: u64) {
        self.bytes += bytes;
        if self.bytes < INTERVAL {
            return;
        }
        // A separate open file: the kernel reports a write error once for each, and the final sync must see it too.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
        if self.thread.is_none() {
            self.thread = start();
        }
        // Without a thread, or while it is busy, the system writes when it likes.
        if self.thread.as_ref().is_some_and(|thread| thread.try_send(file).is_ok()) {
            self.bytes = 0;
        }
    }
}

/// The thread ends with its store, once it has finished the last request. `None` if the system has no thread left.
fn start() -> Option<SyncSender<File>> {
    let (sender, files) = sync_channel(0);
    std::thread::Builder::new().name("writeback".into()).spawn(|| work(files)).ok()?;
    Some(sender)
}

/// Rests after each sync for as long as it took. A disk with a moving head then spends at most half of its time on pieces that the system could
/// have merged later.
#[expect(clippy::disallowed_methods, reason = "how fast the disk is changes nothing that the store does")]
fn work(files: Receiver<File>) {
    for file in files {
        let begun = Instant::now();
        // Nothing is promised yet: the sync before a file takes its name tells of what failed.
        let _ = file.sync_data();
        drop(file);
        std::thread::sleep(begun.elapsed());
    }
}

/// Bytes between two requests: enough for a disk to write at its speed, and what is left at the end takes a fraction of a second.
const INTERVAL: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_system_is_asked_once_an_interval_and_the_file_stays_open_for_its_owner() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        let mut writeback = Writeback::default();
        writeback.on_written(&file, INTERVAL - 1);
        assert!(writeback.thread.is_none());
        let is_taken = (0..50_000_000).any(|_| {
            std::thread::yield_now();
            writeback.on_written(&file, 1);
            writeback.bytes == 0
        });
        assert!(is_taken, "the thread takes no request");
        drop(writeback);
        file.write_all(b"a").expect("it is open");
    }
}
