//! What a program lacks where the system is at a limit.

use std::io;

use rustix::io::Errno;

/// The errors at a limit of processes, open files or memory.
const SHORTAGES: [Errno; 5] =
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN];

/// Whether an error says that the system is at a limit.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| SHORTAGES.contains(&errno))
}
