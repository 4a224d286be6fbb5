//! The machine: its size and its CPU time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use paceline_api::nodes::Cpuset;

/// The machine that the containers run on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its number of CPUs, as the container engine counts them.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: f64,
    /// The path of its `/proc`.
    pub proc: PathBuf,
}

/// Clock ticks in a second in `/proc/stat`: Linux always shows 100 to programs.
const TICKS: f64 = 100.0;

/// CPU time in seconds that everything on the machine has used since it booted, from `/proc/stat`.
/// Idle time and waiting for I/O do not count; guest time is already part of user time.
#[derive(Debug)]
pub struct CpuTimes {
    all: f64,
    /// By the CPU's number.
    each: BTreeMap<u32, f64>,
}

impl CpuTimes {
    /// Reads the present times.
    pub fn read(proc: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(proc.join("stat"))?;
        Self::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no cpu line"))
    }

    fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' '));
        let (mut all, mut each) = (None, BTreeMap::new());
        for (cpu, ticks) in lines {
            let Some(seconds) = busy_seconds(ticks) else { continue };
            if cpu.is_empty() {
                all = Some(seconds);
            } else if let Ok(cpu) = cpu.parse() {
                each.insert(cpu, seconds);
            }
        }
        Some(Self { all: all?, each })
    }

    /// The time of all CPUs.
    pub fn used_seconds(&self) -> f64 {
        self.all
    }

    /// The time of these CPUs, if the machine has all of them.
    pub fn used_seconds_of(&self, cpus: &Cpuset) -> Option<f64> {
        cpus.iter().map(|cpu| self.each.get(&cpu)).sum()
    }

    /// The CPU that was used most since `before`, and its time in seconds. Only CPUs count that are
    /// `allowed` and existed before.
    pub fn busiest_since(
        &self,
        before: &Self,
        allowed: impl Fn(u32) -> bool,
    ) -> Option<(u32, f64)> {
        let used = |(cpu, now): (&u32, &f64)| Some((*cpu, now - before.each.get(cpu)?));
        let used = self.each.iter().filter_map(used).filter(|(cpu, _)| allowed(*cpu));
        used.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn busy_seconds(ticks: &str) -> Option<f64> {
    let ticks: Vec<f64> =
        ticks.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let busy = [0, 1, 2, 5, 6];
    ticks.get(3)?;
    Some(busy.iter().filter_map(|at| ticks.get(*at)).sum::<f64>() / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_do_not_count_as_use() {
        let text = "cpu  100 20 30 5000 600 7 8 900 50 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1 2\n";
        let times = CpuTimes::parse(text).unwrap();
        let of = |cpus: &str| times.used_seconds_of(&cpus.parse().unwrap());
        assert_eq!(of("0").map(|s| format!("{s:.2}")), Some("0.19".to_owned()));
        assert_eq!(of("0-1"), None);
        assert_eq!(format!("{:.2}", times.used_seconds()), "1.65");
    }

    #[test]
    fn busiest_cpu_is_the_one_used_most_since_before() {
        let before = CpuTimes::parse("cpu  30 0 0 0\ncpu0 10 0 0 500\ncpu1 20 0 0 400\n").unwrap();
        let now = "cpu  0 0 0 0\ncpu0 90 0 0 500\ncpu1 60 0 0 900\ncpu2 9000 0 0 0\n";
        let now = CpuTimes::parse(now).unwrap();
        let busiest = |allowed: fn(u32) -> bool| {
            now.busiest_since(&before, allowed).map(|(cpu, seconds)| (cpu, format!("{seconds:.2}")))
        };
        let found = busiest(|_| true);
        assert_eq!(found, Some((0, "0.80".to_owned())), "the third did not exist before");
        assert_eq!(busiest(|cpu| cpu != 0), Some((1, "0.40".to_owned())));
        assert_eq!(busiest(|_| false), None);
    }

    #[test]
    fn malformed_file_is_refused() {
        for text in ["", "cpu  1 2\n", "cpu  a b c d\n", "cpu0 1 2 3 4 5 6 7\n"] {
            assert!(CpuTimes::parse(text).is_none(), "{text:?}");
        }
    }
}
