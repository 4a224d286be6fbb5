//! Wakes the reporter's thread from a training loop, at once and without ever waiting.

use std::io::{self, Write};
#[cfg(not(unix))]
use std::net::{Ipv4Addr, TcpListener};

/// One end, of the standard library.
#[cfg(unix)]
pub(crate) type End = std::os::unix::net::UnixStream;
#[cfg(not(unix))]
pub(crate) type End = std::net::TcpStream;
/// The receiving end within a runtime.
#[cfg(unix)]
pub(crate) type AsyncEnd = tokio::net::UnixStream;
#[cfg(not(unix))]
pub(crate) type AsyncEnd = tokio::net::TcpStream;

/// The sending end of a socket pair: a ring writes one byte and never blocks.
///
/// Waking an async task would take a lock, and a paused thread could hold it. A byte that has not
/// been read yet is enough: writing to a full socket may fail.
#[derive(Debug)]
pub(crate) struct Bell(End);

impl Bell {
    /// A bell and its receiving end.
    pub(crate) fn new() -> io::Result<(Self, End)> {
        let (sender, receiver) = pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok((Self(sender), receiver))
    }

    /// One more sending end.
    #[cfg(all(feature = "sigterm", unix))]
    pub(crate) fn another(&self) -> io::Result<End> {
        self.0.try_clone()
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        // It fails only if the socket is full or the thread has ended: both need no action.
        drop((&self.0).write(&[0]));
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(End, End)> {
    End::pair()
}

/// Two connected ends on the loopback. Another program that connects first is refused.
#[cfg(not(unix))]
fn pair() -> io::Result<(End, End)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = End::connect(listener.local_addr()?)?;
    sender.set_nodelay(true)?;
    let (receiver, from) = listener.accept()?;
    if from != sender.local_addr()? {
        return Err(io::Error::other("another program has connected"));
    }
    Ok((sender, receiver))
}
