//! The history of jobs, with a bounded number of jobs and a bounded amount for each.

mod series;

use std::collections::{BTreeMap, VecDeque};

use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::{JobView, Standing};
use serde::Serialize;

use series::Series;

pub(super) use series::Figures;

/// How many jobs have a history, gone ones included.
const MAX_JOBS: usize = 256;
/// How many decisions of each job are kept.
const MAX_DECISIONS: usize = 200;
/// How long a gone job is kept, in seconds, if there is room.
const KEEP_GONE: f64 = 7200.0;

/// The history of all jobs by name.
#[derive(Debug, Default)]
pub(super) struct History {
    jobs: BTreeMap<String, Past>,
    /// The number of the last recorded decision.
    number: u64,
}

#[derive(Debug, Default)]
struct Past {
    /// When the job was last present, in seconds since the run began.
    seen: f64,
    series: Series,
    /// Newest first.
    decisions: VecDeque<Decided>,
    decided: u64,
}

/// A decision on one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Decision"))]
pub(super) struct Decided {
    /// Its number, from 1.
    number: u64,
    /// When it was made, in Unix seconds.
    at: f64,
    /// The share that the policy chose.
    chosen: f64,
    /// The limit then in force, as a share; 1 means unlimited.
    limit: Option<f64>,
    /// The class that the policy gave the job.
    class: Option<String>,
    /// The figure that the policy classed it by.
    score: Option<f64>,
    /// Why.
    why: Option<String>,
}

/// A job's decisions, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Decisions"))]
pub(super) struct Record<'a> {
    /// The job's name.
    job: &'a str,
    /// The number of all decisions, including those that are not kept any more.
    total: u64,
    /// The latest ones, newest first.
    decisions: &'a VecDeque<Decided>,
}

impl History {
    /// Adds a snapshot.
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        self.jobs.retain(|_, past| snapshot.t - past.seen <= KEEP_GONE);
        let decision = snapshot.decision.as_ref().filter(|decision| decision.number != self.number);
        for job in &snapshot.jobs {
            let Some(past) = self.past(&job.job, snapshot.t) else { continue };
            past.seen = snapshot.t;
            if job.standing == Standing::Waiting {
                continue;
            }
            past.series.add(snapshot.t, job);
            if let (Some(decision), Some(chosen)) = (decision, job.chosen) {
                past.decide(Decided::new(job, decision.number, decision.at, chosen));
            }
        }
        if let Some(decision) = decision {
            self.number = decision.number;
        }
    }

    /// The history of a job that is present at `t`, if there is room for it.
    fn past(&mut self, job: &str, t: f64) -> Option<&mut Past> {
        if self.jobs.len() >= MAX_JOBS && !self.jobs.contains_key(job) {
            let gone = self.jobs.iter().filter(|(_, past)| past.seen < t);
            let oldest = gone.min_by(|(_, a), (_, b)| a.seen.total_cmp(&b.seen));
            let name = oldest.map(|(name, _)| name.clone())?;
            self.jobs.remove(&name);
        }
        Some(self.jobs.entry(job.to_owned()).or_default())
    }

    /// The number of decisions on a job.
    pub(super) fn decided(&self, job: &str) -> u64 {
        self.jobs.get(job).map_or(0, |past| past.decided)
    }

    /// A job's decisions.
    pub(super) fn decisions(&self, job: &str) -> Option<Record<'_>> {
        let (job, past) = self.jobs.get_key_value(job)?;
        Some(Record { job, total: past.decided, decisions: &past.decisions })
    }

    /// A job's figures over time.
    pub(super) fn figures(&self, job: &str) -> Option<Figures<'_>> {
        self.jobs.get_key_value(job).map(|(job, past)| past.series.figures(job))
    }
}

impl Past {
    fn decide(&mut self, decided: Decided) {
        self.decided += 1;
        self.decisions.push_front(decided);
        self.decisions.truncate(MAX_DECISIONS);
    }
}

impl Decided {
    fn new(job: &JobView, number: u64, at: f64, chosen: f64) -> Self {
        let (class, why) = (job.class.clone(), job.why.clone());
        Self { number, at, chosen, limit: job.limit, class, score: job.score, why }
    }
}

#[cfg(test)]
mod tests {
    use paceline_api::live::snapshot::DecisionView;

    use super::*;

    fn snapshot(t: f64, number: u64, names: &[String]) -> Snapshot {
        let job = |name: &String| JobView {
            job: name.clone(),
            standing: Standing::Managed,
            chosen: Some(0.5),
            why: Some(format!("number {number}")),
            ..JobView::default()
        };
        let decision = Some(DecisionView { number, at: 1000.0 + t, interval: 20.0 });
        Snapshot { t, decision, jobs: names.iter().map(job).collect(), ..Snapshot::default() }
    }

    fn named(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{prefix}{number}")).collect()
    }

    #[test]
    fn each_decision_is_kept_once_newest_first() {
        let mut history = History::default();
        let names = named("job", 1);
        for number in 1..=300 {
            for look in [0.0, 0.5] {
                #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "small")]
                history.add(&snapshot(number as f64 + look, number, &names));
            }
        }
        let decisions = history.decisions("job0").unwrap();
        assert_eq!((decisions.total, history.decided("job0")), (300, 300));
        assert_eq!(decisions.decisions.len(), MAX_DECISIONS);
        assert_eq!(decisions.decisions[0].why.as_deref(), Some("number 300"));
        assert_eq!(decisions.decisions[1].number, 299);
    }

    #[test]
    fn gone_job_is_kept_for_a_while() {
        let mut history = History::default();
        history.add(&snapshot(0.0, 1, &named("job", 1)));
        history.add(&snapshot(KEEP_GONE, 2, &[]));
        assert!(history.figures("job0").is_some());
        history.add(&snapshot(KEEP_GONE + 1.0, 3, &[]));
        assert!(history.figures("job0").is_none() && history.decisions("job0").is_none());
    }

    #[test]
    fn present_jobs_replace_gone_ones_but_not_each_other() {
        let mut history = History::default();
        history.add(&snapshot(0.0, 1, &named("old", 10)));
        history.add(&snapshot(1.0, 2, &named("new", 2 * MAX_JOBS)));
        assert_eq!(history.jobs.len(), MAX_JOBS);
        assert!(history.jobs.keys().all(|name| name.starts_with("new")));
        let kept: Vec<_> = history.jobs.keys().cloned().collect();
        history.add(&snapshot(2.0, 3, &named("new", 2 * MAX_JOBS)));
        assert!(history.jobs.keys().eq(kept.iter()));
    }

    #[test]
    fn waiting_container_has_an_empty_history() {
        let mut history = History::default();
        let mut waiting = snapshot(0.0, 1, &named("job", 1));
        waiting.jobs[0].standing = Standing::Waiting;
        history.add(&waiting);
        let figures = serde_json::to_value(history.figures("job0").unwrap()).unwrap();
        assert_eq!(figures["t"], serde_json::json!([]));
        assert_eq!(history.decided("job0"), 0);
    }
}
