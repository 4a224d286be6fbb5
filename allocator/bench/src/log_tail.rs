//! The end of a log, for an error message.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Enough lines for an error and its cause.
const LINES: usize = 12;
/// The most bytes at the end of a log that are read.
const MAX_LEN: u64 = 64 * 1024;

/// The last lines of the log at `path`, under a heading that names it.
pub(crate) fn log_tail(path: &Path) -> String {
    let text = match end(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("cannot read {}: {error}", path.display()),
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    if last.is_empty() {
        return format!("{} is empty", path.display());
    }
    format!("{} ends:\n    {}", path.display(), last.join("\n    "))
}

fn end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_LEN);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_LEN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_shown() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let lines: Vec<String> = (0..40).map(|line| format!("line {line}")).collect();
        std::fs::write(file.path(), lines.join("\n")).expect("written");
        let tail = log_tail(file.path());
        assert!(tail.ends_with("\n    line 38\n    line 39"), "{tail}");
        assert!(tail.contains("line 28\n") && !tail.contains("line 27\n"), "{tail}");
    }

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let long = "x".repeat(usize::try_from(MAX_LEN).expect("it fits") + 1);
        std::fs::write(file.path(), format!("{long}\nthe cause\n")).expect("written");
        let tail = log_tail(file.path());
        assert!(
            tail.ends_with("x\n    the cause") && tail.len() < long.len() + 200,
            "{}",
            tail.len()
        );
    }

    #[test]
    fn empty_or_missing_log_is_reported() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(log_tail(file.path()).ends_with(" is empty"));
        assert!(log_tail(Path::new("/nowhere/log")).starts_with("cannot read /nowhere/log: "));
    }
}
