//! Steps at which tests kill this process. A release build has none of this.

/// The variable that names a step, and after a colon how many passes survive before the kill.
#[cfg(debug_assertions)]
const VARIABLE: &str = "PACELINE_CRASH_AT";

/// Kills the process here if a test asks for it.
#[cfg(debug_assertions)]
pub fn point(step: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static PASSED: AtomicU32 = AtomicU32::new(0);
    #[cfg(test)]
    simulated::point();
    let Ok(wanted) = std::env::var(VARIABLE) else { return };
    let (name, passes) = wanted.split_once(':').unwrap_or((&wanted, "0"));
    if name != step || PASSED.fetch_add(1, Ordering::Relaxed) != passes.parse().unwrap_or(0) {
        return;
    }
    tracing::warn!("killed for a test: {step}");
    let this = rustix::process::getpid();
    if let Err(error) = rustix::process::kill_process(this, rustix::process::Signal::KILL) {
        tracing::error!("cannot kill this process for a test: {error}");
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub const fn point(_step: &str) {}

/// Kills a call instead of the process, so that a test can kill thousands.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::Cell;
    use std::panic::AssertUnwindSafe;

    use futures_util::FutureExt;

    thread_local! {
        /// How many steps pass before the kill.
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// The kill of a call.
    #[derive(Debug)]
    struct Killed;

    pub(super) fn point() {
        let left = LEFT.take();
        if left == Some(0) {
            std::panic::resume_unwind(Box::new(Killed));
        }
        LEFT.set(left.map(|left| left - 1));
    }

    /// Runs a call, and kills it at the step after `steps` others; `None` if it was killed.
    pub(crate) async fn kill_after<T>(
        steps: Option<u32>,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        LEFT.set(steps);
        let ended = AssertUnwindSafe(call).catch_unwind().await;
        LEFT.set(None);
        match ended {
            Ok(done) => Some(done),
            Err(cause) if cause.is::<Killed>() => None,
            Err(cause) => std::panic::resume_unwind(cause),
        }
    }
}
