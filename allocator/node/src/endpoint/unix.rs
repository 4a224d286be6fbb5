//! Connects to Unix sockets of a container by their paths inside it.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connects to the socket at `path` below `root`. Symbolic links of the job cannot lead out of
/// `root`, so that it cannot expose sockets of the machine. Needs Linux 5.6.
///
/// The container's file system may never answer.
pub(super) fn connect(root: &Path, path: &Path) -> io::Result<UnixStream> {
    let place = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, root, place | OFlags::DIRECTORY, Mode::empty())?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let socket = openat2(&root, path, place, Mode::empty(), inside)?;
    // Connects to the socket that was found, even if the path leads to another one by now. It does not
    // wait for a listener whose queue is full.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    net::connect(&stream, &SocketAddrUnix::new(format!("/proc/self/fd/{}", socket.as_raw_fd()))?)?;
    Ok(stream.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;
    use tokio::net::UnixListener;

    use super::*;

    /// A machine with a socket `of-the-machine`, and with the root of a container below it.
    fn machine() -> (TempDir, UnixListener) {
        let machine = tempfile::tempdir().unwrap();
        fs::create_dir_all(machine.path().join("root/run")).unwrap();
        let listener = UnixListener::bind(machine.path().join("of-the-machine")).unwrap();
        (machine, listener)
    }

    #[tokio::test]
    async fn link_does_not_lead_to_a_socket_of_the_machine() {
        let (machine, listener) = machine();
        let root = machine.path().join("root");
        let outside = machine.path().join("of-the-machine");
        symlink(&outside, root.join("absolute")).unwrap();
        symlink("../of-the-machine", root.join("relative")).unwrap();
        symlink(machine.path(), root.join("folder")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let magic = Path::new("/magic").join(outside.strip_prefix("/").unwrap());
        let paths = ["/absolute", "/relative", "/folder/of-the-machine", "/../of-the-machine"];
        for path in paths.map(Path::new).into_iter().chain([magic.as_path()]) {
            connect(&root, path).unwrap_err();
        }
        // A connection would have arrived by now.
        let none = listener.into_std().unwrap().accept().unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn link_to_a_socket_of_the_container_is_followed() {
        let (machine, _listener) = machine();
        let root = machine.path().join("root");
        let listener = UnixListener::bind(root.join("run/job-7.sock")).unwrap();
        symlink("/run/job-7.sock", root.join("job.sock")).unwrap();
        for path in ["/job.sock", "/run/job-7.sock", "run/../job.sock"] {
            connect(&root, Path::new(path)).unwrap();
            listener.accept().await.unwrap();
        }
    }
}
