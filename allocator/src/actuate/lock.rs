//! The lock that keeps a second allocator away from the same engine, and says who holds it.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::originals::{OriginalsError, at};
use crate::clock::unix_seconds;

/// Takes the lock in `folder` for as long as the file is open. Whoever comes after is told the
/// process, its start, its machine and its `purpose`.
pub(super) fn take(folder: &Path, purpose: &str) -> Result<File, OriginalsError> {
    let path = folder.join("lock");
    let options =
        || File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut lock = options().map_err(at(&path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            return Err(OriginalsError::Held { holder: holder.trim().to_owned(), lock: path });
        }
        Err(TryLockError::Error(error)) => return Err(OriginalsError::Io(path, error)),
    }
    let began = UNIX_EPOCH + Duration::try_from_secs_f64(unix_seconds()).unwrap_or_default();
    let began = humantime::format_rfc3339_seconds(began);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (host, process) = (host.trim(), std::process::id());
    lock.set_len(0)
        .and_then(|()| writeln!(lock, "process {process} on {host} since {began}, {purpose}"))
        .map_err(at(&path))?;
    Ok(lock)
}
