//! The CPU time and memory of this process.

use std::fs;
use std::path::Path;

/// Clock ticks in a second in `/proc`: Linux always shows 100 to programs.
const TICKS: f64 = 100.0;

/// CPU time in seconds and memory in bytes.
pub fn used(proc: &Path) -> (Option<f64>, Option<f64>) {
    let read = |file: &str| fs::read_to_string(proc.join("self").join(file)).unwrap_or_default();
    (cpu_seconds(&read("stat")), resident(&read("status")))
}

/// User and system time: the 14th and 15th field of `/proc/PID/stat`. The second one, in brackets,
/// may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: Vec<f64> = ticks.collect::<Result<_, _>>().ok()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// `VmRSS` of `/proc/PID/status`, which is in KiB.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_with_any_name_is_read() {
        let stat = "7 (a ) (b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
        assert_eq!(resident("VmPeak:  9 kB\nVmRSS:\t  2048 kB\n"), Some(2_097_152.0));
        assert_eq!(resident(""), None);
    }

    #[test]
    fn this_process_uses_memory() {
        let (_, memory) = used(Path::new("/proc"));
        assert!(memory.is_some_and(|bytes| bytes > 1e5), "{memory:?}");
    }
}
