//! The end of a log, for an error message.

use std::path::Path;

/// Lines enough for an error and what led to it.
const LINES: usize = 12;

/// The last lines of the log at `path`, under a heading that names it.
pub(crate) fn log_tail(path: &Path) -> String {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("{} cannot be read: {error}", path.display()),
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    if last.is_empty() {
        return format!("{} is empty", path.display());
    }
    format!("{} ends:\n    {}", path.display(), last.join("\n    "))
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
    fn a_log_without_a_line_says_so() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(log_tail(file.path()).ends_with(" is empty"));
        assert!(log_tail(Path::new("/nowhere/log")).starts_with("/nowhere/log cannot be read"));
    }
}
