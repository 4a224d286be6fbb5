//! A Unix socket and its file, which exists as long as the socket listens.

#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
#[cfg(unix)]
use std::path::{Path, PathBuf};

/// A Unix socket's file. Dropping this removes it, unless another file has its place by now. Drop it
/// before the listener: no other file can have its number then.
#[derive(Debug)]
pub struct SocketFile {
    #[cfg(unix)]
    path: PathBuf,
    #[cfg(unix)]
    inode: u64,
}

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            // It may have been removed just now, which is fine.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Listens at `path`, in non-blocking mode. The socket of a dead process is replaced. A live socket,
/// or a file that is not a socket, is left alone: the error is then [`io::ErrorKind::AddrInUse`].
#[cfg(unix)]
pub fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let listener = UnixListener::bind(path).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) {
            fs::remove_file(path)?;
            return UnixListener::bind(path);
        }
        Err(error)
    })?;
    let file = SocketFile { path: path.to_owned(), inode: fs::symlink_metadata(path)?.ino() };
    listener.set_nonblocking(true)?;
    Ok((listener, file))
}

/// Whether this is the socket of a process that ended without removing it.
#[cfg(unix)]
fn is_left_over(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_of_a_dead_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(bind_unix(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn file_of_a_successor_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.sock");
        let (_listener, file) = bind_unix(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn a_live_socket_and_a_plain_file_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [live, plain] = ["live.sock", "plain.txt"].map(|name| folder.path().join(name));
        let _listener = UnixListener::bind(&live).unwrap();
        fs::write(&plain, "text").unwrap();
        for path in [&live, &plain] {
            assert_eq!(bind_unix(path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            assert!(path.exists());
        }
    }
}
