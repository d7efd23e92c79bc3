//! What is counted: callgrind begins and ends at these two functions, which it knows by their names.

use std::hint::black_box;

/// Everything in here is counted.
#[inline(never)]
pub(crate) fn counted(work: &mut dyn FnMut()) {
    black_box(work)();
}

/// Within what is counted, this is not.
#[inline(never)]
pub(crate) fn uncounted(work: &mut dyn FnMut()) {
    black_box(work)();
}

/// Counts what gives a value.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut value) = (Some(work), None);
    counted(&mut || value = work.take().map(|work| work()));
    value
}
