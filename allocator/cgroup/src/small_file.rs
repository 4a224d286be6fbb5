//! Reads the kernel's small files with as few system calls as possible: each sample reads several of
//! them for each container, every second.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kernel returns such a file a page at a time …
const PAGE: usize = 4096;
/// … and never cuts a line. A read that returns less than this has reached the end.
const SHORT_READ: usize = PAGE / 2;

/// The text of the file at `path`. A file of half a page or more takes further system calls.
pub fn read(path: &Path) -> io::Result<String> {
    read_at_most(path, usize::MAX)
}

/// The same; a file that is longer than `most` bytes is an error.
pub fn read_at_most(path: &Path, most: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut page, mut text) = ([0; PAGE], Vec::new());
    loop {
        match file.read(&mut page) {
            Ok(bytes) => {
                text.extend_from_slice(page.get(..bytes).unwrap_or_default());
                if text.len() > most {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                if bytes < SHORT_READ {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_of_any_size_is_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for size in [0, 1, SHORT_READ - 1, SHORT_READ, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE + 7] {
            let text: String = ('a'..='z').cycle().take(size).collect();
            fs::write(&path, &text).unwrap();
            assert_eq!(read(&path).unwrap(), text, "{size}");
            assert_eq!(read_at_most(&path, size).unwrap(), text, "{size}");
            assert!(size == 0 || read_at_most(&path, size - 1).is_err(), "{size}");
        }
        assert_eq!(read(Path::new("/no/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
