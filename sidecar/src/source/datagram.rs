//! Datagrams in statsd format, over UDP or a Unix socket.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crate::job::Job;
use crate::merger::{Kind, SourceId};
use crate::push::statsd;

/// Maximum length of a datagram in bytes; a longer one is truncated.
const MAX_DATAGRAM: usize = 64 * 1024;

/// Listens on `address` (`host:port` or `unix:/path`) until the process ends.
pub fn listen(job: Arc<Job>, address: &str) -> io::Result<()> {
    let source = job.add(Kind::Push, format!("statsd:{address}"));
    job.describe(source, |known| {
        known.up = true;
        known.grammar = Some("statsd".to_owned());
    });
    let name = thread::Builder::new().name("statsd".to_owned());
    if let Some(path) = address.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        // Remove a socket that an earlier process left behind.
        drop(std::fs::remove_file(&path));
        let socket = UnixDatagram::bind(&path)?;
        name.spawn(move || receive(&job, source, |buffer| socket.recv(buffer)))?;
    } else {
        let socket = UdpSocket::bind(address)?;
        name.spawn(move || receive(&job, source, |buffer| socket.recv(buffer)))?;
    }
    Ok(())
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
