//! Datagrams in statsd format, over UDP or a Unix socket.

use std::fmt;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

use crate::job::Job;
use crate::merger::{Kind, SourceId};
use crate::push::statsd;

/// Maximum length of a datagram in bytes; a longer one is truncated.
const MAX_DATAGRAM: usize = 64 * 1024;

/// Where datagrams are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `host:port`; the host may be a name.
    Udp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected host:port or unix:/path.sock, for example 127.0.0.1:8125";
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(expected) } else { Ok(Self::Unix(path.into())) };
        }
        match text.parse() {
            Ok(paceline_reporter::Address::Tcp(place)) => Ok(Self::Udp(place)),
            _ => Err(expected),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(place) => f.write_str(place),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Listens on `address` until the process ends.
pub fn listen(job: Arc<Job>, address: &Address) -> io::Result<()> {
    let source = job.add(Kind::Push, format!("statsd:{address}"));
    job.describe(source, |known| {
        known.up = true;
        known.grammar = Some("statsd".to_owned());
    });
    let name = thread::Builder::new().name("statsd".to_owned());
    match address {
        Address::Unix(path) => {
            let socket = bind(path)?;
            name.spawn(move || receive(&job, source, |buffer| socket.recv(buffer)))?;
        }
        Address::Udp(place) => {
            let socket = UdpSocket::bind(place)?;
            name.spawn(move || receive(&job, source, |buffer| socket.recv(buffer)))?;
        }
    }
    Ok(())
}

/// Binds the socket at `path`. It replaces the socket of a process that has ended, and nothing else: the
/// path may be mistyped.
fn bind(path: &Path) -> io::Result<UnixDatagram> {
    UnixDatagram::bind(path).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path)? {
            fs::remove_file(path)?;
            return UnixDatagram::bind(path);
        }
        Err(error)
    })
}

/// Whether this is the socket of a process that ended without removing it.
fn is_left_over(path: &Path) -> io::Result<bool> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    Ok(is_socket && UnixDatagram::unbound()?.connect(path).is_err_and(refused))
}

fn receive(job: &Job, source: SourceId, mut next: impl FnMut(&mut [u8]) -> io::Result<usize>) {
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let Ok(length) = next(&mut buffer) else { continue };
        let (observation, bad) = statsd::parse(buffer.get(..length).unwrap_or_default());
        job.describe(source, |known| {
            known.bytes += u64::try_from(length).unwrap_or(0);
            known.lines += 1;
            known.errors += bad;
        });
        job.take(source, &observation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_of_a_dead_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("statsd.sock");
        drop(bind(&path).unwrap());
        assert!(path.exists());
        let socket = bind(&path).unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"loss:1|g", &path).unwrap();
        assert_eq!(socket.recv(&mut [0; 16]).unwrap(), 8);
    }

    #[test]
    fn ports_and_socket_paths_are_addresses_and_nothing_else() {
        for text in ["127.0.0.1:8125", "localhost:8125", "[::1]:8125", "unix:/run/s.sock", "unix:s"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "foo", "8125", "foo:", "::1:8125", "udp://h:1", "unix:"] {
            assert!(text.parse::<Address>().unwrap_err().starts_with("expected "), "{text}");
        }
    }

    #[test]
    fn live_socket_and_plain_file_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [live, plain] = ["live.sock", "model.pt"].map(|name| folder.path().join(name));
        let first = bind(&live).unwrap();
        fs::write(&plain, "weights").unwrap();
        for path in [&live, &plain] {
            assert_eq!(bind(path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        assert_eq!(fs::read_to_string(&plain).unwrap(), "weights");
        UnixDatagram::unbound().unwrap().send_to(b"loss:1|g", &live).unwrap();
        assert_eq!(first.recv(&mut [0; 16]).unwrap(), 8);
    }
}
