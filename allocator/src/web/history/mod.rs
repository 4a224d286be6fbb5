//! The past of every job, as far as it is kept: a bounded amount for each, of a bounded number.

mod series;

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::live::Snapshot;
use crate::live::snapshot::{JobView, Standing};
use series::Series;

pub(super) use series::Figures;

/// So many jobs have a past, those that are gone included.
const MOST_JOBS: usize = 256;
/// So many decisions of each job are kept.
const MOST_DECISIONS: usize = 200;
/// A job that is gone is remembered for so many seconds, as far as there is room.
const REMEMBERED: f64 = 7200.0;

/// What was seen of all jobs, by name.
#[derive(Debug, Default)]
pub(super) struct History {
    jobs: BTreeMap<String, Past>,
    /// The number of the last decision that was seen.
    number: u64,
}

#[derive(Debug, Default)]
struct Past {
    /// When the job was last there, in seconds since the run began.
    seen: f64,
    series: Series,
    /// The newest first.
    decisions: VecDeque<Decided>,
    decided: u64,
}

/// What was decided of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Decided {
    number: u64,
    at: f64,
    chosen: f64,
    limit: Option<f64>,
    class: Option<String>,
    score: Option<f64>,
    why: Option<String>,
}

/// A job's decisions, the newest first.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    job: &'a str,
    /// How many there were, those included that are no longer kept.
    total: u64,
    decisions: &'a VecDeque<Decided>,
}

impl History {
    /// Takes a snapshot in.
    pub(super) fn look(&mut self, snapshot: &Snapshot) {
        self.jobs.retain(|_, past| snapshot.t - past.seen <= REMEMBERED);
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

    /// The past of a job that is there at `t`, if there is room for it.
    fn past(&mut self, job: &str, t: f64) -> Option<&mut Past> {
        if self.jobs.len() >= MOST_JOBS && !self.jobs.contains_key(job) {
            let gone = self.jobs.iter().filter(|(_, past)| past.seen < t);
            let oldest = gone.min_by(|(_, a), (_, b)| a.seen.total_cmp(&b.seen));
            let name = oldest.map(|(name, _)| name.clone())?;
            self.jobs.remove(&name);
        }
        Some(self.jobs.entry(job.to_owned()).or_default())
    }

    /// How often something was decided of a job.
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
        self.decisions.truncate(MOST_DECISIONS);
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
    use super::*;
    use crate::live::snapshot::DecisionView;

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
    fn each_decision_is_kept_once_and_the_newest_comes_first() {
        let mut history = History::default();
        let names = named("job", 1);
        for number in 1..=300 {
            for look in [0.0, 0.5] {
                #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "small")]
                history.look(&snapshot(number as f64 + look, number, &names));
            }
        }
        let decisions = history.decisions("job0").unwrap();
        assert_eq!((decisions.total, history.decided("job0")), (300, 300));
        assert_eq!(decisions.decisions.len(), MOST_DECISIONS);
        assert_eq!(decisions.decisions[0].why.as_deref(), Some("number 300"));
        assert_eq!(decisions.decisions[1].number, 299);
    }

    #[test]
    fn a_job_that_is_gone_is_remembered_for_a_while() {
        let mut history = History::default();
        history.look(&snapshot(0.0, 1, &named("job", 1)));
        history.look(&snapshot(REMEMBERED, 2, &[]));
        assert!(history.figures("job0").is_some());
        history.look(&snapshot(REMEMBERED + 1.0, 3, &[]));
        assert!(history.figures("job0").is_none() && history.decisions("job0").is_none());
    }

    #[test]
    fn jobs_that_are_there_push_out_those_that_are_gone_and_never_each_other() {
        let mut history = History::default();
        history.look(&snapshot(0.0, 1, &named("old", 10)));
        history.look(&snapshot(1.0, 2, &named("new", 2 * MOST_JOBS)));
        assert_eq!(history.jobs.len(), MOST_JOBS);
        assert!(history.jobs.keys().all(|name| name.starts_with("new")));
        let kept: Vec<_> = history.jobs.keys().cloned().collect();
        history.look(&snapshot(2.0, 3, &named("new", 2 * MOST_JOBS)));
        assert!(history.jobs.keys().eq(kept.iter()));
    }

    #[test]
    fn a_container_that_only_waits_has_an_empty_past() {
        let mut history = History::default();
        let mut waiting = snapshot(0.0, 1, &named("job", 1));
        waiting.jobs[0].standing = Standing::Waiting;
        history.look(&waiting);
        let figures = serde_json::to_value(history.figures("job0").unwrap()).unwrap();
        assert_eq!(figures["t"], serde_json::json!([]));
        assert_eq!(history.decided("job0"), 0);
    }
}
