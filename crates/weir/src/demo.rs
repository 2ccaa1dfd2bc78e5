//! `weir demo`: a sender and several receivers as processes of their own on this machine, over loopback multicast, each
//! receiver behind a modelled link; a table while it runs, and a report at the end.
//!
//! Everything is measured by what the processes print (`--json`) and leave on disk, as any script could do it.

mod board;
pub(crate) mod live;
mod outcome;
mod plan;
mod process;
mod record;
mod sample;

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::args;
use crate::events::{ReceiverEvent, SenderEvent};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use board::Board;
use outcome::Outcome;
use plan::Plan;
use process::{Party, Process};
use record::Record;

/// What the processes of files tell.
type Message = process::Message<SenderEvent, ReceiverEvent>;

/// Runs the demonstration, with this very program in all roles.
///
/// Answers with the exit code after having said everything; a failure is for the caller to say.
pub(crate) fn run(args: &args::Demo) -> Result<Exit, Failure> {
    let program =
        std::env::current_exe().map_err(Failure::of(Exit::Internal, "cannot find this program's own file"))?;
    let (outbox, inbox) = mpsc::channel();
    let signals = outbox.clone();
    Interrupt::install(move || drop(signals.send(Message::Interrupted)))
        .map_err(Failure::of(Exit::Internal, "cannot wait for signals"))?;
    let plan = Plan::prepare(args, &program)?;
    eprintln!("{}", plan.introduction());
    plan.describe()?;
    let mut troupe = Troupe::assemble(&plan, outbox)?;
    let ended = troupe.perform(&inbox);
    troupe.dismiss(&inbox);
    troupe.board.finish();
    ended?;
    let outcome = Outcome::judge(&plan, &troupe.records)?;
    outcome.write(&plan)?;
    Ok(outcome.tell(&plan))
}

/// The processes, and what they have told so far.
struct Troupe<'a> {
    plan: &'a Plan,
    outbox: mpsc::Sender<Message>,
    sender: Process,
    sender_receipts: u64,
    receivers: Vec<Process>,
    records: Vec<Record>,
    board: Board,
    /// What ends from now on was told to.
    is_stopping: bool,
}

impl<'a> Troupe<'a> {
    /// Starts the sender. The receivers start when it sends, so that their times are theirs alone.
    fn assemble(plan: &'a Plan, outbox: mpsc::Sender<Message>) -> Result<Troupe<'a>, Failure> {
        let party = Party::Sender;
        let sender = Process::start(plan.sender(), party, &plan.trace(party), &outbox)?;
        let records = plan.links.iter().map(|link| Record::new(*link, plan.bytes)).collect();
        let board = Board::new(&plan.links);
        let receivers = Vec::new();
        Ok(Troupe { plan, outbox, sender, sender_receipts: 0, receivers, records, board, is_stopping: false })
    }

    /// Follows the processes until all receivers have ended, well or not.
    fn perform(&mut self, inbox: &Receiver<Message>) -> Result<(), Failure> {
        while self.receivers.is_empty() || !self.receivers.iter().all(Process::has_ended) {
            let message = inbox.recv().expect("this struct holds a sending end, so the channel is open");
            if matches!(message, Message::Sender(SenderEvent::Start(_))) {
                self.start_receivers()?;
            }
            self.take(message)?;
        }
        Ok(())
    }

    fn start_receivers(&mut self) -> Result<(), Failure> {
        for i in 0..self.plan.links.len() {
            let party = Party::Receiver(i);
            let process = Process::start(self.plan.receiver(i), party, &self.plan.trace(party), &self.outbox)?;
            self.receivers.push(process);
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Gone(Party::Receiver(i)) if self.is_stopping => {
                self.receivers[i].end()?;
            }
            Message::Receiver(..) if self.is_stopping => {}
            Message::Interrupted => return Err(Failure::new(Exit::Interrupted, "interrupted")),
            Message::Receiver(i, event) => {
                self.records[i].take(&event);
                self.board.row(i, &self.records[i]);
                if let ReceiverEvent::Error(trouble) = event {
                    self.board.say(&format!("the {} receiver: {}", self.records[i].series.name, trouble.message));
                }
            }
            Message::Sender(SenderEvent::Progress(progress)) => self.board.sender(&progress, &self.records),
            Message::Sender(SenderEvent::Receipt(receipt)) => self.sender_receipts = receipt.receipts,
            Message::Sender(SenderEvent::Error(trouble)) => self.board.say(&format!("the sender: {}", trouble.message)),
            Message::Sender(
                SenderEvent::Reading(_)
                | SenderEvent::Hashing(_)
                | SenderEvent::Start(_)
                | SenderEvent::Result(_)
                | SenderEvent::End(_),
            ) => {}
            Message::Garbled(party, line) => {
                return Err(Failure::new(Exit::Internal, format!("{party} printed what is not an event: {line}")));
            }
            Message::Gone(Party::Receiver(i)) => {
                let status = self.receivers[i].end()?;
                if !status.success() {
                    let told = self.receivers[i].last_words();
                    self.records[i].failure =
                        Some(process::explain(&self.plan.party(Party::Receiver(i)), status, &told));
                    self.board.row(i, &self.records[i]);
                }
            }
            Message::Gone(Party::Sender) => return self.sender_gone(),
        }
        Ok(())
    }

    /// The sender may go when it has all receipts. Earlier, there is nothing to wait for any more.
    fn sender_gone(&mut self) -> Result<(), Failure> {
        let status = self.sender.end()?;
        let waited_for = self.records.iter().any(|record| !record.has_ended() && record.failure.is_none());
        if status.success() || !waited_for || self.is_stopping {
            return Ok(());
        }
        Err(process::explain(&self.plan.party(Party::Sender), status, &self.sender.last_words()))
    }

    /// Lets the sender count its last receipts, then stops whatever still runs.
    fn dismiss(&mut self, inbox: &Receiver<Message>) {
        let all_done =
            self.records.iter().all(Record::has_ended) && self.records.iter().all(|record| record.failure.is_none());
        if all_done {
            self.wait_for_end(inbox, Duration::from_secs(5));
            if self.sender_receipts < self.records.len() as u64 {
                let (got, all) = (self.sender_receipts, self.records.len());
                self.board.say(&format!("the sender had {got} of {all} receipts when it was stopped"));
            }
        }
        self.is_stopping = true;
        std::iter::once(&mut self.sender).chain(&mut self.receivers).for_each(Process::interrupt);
        self.wait_for_end(inbox, Duration::from_secs(3));
        std::iter::once(&mut self.sender).chain(&mut self.receivers).for_each(Process::kill);
    }

    /// Waits until every process has ended, but no longer than `patience`.
    #[expect(clippy::disallowed_methods, reason = "processes are waited for in the time of this machine")]
    fn wait_for_end(&mut self, inbox: &Receiver<Message>, patience: Duration) {
        let until = Instant::now() + patience;
        while !std::iter::once(&self.sender).chain(&self.receivers).all(Process::has_ended) {
            match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Interrupted) | Err(_) => return,
                Ok(message) => {
                    if let Err(failure) = self.take(message) {
                        self.board.say(&failure.message);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
