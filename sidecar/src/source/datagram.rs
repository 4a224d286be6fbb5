//! Datagrams of statsd's form, over UDP on the loopback or a Unix socket.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crate::desk::{Kind, SourceId};
use crate::job::Job;
use crate::push::statsd;

/// A longer datagram is cut off, as any receiver does.
const LONGEST: usize = 64 * 1024;

/// Listens at `address`, `host:port` or `unix:/path`, for as long as the process lives.
pub fn listen(job: Arc<Job>, address: &str) -> io::Result<()> {
    let source = job.add(Kind::Push, format!("statsd:{address}"));
    job.describe(source, |known| {
        known.up = true;
        known.grammar = Some("statsd".to_owned());
    });
    let name = thread::Builder::new().name("statsd".to_owned());
    if let Some(path) = address.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        // One that a predecessor left behind.
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
    let mut buffer = vec![0; LONGEST];
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
