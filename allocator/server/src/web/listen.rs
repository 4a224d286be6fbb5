//! Binds before a run begins, so that a failure shows at its start.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use paceline_local::{Acceptor, SocketFile, bind_unix};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::rustls::ServerConfig;

use super::address::Address;
use super::routes::Access;
use super::settings::Place;

/// The mode of a socket's file: its owner and its group may connect.
const SOCKET_MODE: u32 = 0o660;

/// Checked settings.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) asked: Address,
    pub(super) place: Place,
    pub(super) access: Access,
    pub(super) tls: Option<Arc<ServerConfig>>,
}

/// A bound listener.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) acceptor: Acceptor,
    pub(super) address: Address,
    /// The socket's file, which must live as long as the acceptor.
    pub(super) file: Option<SocketFile>,
}

impl Plan {
    /// Binds, and returns the address.
    pub(super) async fn bind(&self) -> anyhow::Result<Bound> {
        let bound = match &self.place {
            Place::Tcp(addresses) => tcp(addresses).await,
            Place::Unix(path) => unix(path),
        };
        bound.with_context(|| format!("cannot listen on {}", self.asked))
    }
}

async fn tcp(addresses: &[SocketAddr]) -> io::Result<Bound> {
    let listener = TcpListener::bind(addresses).await?;
    let address = Address::Tcp(listener.local_addr()?.to_string());
    Ok(Bound { acceptor: Acceptor::Tcp(listener), address, file: None })
}

fn unix(path: &Path) -> io::Result<Bound> {
    let (listener, file) = bind_unix(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    let acceptor = Acceptor::Unix(UnixListener::from_std(listener)?);
    Ok(Bound { acceptor, address: Address::Unix(path.to_owned()), file: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_has_owner_and_group_mode_and_is_removed_on_drop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.sock");
        let bound = unix(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        drop(bound);
        assert!(!path.exists());
    }
}
