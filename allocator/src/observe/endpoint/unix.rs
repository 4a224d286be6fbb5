//! Sockets of a container, by their paths inside it.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use tokio::net::UnixStream;

/// Connects to the socket that `path` means below `root`, whatever links the job has put in its
/// way: the machine's own sockets are not the job's to show. Needs Linux 5.6.
pub(super) async fn connect(root: &Path, path: &Path) -> io::Result<UnixStream> {
    let place = OFlags::PATH | OFlags::CLOEXEC;
    let root = openat(CWD, root, place | OFlags::DIRECTORY, Mode::empty())?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let socket = openat2(&root, path, place, Mode::empty(), inside)?;
    // What was found is what is connected to, though its name may mean another by now.
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;
    use tokio::net::UnixListener;

    use super::*;

    /// A machine with a socket `of-the-machine`, and below it the root of a container.
    fn machine() -> (TempDir, UnixListener) {
        let machine = tempfile::tempdir().unwrap();
        fs::create_dir_all(machine.path().join("root/run")).unwrap();
        let listener = UnixListener::bind(machine.path().join("of-the-machine")).unwrap();
        (machine, listener)
    }

    #[tokio::test]
    async fn a_path_that_is_a_link_leads_to_no_socket_of_the_machine() {
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
            connect(&root, path).await.unwrap_err();
        }
        // A connection would be there by now.
        let none = listener.into_std().unwrap().accept().unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn a_link_to_a_socket_of_the_container_is_followed() {
        let (machine, _listener) = machine();
        let root = machine.path().join("root");
        let listener = UnixListener::bind(root.join("run/job-7.sock")).unwrap();
        symlink("/run/job-7.sock", root.join("job.sock")).unwrap();
        for path in ["/job.sock", "/run/job-7.sock", "run/../job.sock"] {
            let (connected, accepted) =
                tokio::join!(connect(&root, Path::new(path)), listener.accept());
            connected.unwrap();
            accepted.unwrap();
        }
    }
}
