//! A Unix socket and its file, which is there for as long as somebody listens.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A Unix socket's file. It goes when this is dropped, which is to be before the listener: a
/// successor cannot have put its own in its place yet.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have been quicker: what counts is that it is gone.
        drop(fs::remove_file(&self.0));
    }
}

/// Listens at `path`, without blocking. The socket of a process that has died is replaced; a live
/// one, and whatever is no socket, is left alone and makes for [`io::ErrorKind::AddrInUse`].
pub fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let listener = UnixListener::bind(path).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) {
            fs::remove_file(path)?;
            return UnixListener::bind(path);
        }
        Err(error)
    })?;
    let file = SocketFile(path.to_owned());
    listener.set_nonblocking(true)?;
    Ok((listener, file))
}

/// Whether this is the socket of a process that ended without removing it.
fn is_left_over(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_a_dead_process_is_replaced_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(bind_unix(&path).unwrap());
        assert!(!path.exists());
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
