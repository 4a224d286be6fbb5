//! What a report touches: atomics and the clock, and nothing else.
//!
//! Nothing in here allocates, waits, calls the system or panics once it has been made.

pub(crate) mod clock;
pub(crate) mod histogram;
pub(crate) mod ledger;
pub(crate) mod slot;
pub(crate) mod tally;
mod window;
