//! Binding, before anything else happens, so that a failure is seen where the reporter is started.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use paceline_wire::DEFAULT_PORT;

use crate::address::{Address, LocalAddr};
use crate::start_error::StartError;

/// Where a reporter goes that was not told where, if the default port is taken.
const FURTHER_PORTS: RangeInclusive<u16> = 7230..=7299;

/// A bound listener.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A Unix socket's file, which goes with its listener.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have been quicker: what counts is that it is gone.
        drop(fs::remove_file(&self.0));
    }
}

/// Binds the address, or the first free default port if there is none.
pub(crate) fn bind(address: Option<&Address>) -> Result<(Listener, LocalAddr), StartError> {
    let bound = match address {
        None => bind_default(),
        Some(Address::Tcp(address)) => TcpListener::bind(address.as_str()).and_then(tcp),
        Some(Address::Unix(path)) => bind_unix(path),
    };
    bound.map_err(|source| {
        let name = || format!("127.0.0.1, port {DEFAULT_PORT} or {FURTHER_PORTS:?}");
        StartError::Listen { address: address.map_or_else(name, ToString::to_string), source }
    })
}

fn bind_default() -> io::Result<(Listener, LocalAddr)> {
    let mut ports = FURTHER_PORTS;
    let mut bound = TcpListener::bind((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    while let Err(error) = &bound
        && error.kind() == io::ErrorKind::AddrInUse
        && let Some(port) = ports.next()
    {
        bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    }
    bound.and_then(tcp)
}

fn tcp(listener: TcpListener) -> io::Result<(Listener, LocalAddr)> {
    listener.set_nonblocking(true)?;
    let address = LocalAddr::Tcp(listener.local_addr()?);
    Ok((Listener::Tcp(listener), address))
}

fn bind_unix(path: &Path) -> io::Result<(Listener, LocalAddr)> {
    let listener = UnixListener::bind(path).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) {
            fs::remove_file(path)?;
            return UnixListener::bind(path);
        }
        Err(error)
    })?;
    let file = SocketFile(path.to_owned());
    listener.set_nonblocking(true)?;
    Ok((Listener::Unix(listener, file), LocalAddr::Unix(path.to_owned())))
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
    fn the_socket_of_a_dead_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        bind_unix(&path).unwrap();
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

    #[test]
    fn the_socket_file_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.sock");
        drop(bind_unix(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn without_an_address_a_taken_port_leads_to_another() {
        let (_one, first) = bind(None).unwrap();
        let (_other, second) = bind(None).unwrap();
        assert_ne!(first, second);
        let LocalAddr::Tcp(second) = second else { panic!("{second:?}") };
        assert!(second.ip().is_loopback() && FURTHER_PORTS.contains(&second.port()), "{second}");
    }
}
