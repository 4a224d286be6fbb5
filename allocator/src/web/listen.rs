//! Binding, before a run begins, so that a failure is seen at its start.

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
    let (listener, file) = bind_unix(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    let acceptor = Acceptor::Unix(UnixListener::from_std(listener)?);
    Ok(Bound { acceptor, address: Address::Unix(path.to_owned()), file: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_for_its_owner_and_group_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.sock");
        let bound = unix(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        drop(bound);
        assert!(!path.exists());
    }
}
