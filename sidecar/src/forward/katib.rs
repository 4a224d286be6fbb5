//! Lines for the file collector of Katib: a time, then `name=value` pairs.
//!
//! Its default filter is `([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`. It takes NaN for an empty
//! value, so only finite numbers are written.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use paceline_reporter::wire::Progress;
use rustix::fs::OFlags;

use super::number::{number, to_the_millisecond};
use super::{Ending, Item, Outcome, Takes, Target};

/// Time between two lines.
const PERIOD: Duration = Duration::from_secs(1);
/// The most bytes of the file. Katib reads it whole.
const MAX_FILE: u64 = 64 << 20;

/// The file that Katib's collector reads.
#[derive(Debug)]
pub struct Katib {
    path: PathBuf,
    max_file: u64,
    /// The counts of what has been written: finite losses, and those on held-out data.
    written: (u64, u64),
}

impl Katib {
    /// Appends to this file, which may appear, be rotated or be removed at any time.
    pub fn new(path: PathBuf) -> Self {
        Self { path, max_file: MAX_FILE, written: (0, 0) }
    }

    fn append(&self, line: &str) -> Result<(), String> {
        let shown = self.path.display();
        let failed = |error: &dyn std::fmt::Display| format!("cannot write {shown}: {error}");
        let file = open(&self.path).map_err(|error| failed(&error))?;
        let described = file.metadata().map_err(|error| failed(&error))?;
        if !described.is_file() {
            return Err(failed(&"it is not a regular file"));
        }
        if described.len().saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX))
            > self.max_file
        {
            return Err(failed(&format!("it is full with {} bytes; rotate it", self.max_file)));
        }
        let begun = is_line_open(&file, described.len()).map_err(|error| failed(&error))?;
        let text = if begun { format!("\n{line}") } else { line.to_owned() };
        // One call, so that lines of other writers come before or after it.
        match (&file).write(text.as_bytes()) {
            Ok(length) if length == text.len() => Ok(()),
            Ok(_) => Err(failed(&"no space is left for a whole line")),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Target for Katib {
    fn name(&self) -> String {
        "katib".to_owned()
    }

    fn takes(&self) -> Takes {
        Takes::Readings { period: PERIOD, spacing: Duration::ZERO }
    }

    fn resume(&mut self, before: &Progress) {
        // Those on held-out data are counted from 0 again.
        self.written = (before.eval.count, 0);
    }

    fn send(&mut self, item: &Item, _: &Ending) -> Result<Outcome, String> {
        let Item::Reading { progress, .. } = item else { return Ok(Outcome::Nothing) };
        let Some(line) = line(progress, self.written) else { return Ok(Outcome::Nothing) };
        self.append(&line)?;
        self.written = counts(progress);
        Ok(Outcome::Sent)
    }
}

/// Opens the file, without waiting for the reader of a pipe.
fn open(path: &std::path::Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(|_| ErrorKind::InvalidInput)?;
    OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(path)
}

/// Whether the last line lacks its end, for example after a full disk.
fn is_line_open(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        // It may have been truncated just now.
        file.read_at(&mut last, at)?;
    }
    Ok(last != [b'\n'])
}

fn counts(progress: &Progress) -> (u64, u64) {
    (progress.eval.count, progress.validation.map_or(0, |validation| validation.count))
}

/// The line for what was reported since `written`; `None` if nothing was. What has not changed is left out:
/// Katib would take it for another measurement.
fn line(progress: &Progress, written: (u64, u64)) -> Option<String> {
    let (losses, validations) = counts(progress);
    let mut pairs = Vec::new();
    let mut pair = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            pairs.push(format!("{name}={}", number(value)));
        }
    };
    if losses != written.0 {
        pair("loss", progress.eval.value);
        pair("loss_smoothed", progress.signals.loss_smoothed);
        pair("loss_best", progress.eval.best);
    }
    if validations != written.1 {
        pair("validation_loss", progress.validation.map(|validation| validation.value));
    }
    if pairs.is_empty() {
        return None;
    }
    for (name, count) in [("step", progress.step), ("epoch", progress.epoch)] {
        pairs.extend(count.map(|count| format!("{name}={count}")));
    }
    Some(format!("{} {}\n", to_the_millisecond(progress.now), pairs.join(" ")))
}

#[cfg(test)]
mod tests;
