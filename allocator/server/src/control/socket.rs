//! The file of the control socket. It is never open to other users, and never replaces a file of
//! another process.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Why the control socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A system call failed.
    #[error("cannot create the control socket {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// Another allocator uses the path.
    #[error(
            "cannot create the control socket {}: another allocator uses it; set --control to another path \
             or to none",
            .0.display()
        )]
    InUse(PathBuf),
    /// The path is a file of another kind.
    #[error(
            "cannot create the control socket {}: a file of another kind has this name",
            .0.display()
        )]
    Foreign(PathBuf),
}

/// A socket that listens, and its file.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    pub(super) place: Place,
}

/// The file, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    inode: u64,
    /// Only the holder of the lock may create the socket. The kernel releases it when the
    /// process ends.
    _lock: File,
}

impl Socket {
    /// Listens at `path`. It replaces the socket of a dead run.
    pub(super) fn bind(path: &Path) -> Result<Self, SocketError> {
        let failed = |error| SocketError::Io(path.to_owned(), error);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
        }
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.with_extension("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(SocketError::InUse(path.to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        check_free(path)?;
        // The socket gets its name only after its permissions are set.
        let unnamed = path.with_extension("new");
        drop(fs::remove_file(&unnamed));
        let listener = UnixListener::bind(&unnamed).map_err(failed)?;
        let name = || {
            fs::set_permissions(&unnamed, Permissions::from_mode(0o600))?;
            fs::rename(&unnamed, path)?;
            fs::metadata(path)
        };
        let inode = name().map_err(failed)?.ino();
        Ok(Self { listener, place: Place { path: path.to_owned(), inode, _lock: lock } })
    }
}

/// Checks that `path` is free, or a socket on which no process listens.
fn check_free(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => Err(SocketError::Foreign(path.to_owned())),
        Ok(_) if UnixStream::connect(path).is_ok() => Err(SocketError::InUse(path.to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SocketError::Io(path.to_owned(), error)),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            drop(fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_private_and_removed_on_drop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/control.sock");
        let socket = Socket::bind(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&path.with_extension("lock")), 0o600);
        assert_eq!(mode(&folder.path().join("made")) & 0o022, 0, "only its owner makes sockets");
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn only_the_socket_of_a_dead_run_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        drop(Socket::bind(&path).unwrap());
        let other = UnixListener::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::InUse(_))));
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::Foreign(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let long = folder.path().join("x".repeat(200));
        assert!(matches!(Socket::bind(&long), Err(SocketError::Io(..))));
    }
}
