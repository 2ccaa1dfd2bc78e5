//! The actions that an endpoint has decided on and its driver has not fetched yet.

use alloc::collections::VecDeque;

use crate::endpoint::Action;

/// First in, first out; but an unnumbered delivery of the packet being handled goes first, and costs nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox {
    deliver: bool,
    actions: VecDeque<Action>,
}

impl Outbox {
    /// The payload of the packet being handled is new, and has no number.
    pub(crate) fn deliver(&mut self) {
        self.deliver = true;
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Action> {
        if core::mem::take(&mut self.deliver) {
            return Some(Action::Deliver { number: None });
        }
        let action = self.actions.pop_front();
        if self.actions.is_empty() {
            // Begins again at the front of its memory, which is warm, instead of walking round all of it.
            self.actions.clear();
        }
        action
    }
}
