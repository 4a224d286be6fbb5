//! The losses of all steps in a file, to plot or to compare them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// A file with one line for each step: its number and its loss, with enough digits to read exactly
/// the same number back.
#[derive(Debug)]
pub struct LossFile(File);

impl LossFile {
    /// Begins a file, or continues one after this many steps. Lines of later steps are removed: they
    /// do not belong to the resumed run.
    pub fn begin(path: &Path, steps: u64) -> io::Result<Self> {
        let before = match fs::read_to_string(path) {
            Ok(text) if steps > 0 => text,
            Err(error) if steps > 0 && error.kind() != ErrorKind::NotFound => return Err(error),
            _ => String::new(),
        };
        let mut file = File::create(path)?;
        file.write_all(
            before
                .lines()
                .filter(|line| belongs(line, steps))
                .fold(String::new(), |text, line| text + line + "\n")
                .as_bytes(),
        )?;
        Ok(Self(file))
    }

    /// Adds the loss of a step.
    pub fn add(&mut self, step: u64, loss: f64) -> io::Result<()> {
        self.0.write_all(format!("{step} {loss}\n").as_bytes())
    }
}

fn belongs(line: &str, steps: u64) -> bool {
    let step = line.split(' ').next().and_then(|step| step.parse::<u64>().ok());
    step.is_some_and(|step| step <= steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumed_run_continues_after_its_last_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("losses");
        let text = || fs::read_to_string(&path).unwrap();
        let mut file = LossFile::begin(&path, 0).unwrap();
        for (step, loss) in [(1, 0.1 + 0.2), (2, 2.5), (3, f64::NAN)] {
            file.add(step, loss).unwrap();
        }
        assert_eq!(text(), "1 0.30000000000000004\n2 2.5\n3 NaN\n");
        LossFile::begin(&path, 2).unwrap().add(3, 7.0).unwrap();
        assert_eq!(text(), "1 0.30000000000000004\n2 2.5\n3 7\n");
        LossFile::begin(&path, 0).unwrap();
        assert_eq!(text(), "");
        assert!(LossFile::begin(folder.path(), 0).is_err());
    }
}
