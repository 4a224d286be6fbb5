//! Binding, before a run begins, so that a failure is seen at its start.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::rustls::ServerConfig;

use super::access::Access;
use super::address::Address;
use super::settings::Place;

/// Who may connect to a socket's file: its owner and its group.
const SOCKET_MODE: u32 = 0o660;

/// Settings that were found good.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) asked: Address,
    pub(super) place: Place,
    pub(super) access: Access,
    pub(super) tls: Option<Arc<ServerConfig>>,
}

/// What a plan came to.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) acceptor: Acceptor,
    pub(super) address: Address,
    /// What is to be kept for as long as the acceptor.
    pub(super) file: Option<SocketFile>,
}

/// What takes connections.
#[derive(Debug)]
pub(super) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A Unix socket's file, which goes with its listener.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have been quicker: what counts is that it is gone.
        drop(fs::remove_file(&self.0));
    }
}

impl Plan {
    /// Binds, and says where that is.
    pub(super) async fn bind(&self) -> anyhow::Result<Bound> {
        let bound = match &self.place {
            Place::Tcp(addresses) => tcp(addresses).await,
            Place::Unix(path) => unix(path),
        };
        bound.with_context(|| format!("listen {}", self.asked))
    }
}

async fn tcp(addresses: &[SocketAddr]) -> io::Result<Bound> {
    let listener = TcpListener::bind(addresses).await?;
    let address = Address::Tcp(listener.local_addr()?.to_string());
    Ok(Bound { acceptor: Acceptor::Tcp(listener), address, file: None })
}

fn unix(path: &Path) -> io::Result<Bound> {
    let listener = UnixListener::bind(path).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) {
            fs::remove_file(path)?;
            return UnixListener::bind(path);
        }
        Err(error)
    })?;
    let file = Some(SocketFile(path.to_owned()));
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    let address = Address::Unix(path.to_owned());
    Ok(Bound { acceptor: Acceptor::Unix(listener), address, file })
}

/// Whether this is the socket of a process that ended without removing it.
fn is_left_over(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_of_a_dead_process_is_replaced_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = unix(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        drop(bound);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_live_socket_and_a_plain_file_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&live).unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "kept").unwrap();
        for path in [live, plain] {
            let error = unix(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            assert!(path.exists());
        }
    }
}
