//! One session of an always-on receiver: received on a thread of its own, and ended when it is asked to.
//!
//! Not here: which sessions are received, and when (`receive.rs`).

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::screen::Believed;
use crate::args::Recv;
use crate::console::Console;
use crate::events::{ReceiverEvent, ReceiverStart};
use crate::exit::Exit;
use crate::hook::{Hook, Hooked};
use crate::observer::Observer;
use crate::recv::{self, Wanted};

/// A session that is being received.
pub(super) struct Run {
    pub(super) announced: Believed,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Outcomes>,
}

/// How a session ended.
struct Outcomes {
    exit: Exit,
    /// The start of the sender of which everything is here.
    complete: Option<u64>,
}

impl Run {
    /// Begins to receive a session that was announced by `from`.
    pub(super) fn begin(
        args: Recv,
        announced: Believed,
        from: SocketAddr,
        out: PathBuf,
        console: Console,
    ) -> io::Result<Run> {
        let stop = Arc::<AtomicBool>::default();
        let observer = SessionObserver { console, stop: Arc::clone(&stop), complete: None };
        let announced_there = announced.clone();
        let body = move || receive_one(&args, announced_there, from, out, observer);
        let thread = std::thread::Builder::new().name("session".into()).spawn(body)?;
        Ok(Run { announced, stop, thread })
    }

    /// Asks it to end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether [`Run::join`] returns at once.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end; the latest start of its sender of which everything is here, if it succeeded.
    pub(super) fn join(self) -> Option<u64> {
        // A panic has been reported, and its session is tried again as one that failed.
        let outcomes = self.thread.join().ok()?;
        let complete = outcomes.complete.filter(|_| outcomes.exit == Exit::Done)?;
        Some(complete.max(self.announced.epoch))
    }
}

/// Receives a session, on a thread of its own.
fn receive_one(
    args: &Recv,
    announced: Believed,
    from: SocketAddr,
    out: PathBuf,
    mut observer: SessionObserver,
) -> Outcomes {
    let mut hooked = Hooked::new(Hook::of(args), &mut observer);
    let description = announced.description;
    let start = ReceiverStart {
        session: description.name.clone(),
        tsi: u64::from(description.tsi),
        sender_key: Some(announced.key.to_string()),
        out: out.display().to_string(),
        ..ReceiverStart::default()
    };
    let wanted = Wanted::new(format!("announcement of {from}"), description, Vec::new(), args.iface.as_deref(), out);
    let exit = wanted.and_then(|wanted| recv::receive(args, &wanted, &mut hooked)).unwrap_or_else(|failure| {
        hooked.failed(start, failure.exit, &failure.message);
        failure.exit
    });
    Outcomes { exit, complete: observer.complete }
}

/// Hears of one session, and may be told to end it.
struct SessionObserver {
    console: Console,
    stop: Arc<AtomicBool>,
    complete: Option<u64>,
}

impl Observer<ReceiverEvent> for SessionObserver {
    fn event(&mut self, event: &ReceiverEvent) -> ControlFlow<()> {
        if let ReceiverEvent::End(end) = event {
            self.complete = end.epoch.filter(|_| end.complete);
        }
        self.console.event(event)
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Observer::<ReceiverEvent>::is_interrupted(&self.console)
    }
}
