//! What the container engine reports about a bench's containers: each job's state, and remaining limits.

use std::collections::BTreeMap;

use anyhow::Context;
use paceline_api::stamp;
use paceline_runtime::{Listed, Stage};
use serde::{Deserialize, Serialize};

use super::{Containers, JOB_LABEL};

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    /// Not started yet.
    Waiting,
    /// Started and not ended.
    Running,
    /// Ended.
    Ended(End),
}

/// A container's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    /// When, in Unix seconds.
    pub(crate) at: f64,
    /// 0 is success.
    pub(crate) exit_code: i64,
    /// Whether the kernel killed it because it was out of memory.
    pub(crate) out_of_memory: bool,
}

/// A container that an allocator left with a CPU limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LimitLeft {
    /// The job.
    pub(crate) job: String,
    /// The engine's `NanoCpus`; 0 means no limit.
    pub(crate) nano_cpus: i64,
    /// The engine's `CpuQuota` in microseconds; 0 and -1 mean no limit.
    pub(crate) cpu_quota: i64,
}

impl Containers {
    /// The state of each job that has a container, by the job's name. `known` caches the ends by container:
    /// each request would take CPU time from the jobs.
    pub(crate) async fn states(
        &self,
        known: &mut BTreeMap<String, End>,
    ) -> anyhow::Result<BTreeMap<String, State>> {
        let mut states = BTreeMap::new();
        for (job, found) in self.by_job().await? {
            let Some(found) = newest(&found) else { continue };
            let state = match found.stage {
                Stage::Made => State::Waiting,
                Stage::Runs => State::Running,
                Stage::Over => {
                    if !known.contains_key(&found.id) {
                        known.insert(found.id.clone(), self.end_of(&found.id).await?);
                    }
                    let Some(end) = known.get(&found.id) else { continue };
                    State::Ended(*end)
                }
            };
            states.insert(job, state);
        }
        Ok(states)
    }

    async fn end_of(&self, id: &str) -> anyhow::Result<End> {
        let found = self.runtime.inspect(id).await;
        let found = found.with_context(|| format!("cannot inspect container {id}"))?;
        let state =
            found.with_context(|| format!("cannot inspect container {id}: it is gone"))?.state;
        let at = state.finished_at.as_deref().and_then(stamp::parse);
        Ok(End {
            at: at.with_context(|| format!("the engine reports no end of container {id}"))?,
            exit_code: state
                .exit_code
                .with_context(|| format!("the engine reports no exit code of container {id}"))?,
            out_of_memory: state.out_of_memory,
        })
    }

    /// The limits that the allocator left on the jobs' containers, on a machine of `cpus` CPUs.
    pub(crate) async fn limits_left(&self, cpus: i64) -> anyhow::Result<Vec<LimitLeft>> {
        let mut left = Vec::new();
        for (job, found) in self.by_job().await? {
            for Listed { id, .. } in found {
                let found = self.runtime.inspect(&id).await;
                let problem = || format!("cannot inspect the container of job {job}");
                let found = found.with_context(problem)?;
                let host = found.with_context(|| format!("{}: it is gone", problem()))?.host_config;
                left.extend(limit_left(&job, cpus, host.nano_cpus, host.cpu_quota));
            }
        }
        Ok(left)
    }

    /// Each job's containers, by the job's name.
    pub(super) async fn by_job(&self) -> anyhow::Result<BTreeMap<String, Vec<Listed>>> {
        let mut jobs: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
        for container in self.list().await? {
            let Some(job) = container.labels.get(JOB_LABEL).cloned() else { continue };
            jobs.entry(job).or_default().push(container);
        }
        Ok(jobs)
    }
}

/// The container that counts: the newest that runs, else the newest that is not started
/// yet, else the newest.
pub(super) fn newest(found: &[Listed]) -> Option<&Listed> {
    found.iter().max_by_key(|found| (found.stage, found.created))
}

/// `NanoCpus` cannot be unset on a container, so a value of all CPUs counts as unlimited.
fn limit_left(job: &str, cpus: i64, nano_cpus: i64, cpu_quota: i64) -> Option<LimitLeft> {
    let back = matches!(cpu_quota, 0 | -1)
        && (nano_cpus == 0 || nano_cpus == cpus.saturating_mul(1_000_000_000));
    (!back).then(|| LimitLeft { job: job.to_owned(), nano_cpus, cpu_quota })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_without_quota_count_as_unlimited() {
        assert_eq!(limit_left("vae", 2, 0, 0), None);
        assert_eq!(limit_left("vae", 2, 2_000_000_000, -1), None);
        assert!(limit_left("vae", 4, 2_000_000_000, 0).is_some());
        assert!(limit_left("vae", 2, 0, 50_000).is_some());
    }

    #[test]
    fn moved_job_is_known_by_its_current_container() {
        let found = |id: &str, created, stage| Listed {
            id: id.to_owned(),
            created,
            stage,
            labels: BTreeMap::new(),
        };
        let of = |containers: &[Listed]| newest(containers).map(|found| found.id.clone());
        let old = found("old", 1, Stage::Over);
        let running = found("new", 5, Stage::Runs);
        assert_eq!(of(&[old.clone(), running.clone()]).as_deref(), Some("new"));
        // The move failed, so the job continued where it was.
        let back = [found("old", 1, Stage::Runs), found("new", 5, Stage::Over)];
        assert_eq!(of(&back).as_deref(), Some("old"));
        let over = [old, found("new", 5, Stage::Over)];
        assert_eq!(of(&over).as_deref(), Some("new"), "its end is that of the newest");
        assert_eq!(of(&[]), None);
    }
}
