//! Checks the promise of the policy `paceline` in a bench: no job ends later than with equal shares of the
//! machine, as under `none`.

use paceline_policy::policies::Paceline;

use super::outcome::{ArmFindings, JobFindings, Multiple, Promise, RunFindings, RunPromise};

/// The promise counts as kept up to this multiple of the time under `none`: repeats of one arm differ by as
/// much.
const BOUND: f64 = 1.05;

impl RunPromise {
    fn new(arm: &ArmFindings, run: &RunFindings, none: &[RunFindings]) -> Option<Self> {
        let none = none.iter().find(|none| none.repeat == run.repeat && none.is_clean())?;
        let completion = |run: &RunFindings, place| {
            run.both_of_job(place, "completion").0.filter(|of| *of > 0.0)
        };
        let multiple = |(place, job): (usize, &JobFindings)| {
            let multiple = completion(run, place)? / completion(none, place)?;
            Some(Multiple { job: job.job.clone(), multiple })
        };
        let jobs = arm.jobs.iter().enumerate().filter_map(multiple);
        let largest = jobs.max_by(|a, b| a.multiple.total_cmp(&b.multiple))?;
        let kept = largest.multiple <= BOUND;
        Some(Self { repeat: run.repeat, largest, kept })
    }
}

impl Promise {
    /// Checks an arm of `paceline` against the runs of `none`; `None` for other policies, and if no job can be
    /// compared.
    pub(crate) fn check(arm: &ArmFindings, none: &[RunFindings]) -> Option<Self> {
        if arm.facts.policy != Paceline::NAME {
            return None;
        }
        let disturbed = |job: &JobFindings| {
            job.figure("completion").is_some_and(|its| its.disturbed || its.difference_disturbed)
        };
        let multiple = |job: &JobFindings| {
            let percent = job.figure("completion")?.change()?;
            Some(Multiple { job: job.job.clone(), multiple: 1.0 + percent / 100.0 })
        };
        let jobs: Vec<Multiple> = arm.jobs.iter().filter_map(multiple).collect();
        let largest = jobs.iter().map(|job| job.multiple).max_by(f64::total_cmp)?;
        let ended = |job: &&JobFindings| jobs.iter().any(|its| its.job == job.job);
        let without_end = arm.jobs.iter().filter(|job| !ended(job)).map(|job| job.job.clone());
        let without_end: Vec<String> = without_end.collect();
        let judged = without_end.is_empty() && !arm.jobs.iter().any(disturbed);
        let kept = judged.then_some(largest <= BOUND);
        let clean = arm.runs.iter().filter(|run| run.is_clean());
        let runs = clean.filter_map(|run| RunPromise::new(arm, run, none)).collect();
        Some(Self { bound: BOUND, jobs, runs, without_end, kept })
    }

    /// Sentences: which jobs ended sooner than under `none`, and whether the promise was kept.
    pub(crate) fn words(&self, arm: &str) -> Vec<String> {
        let percent =
            |job: &Multiple| format!("{} {:+.0} %", job.job, 100.0 * (job.multiple - 1.0));
        let list = |keep: fn(&Multiple) -> bool| {
            let jobs: Vec<String> = self.jobs.iter().filter(|job| keep(job)).map(percent).collect();
            if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") }
        };
        let ends = format!(
            "{arm}: jobs that ended sooner than under none: {}; later: {}",
            list(|job| job.multiple < 1.0),
            list(|job| job.multiple >= 1.0)
        );
        let largest = self.jobs.iter().max_by(|a, b| a.multiple.total_cmp(&b.multiple));
        let verdict = match self.kept {
            Some(true) => "kept".to_owned(),
            Some(false) => "broken".to_owned(),
            None if self.without_end.is_empty() => {
                "not judged, because other work disturbed the runs".to_owned()
            }
            None => format!("not judged, because {} did not end", self.without_end.join(", ")),
        };
        let promise = largest.map(|largest| {
            format!(
                "{arm}: promise that no job takes longer than {:.2} times its time under none: {verdict}; \
                 the largest multiple is {}'s with {:.2}",
                self.bound, largest.job, largest.multiple
            )
        });
        [ends].into_iter().chain(promise).chain(self.words_of_runs(arm)).collect()
    }

    /// The same for each run, if there are several.
    fn words_of_runs(&self, arm: &str) -> Option<String> {
        let of = |RunPromise { repeat, largest, .. }: &RunPromise| {
            format!("{}'s with {:.2} in repeat {repeat}", largest.job, largest.multiple)
        };
        let largest: Vec<String> = self.runs.iter().map(of).collect();
        let kept = self.runs.iter().filter(|run| run.kept).count();
        (largest.len() > 1).then(|| {
            format!(
                "{arm}: promise kept in {kept} of {} runs; their largest multiples: {}",
                self.runs.len(),
                largest.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::analyse;
    use super::super::outcome::example::{bare, disturb, example};
    use super::super::remarks::remarks;

    /// The remarks if `a` and `b` end these seconds after the run began, and after 33 s under `none`.
    fn remarked(ends: [f64; 2], spoiled: bool) -> String {
        let (about, facts, mut runs) = example(&["none", "paceline"], &["a", "b"]);
        for run in &mut runs {
            let ends = if run.run.arm == "paceline" { ends } else { [33.0, 33.0] };
            for (job, end) in run.run.jobs.iter_mut().zip(ends) {
                job.ended = end;
            }
        }
        if spoiled {
            disturb(&mut runs, "paceline", None);
        }
        let observed: Vec<_> = runs.iter().map(bare).collect();
        remarks(&analyse(about, &facts, &observed, &[]).findings).join("\n")
    }

    #[test]
    fn promise_is_kept_unless_a_job_is_much_later_than_under_none() {
        let text = remarked([18.0, 33.0], false);
        assert!(text.contains("sooner than under none: a "), "{text}");
        assert!(
            text.contains(
                "1.05 times its time under none: kept; the largest multiple is b's with 1.00"
            ),
            "{text}"
        );
        assert!(
            remarked([18.0, 39.0], false)
                .contains(": broken; the largest multiple is b's with 1.18")
        );
        let of_runs =
            "promise kept in 0 of 2 runs; their largest multiples: b's with 1.18 in repeat 1, b";
        assert!(remarked([18.0, 39.0], false).contains(of_runs));
    }

    #[test]
    fn promise_is_not_judged_by_disturbed_runs_alone() {
        let text = remarked([18.0, 33.0], true);
        assert!(text.contains("not judged, because other work disturbed the runs"), "{text}");
    }
}
