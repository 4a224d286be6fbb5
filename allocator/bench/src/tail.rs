//! Reads a samples file while it is being written.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;
use paceline_api::bounded;
use paceline_api::samples::Sample;

/// A samples file, and the position up to which it was read.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// Bytes read: always up to the end of a complete line.
    read: u64,
    /// Lines read.
    lines: usize,
}

impl Tail {
    /// Reads `path` from its beginning; the file need not exist yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0, lines: 0 }
    }

    /// The samples whose lines have been completed since the last call.
    pub(crate) fn poll(&mut self) -> anyhow::Result<Vec<Sample>> {
        let text =
            self.new_lines().with_context(|| format!("cannot read {}", self.path.display()))?;
        text.lines()
            .map(|line| {
                self.lines += 1;
                serde_json::from_str(line).with_context(|| {
                    format!("{}:{}: invalid sample: {line}", self.path.display(), self.lines)
                })
            })
            .collect()
    }

    /// The new complete lines; an incomplete last line is left for the next call.
    fn new_lines(&mut self) -> std::io::Result<String> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = bounded::RECORDING.bytes_from(file)?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(complete);
        self.read += u64::try_from(complete).map_err(std::io::Error::other)?;
        String::from_utf8(bytes).map_err(std::io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LINE: &str = r#"{"t":1.0,"unix":2.0,"node":{"cpus":2.0,"cpu":null},"jobs":[]}"#;

    #[test]
    fn line_is_read_once_it_is_complete_and_only_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.jsonl");
        let mut tail = Tail::new(&path);
        assert!(tail.poll().expect("a missing file is fine").is_empty());

        let mut file = File::create(&path).expect("a file");
        let (start, end) = LINE.split_at(20);
        write!(file, "{LINE}\n{start}").expect("written");
        assert_eq!(tail.poll().expect("it reads").len(), 1);
        assert!(tail.poll().expect("it reads").is_empty());

        writeln!(file, "{end}").expect("written");
        assert_eq!(tail.poll().expect("it reads").len(), 1);
    }

    #[test]
    fn malformed_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.jsonl");
        std::fs::write(&path, format!("{LINE}\nnonsense\n")).expect("written");
        let error = Tail::new(&path).poll().expect_err("line 2 is nonsense").to_string();
        assert!(error.ends_with("samples.jsonl:2: invalid sample: nonsense"), "{error}");
    }
}
