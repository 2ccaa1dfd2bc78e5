//! Files sent and received in a thread of their own, whose events Python takes one by one.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;
use weir::events::{ReceiverEvent, SenderEvent};
use weir::{Exit, Failure, Observer, Recv, SendFile, receive_files, send_files};

pyo3::create_exception!(
    weir._weir,
    Failed,
    PyRuntimeError,
    "A transfer that could not do what it was asked: exit code, message."
);

/// A transfer under way.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct Transfer {
    events: Mutex<mpsc::Receiver<String>>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<Result<Exit, Failure>>>>,
}

#[pymethods]
impl Transfer {
    /// Sends files; `words` are those of `weir send file`.
    #[staticmethod]
    fn send(words: Vec<OsString>) -> PyResult<Transfer> {
        let args = SendFile::from_words(words).map_err(|failure| failed(&failure))?;
        Ok(Transfer::start(move |observer: &mut Events| send_files(&args, &mut Of::<SenderEvent>::new(observer))))
    }

    /// Receives a session of files; `words` are those of `weir recv`.
    #[staticmethod]
    fn receive(words: Vec<OsString>) -> PyResult<Transfer> {
        let args = Recv::from_words(words).map_err(|failure| failed(&failure))?;
        if args.sessions.len() != 1 {
            let message = "one session of files at a time; weir recv takes several";
            return Err(failed(&Failure::new(Exit::Usage, message)));
        }
        Ok(Transfer::start(move |observer: &mut Events| receive_files(&args, &mut Of::<ReceiverEvent>::new(observer))))
    }

    /// The next event as JSON; `None` after the last. Waits for it, and listens for signals meanwhile.
    fn next_event(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let next = || self.events.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
        loop {
            match py.detach(next) {
                Ok(event) => return Ok(Some(event)),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
                Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            }
        }
    }

    /// Ends it in good order, as soon as can be.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The exit code, once it has ended; raises what went wrong. `None` if it was asked before.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<u8>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(None) };
        let ended = py.detach(|| thread.join());
        let ended = ended.map_err(|_| PyRuntimeError::new_err("the transfer panicked; please report it"))?;
        ended.map(|exit| Some(exit.code())).map_err(|failure| failed(&failure))
    }
}

impl Transfer {
    fn start(run: impl FnOnce(&mut Events) -> Result<Exit, Failure> + Send + 'static) -> Transfer {
        let (tell, events) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut observer = Events { tell, stop: Arc::clone(&stop) };
        let thread = std::thread::spawn(move || run(&mut observer));
        Transfer { events: Mutex::new(events), stop, thread: Mutex::new(Some(thread)) }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where events go, and whether there should be more.
struct Events {
    tell: mpsc::Sender<String>,
    stop: Arc<AtomicBool>,
}

/// An observer of one kind of events.
struct Of<'a, E> {
    events: &'a mut Events,
    kind: std::marker::PhantomData<E>,
}

impl<'a, E> Of<'a, E> {
    fn new(events: &'a mut Events) -> Of<'a, E> {
        Of { events, kind: std::marker::PhantomData }
    }
}

impl<E: Serialize> Observer<E> for Of<'_, E> {
    fn event(&mut self, event: &E) -> ControlFlow<()> {
        let text = serde_json::to_string(event).expect("events are plain data");
        // A caller that is gone hears of nothing more.
        match self.events.tell.send(text) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_interrupted(&self) -> bool {
        self.events.stop.load(Ordering::Relaxed)
    }
}

fn failed(failure: &Failure) -> PyErr {
    Failed::new_err((failure.exit.code(), failure.message.clone()))
}

const LOOK: Duration = Duration::from_millis(50);
