//! Ending when asked to: a container's engine sends SIGTERM and, after a grace period, kills.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the program has been asked to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on, SIGTERM or Ctrl-C ends the program at once. This is their default effect, but not
    /// on the first process of a container, which obeys only the signals that it handles.
    pub fn at_once() -> io::Result<Self> {
        let requested = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the first signal does not count as a second one.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&requested))?;
            flag::register(signal, Arc::clone(&requested))?;
        }
        Ok(Self(requested))
    }

    /// From now on, a signal asks the program to end, and a second one ends it at once.
    pub fn when_asked(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Asks the program to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The flag that is set when it has been asked to end.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether it has been asked to end.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_signal_asks_and_does_not_end() {
        let stop = Stop::at_once().unwrap();
        stop.when_asked();
        assert!(!stop.requested());
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(stop.requested());
    }
}
