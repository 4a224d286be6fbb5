//! Errors of a user, and the exit code of a run that was interrupted.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::bounded::shown;
use crate::signals::Ending;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// A request of the user that cannot be carried out. `paceline` exits with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);

impl BadUsage {
    /// The file of a setting cannot be used.
    pub fn file(setting: &str, path: &Path, why: impl Display) -> Self {
        Self(format!("{setting} {}: {why}", path.display()))
    }
}

/// A file of the user cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> BadUsage {
    BadUsage(format!("cannot read {}: {error}", shown(path)))
}

/// A result cannot be written. `paceline` exits with code 1, before the work or after it.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {why}; name another file", .path.display())]
pub struct Unwritable {
    path: PathBuf,
    why: String,
}

/// Checks that this process may make a file or a folder in `folder`.
pub fn may_make_in(folder: &Path) -> io::Result<()> {
    Ok(accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Checks before long work that its result can be written to `path`.
pub fn writable(path: &Path) -> Result<(), Unwritable> {
    let refused = |why: String| Unwritable { path: path.to_owned(), why };
    if path.is_dir() {
        return Err(refused("it is a folder".to_owned()));
    }
    if path.exists() {
        let may = accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
        return may.map_err(|error| refused(io::Error::from(error).to_string()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(refused(format!("{} is not a folder", folder.display())));
    }
    may_make_in(folder).map_err(|error| refused(error.to_string()))
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Interrupted => Self::from(INTERRUPTED),
            Ending::Terminated => Self::SUCCESS,
        }
    }
}

/// Reads the whole number of an option. The error says which numbers are allowed.
pub fn whole_number<N>(
    least: N,
    most: N,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: Copy + Display + FromStr + PartialOrd + Send + Sync + 'static,
{
    move |text| {
        let holds = |number: &N| *number >= least && *number <= most;
        let number = text.parse().ok().filter(holds);
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// An error and its causes, joined into one line.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_cannot_be_written_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        writable(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "").unwrap();
        for path in [&file, Path::new("report.html"), Path::new("/dev/null")] {
            writable(path).unwrap();
        }
        for (path, why) in [
            (place.path().to_owned(), "it is a folder"),
            (place.path().join("none/file"), "is not a folder"),
            (file.join("file"), "is not a folder"),
        ] {
            let error = writable(&path).unwrap_err().to_string();
            assert!(error.contains(why) && error.ends_with("; name another file"), "{error}");
        }
    }

    #[test]
    fn whole_number_names_what_is_allowed() {
        let seeds = whole_number(1_u32, 10_000);
        assert_eq!(seeds("10000"), Ok(10_000));
        for wrong in ["abc", "", "0", "10001", "1.5", "-1"] {
            let why = "expected a whole number from 1 to 10000";
            assert_eq!(seeds(wrong), Err(why.to_owned()), "{wrong}");
        }
    }
}
