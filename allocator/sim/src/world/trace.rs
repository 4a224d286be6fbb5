//! Records a run over time, for charts.

use std::collections::BTreeMap;

use paceline_policy::{Decision, JobId};

use super::{Done, Run, World};
use crate::fluid::Index;
use crate::scenario::ScenarioError;
use crate::trace::{Held, Recorder, Trace};

/// The set of a job that has none.
const NO_SET: &str = "-";

/// The recorder of a run.
#[derive(Debug)]
pub(super) struct Watch {
    recorder: Recorder,
    by_id: BTreeMap<JobId, Index>,
    /// The set of each job, by number.
    classes: Vec<&'static str>,
}

impl Watch {
    /// The trace of a run that ended at `until`.
    pub(super) fn end(self, until: f64) -> Trace {
        self.recorder.end(until)
    }
}

impl Run<'_> {
    /// Like [`Run::simulate`], and records the share of each job over time.
    pub fn watched(&self) -> Result<Done, ScenarioError> {
        let workload = self.scenario.draw(self.seed);
        let classes = vec![NO_SET; workload.len()];
        let by_id = workload.iter().enumerate().map(|(at, job)| (job.id.clone(), at)).collect();
        let mut world = World::new(self, workload)?;
        world.watch = Some(Watch { recorder: Recorder::default(), by_id, classes });
        world.run()
    }
}

impl World<'_> {
    /// Records the state from now until `to`.
    pub(super) fn trace_until(&mut self, to: f64) {
        let now = self.now;
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.recorder.wants(now, to)) else {
            return;
        };
        let nodes = paceline_policy::unit::count(self.nodes.len());
        let mut jobs = Vec::new();
        for state in &self.nodes {
            for job in state.fluid.jobs() {
                let Some(live) = self.jobs.get(job) else { continue };
                jobs.push(Held {
                    job,
                    share: state.fluid.share_of(job) / nodes,
                    limit: live.cap.get(),
                    class: watch.classes.get(job).copied().unwrap_or(NO_SET),
                });
            }
        }
        jobs.sort_unstable_by_key(|held| held.job);
        watch.recorder.note(now, jobs);
    }

    /// Records the sets that a policy has put its jobs into.
    pub(super) fn trace_sets(&mut self, decision: &Decision) {
        let Some(watch) = &mut self.watch else { return };
        for (id, job) in &decision.jobs {
            let index = watch.by_id.get(id);
            if let Some(class) = index.and_then(|index| watch.classes.get_mut(*index)) {
                *class = job.class;
            }
        }
    }
}
