//! The busiest CPU, where the jobs run.

use std::path::Path;

use paceline_node::observe::node::CpuTimes;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Finds the busiest CPU, and moves its thread there.
#[derive(Debug)]
pub(super) struct Busiest {
    /// The CPUs that the thread may run on.
    allowed: CpuSet,
    /// The CPUs' times at the last call.
    before: CpuTimes,
}

impl Busiest {
    /// For this thread; `None` if the kernel does not show its CPUs or their use.
    pub(super) fn new() -> Option<Self> {
        Some(Self { allowed: sched_getaffinity(None).ok()?, before: now()? })
    }

    /// Moves this thread to the CPU that was busiest since the last call. Returns the seconds that this CPU was
    /// busy. `None` if the thread may not choose its CPU; then do not call this again.
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
    fn thread_moves_to_an_allowed_cpu() {
        let mut busiest = Busiest::new().unwrap();
        let allowed = busiest.allowed;
        assert!(busiest.follow().unwrap() >= 0.0);
        let now = sched_getaffinity(None).unwrap();
        assert!((0..CpuSet::MAX_CPU).all(|cpu| !now.is_set(cpu) || allowed.is_set(cpu)));
        assert_eq!(now.count(), 1);
    }
}
