//! `paceline watch`: single jobs, without an allocator. A build without the feature `watch`, such as the
//! daemon's image, only prints an error.

#[cfg(not(feature = "watch"))]
mod absent;
#[cfg(feature = "watch")]
mod present;

#[cfg(not(feature = "watch"))]
pub(super) use absent::{WatchArgs, run};
#[cfg(feature = "watch")]
pub(super) use present::{WatchArgs, run};
