//! The work that a job has left, by what it states of its steps.
//!
//! A statement is worth what the job keeps of it: one that has used more than it said is believed less,
//! and at some point not at all.

use crate::unit::{counter, saturate};

/// A step's work is known after so many steps …
const FIRST_STEPS: u64 = 3;
/// … of so many node-seconds together, since a moment holds no whole number of steps, …
const FIRST_WORK: f64 = 0.2;
/// … or after one that took more than so many node-seconds.
const LONG_STEP: f64 = 2.0;
/// Until so many steps are measured, each more makes it better known. Then it is measured again after so many
/// steps, and this part of all.
const LATER_STEPS: f64 = 20.0;
const LATER_PART: f64 = 0.02;

/// A job that has used more than it stated is taken to need this part of that again. Half of it, which is
/// what sizes of a heavy tail have left, keeps those that understate their work waiting for too long.
const MORE: f64 = 1.0 / 3.0;

/// How far a statement is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    /// It is broken once the job has used so many times what it stated.
    pub(super) broken: f64,
    /// From here on the size is unknown, and the job is doubted.
    pub(super) beyond: f64,
}

/// What is known of one job's steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    step: Option<u64>,
    total: Option<u64>,
    /// A step, and the service by then.
    mark: Option<(u64, f64)>,
    per_step: Option<f64>,
    /// Whether that is of few steps.
    rough: bool,
    /// What it stated first of its whole work.
    stated: Option<f64>,
    doubted: bool,
}

impl Work {
    /// Takes in what the job says when it has received `used`. Steps that it does not tell stay.
    pub(super) fn take(&mut self, step: Option<u64>, total: Option<u64>, used: f64) {
        self.total = total.filter(|total| *total > 0);
        let Some(step) = step else { return };
        let last = self.step.replace(step);
        // A step 0 may be reported long before the first one begins.
        if step == 0 {
            self.mark = None;
            return;
        }
        let fell = last.is_some_and(|last| last > step);
        let Some((from, before)) = self.mark.filter(|(from, _)| *from <= step && !fell) else {
            // It goes on from a checkpoint: what it does again is no broken word.
            let again = last.map_or(0, |last| last.saturating_sub(step));
            let more = counter(again) * self.per_step.unwrap_or(0.0);
            self.stated = self.stated.map(|stated| saturate(stated + more));
            self.mark = Some((step, used));
            return;
        };
        let (steps, work) = (step - from, used - before);
        let known = self.per_step.filter(|_| !self.rough);
        let due = match known {
            None => {
                let some = steps >= FIRST_STEPS && work >= FIRST_WORK;
                some || counter(steps) >= LATER_STEPS || steps > 0 && work > LONG_STEP
            }
            Some(_) => counter(steps) >= LATER_STEPS.max(LATER_PART * counter(step)),
        };
        if !due || work <= 0.0 {
            return;
        }
        let measured = work / counter(steps);
        let half = |known: f64| known + 0.5 * (measured - known);
        self.per_step = Some(known.map_or(measured, half));
        self.rough = known.is_none() && counter(steps) < LATER_STEPS;
        if !self.rough {
            self.mark = Some((step, used));
        }
    }

    /// Whether it has reported a step.
    pub(super) fn has_stepped(&self) -> bool {
        self.step.is_some_and(|step| step > 0)
    }

    /// The work of one step.
    pub(super) fn per_step(&self) -> Option<f64> {
        self.per_step
    }

    /// Whether it states a total that is believed.
    pub(super) fn states_total(&self) -> bool {
        self.total.is_some() && !self.doubted
    }

    /// Whether it has used so much more than it stated that its size counts as unknown.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// The work left by its total: `None` if that is not known or not believed.
    pub(super) fn left(&mut self, used: f64, trust: Trust) -> Option<f64> {
        let (total, step, per_step) = (self.total?, self.step?, self.per_step?);
        let begun = self.mark.map_or(0.0, |(from, before)| {
            let steps = counter(step.saturating_sub(from));
            (used - before - steps * per_step).clamp(0.0, per_step)
        });
        let left = counter(total.saturating_sub(step)) * per_step - begun;
        let left = saturate(left.max(0.0));
        let stated = *self.stated.get_or_insert(used + left);
        self.doubted |= used > trust.beyond * stated;
        if self.doubted {
            return None;
        }
        Some(if used > trust.broken * stated { left.max(MORE * used) } else { left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUST: Trust = Trust { broken: 1.25, beyond: 3.0 };

    fn is(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-9)
    }

    /// A job that has taken steps of 0.5 node-seconds after a start of 4.
    fn steady(total: u64, steps: u64) -> (Work, f64) {
        let mut work = Work::default();
        let mut used = 4.0;
        for step in 0..=steps {
            work.take(Some(step), Some(total), used);
            work.left(used, TRUST);
            used += 0.5;
        }
        (work, used - 0.5)
    }

    #[test]
    fn start_of_a_job_is_no_work_of_its_steps() {
        let (mut work, used) = steady(100, 10);
        assert!(is(work.per_step(), 0.5) && is(work.left(used, TRUST), 45.0));
        assert!(is(work.left(used + 0.2, TRUST), 44.8), "a part of a step");
        assert!(is(work.left(used + 9.0, TRUST), 44.5), "at most one step has begun");
    }

    #[test]
    fn work_of_a_step_is_unknown_before_three_steps() {
        assert_eq!(steady(100, 3).0.per_step(), None, "the first is the mark");
        assert!(is(steady(100, 4).0.per_step(), 0.5));
        let mut long = Work::default();
        for (step, used) in [(1, 0.0), (1, 5.0), (2, 6.0)] {
            long.take(Some(step), Some(9), used);
        }
        assert!(is(long.per_step(), 6.0));
    }

    #[test]
    fn step_that_falls_keeps_the_work_of_a_step() {
        let (mut work, used) = steady(100, 50);
        work.take(Some(30), Some(100), used);
        assert!(is(work.left(used, TRUST), 35.0));
        // What it states grows by the 20 steps that it does again.
        assert!(is(work.stated, 54.0 + 10.0), "{:?}", work.stated);
    }

    #[test]
    fn statement_that_is_broken_is_believed_no_more() {
        let mut work = Work::default();
        let mut seen = Vec::new();
        for step in 0..40_u64 {
            let used = counter(step);
            work.take(Some(step), Some(step + 1), used);
            seen.push((used, work.left(used, TRUST)));
        }
        // The work of a step is known at step 4: 5 node-seconds are stated.
        assert!(is(seen[5].1, 1.0) && is(seen[9].1, 3.0) && is(seen[15].1, 5.0), "{seen:?}");
        assert!(seen[16].1.is_none() && work.is_doubted() && !work.states_total());
    }

    #[test]
    fn total_below_the_step_leaves_no_work() {
        let (mut work, used) = steady(6, 10);
        assert!(is(work.left(used, TRUST), used / 3.0), "stated 7, used 9: broken");
        let (mut work, used) = steady(10, 11);
        assert!(is(work.left(used, TRUST), 0.0));
    }
}
