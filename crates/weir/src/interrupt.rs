//! Ctrl-C and the polite kill, as something that can be waited for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Tells whether the user has asked the process to stop.
///
/// Made once, on the main thread, before any other thread: threads inherit that the signals wait to be fetched. Processes
/// that are started later do not (the standard library resets it).
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM do not end the process but set this mark and then call `notify`, on a thread of its
    /// own. A second signal ends the process at once: something may hang.
    pub(crate) fn install(notify: impl Fn() + Send + 'static) -> io::Result<Interrupt> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        let interrupt = Interrupt(Arc::default());
        let mark = Arc::clone(&interrupt.0);
        thread::Builder::new().name("signals".into()).spawn(move || {
            while signals.wait().is_ok() {
                if mark.swap(true, Ordering::Relaxed) {
                    std::process::exit(crate::exit::Exit::Interrupted.code().into());
                }
                notify();
            }
        })?;
        Ok(interrupt)
    }

    /// The mark itself, for those who look at it from other threads.
    pub(crate) fn mark(&self) -> &AtomicBool {
        &self.0
    }

    /// True once a signal came.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
