//! Whether the disk or the processor holds up the disk's thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// What the time of the disk's thread went to while it had something to do.
#[derive(Debug, Default)]
pub(super) struct Effort {
    pub(super) busy_nanos: AtomicU64,
    /// Of these, with the processor: hashing, decoding, copying.
    pub(super) computing_nanos: AtomicU64,
}

impl Effort {
    pub(super) fn note(&self, busy: Duration, computing: Duration) {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos(busy), Ordering::Relaxed);
        self.computing_nanos.fetch_add(nanos(computing), Ordering::Relaxed);
    }

    pub(super) fn bottleneck(&self) -> Bottleneck {
        let (busy, computing) = (self.busy_nanos.load(Ordering::Relaxed), self.computing_nanos.load(Ordering::Relaxed));
        if computing >= busy / 2 { Bottleneck::Processor } else { Bottleneck::Disk }
    }
}

/// Why symbols were thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The thread that keeps them mostly waited: for the disk, or for a turn on a busy machine.
    Disk,
    /// It mostly computed.
    Processor,
}

impl Bottleneck {
    /// Says why `overrun` of `packets` symbols were thrown away.
    pub(crate) fn words(self, overrun: u64, packets: u64) -> String {
        let cause = match self {
            Bottleneck::Disk => "the disk was too slow",
            Bottleneck::Processor => "this host's processor was too slow to decode and hash what came, not the disk,",
        };
        format!("{cause} for {overrun} of {packets} packets; they had to come again")
    }
}

/// Processor time of this thread.
pub(super) fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computed_does_not_blame_the_disk() {
        let effort = Effort::default();
        let millis = Duration::from_millis;
        effort.note(millis(100), millis(80));
        assert_eq!(effort.bottleneck(), Bottleneck::Processor);
        let words = effort.bottleneck().words(7, 100);
        assert!(words.starts_with("this host's processor") && words.contains("7 of 100 packets"), "{words}");
        effort.note(millis(300), millis(20));
        assert_eq!(effort.bottleneck(), Bottleneck::Disk);
        assert!(effort.bottleneck().words(7, 100).starts_with("the disk was too slow"));
    }
}
