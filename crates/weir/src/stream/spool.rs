//! Payloads on their way to a file or a pipe. A thread writes them, so that a reader that takes its time does not stop the
//! protocol; what waits is bounded, and the stream waits with it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// See the module's documentation.
pub(super) struct Spool {
    shared: Arc<Shared>,
    /// The payloads of the batch being received.
    batch: Vec<u8>,
    batched: u64,
    /// Payloads that it has room for when nothing waits.
    capacity: u64,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    payloads: u64,
    /// Payloads that are being written.
    writing: u64,
    is_over: bool,
    has_failed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spool {
    /// Writes to `out`, and lets at most `capacity` payloads wait.
    pub(super) fn start(out: File, capacity: u64) -> Spool {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let outcome = write(&theirs, BufWriter::new(out));
            theirs.lock().has_failed |= outcome.is_err();
            outcome
        });
        Spool { shared, batch: Vec::new(), batched: 0, capacity, thread: Some(thread) }
    }

    /// A payload came.
    pub(super) fn put(&mut self, payload: &[u8]) {
        self.batch.extend_from_slice(payload);
        self.batched += 1;
    }

    /// Hands over what came.
    pub(super) fn flush(&mut self) {
        if self.batched == 0 {
            return;
        }
        let mut queue = self.shared.lock();
        queue.bytes.append(&mut self.batch);
        queue.payloads += mem::take(&mut self.batched);
        self.shared.changed.notify_one();
    }

    /// For how many payloads there is room.
    pub(super) fn room(&self) -> u64 {
        let queue = self.shared.lock();
        self.capacity.saturating_sub(queue.payloads + queue.writing + self.batched)
    }

    /// Whether nothing can be written any more.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.lock().has_failed
    }

    /// Waits until everything is written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush();
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        self.thread.take().map_or(Ok(()), |thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes has failed")))
        })
    }
}

fn write(shared: &Shared, mut out: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let mut queue = shared.lock();
        queue.writing = 0;
        while queue.payloads == 0 && !queue.is_over {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.payloads == 0 {
            return out.flush();
        }
        bytes.clear();
        mem::swap(&mut queue.bytes, &mut bytes);
        queue.writing = mem::take(&mut queue.payloads);
        drop(queue);
        out.write_all(&bytes)?;
        out.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    #[test]
    fn what_waits_for_a_slow_reader_is_bounded_and_all_arrives() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut spool = Spool::start(File::from(OwnedFd::from(writer)), 4);
        // More than a pipe takes at once.
        let payload = vec![7; 1 << 20];
        let mut sent = 0;
        while spool.room() > 0 {
            spool.put(&payload);
            spool.flush();
            sent += 1;
        }
        assert_eq!(sent, 4);
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        spool.finish().expect("it is read");
        assert_eq!(reading.join().expect("no panic").expect("a pipe").len(), 4 << 20);
    }

    #[test]
    fn a_reader_that_goes_away_is_noticed() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut spool = Spool::start(File::from(OwnedFd::from(writer)), 4);
        spool.put(b"unread");
        assert!(spool.finish().is_err() && spool.has_failed());
    }
}
