//! Data on its way to the disk while more comes: what is left for the end, a receiver waits for before a file takes its name.

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
        // An open file of its own, so that what fails is told to whoever syncs the other one in the end, too.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
        // While it is busy there is no use in asking for more.
        if self.thread.get_or_insert_with(start).try_send(file).is_ok() {
            self.bytes = 0;
        }
    }
}

/// The thread ends with its store, or when it is done with what it was asked for last.
fn start() -> SyncSender<File> {
    let (sender, files) = sync_channel(0);
    std::thread::Builder::new().name("writeback".into()).spawn(|| work(files)).expect("a thread can be started");
    sender
}

/// Rests as long as the disk took each time: one whose head has to move, for pieces that would be neighbours in the end, is left half of its time.
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
