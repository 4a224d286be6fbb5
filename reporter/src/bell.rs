//! Wakes the reporter's thread from a training loop, at once and without ever waiting.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

/// The sending end of a socket pair: a ring writes one byte and never blocks.
///
/// Waking an async task would take a lock, and a paused thread could hold it. A byte that has not
/// been read yet is enough: writing to a full socket may fail.
#[derive(Debug)]
pub(crate) struct Bell(UnixStream);

impl Bell {
    /// A bell and its receiving end.
    pub(crate) fn new() -> io::Result<(Self, UnixStream)> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok((Self(sender), receiver))
    }

    /// One more sending end.
    #[cfg(feature = "sigterm")]
    pub(crate) fn another(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        // It fails only if the socket is full or the thread has ended: both need no action.
        drop((&self.0).write(&[0]));
    }
}
