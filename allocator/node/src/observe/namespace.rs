//! Connections from inside a container's network namespace.
//!
//! A job's port stays on its container's loopback, which is not reachable from outside. A socket
//! belongs to the namespace in which it was created, whichever thread uses it later. So a new thread
//! enters the namespace, connects, hands the connection over and ends. No other thread is affected.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Connects to `port` of the loopback of process `pid`'s network. The calling thread stays in that
/// network. Needs `CAP_SYS_ADMIN`.
pub(crate) fn connect(
    proc: &Path,
    pid: u32,
    port: u16,
    timeout: Duration,
) -> io::Result<TcpStream> {
    enter(proc, pid)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Moves the calling thread into the network of process `pid`. A thread that is there already needs no
/// rights.
pub(crate) fn enter(proc: &Path, pid: u32) -> io::Result<()> {
    let name = |process: &str| std::fs::read_link(proc.join(process).join("ns/net")).ok();
    let there = name(&pid.to_string());
    if there.is_some() && there == name("thread-self") {
        return Ok(());
    }
    let namespace = File::open(proc.join(pid.to_string()).join("ns/net"))?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
