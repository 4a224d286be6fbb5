//! The log's files, in their order, and their lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use crate::state_folder::StateFolder;

/// The name of the file that is written.
pub(super) const CURRENT: &str = "audit.jsonl";
/// The longest line in bytes. Longer ones are neither written nor read.
pub(super) const MAX_LINE: usize = 256 * 1024;

/// The name that a full file gets, by the number of its last entry.
pub(super) fn set_aside(last: u64) -> String {
    format!("audit-{last:020}.jsonl")
}

/// The number of the last entry in a file that was set aside.
pub(super) fn last_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    let digits = number.len() == 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

/// The names of the files that were set aside, oldest first.
pub(super) fn older(folder: &StateFolder) -> io::Result<Vec<String>> {
    let mut found = folder.names()?;
    found.retain(|name| last_of(name).is_some());
    Ok(found)
}

/// All files, oldest first. They are opened, so that none of them vanishes while it is read. No
/// lock is taken: a reader must not be able to delay the run.
pub(super) fn all(folder: &StateFolder) -> io::Result<Vec<(PathBuf, File)>> {
    let mut listed = older(folder)?;
    loop {
        let mut opened = Vec::new();
        for name in listed.iter().map(String::as_str).chain([CURRENT]) {
            if let Some(file) = folder.file(name)? {
                opened.push((folder.path_of(name), file));
            }
        }
        // In the meantime the newest may have been set aside and the oldest removed.
        let now = older(folder)?;
        if now == listed {
            return Ok(opened);
        }
        listed = now;
    }
}

/// The bytes between two ends of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line, without its end.
    Line(String),
    /// A line that is too long, or not text.
    Garbled,
    /// The last bytes of the file, if no end of line follows them: how many they are.
    Torn(u64),
}

/// A file's lines. Their content is untrusted: none is read further than [`MAX_LINE`].
#[derive(Debug)]
pub(super) struct Lines<R = BufReader<File>>(R);

impl Lines {
    pub(super) fn new(file: File) -> Self {
        Self(BufReader::new(file))
    }
}

impl<R: BufRead> Lines<R> {
    /// The next piece; nothing after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        let mut line = Vec::new();
        let longest = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.0.by_ref().take(longest).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(String::from_utf8(line).map_or(Piece::Garbled, Piece::Line)));
        }
        if read <= MAX_LINE {
            let torn = u64::try_from(read).unwrap_or(u64::MAX);
            return Ok((torn > 0).then_some(Piece::Torn(torn)));
        }
        let skipped = self.0.skip_until(b'\n')?;
        let torn = longest.saturating_add(u64::try_from(skipped).unwrap_or(u64::MAX));
        // `skip_until` does not report whether it found an end; only further bytes show it.
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
    fn pieces_of_file_are_lines_garbled_or_torn() {
        assert!(pieces(b"").is_empty());
        let line = |text: &str| Piece::Line(text.to_owned());
        assert_eq!(pieces(b"a\n\nb\n"), [line("a"), line(""), line("b")]);
        assert_eq!(pieces(b"a\nbc"), [line("a"), Piece::Torn(2)]);
        assert_eq!(pieces(b"\xff\na\n"), [Piece::Garbled, line("a")]);
        let long = "x".repeat(MAX_LINE);
        assert_eq!(pieces(format!("{long}\n").as_bytes()), [line(&long)]);
        assert_eq!(pieces(format!("{long}x\na\n").as_bytes()), [Piece::Garbled, line("a")]);
        assert!(matches!(pieces(format!("{long}xy").as_bytes())[..], [Piece::Torn(_)]));
    }

    #[test]
    fn log_files_are_listed_oldest_first_and_others_ignored() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        let others = ["audit-9.jsonl", "audit-x.jsonl", "4f2a.json", "audit.lock"];
        let ours = [&*set_aside(12), &set_aside(7), CURRENT];
        for name in others.iter().chain(&ours) {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let expected = [set_aside(7), set_aside(12), CURRENT.to_owned()];
        let found = all(&folder).unwrap().into_iter().map(|(path, _)| path);
        let expected: Vec<PathBuf> = expected.iter().map(|name| folder.path_of(name)).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
