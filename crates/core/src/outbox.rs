//! The actions that an endpoint has decided on and its driver has not fetched yet.

use alloc::collections::VecDeque;

use crate::endpoint::Action;

/// First in, first out; but the delivery of the packet being handled goes first, and waits in no queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox {
    /// The number that it is delivered under, if it has one.
    delivery: Option<Option<u64>>,
    actions: VecDeque<Action>,
}

impl Outbox {
    /// The payload of the packet being handled is new.
    #[inline]
    pub(crate) fn deliver(&mut self, number: Option<u64>) {
        self.delivery = Some(number);
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(crate) fn extend(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.actions.extend(actions);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Action> {
        if let Some(number) = self.delivery.take() {
            return Some(Action::Deliver { number });
        }
        let action = self.actions.pop_front();
        if self.actions.is_empty() {
            // Begins again at the front of its memory, which is warm, instead of walking round all of it.
            self.actions.clear();
        }
        action
    }
}
