//! What a running command shows: a panel on a terminal, lines elsewhere, events with `--json`, nothing with `-q`.
//!
//! Results go to standard output, the rest to standard error. Not here: what is measured; that comes in as events.

mod words;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::Output;
use crate::events::{ReceiverEvent, SenderEvent};
use crate::live::{self, LiveReceiverEvent, LiveSenderEvent};
use crate::media::{self, MediaReceiverEvent, MediaSenderEvent};
use crate::stream::{self, StreamEvent};

pub(crate) use words::{clean, clock, name, percent, seconds, share};

/// Whether anybody still reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "with nobody reading, the command should end, and that is a success"]
pub(crate) enum Stdout {
    /// Yes, or nothing was written.
    Open,
    /// No: the other end of the pipe is closed.
    Closed,
}

/// How a command shows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Events on standard output, nothing else.
    Json,
    /// Errors only.
    Quiet,
    /// A panel on standard error that is redrawn in place.
    Panel,
    /// Now and then a line on standard error.
    Lines,
}

impl Style {
    /// The style that the options ask for, or else the one that standard error can show.
    pub(crate) fn of(output: &Output) -> Style {
        match output {
            Output { json: true, .. } => Style::Json,
            Output { quiet: true, .. } => Style::Quiet,
            _ if io::stderr().is_terminal() => Style::Panel,
            _ => Style::Lines,
        }
    }
}

/// Shows the events of one command.
pub(crate) struct Display {
    style: Style,
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    panel: ProgressBar,
    /// When the next plain line is due, in seconds since the start.
    line_due_s: f64,
    /// What a sender waits for; 0 if for nothing.
    receipts_wanted: u64,
    levels: usize,
    /// Where a live stream comes from.
    address: String,
    /// The name of the session, where there are several.
    session: Option<String>,
}

impl Display {
    /// A display on the standard streams.
    pub(crate) fn new(style: Style) -> Display {
        Display::on(style, Box::new(io::stdout()), Box::new(io::stderr()), ProgressDrawTarget::stderr())
    }

    /// A display on standard error alone.
    pub(crate) fn on_stderr(style: Style) -> Display {
        Display::on(style, Box::new(io::stderr()), Box::new(io::stderr()), ProgressDrawTarget::stderr())
    }

    fn on(
        style: Style,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        terminal: ProgressDrawTarget,
    ) -> Display {
        let panel = match style {
            Style::Panel => ProgressBar::with_draw_target(Some(BAR_STEPS), terminal),
            _ => ProgressBar::hidden(),
        };
        panel.set_style(bar(WAITING));
        Display {
            style,
            out,
            err,
            panel,
            line_due_s: 0.0,
            receipts_wanted: 0,
            levels: 0,
            address: String::new(),
            session: None,
        }
    }

    /// A display for one of several sessions, which share the streams. Panels would write over each other: lines do not.
    pub(crate) fn of_session(&self, name: &str) -> Display {
        let style = if self.style == Style::Panel { Style::Lines } else { self.style };
        Display { session: Some(name.to_owned()), ..Display::new(style) }
    }

    /// Shows an event of a receiver.
    pub(crate) fn receiver(&mut self, event: &ReceiverEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            ReceiverEvent::Start(start) => {
                self.levels = start.rates_bps.len();
                self.say(&words::receiver_start(start));
            }
            ReceiverEvent::Level(level) => self.line(level.t_s, MIN_LINE_GAP_S, || words::level(level)),
            ReceiverEvent::Progress(progress) => {
                let share = words::share(progress.useful_bytes, progress.needed_bytes);
                self.progress(progress.t_s, share, || words::receiver_progress(progress));
            }
            ReceiverEvent::Waiting(waiting) => self.trouble(&waiting.message),
            ReceiverEvent::File(file) => {
                self.say("");
                return self.result(&words::file(file));
            }
            ReceiverEvent::Receipt(receipt) => self.say(words::receipt_sent(receipt)),
            ReceiverEvent::Hook(done) => match &done.message {
                Some(message) => self.trouble(message),
                None => self.say(&words::hook(done)),
            },
            ReceiverEvent::Listening(listening) => self.say(&words::listening(listening)),
            ReceiverEvent::Announced(announced) if announced.outcome.is_plain() => self.say(&clean(&announced.message)),
            ReceiverEvent::Announced(announced) => self.trouble(&announced.message),
            ReceiverEvent::Error(trouble) => self.trouble(&trouble.message),
            ReceiverEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&words::receiver_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a sender.
    pub(crate) fn sender(&mut self, event: &SenderEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            SenderEvent::Reading(reading) => self.progress(reading.t_s, None, || words::reading(reading)),
            SenderEvent::Hashing(hashing) => {
                let share = words::share(hashing.hashed_bytes, Some(hashing.bytes));
                self.progress(hashing.t_s, share, || words::hashing(hashing));
            }
            SenderEvent::Start(start) => {
                self.panel.set_style(bar(WAITING));
                self.receipts_wanted = start.receipts_wanted.unwrap_or(0);
                self.say(&words::sender_start(start));
            }
            SenderEvent::Progress(progress) => {
                let wanted = self.receipts_wanted;
                let has_bar = self.style == Style::Panel && wanted > 0;
                let share = words::share(progress.receipts, has_bar.then_some(wanted));
                self.progress(progress.t_s, share, || words::sender_progress(progress, wanted));
            }
            SenderEvent::Receipt(receipt) => self.say(&words::receipt_received(receipt, self.receipts_wanted)),
            SenderEvent::Result(result) => {
                self.panel.finish_and_clear();
                return self.result(&words::host(result));
            }
            SenderEvent::Error(trouble) => self.trouble(&trouble.message),
            SenderEvent::End(end) => {
                self.panel.finish_and_clear();
                return self.result(&words::sender_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a live sender.
    pub(crate) fn live_sender(&mut self, event: &LiveSenderEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            LiveSenderEvent::Start(start) => self.say(&live::words::send_start(start)),
            LiveSenderEvent::Viewer(change) => self.say(&live::words::viewer(change)),
            LiveSenderEvent::Progress(progress) => {
                self.progress(progress.t_s, None, || live::words::send_progress(progress));
            }
            LiveSenderEvent::Error(trouble) => self.trouble(&trouble.message),
            LiveSenderEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&live::words::send_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a live viewer. Standard output may be the stream's.
    pub(crate) fn live_receiver(&mut self, event: &LiveReceiverEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            LiveReceiverEvent::Start(start) => {
                self.address = start.address.clone();
                self.say(&live::words::view_start(start));
            }
            LiveReceiverEvent::Meeting(change) => self.say(&live::words::meeting(change, &self.address)),
            LiveReceiverEvent::Progress(progress) => {
                self.progress(progress.t_s, None, || live::words::view_progress(progress));
            }
            LiveReceiverEvent::Error(trouble) => self.trouble(&trouble.message),
            LiveReceiverEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&live::words::view_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a sender of layered media.
    pub(crate) fn media_sender(&mut self, event: &MediaSenderEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            MediaSenderEvent::Start(start) => self.say(&media::words::programme_start(start)),
            MediaSenderEvent::Progress(progress) => {
                self.progress(progress.t_s, None, || media::words::programme_progress(progress));
            }
            MediaSenderEvent::Error(trouble) => self.trouble(&trouble.message),
            MediaSenderEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&media::words::programme_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a receiver of layered media. Standard output may be the programme's.
    pub(crate) fn media_receiver(&mut self, event: &MediaReceiverEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            MediaReceiverEvent::Start(start) => self.say(&media::words::watch_start(start)),
            MediaReceiverEvent::Waiting(waiting) => self.trouble(&waiting.message),
            MediaReceiverEvent::Level(_) => {}
            MediaReceiverEvent::Progress(progress) => {
                self.progress(progress.t_s, None, || media::words::watch_progress(progress));
            }
            MediaReceiverEvent::Error(trouble) => self.trouble(&trouble.message),
            MediaReceiverEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&media::words::watch_end(end));
            }
        }
        Stdout::Open
    }

    /// Shows an event of a node of a stream. Standard output may be the stream's.
    pub(crate) fn stream(&mut self, event: &StreamEvent) -> Stdout {
        if self.style == Style::Json {
            return self.json(event);
        }
        match event {
            StreamEvent::Start(start) => self.say(&stream::words::start(start)),
            StreamEvent::Peer(standing) => self.say(&stream::words::peer(standing)),
            StreamEvent::Place(place) => self.say(&stream::words::place(place)),
            StreamEvent::Progress(progress) => {
                self.progress(progress.t_s, None, || stream::words::progress(progress));
            }
            StreamEvent::Error(trouble) => self.trouble(&trouble.message),
            StreamEvent::End(end) => {
                self.panel.finish_and_clear();
                self.say(&stream::words::end(end));
            }
        }
        Stdout::Open
    }

    /// One event, one line, and out with it: a reader may be waiting.
    fn json(&mut self, event: &impl Serialize) -> Stdout {
        let always = "events are plain data, which always serialises";
        let mut line = match &self.session {
            None => serde_json::to_vec(event).expect(always),
            Some(name) => {
                let mut event = serde_json::to_value(event).expect(always);
                event.as_object_mut().expect("events are objects").insert("session".to_owned(), name.as_str().into());
                serde_json::to_vec(&event).expect(always)
            }
        };
        line.push(b'\n');
        write_or_closed(&mut self.out, &line)
    }

    fn result(&mut self, text: &str) -> Stdout {
        if self.style == Style::Quiet {
            return Stdout::Open;
        }
        let (out, line) = (&mut self.out, format!("{text}\n"));
        self.panel.suspend(|| write_or_closed(out, line.as_bytes()))
    }

    /// A line for people on standard error. When nobody reads that, nothing is lost.
    fn say(&mut self, text: &str) {
        if matches!(self.style, Style::Panel | Style::Lines) && !text.is_empty() {
            self.write_err(text);
        }
    }

    fn trouble(&mut self, text: &str) {
        self.write_err(&format!("weir: {}", clean(text)));
    }

    fn write_err(&mut self, text: &str) {
        let named = self.session.as_ref().map(|name| format!("{name}: {text}"));
        let text = named.as_deref().unwrap_or(text);
        let err = &mut self.err;
        self.panel.suspend(|| {
            let _nobody_reads = writeln!(err, "{text}").and_then(|()| err.flush());
        });
    }

    fn progress(&mut self, t_s: f64, share: Option<f64>, text: impl FnOnce() -> String) {
        match self.style {
            Style::Panel => {
                if let Some(share) = share {
                    self.panel.set_style(bar(KNOWN));
                    self.panel.set_position((share * BAR_STEPS as f64) as u64);
                }
                self.panel.set_message(text());
            }
            _ => self.line(t_s, 0.0, || {
                format!("{:>7}  {}{}", clock(t_s), share.map(|share| percent(share) + "  ").unwrap_or_default(), text())
            }),
        }
    }

    /// A plain line, if one is due, or if at least `early_s` of the usual interval have passed (never, if 0).
    fn line(&mut self, t_s: f64, early_s: f64, text: impl FnOnce() -> String) {
        let due = if early_s > 0.0 { self.line_due_s - LINE_INTERVAL_S + early_s } else { self.line_due_s };
        if self.style == Style::Lines && t_s >= due {
            let text = text();
            self.write_err(&text);
            self.line_due_s = t_s + LINE_INTERVAL_S;
        }
    }
}

/// Writes a text that a command was asked for, such as a table, to standard output.
pub(crate) fn print(text: &str) -> Stdout {
    write_or_closed(&mut io::stdout().lock(), text.as_bytes())
}

fn write_or_closed(out: &mut impl Write, bytes: &[u8]) -> Stdout {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Stdout::Open,
        Err(_) => Stdout::Closed,
    }
}

fn bar(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates below are valid").progress_chars("━╸─")
}

/// A plain line about this often.
const LINE_INTERVAL_S: f64 = 5.0;

/// Changes may show earlier, but no more often than this: slow start alone has a dozen.
const MIN_LINE_GAP_S: f64 = 1.0;

const BAR_STEPS: u64 = 10_000;
const WAITING: &str = "{spinner} {wide_msg}";
const KNOWN: &str = "{wide_bar:.cyan/dim} {percent:>3} %\n{wide_msg}";

/// How often a panel is worth a new progress event.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
