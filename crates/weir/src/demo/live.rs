//! `weir demo-live`: a layered programme and receivers as processes of their own on this machine, over loopback multicast, each
//! receiver behind a modelled link; a report with the pictures that each put out.
//!
//! ffmpeg makes the clip and judges the outputs, as any player would.

mod ffmpeg;
mod outcome;
mod plan;
mod record;

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::process::{self, Party, Process};
use crate::args;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::media::{MediaReceiverEvent, MediaSenderEvent};
use crate::progress::{clean, clock};
use outcome::Outcome;
use plan::Plan;
use record::Record;

/// What the processes of layered media tell.
type Message = process::Message<MediaSenderEvent, MediaReceiverEvent>;

/// Runs the demonstration, with this very program in all roles.
///
/// Answers with the exit code after having said everything; a failure is for the caller to say.
pub(crate) fn run(args: &args::DemoLive) -> Result<Exit, Failure> {
    ffmpeg::is_there()?;
    let program =
        std::env::current_exe().map_err(Failure::of(Exit::Internal, "cannot find this program's own file"))?;
    let (outbox, inbox) = mpsc::channel();
    let signals = outbox.clone();
    Interrupt::install(move || drop(signals.send(Message::Interrupted)))
        .map_err(Failure::of(Exit::Internal, "cannot wait for signals"))?;
    let plan = Plan::prepare(args, &program)?;
    eprintln!("{}", plan.introduction());
    let mut stage = Stage::set(&plan, outbox)?;
    let ended = stage.perform(&inbox);
    stage.clear(&inbox);
    ended?;
    eprintln!("decoding what came");
    let outcome = Outcome::judge(&plan, &stage.records, stage.dropped)?;
    outcome.write(&plan)?;
    Ok(outcome.tell(&plan))
}

/// The processes, and what they have told so far.
struct Stage<'a> {
    plan: &'a Plan,
    outbox: mpsc::Sender<Message>,
    sender: Process,
    /// Pictures that the sender dropped.
    dropped: u64,
    receivers: Vec<Process>,
    records: Vec<Record>,
    line_due_s: f64,
    /// What ends from now on was told to.
    is_stopping: bool,
}

impl<'a> Stage<'a> {
    /// Starts the sender. The receivers start when it sends.
    fn set(plan: &'a Plan, outbox: mpsc::Sender<Message>) -> Result<Stage<'a>, Failure> {
        let sender = Process::start(plan.sender(), Party::Sender, &plan.trace(Party::Sender), &outbox)?;
        let records = plan.links.iter().map(|link| Record::new(*link)).collect();
        let receivers = Vec::new();
        Ok(Stage { plan, outbox, sender, dropped: 0, receivers, records, line_due_s: 0.0, is_stopping: false })
    }

    /// Follows the processes until all receivers have ended, well or not.
    fn perform(&mut self, inbox: &Receiver<Message>) -> Result<(), Failure> {
        while self.receivers.is_empty() || !self.receivers.iter().all(Process::has_ended) {
            let message = inbox.recv().expect("this struct holds a sending end, so the channel is open");
            if matches!(message, Message::Sender(MediaSenderEvent::Start(_))) {
                for i in 0..self.plan.links.len() {
                    let party = Party::Receiver(i);
                    let process = Process::start(self.plan.receiver(i), party, &self.plan.trace(party), &self.outbox)?;
                    self.receivers.push(process);
                }
            }
            self.take(message)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Interrupted => return Err(Failure::new(Exit::Interrupted, "interrupted")),
            Message::Garbled(party, line) => {
                return Err(Failure::new(Exit::Internal, format!("{party} printed what is not an event: {line}")));
            }
            Message::Receiver(i, event) => {
                if let MediaReceiverEvent::Error(trouble) = &event
                    && trouble.exit_code.is_none()
                {
                    eprintln!("the {} receiver: {}", self.records[i].series.name, clean(&trouble.message));
                }
                self.records[i].take(&event);
            }
            Message::Sender(MediaSenderEvent::Progress(progress)) => self.line(progress.t_s),
            // What ends it is explained once it has gone.
            Message::Sender(MediaSenderEvent::Error(trouble)) if trouble.exit_code.is_some() => {}
            Message::Sender(MediaSenderEvent::Error(trouble)) => {
                eprintln!("the sender: {}", clean(&trouble.message));
            }
            Message::Sender(MediaSenderEvent::End(end)) => self.dropped = end.dropped_pictures,
            Message::Sender(MediaSenderEvent::Start(_)) => {}
            Message::Gone(party @ Party::Receiver(i)) => {
                let status = self.receivers[i].end()?;
                if !status.success() && !self.is_stopping {
                    let told = self.receivers[i].last_words();
                    self.records[i].failure = Some(process::explain(&self.plan.party(party), status, &told));
                }
            }
            Message::Gone(party @ Party::Sender) => {
                let status = self.sender.end()?;
                if !status.success() && !self.is_stopping {
                    return Err(process::explain(&self.plan.party(party), status, &self.sender.last_words()));
                }
            }
        }
        Ok(())
    }

    /// How all receivers stand, every few seconds.
    fn line(&mut self, t_s: f64) {
        if t_s >= self.line_due_s {
            self.line_due_s = t_s + LINE_INTERVAL_S;
            let all: Vec<String> = self.records.iter().map(Record::in_words).collect();
            eprintln!("{:>6}  {}", clock(t_s), all.join(" | "));
        }
    }

    /// Stops whatever still runs.
    #[expect(clippy::disallowed_methods, reason = "processes are waited for in the time of this machine")]
    fn clear(&mut self, inbox: &Receiver<Message>) {
        self.is_stopping = true;
        std::iter::once(&mut self.sender).chain(&mut self.receivers).for_each(Process::interrupt);
        let until = Instant::now() + PATIENCE;
        while !std::iter::once(&self.sender).chain(&self.receivers).all(Process::has_ended) {
            match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Interrupted) | Err(_) => break,
                Ok(message) => drop(self.take(message)),
            }
        }
        std::iter::once(&mut self.sender).chain(&mut self.receivers).for_each(Process::kill);
    }
}

const LINE_INTERVAL_S: f64 = 5.0;
/// How long processes have to end once told to.
const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
