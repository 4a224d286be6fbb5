//! Connections from inside a container's network namespace.
//!
//! A job's port stays on its container's loopback, where nobody outside can reach it. A socket
//! belongs to the namespace in which it was made, whoever uses it later: so a thread enters the
//! namespace, connects, hands the connection over and ends. No other thread is affected.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::oneshot;

use super::owner;

/// Connects to `port` of the loopback of process `pid`'s network. Needs `CAP_SYS_ADMIN`.
///
/// Where that is the machine's own network, anybody may listen there: who does must be of the same
/// container.
pub async fn connect(
    proc: &Path,
    pid: u32,
    port: u16,
    patience: Duration,
) -> io::Result<TcpStream> {
    let (proc, namespace) = (proc.to_owned(), proc.join(pid.to_string()).join("ns/net"));
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new().name("paceline-netns".to_owned()).spawn(move || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // Nobody may be waiting any more: the connection is closed then.
        drop(answer.send(enter(&namespace).and_then(|()| {
            let stream = TcpStream::connect_timeout(&address, patience)?;
            if owner::is_of_the_machine(&proc, pid)? {
                owner::ensure_listens(&proc, pid, port)?;
            }
            stream.set_nonblocking(true)?;
            Ok(stream)
        })));
    })?;
    answered.await.map_err(io::Error::other)?
}

fn enter(namespace: &Path) -> io::Result<()> {
    let namespace = std::fs::File::open(namespace)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
