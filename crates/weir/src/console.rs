//! The observer of the command line: shows events to the user, notes them for metrics, and is interrupted by Ctrl-C.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::args::Output;
use crate::events::{ReceiverEvent, SenderEvent};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::live::{LiveReceiverEvent, LiveSenderEvent};
use crate::media::{MediaReceiverEvent, MediaSenderEvent};
use crate::metrics::{Metrics, Series};
use crate::observer::Observer;
use crate::progress::{Display, Stdout, Style};
use crate::stream::StreamEvent;

/// The terminal, or whatever stands in for it.
pub(crate) struct Console {
    display: Display,
    interrupt: Interrupt,
    metrics: Option<(Metrics, Series)>,
}

impl Console {
    /// The console that the options ask for. Made on the main thread, before any other.
    pub(crate) fn new(output: &Output) -> Result<Console, Failure> {
        Console::on(Display::new(Style::of(output)), output)
    }

    /// The same where standard output is for what is received: all that is said goes to standard error.
    pub(crate) fn next_to_stdout(output: &Output) -> Result<Console, Failure> {
        Console::on(Display::on_stderr(Style::of(output)), output)
    }

    fn on(display: Display, output: &Output) -> Result<Console, Failure> {
        let interrupt = Interrupt::install(|| {}).map_err(Failure::of(Exit::Internal, "cannot watch for Ctrl-C"))?;
        let metrics = output.metrics.map(|address| {
            let failed = format!("cannot serve metrics at {address}");
            Metrics::serve(address).map_err(Failure::of(Exit::Network, &failed))
        });
        let metrics = metrics.transpose()?;
        if let Some(metrics) = metrics.as_ref().filter(|_| !output.quiet) {
            // To standard error even with --json: it is no event of a session.
            eprintln!("metrics at http://{}/metrics", metrics.address);
        }
        Ok(Console { display, interrupt, metrics: metrics.map(|metrics| (metrics.clone(), metrics.series())) })
    }

    /// A console for one of several sessions, by whose name each of its lines begins, or each of its events has.
    pub(crate) fn of_session(&self, name: &str) -> Console {
        let metrics = self.metrics.as_ref().map(|(metrics, _)| (metrics.clone(), metrics.series()));
        Console { display: self.display.of_session(name), interrupt: self.interrupt.clone(), metrics }
    }

    fn note(&mut self, event: &impl Serialize) {
        if let Some((_, series)) = &mut self.metrics {
            series.note(event);
        }
    }

    /// Nobody left to read what a sender prints is no reason to send on for ever.
    fn ends(stdout: Stdout) -> ControlFlow<()> {
        match stdout {
            Stdout::Open => ControlFlow::Continue(()),
            Stdout::Closed => ControlFlow::Break(()),
        }
    }

    /// When nobody reads the events of a receiver any more, what it receives still matters: the run goes on in silence.
    fn falls_silent(&mut self, stdout: Stdout) -> ControlFlow<()> {
        if stdout == Stdout::Closed {
            self.display = Display::new(Style::Quiet);
        }
        ControlFlow::Continue(())
    }
}

impl Observer<SenderEvent> for Console {
    fn event(&mut self, event: &SenderEvent) -> ControlFlow<()> {
        self.note(event);
        Console::ends(self.display.sender(event))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<ReceiverEvent> for Console {
    fn event(&mut self, event: &ReceiverEvent) -> ControlFlow<()> {
        self.note(event);
        let stdout = self.display.receiver(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<LiveSenderEvent> for Console {
    fn event(&mut self, event: &LiveSenderEvent) -> ControlFlow<()> {
        self.note(event);
        Console::ends(self.display.live_sender(event))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<LiveReceiverEvent> for Console {
    fn event(&mut self, event: &LiveReceiverEvent) -> ControlFlow<()> {
        self.note(event);
        let stdout = self.display.live_receiver(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<MediaSenderEvent> for Console {
    fn event(&mut self, event: &MediaSenderEvent) -> ControlFlow<()> {
        self.note(event);
        Console::ends(self.display.media_sender(event))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<MediaReceiverEvent> for Console {
    fn event(&mut self, event: &MediaReceiverEvent) -> ControlFlow<()> {
        self.note(event);
        let stdout = self.display.media_receiver(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<StreamEvent> for Console {
    fn event(&mut self, event: &StreamEvent) -> ControlFlow<()> {
        self.note(event);
        let stdout = self.display.stream(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}
