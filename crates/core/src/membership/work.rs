//! What the receiving application works off, and whether it can take what comes.

use crate::endpoint::Backlog;

/// Notices that payloads come faster than the application can take them, before it throws any away. Payloads that it throws away have arrived,
/// so no gap in a sequence shows them.
#[derive(Debug, Default)]
pub(crate) struct Work {
    backlog: Backlog,
    /// What waited when the last slot ended.
    waited: u64,
    done: WorkDone,
}

/// What was worked off in slots in which there always was something to work off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WorkDone {
    pub(crate) payloads: u64,
    pub(crate) slots: u32,
}

impl Work {
    /// The application has told this.
    pub(crate) fn on_backlog(&mut self, backlog: Backlog) {
        self.backlog = backlog;
    }

    /// A slot is over in which this much came. Whether that is too much: much waits, and more and more.
    pub(crate) fn on_slot(&mut self, received: u64) -> bool {
        let Backlog { waiting, most } = self.backlog;
        let before = core::mem::replace(&mut self.waited, waiting);
        if waiting.min(before) > most / STANDING_PART {
            let done = received.saturating_add(before).saturating_sub(waiting);
            self.done.payloads = self.done.payloads.saturating_add(done);
            self.done.slots += 1;
        } else {
            self.done = WorkDone::default();
        }
        waiting > before && waiting > most / MUCH_PART
    }

    /// What was done since a backlog has stood, up to the slot that is over; `None` if none stands.
    pub(crate) fn done(&self) -> Option<WorkDone> {
        Some(self.done).filter(|done| done.slots > 0)
    }

    /// What was done until now is no measure of what follows.
    pub(crate) fn measure_again(&mut self) {
        self.done = WorkDone::default();
    }
}

/// A backlog stands if it is more than this part of the most that can wait: the application works in batches.
const STANDING_PART: u64 = 16;
/// It is much if it is more than this part. What is left has to take what comes until a leave acts.
const MUCH_PART: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_too_much_where_it_is_long_and_grows_and_tells_what_the_application_takes() {
        let mut work = Work::default();
        let mut slot = |waiting, received| {
            work.on_backlog(Backlog { waiting, most: 1_600 });
            (work.on_slot(received), work.done().map(|WorkDone { payloads, slots }| (payloads, slots)))
        };
        assert_eq!(slot(100, 500), (false, None), "the application works in batches");
        assert_eq!(slot(300, 600), (false, None), "it may have waited for something to do");
        assert_eq!(slot(500, 600), (true, Some((400, 1))));
        assert_eq!(slot(480, 300), (false, Some((720, 2))), "it falls");
        assert_eq!(slot(50, 0), (false, None), "it is over");
    }

    #[test]
    fn who_tells_of_no_backlog_takes_everything() {
        let mut work = Work::default();
        assert!((0..10).all(|_| !work.on_slot(1_000_000)) && work.done().is_none());
    }
}
