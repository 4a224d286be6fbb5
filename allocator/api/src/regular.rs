//! Opens files without waiting. Opening a named pipe blocks until its other end is opened, and a pipe
//! that is full blocks every write. So only regular files are accepted.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// Opens a file as `flags` say, and creates it with `mode` if they say so. Fails for anything but a
/// regular file.
pub fn open_regular(path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    // A regular file ignores the flag not to block.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open(path, flags, mode) {
        Ok(file) => File::from(file),
        // A pipe without a reader, or a socket.
        Err(rustix::io::Errno::NXIO) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file; name another one")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn pipes_folders_and_devices_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for flags in [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR] {
            let error = open_regular(&pipe, flags, Mode::empty()).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file; name another one");
        }
        for path in [folder.path(), Path::new("/dev/null")] {
            assert!(open_regular(path, OFlags::RDONLY, Mode::empty()).is_err(), "{path:?}");
        }
    }

    #[test]
    fn regular_file_is_created_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mode = Mode::RUSR | Mode::WUSR;
        drop(open_regular(&path, OFlags::WRONLY | OFlags::CREATE, mode).unwrap());
        fs::write(&path, "text").unwrap();
        let mut text = String::new();
        let mut file = open_regular(&path, OFlags::RDONLY, Mode::empty()).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
