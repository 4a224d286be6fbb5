//! Which allocator manages whose jobs: root's manages those of all users, except of users whose own
//! allocator runs already.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use rustix::fs::OFlags;

use super::folder::{Folder, Place};

/// How often the lock is tried, and the pause: root's allocator holds it for an instant to look at it.
const MAX_WAITS: usize = 50;
const WAIT: Duration = Duration::from_millis(10);

/// An allocator of a user's jobs, noticed by others for as long as this lives.
#[derive(Debug)]
pub struct Managing(#[expect(dead_code, reason = "it holds the lock")] File);

/// Why a user's allocator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Root's allocator manages the jobs of all users.
    #[error(
        "cannot manage jobs of user {0}: an allocator of root manages them already; use \
         `paceline set` and `paceline status`, or end that allocator"
    )]
    OfRoot(u32),
    /// The same user has another one.
    #[error("cannot manage jobs of user {0}: another allocator of this user runs; end it first")]
    Own(u32),
    /// A file cannot be used.
    #[error("cannot use the folder of jobs {0}; check its owner and its permissions")]
    Io(String, #[source] io::Error),
}

impl Managing {
    /// Begins to manage the jobs of user `uid`; for root those of all users.
    pub fn begin(uid: u32) -> Result<Self, ManagerError> {
        let place = Place::own(uid);
        let failed = |error| ManagerError::Io(place.path().display().to_string(), error);
        if uid == 0 {
            place.open_to_all().map_err(failed)?;
        } else {
            if is_managed_by_root(uid) {
                return Err(ManagerError::OfRoot(uid));
            }
            place.make().map_err(failed)?;
        }
        let folder = place.open().map_err(failed)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
        let file = folder.open_file(&name(uid), flags).map_err(failed)?;
        match lock(&file) {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(ManagerError::Own(uid)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Locks a file. It waits for one who only looks.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..MAX_WAITS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(WAIT),
            locked => return locked,
        }
    }
    file.try_lock()
}

/// Whether root's allocator manages the jobs of user `uid`, who is not root.
pub fn is_managed_by_root(uid: u32) -> bool {
    uid != 0 && Place::shared().open().is_ok_and(|folder| manages(&folder, 0))
}

/// Whether an allocator of user `uid` manages the jobs of a folder.
pub(super) fn manages(folder: &Folder, uid: u32) -> bool {
    let Ok(file) = folder.open_file(&name(uid), OFlags::RDONLY | OFlags::NONBLOCK) else {
        return false;
    };
    let is_own = file
        .metadata()
        .is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == uid && about.is_file());
    is_own && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn name(uid: u32) -> String {
    format!("allocator-{uid}.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_that_another_only_looks_at_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name(7));
        let file = File::create(&path).unwrap();
        let looking = File::open(&path).unwrap();
        looking.lock_shared().unwrap();
        let looker = std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_millis(20));
            drop(looking);
        });
        lock(&file).unwrap();
        looker.join().unwrap();
        let other = File::open(&path).unwrap();
        assert!(matches!(lock(&other), Err(TryLockError::WouldBlock)));
    }
}
