//! Which allocator manages whose jobs: root's manages those of all users, except of users whose own
//! allocator runs already.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
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
    /// Another user has made the file of the lock, which the sticky bit keeps.
    #[error(
        "cannot manage jobs of user {uid}: user {by} owns {}; remove that file as root, or set XDG_RUNTIME_DIR \
         to a folder of user {uid}", .path.display()
    )]
    Taken {
        /// The user whose allocator cannot run.
        uid: u32,
        /// The user who owns the file.
        by: u32,
        /// The file.
        path: PathBuf,
    },
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
        let file = open(&folder, uid)?;
        match lock(&file) {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(ManagerError::Own(uid)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Opens the lock of user `uid`. In a shared folder, anyone may have made a file of this name.
fn open(folder: &Folder, uid: u32) -> Result<File, ManagerError> {
    let name = name(uid);
    let failed = |error| ManagerError::Io(folder.path().display().to_string(), error);
    if uid == 0 && folder.user_of(&name).is_ok_and(|by| by != uid) {
        folder.remove(&name).map_err(failed)?;
    }
    let make = || -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
        let file = folder.open_file(&name, flags)?;
        // Whatever the process's mask is: users look at root's lock, and root alone at theirs. Who can open a
        // lock can take it.
        let mode = if uid == 0 { 0o644 } else { 0o600 };
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(file)
    };
    let opened = make();
    match folder.user_of(&name) {
        Ok(by) if by != uid => Err(ManagerError::Taken { uid, by, path: folder.path().join(name) }),
        Ok(_) | Err(_) => opened.map_err(failed),
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
    let is_own = file.metadata().is_ok_and(|about| about.uid() == uid && about.is_file());
    is_own && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn name(uid: u32) -> String {
    format!("allocator-{uid}.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_file_of_another_user_is_named() {
        let base = tempfile::tempdir().unwrap();
        let folder = Place::at(base.path()).open().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let other = own.wrapping_add(1);
        let path = base.path().join(name(other));
        File::create(&path).unwrap();
        let error = open(&folder, other).unwrap_err().to_string();
        let expected = format!("user {own} owns {}; remove that file as root", path.display());
        assert!(error.contains(&expected), "{error}");
        if own != 0 {
            return;
        }
        // Root removes the file of another user.
        let path = base.path().join(name(0));
        File::create(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(7), None).unwrap();
        open(&folder, 0).unwrap();
        assert_eq!(path.metadata().unwrap().uid(), 0);
    }

    #[test]
    fn only_root_and_its_owner_can_lock_the_file_of_a_user() {
        let base = tempfile::tempdir().unwrap();
        let folder = Place::at(base.path()).open().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let mode = open(&folder, own).unwrap().metadata().unwrap().mode() & 0o777;
        // Users look at root's.
        assert_eq!(mode, if own == 0 { 0o644 } else { 0o600 });
    }

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
