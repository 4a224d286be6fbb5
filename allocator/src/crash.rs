//! The steps at which tests end this process as a kill would. A release has none of it.

/// The variable that names a step, and after a colon how often it is passed by before.
#[cfg(debug_assertions)]
const VARIABLE: &str = "PACELINE_CRASH_AT";

/// Ends the process here if a test asks for it.
#[cfg(debug_assertions)]
pub(crate) fn point(step: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var(VARIABLE) else { return };
    let (name, passes) = wanted.split_once(':').unwrap_or((&wanted, "0"));
    if name != step || PASSED.fetch_add(1, Ordering::Relaxed) != passes.parse().unwrap_or(0) {
        return;
    }
    tracing::warn!("killed for a test: {step}");
    let this = rustix::process::getpid();
    if let Err(error) = rustix::process::kill_process(this, rustix::process::Signal::KILL) {
        tracing::error!("it goes on: {error}");
    }
}

/// A release goes on.
#[cfg(not(debug_assertions))]
pub(crate) const fn point(_step: &str) {}
