//! The machine that the containers share.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::nodes::Cpuset;

/// The machine that the containers run on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its CPUs, as the engine counts them.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: f64,
    /// Its `/proc`.
    pub proc: PathBuf,
}

/// Clock ticks in a second, as `/proc/stat` counts: Linux fixes this at 100 towards programs.
const TICKS: f64 = 100.0;

/// CPU time in seconds that everything on the machine has used since it booted: all of the first
/// line of `/proc/stat` but idle, waiting for I/O, and guest time, which user time holds already.
pub fn used_seconds(proc: &Path) -> io::Result<f64> {
    let text = fs::read_to_string(proc.join("stat"))?;
    parse(&text, "cpu ")
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no cpu line"))
}

/// The same of these CPUs alone.
pub fn used_seconds_of(proc: &Path, cpus: &Cpuset) -> io::Result<f64> {
    let text = fs::read_to_string(proc.join("stat"))?;
    let used: Option<Vec<f64>> =
        cpus.iter().map(|cpu| parse(&text, &format!("cpu{cpu} "))).collect();
    used.map(|used| used.iter().sum()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("/proc/stat does not have CPUs {cpus}"))
    })
}

fn parse(text: &str, which: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(which))?;
    let ticks: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let busy = [0, 1, 2, 5, 6];
    ticks.get(3)?;
    Some(busy.iter().filter_map(|at| ticks.get(*at)).sum::<f64>() / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_time_stolen_by_other_guests_are_not_use() {
        let text = "cpu  100 20 30 5000 600 7 8 900 50 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse(text, "cpu0 ").map(|s| format!("{s:.2}")), Some("0.19".to_owned()));
        assert_eq!(parse(text, "cpu1 "), None);
        assert_eq!(parse(text, "cpu ").map(|s| format!("{s:.2}")), Some("1.65".to_owned()));
    }

    #[test]
    fn a_malformed_file_is_refused() {
        assert_eq!(parse("", "cpu "), None);
        assert_eq!(parse("cpu  1 2\n", "cpu "), None);
        assert_eq!(parse("cpu  a b c d\n", "cpu "), None);
    }
}
