//! What the engine says of a bench's containers: how far each job is, and what limits are left.

use std::collections::BTreeMap;

use anyhow::Context;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as Standing};
use serde::{Deserialize, Serialize};

use super::{Containers, JOB_LABEL};
use crate::stamp;

/// How far a job is.
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
    /// Whether it was ended for want of memory.
    pub(crate) out_of_memory: bool,
}

/// A container that an allocator left with a CPU limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LimitLeft {
    /// The job.
    pub(crate) job: String,
    /// The engine's NanoCpus; 0 is none.
    pub(crate) nano_cpus: i64,
    /// The engine's CpuQuota in microseconds; 0 and -1 are none.
    pub(crate) cpu_quota: i64,
}

/// A container of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) id: String,
    /// In Unix seconds.
    created: i64,
    standing: Option<Standing>,
}

impl Containers {
    /// How far each job is that has a container, by its name. `known` are the ends that were asked for
    /// before, by container: asking costs CPU time that is the jobs'.
    pub(crate) async fn states(
        &self,
        known: &mut BTreeMap<String, End>,
    ) -> anyhow::Result<BTreeMap<String, State>> {
        let mut states = BTreeMap::new();
        for (job, found) in self.found().await? {
            let Some(found) = newest(&found) else { continue };
            let state = match found.stage() {
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
        let found = self.docker.inspect_container(id, None).await;
        let found = found.with_context(|| format!("container {id} cannot be inspected"))?;
        let state = found.state.unwrap_or_default();
        let at = state.finished_at.as_deref().and_then(stamp::parse);
        Ok(End {
            at: at.context("the engine does not tell when a container ended")?,
            exit_code: state.exit_code.context("the engine does not tell an exit code")?,
            out_of_memory: state.oom_killed == Some(true),
        })
    }

    /// The limits that jobs' containers were left with, on a machine of `cpus` CPUs.
    pub(crate) async fn limits_left(&self, cpus: i64) -> anyhow::Result<Vec<LimitLeft>> {
        let mut left = Vec::new();
        for (job, found) in self.found().await? {
            for Found { id, .. } in found {
                let found = self.docker.inspect_container(&id, None).await;
                let found = found.with_context(|| format!("job {job}: cannot be inspected"))?;
                let host = found.host_config.unwrap_or_default();
                let (nano_cpus, quota) = (host.nano_cpus.unwrap_or(0), host.cpu_quota.unwrap_or(0));
                left.extend(limit_left(&job, cpus, nano_cpus, quota));
            }
        }
        Ok(left)
    }

    /// Each job's containers, by the job's name.
    pub(super) async fn found(&self) -> anyhow::Result<BTreeMap<String, Vec<Found>>> {
        let mut jobs: BTreeMap<String, Vec<Found>> = BTreeMap::new();
        for container in self.list().await? {
            let ContainerSummary { id, created, state: standing, labels, .. } = container;
            let job = labels.and_then(|mut labels| labels.remove(JOB_LABEL));
            let (Some(job), Some(id)) = (job, id) else { continue };
            let created = created.unwrap_or_default();
            jobs.entry(job).or_default().push(Found { id, created, standing });
        }
        Ok(jobs)
    }
}

impl Found {
    /// How far it is.
    pub(super) fn stage(&self) -> Stage {
        let over = [Standing::EXITED, Standing::DEAD, Standing::REMOVING];
        match self.standing {
            Some(standing) if over.contains(&standing) => Stage::Over,
            Some(Standing::CREATED) => Stage::Made,
            Some(_) | None => Stage::Runs,
        }
    }
}

/// How far a container is, the one that counts most last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Over,
    Made,
    Runs,
}

/// The container that counts: the newest of those that run, or else wait to, or else of all.
pub(super) fn newest(found: &[Found]) -> Option<&Found> {
    found.iter().max_by_key(|found| (found.stage(), found.created))
}

/// NanoCpus cannot be taken from a container again, so all CPUs of the machine are no limit.
fn limit_left(job: &str, cpus: i64, nano_cpus: i64, cpu_quota: i64) -> Option<LimitLeft> {
    let back = matches!(cpu_quota, 0 | -1)
        && (nano_cpus == 0 || nano_cpus == cpus.saturating_mul(1_000_000_000));
    (!back).then(|| LimitLeft { job: job.to_owned(), nano_cpus, cpu_quota })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_and_no_quota_are_no_limit() {
        assert_eq!(limit_left("vae", 2, 0, 0), None);
        assert_eq!(limit_left("vae", 2, 2_000_000_000, -1), None);
        assert!(limit_left("vae", 4, 2_000_000_000, 0).is_some());
        assert!(limit_left("vae", 2, 0, 50_000).is_some());
    }

    #[test]
    fn a_job_that_was_moved_is_where_it_goes_on() {
        let found = |id: &str, created, standing| Found {
            id: id.to_owned(),
            created,
            standing: Some(standing),
        };
        let of = |containers: &[Found]| newest(containers).map(|found| found.id.clone());
        let old = found("old", 1, Standing::EXITED);
        let running = found("new", 5, Standing::RUNNING);
        assert_eq!(of(&[old.clone(), running.clone()]).as_deref(), Some("new"));
        // It did not come about on the other node, and went on where it was.
        let back = [found("old", 1, Standing::RUNNING), found("new", 5, Standing::EXITED)];
        assert_eq!(of(&back).as_deref(), Some("old"));
        let over = [old, found("new", 5, Standing::EXITED)];
        assert_eq!(of(&over).as_deref(), Some("new"), "its end is that of the newest");
        assert_eq!(of(&[]), None);
    }
}
