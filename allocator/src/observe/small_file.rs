//! Small files of the kernel, read by as few system calls as will do: every second, a look reads
//! several of them for each container.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kernel gives such a file a page at a time …
const PAGE: usize = 4096;
/// … and never cuts a line, so that what is much less than a page is all.
const SURELY_ALL: usize = PAGE / 2;

/// The text of the file at `path`. For a file that is larger than expected, this takes one more
/// system call for each page, and no longer.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut page, mut text) = ([0; PAGE], Vec::new());
    loop {
        match file.read(&mut page) {
            Ok(bytes) => {
                text.extend_from_slice(page.get(..bytes).unwrap_or_default());
                if bytes < SURELY_ALL {
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
    fn a_file_of_any_size_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for size in [0, 1, SURELY_ALL - 1, SURELY_ALL, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE + 7] {
            let text: String = ('a'..='z').cycle().take(size).collect();
            fs::write(&path, &text).unwrap();
            assert_eq!(read(&path).unwrap(), text, "{size}");
        }
        assert_eq!(read(Path::new("/no/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
