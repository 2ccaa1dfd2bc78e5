//! The observer of the command line: shows events to the user, and is interrupted by Ctrl-C.

use std::ops::ControlFlow;

use crate::args::Output;
use crate::events::{ReceiverEvent, SenderEvent};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::live::{LiveReceiverEvent, LiveSenderEvent};
use crate::observer::Observer;
use crate::progress::{Display, Stdout, Style};
use crate::stream::StreamEvent;

/// The terminal, or whatever stands in for it.
pub(crate) struct Console {
    display: Display,
    interrupt: Interrupt,
}

impl Console {
    /// The console that the options ask for. Made on the main thread, before any other.
    pub(crate) fn new(output: &Output) -> Result<Console, Failure> {
        let interrupt = Interrupt::install(|| {}).map_err(Failure::of(Exit::Internal, "cannot watch for Ctrl-C"))?;
        Ok(Console { display: Display::new(Style::of(output)), interrupt })
    }

    /// A console for one of several sessions, by whose name each of its lines begins, or each of its events has.
    pub(crate) fn of_session(&self, name: &str) -> Console {
        Console { display: self.display.of_session(name), interrupt: self.interrupt.clone() }
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
        Console::ends(self.display.sender(event))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<ReceiverEvent> for Console {
    fn event(&mut self, event: &ReceiverEvent) -> ControlFlow<()> {
        let stdout = self.display.receiver(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<LiveSenderEvent> for Console {
    fn event(&mut self, event: &LiveSenderEvent) -> ControlFlow<()> {
        Console::ends(self.display.live_sender(event))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<LiveReceiverEvent> for Console {
    fn event(&mut self, event: &LiveReceiverEvent) -> ControlFlow<()> {
        let stdout = self.display.live_receiver(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}

impl Observer<StreamEvent> for Console {
    fn event(&mut self, event: &StreamEvent) -> ControlFlow<()> {
        let stdout = self.display.stream(event);
        self.falls_silent(stdout)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}
