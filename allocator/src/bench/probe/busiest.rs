//! The CPU that does most, which is where the jobs are.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::observe::node::CpuTimes;

/// Who looks for it.
#[derive(Debug)]
pub(super) struct Busiest {
    /// The CPUs that the thread may run on.
    allowed: CpuSet,
    /// When this was last asked.
    before: CpuTimes,
}

impl Busiest {
    /// For this thread; `None` where nobody says which CPUs are its, or what they do.
    pub(super) fn look() -> Option<Self> {
        Some(Self { allowed: sched_getaffinity(None).ok()?, before: now()? })
    }

    /// Moves this thread to the CPU that has done most since the last time, and says for how many seconds that
    /// was in use; `None` where the thread may not say where it runs, and is to be asked no more.
    pub(super) fn follow(&mut self) -> Option<f64> {
        let now = now()?;
        let number = |cpu: u32| usize::try_from(cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
        let may = |cpu: u32| number(cpu).is_some_and(|cpu| self.allowed.is_set(cpu));
        let (cpu, used) = now.busiest_since(&self.before, may)?;
        let mut only = CpuSet::new();
        only.set(number(cpu)?);
        sched_setaffinity(None, &only).ok()?;
        self.before = now;
        Some(used)
    }
}

fn now() -> Option<CpuTimes> {
    CpuTimes::read(Path::new("/proc")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_goes_to_one_that_it_may_run_on() {
        let mut busiest = Busiest::look().unwrap();
        let allowed = busiest.allowed;
        assert!(busiest.follow().unwrap() >= 0.0);
        let now = sched_getaffinity(None).unwrap();
        assert!((0..CpuSet::MAX_CPU).all(|cpu| !now.is_set(cpu) || allowed.is_set(cpu)));
        assert_eq!(now.count(), 1);
    }
}
