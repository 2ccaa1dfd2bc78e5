//! Who hears of what happens in a run, and may end it.

use std::ops::ControlFlow;

/// Hears of the events of a run. Any closure that takes an event can be one.
pub trait Observer<E> {
    /// Something happened. Break ends the run in good order, as soon as can be.
    fn event(&mut self, event: &E) -> ControlFlow<()>;

    /// Whether the run is to be interrupted. Asked many times a second.
    fn is_interrupted(&self) -> bool {
        false
    }
}

impl<E, F: FnMut(&E) -> ControlFlow<()>> Observer<E> for F {
    fn event(&mut self, event: &E) -> ControlFlow<()> {
        self(event)
    }
}
