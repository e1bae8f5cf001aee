//! What all items of a pool share: their order, the first error, and whether to stop.

use crate::Error;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Locks what is whole even after a panic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a running item must stop: the user requested it, or another item failed.
#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    interrupt: &'a AtomicBool,
    failed: &'a AtomicBool,
}

impl Halt<'_> {
    pub fn requested(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// The first real error of the items.
#[derive(Default)]
pub(crate) struct FirstError {
    first: Mutex<Option<Error>>,
    failed: AtomicBool,
}

impl FirstError {
    /// Whether a running item must stop.
    pub fn halt<'a>(&'a self, interrupt: &'a AtomicBool) -> Halt<'a> {
        Halt { interrupt, failed: &self.failed }
    }
    /// Stops all items.
    pub fn stop(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
    pub fn put(&self, error: Error) {
        self.stop();
        let mut first = locked(&self.first);
        // Prefer a real error to `Interrupted`.
        if matches!(*first, None | Some(Error::Interrupted)) {
            *first = Some(error);
        }
    }
    pub fn into_inner(self) -> Option<Error> {
        self.first.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
    /// The text of a real error.
    pub fn text(&self) -> Option<String> {
        locked(&self.first).as_ref().filter(|error| !matches!(error, Error::Interrupted)).map(ToString::to_string)
    }
}

/// Hands out the items in order.
pub(super) struct Queue {
    next: AtomicUsize,
    items: usize,
}

impl Queue {
    pub fn new(items: usize) -> Self {
        Self { next: AtomicUsize::new(0), items }
    }
    pub fn take(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&item| item < self.items)
    }
}
