//! What the program tells the service manager that started it (`sd_notify(3)`): that it works, how it
//! does, that it still lives and that it ends.
//!
//! A service manager names a datagram socket in a variable. Without the variable nothing is sent. No call
//! blocks: a message for which the socket has no room is sent again by the next turn of the caller's
//! loop. The loop itself calls [`ServiceManager::turn`], so that a loop that hangs is noticed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use paceline_policy::Moment;
use tracing::debug;

/// The socket's path, or its abstract name after an `@`.
const SOCKET: &str = "NOTIFY_SOCKET";
/// The microseconds after which a silent program is taken to hang.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process that the watchdog is meant for; without it, the one that reads this.
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// The messages of one watchdog's time: one late turn or a lost message is not a hang.
const BEATS: u32 = 3;
/// The seconds after which a sign of life that was not taken is sent again.
const RETRY: f64 = 1.0;

/// The service manager, if one listens.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The time between two signs of life, if it waits for them.
    interval: Option<Duration>,
    beat_at: Moment,
    /// Whether it knows that the program works.
    ready: bool,
    /// The last status that it took.
    status: String,
}

impl ServiceManager {
    /// The service manager that the environment names. A socket that cannot be used is logged, and
    /// counts as none.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name), std::process::id())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>, own_pid: u32) -> Self {
        let Some(name) = variable(SOCKET).filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let socket = match open(&name) {
            Ok(socket) => socket,
            Err(error) => {
                debug!("cannot use {SOCKET} {}: {error}", name.display());
                return Self::default();
            }
        };
        let number = |name| variable(name).and_then(|it| it.to_str()?.parse::<u64>().ok());
        let is_meant = number(WATCHDOG_PID).is_none_or(|pid| pid == u64::from(own_pid));
        let interval = number(WATCHDOG).filter(|micros| is_meant && *micros > 0);
        let interval = interval.map(|micros| Duration::from_micros(micros) / BEATS);
        Self { socket: Some(socket), interval, ..Self::default() }
    }

    /// When the next sign of life is due; `None` if the service manager waits for none.
    pub fn due(&self) -> Option<Moment> {
        self.interval.filter(|_| self.ready).map(|_| self.beat_at)
    }

    /// Tells that the caller's loop works at `now`: the first time that it is ready, later its status if
    /// that has changed, and a sign of life where one is due.
    pub fn turn(&mut self, now: Moment, status: &str) {
        let Some(socket) = &self.socket else { return };
        let mut lines = Vec::new();
        if !self.ready {
            lines.push("READY=1".to_owned());
        }
        if self.status != status {
            // A line break would begin another message.
            let one_line = status.replace(char::is_control, " ");
            lines.push(format!("STATUS={one_line}"));
        }
        let beats = self.interval.filter(|_| now >= self.beat_at);
        if beats.is_some() {
            lines.push("WATCHDOG=1".to_owned());
        }
        if lines.is_empty() {
            return;
        }
        if !send(socket, &lines.join("\n")) {
            self.beat_at = now.after(RETRY);
            return;
        }
        self.ready = true;
        status.clone_into(&mut self.status);
        if let Some(interval) = beats {
            self.beat_at = now.after(interval.as_secs_f64());
        }
    }

    /// Tells that the program ends, and what it still does.
    pub fn stopping(&self, status: &str) {
        if let Some(socket) = &self.socket {
            send(socket, &format!("STOPPING=1\nSTATUS={status}"));
        }
    }
}

fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::other("expected a path, or a name after an @")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// Whether the message was taken.
fn send((socket, address): &(UnixDatagram, SocketAddr), message: &str) -> bool {
    let sent = socket.send_to_addr(message.as_bytes(), address);
    if let Err(error) = &sent {
        debug!("cannot reach the service manager: {error}");
    }
    sent.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 7;

    fn manager(variables: &[(&str, &str)]) -> ServiceManager {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        ServiceManager::from_variables(variable, PID)
    }

    fn at(seconds: f64) -> Moment {
        Moment::from_seconds(seconds)
    }

    /// The messages that wait at a socket.
    fn messages(socket: &UnixDatagram) -> Vec<String> {
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 1024];
        std::iter::from_fn(|| socket.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec()))
            .map(|message| String::from_utf8(message).unwrap())
            .collect()
    }

    #[test]
    fn ready_status_and_life_are_sent_once_each_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let path = path.to_str().unwrap();
        let mut manager = manager(&[(SOCKET, path), (WATCHDOG, "30000000"), (WATCHDOG_PID, "7")]);
        assert_eq!(manager.due(), None);
        manager.turn(at(1.0), "2 jobs");
        assert_eq!(messages(&socket), ["READY=1\nSTATUS=2 jobs\nWATCHDOG=1"]);
        assert_eq!(manager.due(), Some(at(11.0)));
        manager.turn(at(10.9), "2 jobs");
        assert_eq!(messages(&socket), [""; 0]);
        manager.turn(at(11.0), "a\nREADY=0");
        assert_eq!(messages(&socket), ["STATUS=a READY=0\nWATCHDOG=1"]);
        manager.stopping("restores limits");
        assert_eq!(messages(&socket), ["STOPPING=1\nSTATUS=restores limits"]);
    }

    #[test]
    fn abstract_socket_is_reached() {
        let name = format!("paceline-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let mut manager = manager(&[(SOCKET, &format!("@{name}"))]);
        manager.turn(at(0.0), "");
        assert_eq!(messages(&socket), ["READY=1"]);
        assert_eq!(manager.due(), None);
    }

    #[test]
    fn foreign_watchdog_is_not_fed() {
        for variables in [
            [(SOCKET, "/run/none"), (WATCHDOG, "30000000"), (WATCHDOG_PID, "8")],
            [(SOCKET, "/run/none"), (WATCHDOG, "0"), (WATCHDOG_PID, "7")],
            [(SOCKET, "/run/none"), (WATCHDOG, "soon"), (WATCHDOG_PID, "7")],
            [(SOCKET, ""), (WATCHDOG, "30000000"), (WATCHDOG_PID, "7")],
            [(SOCKET, "relative"), (WATCHDOG, "30000000"), (WATCHDOG_PID, "7")],
        ] {
            assert_eq!(manager(&variables).interval, None, "{variables:?}");
        }
    }

    #[test]
    fn full_socket_does_not_block_and_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        // One sender may have no room left before the receiver's queue is full.
        let fillers = std::iter::repeat_with(|| {
            let filler = UnixDatagram::unbound().unwrap();
            filler.set_nonblocking(true).unwrap();
            let sent =
                std::iter::repeat_with(|| filler.send_to(b"X", &path)).take_while(Result::is_ok);
            (sent.count() > 0).then_some(filler)
        });
        let fillers: Vec<_> = fillers.map_while(std::convert::identity).collect();
        let variables =
            [(SOCKET, path.to_str().unwrap()), (WATCHDOG, "30000000"), (WATCHDOG_PID, "7")];
        let mut manager = manager(&variables);
        manager.turn(at(0.0), "works");
        assert!(messages(&socket).iter().all(|message| message == "X"), "{}", fillers.len());
        manager.turn(at(1.0), "works");
        assert_eq!(messages(&socket), ["READY=1\nSTATUS=works\nWATCHDOG=1"]);
        while fillers.iter().any(|filler| filler.send_to(b"X", &path).is_ok()) {}
        manager.turn(at(11.0), "works");
        assert_eq!(manager.due(), Some(at(12.0)), "a loop that waits until then does not spin");
    }
}
