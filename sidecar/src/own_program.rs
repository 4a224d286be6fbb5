//! Where this program's file is.

use std::io;
use std::path::PathBuf;

/// A path of this program's file, to start it once more or to copy it.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "other systems may not know the path")]
pub(crate) fn own_program() -> io::Result<PathBuf> {
    // It leads to the same file also after an upgrade has replaced it.
    Ok(PathBuf::from("/proc/self/exe"))
}

/// A path of this program's file, to start it once more or to copy it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
