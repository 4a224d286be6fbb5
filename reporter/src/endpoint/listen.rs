//! Binds the address before anything else, so that a failure shows where the reporter is started.

use std::io;
use std::net::{TcpListener, ToSocketAddrs as _};
use std::ops::RangeInclusive;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::path::Path;

#[cfg(unix)]
use paceline_local::{SocketFile, bind_unix};
use paceline_wire::{DEFAULT_PORT, Rank};

use crate::address::{Address, LocalAddr};
use crate::say::say;
use crate::settings::{IfTaken, Settings};
use crate::start_error::StartError;

/// The ports for a reporter whose default port is taken, and for further processes of a job on one
/// machine.
const FURTHER_PORTS: RangeInclusive<u16> = 7230..=7299;

/// A bound listener.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, SocketFile),
}

/// Binds the address that the settings give, or the default one.
///
/// All processes of a job on one machine get the same settings. A given port is therefore that of the
/// first one, and further ranks take the port of their rank.
pub(crate) fn bind(settings: &Settings) -> Result<(Listener, LocalAddr), StartError> {
    let rank = settings.rank;
    let own_port = rank.and_then(|rank| rank.local).and_then(port_of_rank);
    let Some(given) = &settings.listen else { return bind_default(own_port) };
    let elsewhere = match given {
        Address::Tcp(address) if !address.ends_with(":0") => host(address).zip(own_port),
        Address::Tcp(_) | Address::Unix(_) => None,
    };
    if let Some((host, port)) = elsewhere {
        let further = bind_further(host, Some(port));
        return further.inspect(|bound| announce(given, "is for local rank 0", &bound.1));
    }
    let bound = match given {
        Address::Tcp(address) => bind_name(address).and_then(tcp),
        Address::Unix(path) => unix(path),
    };
    let refused = |source: io::Error| {
        let address = given.to_string();
        let is_taken = source.kind() == io::ErrorKind::AddrInUse;
        if is_taken {
            StartError::Taken { address }
        } else {
            StartError::Listen { address, source }
        }
    };
    let error = match bound {
        Ok(bound) => return Ok(bound),
        Err(error) => refused(error),
    };
    // A rank of several whose launcher does not number the processes of a machine may be any of them: where
    // rank 1 was quicker, rank 0 moves.
    let is_one_of_several =
        |rank: Rank| rank.global > 0 || rank.world.is_some_and(|world| world > 1);
    let is_further = |rank: Rank| match rank.local {
        Some(local) => local > 0,
        None => is_one_of_several(rank),
    };
    let may_move = settings.if_taken == IfTaken::Move || rank.is_some_and(is_further);
    if !may_move || !matches!(error, StartError::Taken { .. }) {
        return Err(error);
    }
    let host = match given {
        Address::Tcp(address) => host(address).unwrap_or(LOOPBACK),
        Address::Unix(_) => LOOPBACK,
    };
    let port = rank.and_then(|rank| port_of_rank(rank.local.unwrap_or(rank.global)));
    let further = bind_further(host, port).map_err(|_| error)?;
    announce(given, "is taken", &further.1);
    Ok(further)
}

/// Binds the first address of a name. A name such as `localhost` may have several; where the first is taken,
/// the next one would be another endpoint under the same name.
fn bind_name(name: &str) -> io::Result<TcpListener> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in name.to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The default host.
const LOOPBACK: &str = "127.0.0.1";

/// Binds the default port, or that of a further process, or a free one if it is taken.
fn bind_default(own_port: Option<u16>) -> Result<(Listener, LocalAddr), StartError> {
    let port = own_port.unwrap_or(DEFAULT_PORT);
    let wanted = Address::Tcp(format!("{LOOPBACK}:{port}"));
    let refused = |source| StartError::Listen { address: wanted.to_string(), source };
    match TcpListener::bind((LOOPBACK, port)) {
        Ok(listener) => tcp(listener).map_err(refused),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let further = bind_further(LOOPBACK, None).map_err(|_| refused(error))?;
            announce(&wanted, "is taken", &further.1);
            Ok(further)
        }
        Err(error) => Err(refused(error)),
    }
}

/// Binds the wanted port or the first free one of [`FURTHER_PORTS`].
fn bind_further(host: &str, wanted: Option<u16>) -> Result<(Listener, LocalAddr), StartError> {
    let mut ports = wanted.into_iter().chain(FURTHER_PORTS);
    let bound = ports.find_map(|port| TcpListener::bind((host, port)).ok());
    let bound = bound.ok_or(io::ErrorKind::AddrInUse).map_err(io::Error::from).and_then(tcp);
    bound.map_err(|source| {
        let (first, last) = (FURTHER_PORTS.start(), FURTHER_PORTS.end());
        StartError::Listen { address: format!("{host}:{first} to {last}"), source }
    })
}

/// The port of a further process; `None` for the first one, and beyond the last port.
fn port_of_rank(local_rank: u32) -> Option<u16> {
    let further = u16::try_from(local_rank).ok().filter(|rank| *rank > 0)?;
    let port = FURTHER_PORTS.start().checked_add(further)?;
    FURTHER_PORTS.contains(&port).then_some(port)
}

/// Prints that another address than the wanted one is used, since the job's user must know it.
fn announce(wanted: &Address, why: &str, other: &LocalAddr) {
    say(format_args!("{wanted} {why}, listening on {other} instead"));
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

#[cfg(unix)]
fn unix(path: &Path) -> io::Result<(Listener, LocalAddr)> {
    let (listener, file) = bind_unix(path)?;
    Ok((Listener::Unix(listener, file), LocalAddr::Unix(path.to_owned())))
}

#[cfg(not(unix))]
fn unix(_: &Path) -> io::Result<(Listener, LocalAddr)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Unix sockets need Linux or macOS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(bound: &(Listener, LocalAddr)) -> u16 {
        let LocalAddr::Tcp(address) = bound.1 else { panic!("{:?}", bound.1) };
        assert!(address.ip().is_loopback(), "{address}");
        address.port()
    }

    fn settings(listen: Option<String>, rank: Option<(u32, Option<u32>)>) -> Settings {
        let rank = rank.map(|(global, local)| Rank { global, local, world: None });
        let listen = listen.map(|address| address.parse().unwrap());
        Settings { listen, rank, ..Settings::new("vae".to_owned()) }
    }

    #[test]
    fn taken_default_port_leads_to_another() {
        let [one, other] = [(), ()].map(|()| bind(&settings(None, None)).unwrap());
        assert_ne!(port(&one), port(&other));
    }

    #[test]
    fn taken_given_port_is_an_error_for_the_first_rank_alone() {
        let first = bind(&settings(Some("127.0.0.1:0".to_owned()), None)).unwrap();
        let taken = Some(format!("127.0.0.1:{}", port(&first)));
        for rank in [None, Some((0, None)), Some((0, Some(0))), Some((4, Some(0)))] {
            let error = bind(&settings(taken.clone(), rank)).unwrap_err();
            assert!(matches!(error, StartError::Taken { .. }), "{rank:?}: {error:?}");
        }
        for rank in [(1, Some(1)), (5, None), (5, Some(3))] {
            let bound = bind(&settings(taken.clone(), Some(rank))).unwrap();
            assert!(FURTHER_PORTS.contains(&port(&bound)), "{rank:?}");
        }
        let several = Rank { global: 0, local: None, world: Some(2) };
        let zero = Settings { rank: Some(several), ..settings(taken.clone(), None) };
        assert!(FURTHER_PORTS.contains(&port(&bind(&zero).unwrap())));
        let ignoring = Settings { if_taken: IfTaken::Move, ..settings(taken, None) };
        assert!(FURTHER_PORTS.contains(&port(&bind(&ignoring).unwrap())));
    }

    #[test]
    fn further_ranks_leave_the_given_port_to_the_first() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let further = bind(&settings(Some(free.to_string()), Some((2, Some(2))))).unwrap();
        assert!(FURTHER_PORTS.contains(&port(&further)));
        let any = bind(&settings(Some("127.0.0.1:0".to_owned()), Some((2, Some(2))))).unwrap();
        assert!(!FURTHER_PORTS.contains(&port(&any)));
    }

    #[test]
    fn taken_socket_is_an_error_for_the_first_rank_alone() {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}", folder.path().join("job.sock").display());
        let first = bind(&settings(Some(socket.clone()), Some((1, Some(1))))).unwrap();
        assert_eq!(first.1.to_string(), socket);
        let error = bind(&settings(Some(socket.clone()), Some((0, Some(0))))).unwrap_err();
        assert!(matches!(error, StartError::Taken { .. }), "{error:?}");
        port(&bind(&settings(Some(socket), Some((2, Some(2))))).unwrap());
    }

    #[test]
    fn further_ranks_of_a_machine_have_ports_of_their_own() {
        for (rank, port) in [(0, None), (1, Some(7231)), (69, Some(7299)), (70, None)] {
            assert_eq!(port_of_rank(rank), port);
        }
        assert_eq!(port_of_rank(u32::MAX), None);
    }

    #[test]
    fn a_host_is_found_in_an_address() {
        assert_eq!(host("localhost:80"), Some("localhost"));
        assert_eq!(host("[::1]:80"), Some("::1"));
    }
}
