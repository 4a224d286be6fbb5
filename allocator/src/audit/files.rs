//! The log's files: which there are, in their order, and their lines.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The file that is written.
pub(super) const CURRENT: &str = "audit.jsonl";
/// No line is longer, and none that is longer is read.
pub(super) const LONGEST: usize = 256 * 1024;

/// The file of a folder that is written.
pub(super) fn current(folder: &Path) -> PathBuf {
    folder.join(CURRENT)
}

/// What a full file is called from then on, by the number of its last entry.
pub(super) fn set_aside(folder: &Path, last: u64) -> PathBuf {
    folder.join(format!("audit-{last:020}.jsonl"))
}

/// The files that were set aside, oldest first.
pub(super) fn older(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("audit-"));
        let number = number.and_then(|name| name.strip_suffix(".jsonl"));
        if number.is_some_and(|n| n.len() == 20 && n.bytes().all(|byte| byte.is_ascii_digit())) {
            found.push(folder.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// All files, oldest first, opened: none of them can go while it is read. No lock is taken, since
/// whoever may read may not be one who may hold up the run.
pub(super) fn all(folder: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let mut listed = older(folder)?;
    loop {
        let mut opened = Vec::new();
        for path in listed.iter().cloned().chain([current(folder)]) {
            match File::open(&path) {
                Ok(file) => opened.push((path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        // In the meantime the last may have been set aside, and the first removed.
        let now = older(folder)?;
        if now == listed {
            return Ok(opened);
        }
        listed = now;
    }
}

/// What stands between two ends of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line, without its end.
    Line(String),
    /// A line that is too long, or not text.
    Garbled,
    /// So many bytes that no end follows.
    Torn(u64),
}

/// A file's lines. They may be anybody's: none is read further than [`LONGEST`].
#[derive(Debug)]
pub(super) struct Lines<R = BufReader<File>>(R);

impl Lines {
    pub(super) fn of(file: File) -> Self {
        Self(BufReader::new(file))
    }
}

impl<R: BufRead> Lines<R> {
    /// The next piece; nothing after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        let mut line = Vec::new();
        let longest = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.0.by_ref().take(longest).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(String::from_utf8(line).map_or(Piece::Garbled, Piece::Line)));
        }
        if read <= LONGEST {
            let torn = u64::try_from(read).unwrap_or(u64::MAX);
            return Ok((torn > 0).then_some(Piece::Torn(torn)));
        }
        let skipped = self.0.skip_until(b'\n')?;
        let torn = longest.saturating_add(u64::try_from(skipped).unwrap_or(u64::MAX));
        // Whether an end was found can be told from what comes next only where something does.
        let more = !self.0.fill_buf()?.is_empty();
        Ok(Some(if more { Piece::Garbled } else { Piece::Torn(torn) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &[u8]) -> Vec<Piece> {
        let mut lines = Lines(text);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    #[test]
    fn lines_garbled_and_torn_ones_are_told_apart() {
        assert!(pieces(b"").is_empty());
        let line = |text: &str| Piece::Line(text.to_owned());
        assert_eq!(pieces(b"a\n\nb\n"), [line("a"), line(""), line("b")]);
        assert_eq!(pieces(b"a\nbc"), [line("a"), Piece::Torn(2)]);
        assert_eq!(pieces(b"\xff\na\n"), [Piece::Garbled, line("a")]);
        let long = "x".repeat(LONGEST);
        assert_eq!(pieces(format!("{long}\n").as_bytes()), [line(&long)]);
        assert_eq!(pieces(format!("{long}x\na\n").as_bytes()), [Piece::Garbled, line("a")]);
        assert!(matches!(pieces(format!("{long}xy").as_bytes())[..], [Piece::Torn(_)]));
    }

    #[test]
    fn only_the_logs_own_files_are_taken_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["audit-9.jsonl", "audit-x.jsonl", "audit.jsonl", "4f2a.json", "audit.lock"];
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for last in [12, 7] {
            fs::write(set_aside(folder.path(), last), "").unwrap();
        }
        let expected =
            [set_aside(folder.path(), 7), set_aside(folder.path(), 12), current(folder.path())];
        let found: Vec<PathBuf> =
            all(folder.path()).unwrap().into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, expected);
    }
}
