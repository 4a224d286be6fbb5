//! The work that a job has left, from its reported steps.
//!
//! A job that has used more work than it stated is believed less, and beyond some point not at all.

use crate::unit::{counter, saturate};

/// The work of a step is known after this many steps …
const FIRST_STEPS: u64 = 3;
/// … of this many node-seconds together, since a window rarely contains a whole number of steps, …
const FIRST_WORK: f64 = 0.2;
/// … or after one step of more than this many node-seconds.
const LONG_STEP: f64 = 2.0;
/// The first estimate is refined until this many steps, of this many node-seconds together, are measured.
/// A step is reported up to a second after its CPU time is counted, and steps take longer beside other
/// jobs. Later, the work is measured again after as much, and after this part of all steps.
const LATER_STEPS: f64 = 20.0;
const LATER_WORK: f64 = 5.0;
const LATER_PART: f64 = 0.02;

/// The largest delay of a report, in node-seconds.
const LATE: f64 = 1.0;

/// A job that has used more than it stated is assumed to need this part of its usage again. One half, the
/// expectation for heavy-tailed sizes, makes jobs that understate their work wait too long.
const MORE: f64 = 1.0 / 3.0;

/// How far a job's statement is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    /// The statement is corrected once the job has used this multiple of it.
    pub(super) broken: f64,
    /// Beyond this multiple, the size is unknown and the job is doubted.
    pub(super) beyond: f64,
}

/// The measurements of one job's steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    step: Option<u64>,
    /// The service received at that step.
    used: f64,
    total: Option<u64>,
    /// The start of the measurement: a step, and the service received at it.
    mark: Option<(u64, f64)>,
    per_step: Option<f64>,
    /// Whether that is measured over few steps.
    rough: bool,
    /// Its first statement of its whole work.
    stated: Option<f64>,
    doubted: bool,
}

impl Work {
    /// Records the job's step and the service received at it. Missing values stay unchanged. Steps taken
    /// while it `waited` are not measured: with very little CPU, threads wait for each other.
    pub(super) fn take(
        &mut self,
        (step, used): (Option<u64>, f64),
        total: Option<u64>,
        waited: bool,
    ) {
        self.total = total.filter(|total| *total > 0);
        let Some(step) = step else { return };
        let last = self.step.replace(step);
        let used_before = std::mem::replace(&mut self.used, used);
        let fell = last.is_some_and(|last| last > step);
        if fell {
            // It continues from a checkpoint: repeated steps do not count against its statement.
            let again = last.map_or(0, |last| last.saturating_sub(step));
            let more = counter(again) * self.per_step.unwrap_or(0.0);
            self.stated = self.stated.map(|stated| saturate(stated + more));
        }
        // Step 0 may be reported long before the first step begins.
        if step == 0 {
            self.mark = None;
            return;
        }
        let Some((from, before)) = self.mark.filter(|(from, _)| *from <= step && !fell) else {
            self.mark = Some((step, used));
            return;
        };
        let (from, before) = match last {
            Some(last) if waited && self.is_exact(last.saturating_sub(from)) => {
                (from + (step - last), before + (used - used_before))
            }
            Some(_) | None => (from, before),
        };
        self.mark = Some((from, before));
        let (steps, work) = (step - from, used - before);
        let known = self.per_step.filter(|_| !self.rough);
        let due = match known {
            None => {
                let some = steps >= FIRST_STEPS && work >= FIRST_WORK;
                some || counter(steps) >= LATER_STEPS || steps > 0 && work > LONG_STEP
            }
            Some(_) => {
                work >= LATER_WORK && counter(steps) >= LATER_STEPS.max(LATER_PART * counter(step))
            }
        };
        if !due || work <= 0.0 {
            return;
        }
        let measured = work / counter(steps);
        let half = |known: f64| known + 0.5 * (measured - known);
        self.per_step = Some(known.map_or(measured, half));
        self.rough = known.is_none() && (counter(steps) < LATER_STEPS || work < LATER_WORK);
        if !self.rough {
            self.mark = Some((step, used));
        }
    }

    /// Whether the work of a step is known well enough to ignore some steps, with `measured` steps since the
    /// mark. With fewer, a partial step would distort the result.
    fn is_exact(&self, measured: u64) -> bool {
        self.per_step.is_some() && (!self.rough || counter(measured) >= LATER_STEPS)
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

    /// Whether its usage exceeds its statement so far that its size counts as unknown.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// The work left by its total; `None` if the total is unknown or not believed.
    pub(super) fn left(&mut self, used: f64, trust: Trust) -> Option<f64> {
        let (total, step, per_step) = (self.total?, self.step?, self.per_step?);
        let begun = self.mark.map_or(0.0, |(from, before)| {
            let steps = counter(step.saturating_sub(from));
            // More than one step only as far as a report may be late.
            let most = per_step.max((used - self.used).min(LATE));
            (used - before - steps * per_step).clamp(0.0, most)
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
            work.take((Some(step), used), Some(total), false);
            work.left(used, TRUST);
            used += 0.5;
        }
        (work, used - 0.5)
    }

    #[test]
    fn start_of_a_job_does_not_count_as_work_of_its_steps() {
        let (mut work, used) = steady(100, 10);
        assert!(is(work.per_step(), 0.5) && is(work.left(used, TRUST), 45.0));
        assert!(is(work.left(used + 0.2, TRUST), 44.8), "a part of a step");
        assert!(is(work.left(used + 9.0, TRUST), 44.0), "the assumed delay is bounded");
    }

    #[test]
    fn work_of_a_step_is_unknown_before_three_steps() {
        assert_eq!(steady(100, 3).0.per_step(), None, "the first is the mark");
        assert!(is(steady(100, 4).0.per_step(), 0.5));
        let mut long = Work::default();
        for (step, used) in [(1, 0.0), (1, 5.0), (2, 6.0)] {
            long.take((Some(step), used), Some(9), false);
        }
        assert!(is(long.per_step(), 6.0));
    }

    #[test]
    fn steps_taken_while_the_job_waits_say_nothing_of_their_work() {
        let (mut work, used) = steady(100, 40);
        for n in 1..=30_u32 {
            work.take((Some(40 + u64::from(n)), used + 0.7 * f64::from(n)), Some(100), true);
        }
        assert!(is(work.per_step(), 0.5) && is(work.left(used + 21.0, TRUST), 15.0));
    }

    #[test]
    fn service_since_the_step_was_taken_is_off_the_work_left() {
        let (mut work, used) = steady(1000, 40);
        // A report that is late by less than a step, by more, and by more than the bound.
        for (since, left) in [(0.2, 479.8), (0.8, 479.2), (3.0, 479.0)] {
            assert!(is(work.left(used + since, TRUST), left), "{since}");
        }
    }

    #[test]
    fn step_that_falls_keeps_the_work_of_a_step() {
        let (mut work, used) = steady(100, 50);
        work.take((Some(30), used), Some(100), false);
        assert!(is(work.left(used, TRUST), 35.0));
        // Its statement grows by the 20 repeated steps.
        assert!(is(work.stated, 54.0 + 10.0), "{:?}", work.stated);
    }

    #[test]
    fn restart_that_reports_step_0_repeats_all_steps() {
        let (mut work, used) = steady(100, 50);
        for step in [0, 3] {
            work.take((Some(step), used), Some(100), false);
        }
        assert!(is(work.stated, 54.0 + 25.0), "{:?}", work.stated);
    }

    #[test]
    fn broken_statement_is_no_longer_believed() {
        let mut work = Work::default();
        let mut seen = Vec::new();
        for step in 0..40_u64 {
            let used = counter(step);
            work.take((Some(step), used), Some(step + 1), false);
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
