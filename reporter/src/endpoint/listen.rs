//! Binding, before anything else happens, so that a failure is seen where the reporter is started.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixListener;
use std::path::Path;

use paceline_local::{SocketFile, bind_unix};
use paceline_wire::DEFAULT_PORT;

use super::address::{Address, LocalAddr};
use crate::start_error::StartError;

/// Where a reporter goes whose port is taken, and where processes of one job on one machine go.
const FURTHER_PORTS: RangeInclusive<u16> = 7230..=7299;

/// A bound listener.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// Binds the address or, without one, the default port of a process with this rank on its machine.
/// A port that is taken gives way to the first free one of [`FURTHER_PORTS`].
pub(crate) fn bind(
    address: Option<&Address>,
    local_rank: Option<u32>,
) -> Result<(Listener, LocalAddr), StartError> {
    let default = || Address::Tcp(format!("127.0.0.1:{}", default_port(local_rank)));
    let address = address.map_or_else(default, Clone::clone);
    let bound = match &address {
        Address::Tcp(address) => bind_tcp(address).and_then(tcp),
        Address::Unix(path) => unix(path),
    };
    bound.map_err(|source| StartError::Listen { address: address.to_string(), source })
}

fn default_port(local_rank: Option<u32>) -> u16 {
    let further = local_rank.filter(|rank| *rank > 0).and_then(|rank| u16::try_from(rank).ok());
    let port = further.and_then(|rank| FURTHER_PORTS.start().checked_add(rank));
    port.filter(|port| FURTHER_PORTS.contains(port)).unwrap_or(DEFAULT_PORT)
}

fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let bound = TcpListener::bind(address);
    let Some(host) = bound.as_ref().err().filter(|error| taken(error)).and(host(address)) else {
        return bound;
    };
    let other = FURTHER_PORTS.clone().find_map(|port| TcpListener::bind((host, port)).ok());
    if let Some(other) = other.as_ref().and_then(|other| other.local_addr().ok()) {
        announce(address, other);
    }
    other.map_or(bound, Ok)
}

/// Says that the port is another than was asked for: whoever looks there finds somebody else.
#[expect(clippy::print_stderr, reason = "nothing else reaches whoever runs the job")]
fn announce(taken: &str, other: SocketAddr) {
    eprintln!("paceline-reporter: {taken} is taken, listening on {other} instead");
}

/// The host of `host:port`.
fn host(address: &str) -> Option<&str> {
    let (host, _) = address.rsplit_once(':')?;
    Some(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
}

fn tcp(listener: TcpListener) -> io::Result<(Listener, LocalAddr)> {
    listener.set_nonblocking(true)?;
    let address = LocalAddr::Tcp(listener.local_addr()?);
    Ok((Listener::Tcp(listener), address))
}

fn unix(path: &Path) -> io::Result<(Listener, LocalAddr)> {
    let (listener, file) = bind_unix(path)?;
    Ok((Listener::Unix(listener, file), LocalAddr::Unix(path.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(bound: &(Listener, LocalAddr)) -> u16 {
        let LocalAddr::Tcp(address) = bound.1 else { panic!("{:?}", bound.1) };
        assert!(address.ip().is_loopback(), "{address}");
        address.port()
    }

    #[test]
    fn a_taken_port_leads_to_another() {
        let first = bind(Some(&Address::Tcp("127.0.0.1:0".to_owned())), None).unwrap();
        let taken = Address::Tcp(format!("127.0.0.1:{}", port(&first)));
        let second = bind(Some(&taken), None).unwrap();
        assert!(FURTHER_PORTS.contains(&port(&second)));
        let default = [bind(None, None).unwrap(), bind(None, None).unwrap()];
        assert_ne!(port(&default[0]), port(&default[1]));
    }

    #[test]
    fn further_ranks_of_a_machine_have_ports_of_their_own() {
        for (rank, port) in [(None, 7223), (Some(0), 7223), (Some(1), 7231), (Some(69), 7299)] {
            assert_eq!(default_port(rank), port);
        }
        assert_eq!(default_port(Some(u32::MAX)), 7223);
    }

    #[test]
    fn a_host_is_found_in_an_address() {
        assert_eq!(host("localhost:80"), Some("localhost"));
        assert_eq!(host("[::1]:80"), Some("::1"));
    }
}
