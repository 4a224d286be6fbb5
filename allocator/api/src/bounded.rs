//! Reads files and lines that others have written, up to stated bounds.
//!
//! A file may be endless (`/dev/zero`, a pipe), or be the wrong one. Without a bound it would fill the
//! memory before it could be found invalid.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

/// The most bytes of one line, of any file.
pub const MAX_LINE: u64 = 1 << 20;

/// A kind of file, and how long one may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it is, with its article.
    what: &'static str,
    /// The most bytes.
    most: u64,
}

/// A secret.
pub const TOKEN: Bound = Bound { what: "a token", most: 4 << 10 };
/// A file of certificates or of a key.
pub const CERTIFICATE: Bound = Bound { what: "certificates or a key", most: 1 << 20 };
/// A file of settings.
pub const SETTINGS: Bound = Bound { what: "a file of settings", most: 1 << 20 };
/// A distributed job.
pub const JOB: Bound = Bound { what: "a job's file", most: 1 << 20 };
/// A bench's schedule.
pub const SCHEDULE: Bound = Bound { what: "a schedule", most: 1 << 20 };
/// A scenario. A fitted one lists the residuals of its jobs.
pub const SCENARIO: Bound = Bound { what: "a scenario", most: 16 << 20 };
/// A stream of Kubernetes manifests.
pub const MANIFESTS: Bound = Bound { what: "manifests", most: 8 << 20 };
/// Recorded frames or samples of a run: a day of some ten jobs.
pub const RECORDING: Bound = Bound { what: "a recording", most: 512 << 20 };
/// A record or result that a bench has written.
pub const RESULT: Bound = Bound { what: "a bench's result", most: 64 << 20 };

impl Bound {
    /// The text of the file at `path`.
    pub fn read(self, path: &Path) -> io::Result<String> {
        self.read_from(File::open(path)?)
    }

    /// The same; for `-`, the text of standard input.
    pub fn read_given(self, path: &Path) -> io::Result<String> {
        if is_standard_input(path) { self.read_from(io::stdin().lock()) } else { self.read(path) }
    }

    /// The text that a reader returns.
    pub fn read_from(self, reader: impl Read) -> io::Result<String> {
        String::from_utf8(self.bytes_from(reader)?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            invalid(format!("invalid text at byte {at}: expected UTF-8"))
        })
    }

    /// The bytes that a reader returns.
    pub fn bytes_from(self, reader: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader.take(self.most.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > self.most) {
            let most = figure(self.most);
            return Err(invalid(format!("longer than {most}, the most for {}", self.what)));
        }
        Ok(bytes)
    }
}

/// Whether a file's name on the command line is that of standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// How a message names a file of the command line.
pub fn shown(path: &Path) -> std::path::Display<'_> {
    if is_standard_input(path) { Path::new("standard input").display() } else { path.display() }
}

/// The lines of a reader, without their ends. A line longer than [`MAX_LINE`] is an error, and the
/// last that is returned.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    over: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, over: false }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        } else if u64::try_from(read).is_ok_and(|read| read > MAX_LINE) {
            return Err(invalid(format!("longer than {}, the most for a line", figure(MAX_LINE))));
        }
        String::from_utf8(line).map(Some).map_err(|_| invalid("expected UTF-8".to_owned()))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let line = self.line();
        self.over = !matches!(line, Ok(Some(_)));
        line.transpose()
    }
}

fn figure(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::io::repeat;

    use super::*;

    #[test]
    fn file_of_allowed_length_is_read_and_an_endless_one_refused() {
        let most = usize::try_from(SETTINGS.most).unwrap();
        let text = "x".repeat(most);
        assert_eq!(SETTINGS.read_from(text.as_bytes()).unwrap().len(), most);
        let longer = text + "x";
        for error in [SETTINGS.read_from(longer.as_bytes()), SETTINGS.read_from(repeat(b'x'))] {
            let error = error.unwrap_err().to_string();
            assert_eq!(error, "longer than 1 MiB, the most for a file of settings");
        }
        let error = TOKEN.read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "longer than 4 KiB, the most for a token");
    }

    #[test]
    fn dash_is_standard_input_and_is_named_so() {
        assert_eq!(shown(Path::new("-")).to_string(), "standard input");
        assert_eq!(shown(Path::new("./-")).to_string(), "./-");
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_with_its_place() {
        let error = SETTINGS.read_from(&b"ab\xff"[..]).unwrap_err().to_string();
        assert_eq!(error, "invalid text at byte 2: expected UTF-8");
    }

    fn lines(text: &[u8]) -> Vec<String> {
        Lines::new(text).map(|line| line.unwrap_or_else(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_have_no_ends_and_the_last_needs_none() {
        assert_eq!(lines(b"a\r\n\nb\r\nc"), ["a", "", "b", "c"]);
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"a\n\xff\nb\n"), ["a", "expected UTF-8"]);
    }

    #[test]
    fn endless_line_is_an_error_and_the_last() {
        let most = usize::try_from(MAX_LINE).unwrap();
        let (longest, error) = ("x".repeat(most), "longer than 1 MiB, the most for a line");
        assert_eq!(lines(format!("{longest}\na").as_bytes()), [&longest, "a"]);
        assert_eq!(lines(format!("a\n{longest}x\nb").as_bytes()), ["a", error]);
        let mut endless = Lines::new(io::BufReader::new(repeat(b'x')));
        assert_eq!(endless.next().unwrap().unwrap_err().to_string(), error);
        assert!(endless.next().is_none());
    }
}
