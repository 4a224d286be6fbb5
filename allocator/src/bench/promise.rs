//! The promise of the policy `paceline`, held against a bench: no job ends later than it does when all
//! share the machine equally, which is what happens under `none`.

use paceline_policy::policies::Paceline;
use serde::{Deserialize, Serialize};

use super::outcome::{ArmFindings, JobFindings, RunFindings};

/// A job may take so many times as long as under `none`: repeats of one arm differ by as much.
const BOUND: f64 = 1.05;

/// How long each job took, as a multiple of its time under `none`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Promise {
    /// No job's multiple may be above this one.
    bound: f64,
    /// In the schedule's order.
    jobs: Vec<Multiple>,
    /// Each run beside that of `none` with the same repeat, in which jobs came at the same moments. Those that
    /// other work disturbed are left out.
    #[serde(default)]
    runs: Vec<OfRun>,
    /// Jobs of which an end is missing, under this policy or under `none`.
    without_end: Vec<String>,
    /// Whether the promise was kept; `None` where other work disturbed every run, or an end is missing.
    kept: Option<bool>,
}

/// One job's completion time over that under `none`, from means over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Multiple {
    job: String,
    multiple: f64,
}

/// What one run made of the promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OfRun {
    repeat: u32,
    /// The job with the largest multiple.
    largest: Multiple,
    kept: bool,
}

impl OfRun {
    fn of(arm: &ArmFindings, run: &RunFindings, none: &[RunFindings]) -> Option<Self> {
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
    /// Of an arm whose policy makes the promise, and whose runs can be compared with those of `none`.
    pub(crate) fn of(arm: &ArmFindings, none: &[RunFindings]) -> Option<Self> {
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
        let runs = clean.filter_map(|run| OfRun::of(arm, run, none)).collect();
        Some(Self { bound: BOUND, jobs, runs, without_end, kept })
    }

    /// In sentences: which jobs ended sooner than under `none`, and whether the promise was kept.
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
                "not judged, since other work disturbed the runs".to_owned()
            }
            None => format!("not judged, since {} did not end", self.without_end.join(", ")),
        };
        let promise = largest.map(|largest| {
            format!(
                "{arm}: promise that no job takes longer than {:.2} times as under none: {verdict}; the \
                 largest is {} with {:.2}",
                self.bound, largest.job, largest.multiple
            )
        });
        [ends].into_iter().chain(promise).chain(self.words_of_runs(arm)).collect()
    }

    /// The same run by run, of several.
    fn words_of_runs(&self, arm: &str) -> Option<String> {
        let of = |OfRun { repeat, largest, .. }: &OfRun| {
            format!("{} with {:.2} in repeat {repeat}", largest.job, largest.multiple)
        };
        let largest: Vec<String> = self.runs.iter().map(of).collect();
        let kept = self.runs.iter().filter(|run| run.kept).count();
        (largest.len() > 1).then(|| {
            format!(
                "{arm}: promise kept in {kept} of {} runs; the largest of each: {}",
                self.runs.len(),
                largest.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::example::{bare, disturb, example};
    use super::super::outcome::judge;
    use super::super::remarks::remarks;

    /// What is remarked if `a` and `b` end so many seconds after the run began, and 33 under `none`.
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
        remarks(&judge(about, &facts, &observed, &[]).findings).join("\n")
    }

    #[test]
    fn promise_is_kept_while_no_job_is_much_later_than_under_none() {
        let text = remarked([18.0, 33.0], false);
        assert!(text.contains("sooner than under none: a "), "{text}");
        assert!(
            text.contains("1.05 times as under none: kept; the largest is b with 1.00"),
            "{text}"
        );
        assert!(remarked([18.0, 39.0], false).contains(": broken; the largest is b with 1.18"));
        let of_runs =
            "promise kept in 0 of 2 runs; the largest of each: b with 1.18 in repeat 1, b";
        assert!(remarked([18.0, 39.0], false).contains(of_runs));
    }

    #[test]
    fn promise_is_not_judged_by_disturbed_runs_alone() {
        let text = remarked([18.0, 33.0], true);
        assert!(text.contains("not judged, since other work disturbed the runs"), "{text}");
    }
}
