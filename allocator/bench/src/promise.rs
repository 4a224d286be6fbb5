//! Checks the promise of the policy `paceline` in a bench: no job ends later than with equal shares of the
//! machine, as under `none`.

use paceline_policy::policies::Paceline;

use super::outcome::{ArmFindings, JobFindings, Multiple, Promise, RunFindings, RunPromise};

/// The promise counts as kept up to this multiple of the time under `none`: repeats of one arm differ by as
/// much.
const BOUND: f64 = 1.05;

/// The completion time of the job at `place` in a run.
fn completion(run: &RunFindings, place: usize) -> Option<f64> {
    run.both_of_job(place, "completion").0.filter(|of| *of > 0.0)
}

/// The undisturbed run of `none` in the same repeat.
fn partner<'a>(run: &RunFindings, none: &'a [RunFindings]) -> Option<&'a RunFindings> {
    none.iter().find(|none| none.repeat == run.repeat && none.is_clean())
}

impl RunPromise {
    /// Compares a run with one of `none`; `None` if a job did not end in one of them. A job that ends in no
    /// run, such as a service, is left out.
    fn new(
        arm: &ArmFindings,
        run: &RunFindings,
        none: &RunFindings,
        all: &[RunFindings],
    ) -> Option<Self> {
        let ends = |place| arm.runs.iter().chain(all).any(|run| completion(run, place).is_some());
        let multiple = |(place, job): (usize, &JobFindings)| {
            let multiple = completion(run, place)? / completion(none, place)?;
            Some(Multiple { job: job.job.clone(), multiple })
        };
        let jobs = arm.jobs.iter().enumerate().filter(|(place, _)| ends(*place));
        let jobs = jobs.map(multiple).collect::<Option<Vec<Multiple>>>()?;
        let largest = jobs.into_iter().max_by(|a, b| a.multiple.total_cmp(&b.multiple))?;
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
        let clean = || arm.runs.iter().filter(|run| run.is_clean());
        // A mean over the other runs would hide a run in which the job did not end.
        let ended = |(place, job): (usize, &JobFindings)| {
            let ended = |run: &RunFindings| completion(run, place).is_some();
            jobs.iter().any(|its| its.job == job.job)
                && clean().all(|run| ended(run) && partner(run, none).is_none_or(ended))
        };
        let without_end = arm.jobs.iter().enumerate().filter(|job| !ended(*job));
        let without_end: Vec<String> = without_end.map(|(_, job)| job.job.clone()).collect();
        let judged = without_end.is_empty() && !arm.jobs.iter().any(disturbed);
        let kept = judged.then_some(largest <= BOUND);
        let (mut runs, mut unjudged) = (Vec::new(), Vec::new());
        for (run, other) in clean().filter_map(|run| Some((run, partner(run, none)?))) {
            match RunPromise::new(arm, run, other, none) {
                Some(promise) => runs.push(promise),
                None => unjudged.push(run.repeat),
            }
        }
        Some(Self { bound: BOUND, jobs, runs, unjudged, without_end, kept })
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
        let unjudged: Vec<String> = self.unjudged.iter().map(u32::to_string).collect();
        let unjudged = if unjudged.is_empty() {
            String::new()
        } else {
            format!("; not judged, because a job did not end: repeat {}", unjudged.join(", "))
        };
        (largest.len() > 1).then(|| {
            format!(
                "{arm}: promise kept in {kept} of {} runs; their largest multiples: {}{unjudged}",
                self.runs.len(),
                largest.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::analyse;
    use super::super::grid;
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
    fn promise_is_not_judged_if_a_job_was_stopped_in_one_run() {
        let (mut about, facts, mut runs) = example(&["none", "paceline"], &["a", "b"]);
        let third: Vec<_> = runs[..2].to_vec();
        runs.extend(third);
        for run in &mut runs[4..] {
            run.run.repeat = 3;
        }
        about.until = Some(100.0);
        for run in &mut runs {
            run.run.jobs[1].ended = 95.0;
        }
        runs[3].run.jobs[1].ended = 100.0;
        let observed: Vec<_> = runs.iter().map(bare).collect();
        let findings = analyse(about, &facts, &observed, &[]).findings;
        let arm = &findings.arms[1];
        let promise = arm.promise.as_ref().unwrap();
        assert_eq!((promise.kept, promise.without_end.as_slice()), (None, &["b".to_owned()][..]));
        assert_eq!((promise.runs.len(), promise.unjudged.as_slice()), (2, &[2][..]));
        let text = remarks(&findings).join("\n");
        assert!(text.contains("not judged, because b did not end"), "{text}");
        assert!(text.contains("promise kept in 2 of 2 runs"), "{text}");
        assert!(text.contains("not judged, because a job did not end: repeat 2"), "{text}");
        let figure = arm.figure("completion_mean").unwrap();
        assert!(figure.partial && !findings.arms[0].figure("completion_mean").unwrap().partial);
        let table = &grid::jobs(&findings)[0];
        assert_eq!(table.rows[1][2].text, "95† (+0.0 %)");
        assert!(table.notes.iter().any(|note| note.starts_with("† without the runs")), "{table:?}");
    }

    #[test]
    fn promise_is_not_judged_by_disturbed_runs_alone() {
        let text = remarked([18.0, 33.0], true);
        assert!(text.contains("not judged, because other work disturbed the runs"), "{text}");
    }
}
