//! How a training loop wakes the reporter's thread: at once, and without ever waiting for it.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

/// The end that rings: one byte into a socket that never blocks.
///
/// No lock is taken, as waking an async task would, so the loop cannot be held up by a thread that
/// the system has paused. A bell that has rung and was not heard yet needs no second ring: a full
/// socket is as good.
#[derive(Debug)]
pub(crate) struct Bell(UnixStream);

impl Bell {
    /// A bell and the end that hears it.
    pub(crate) fn new() -> io::Result<(Self, UnixStream)> {
        let (rings, hears) = UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        hears.set_nonblocking(true)?;
        Ok((Self(rings), hears))
    }

    /// One more end that rings the same bell.
    #[cfg(feature = "sigterm")]
    pub(crate) fn another(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        // Refused only if it is full or the thread has ended, and then there is nothing to do.
        drop((&self.0).write(&[0]));
    }
}
