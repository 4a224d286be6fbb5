//! The CPU that does most, which is where the jobs are.

use std::collections::BTreeMap;
use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Who looks for it.
#[derive(Debug)]
pub(super) struct Busiest {
    /// The CPUs that the thread may run on.
    allowed: CpuSet,
    /// What each CPU had done when this was last asked, in ticks.
    done: BTreeMap<usize, u64>,
}

impl Busiest {
    /// For this thread; `None` where nobody says which CPUs are its.
    pub(super) fn look() -> Option<Self> {
        Some(Self { allowed: sched_getaffinity(None).ok()?, done: done() })
    }

    /// Moves this thread to the CPU that has done most since the last time; `None` where the thread may not
    /// say where it runs, and is to be asked no more.
    pub(super) fn follow(self) -> Option<Self> {
        let Self { allowed, done: before } = self;
        let done = done();
        let may_run_on = |cpu: &usize| *cpu < CpuSet::MAX_CPU && allowed.is_set(*cpu);
        if let Some(cpu) = busiest(&before, &done, may_run_on) {
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).ok()?;
        }
        Some(Self { allowed, done })
    }
}

/// The one that did most between two moments, of those that are `allowed`.
fn busiest(
    before: &BTreeMap<usize, u64>,
    now: &BTreeMap<usize, u64>,
    allowed: impl Fn(&usize) -> bool,
) -> Option<usize> {
    let since = |(cpu, done): (&usize, &u64)| {
        Some((done.saturating_sub(*before.get(cpu)?), *cpu)).filter(|(_, cpu)| allowed(cpu))
    };
    now.iter().filter_map(since).max_by_key(|(done, _)| *done).map(|(_, cpu)| cpu)
}

/// What each CPU has done since the machine booted, in ticks; nothing if the kernel does not say.
fn done() -> BTreeMap<usize, u64> {
    fs::read_to_string("/proc/stat").map_or_else(|_| BTreeMap::new(), |text| parse(&text))
}

/// Idle time, the fourth and fifth fields, is no work, and neither is what other guests took; guest time,
/// the last two, is part of user time already.
fn parse(text: &str) -> BTreeMap<usize, u64> {
    let one = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split(' ');
        let cpu = fields.next()?.parse().ok()?;
        let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, _, _, irq, softirq, ..] = ticks.as_slice() else { return None };
        Some((cpu, user + nice + system + irq + softirq))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 3 9 900 5 4 1 7 0 0\n\
                        cpu0 10 1 2 500 4 3 1 5 0 0\n\
                        cpu1 20 2 7 400 1 1 0 2 0 0\n\
                        intr 12345 0 9\n\
                        cpu2 broken\n";

    #[test]
    fn work_is_told_of_each_cpu() {
        assert_eq!(parse(STAT), [(0, 17), (1, 30)].into());
        assert_eq!(parse(""), BTreeMap::new());
    }

    #[test]
    fn the_busiest_is_the_one_that_did_most_meanwhile() {
        let (before, now) = (parse(STAT), [(0, 90), (1, 60), (2, 9000)].into());
        assert_eq!(busiest(&before, &now, |_| true), Some(0), "of the third nothing was known");
        assert_eq!(busiest(&before, &now, |cpu| *cpu != 0), Some(1));
        assert_eq!(busiest(&BTreeMap::new(), &now, |_| true), None);
    }

    #[test]
    fn the_thread_goes_to_one_that_it_may_run_on() {
        let busiest = Busiest::look().unwrap();
        let allowed = busiest.allowed;
        busiest.follow().unwrap();
        let now = sched_getaffinity(None).unwrap();
        assert!((0..CpuSet::MAX_CPU).all(|cpu| !now.is_set(cpu) || allowed.is_set(cpu)));
        assert_eq!(now.count(), 1);
    }
}
