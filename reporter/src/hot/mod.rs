//! The hot path of a report: atomics and the clock, and nothing else.
//!
//! After construction nothing here allocates, waits, calls the system or panics.
//!
//! A writer claims one of several stripes by one compare-and-swap, so counts and sums of a reading
//! always agree.

pub(crate) mod clock;
pub(crate) mod histogram;
pub(crate) mod ledger;
pub(crate) mod slot;
pub(crate) mod tally;
mod window;
