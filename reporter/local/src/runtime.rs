//! The runtime of a program that serves or asks on one thread.

use std::io;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use tokio::runtime::{Builder, Runtime};

/// Pairs of sockets that take as many descriptors as a runtime opens, and two more.
#[cfg(unix)]
const PAIRS: usize = 4;

/// A runtime for the calling thread.
///
/// # Errors
/// If the system has no room for it. Tokio panics where it cannot open its sockets for signals, so
/// room is looked for first.
pub fn runtime() -> io::Result<Runtime> {
    #[cfg(unix)]
    look_for_room()?;
    Builder::new_current_thread().enable_all().build()
}

/// Opens as many descriptors as a runtime, and closes them again.
#[cfg(unix)]
fn look_for_room() -> io::Result<()> {
    let pairs: io::Result<Vec<_>> = (0..PAIRS).map(|_| UnixStream::pair()).collect();
    pairs.map(drop).map_err(|error| {
        io::Error::new(error.kind(), format!("{error}; raise the limit of open files (ulimit -n)"))
    })
}
