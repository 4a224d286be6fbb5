//! Restores original limits.
//!
//! The engine comes first, because a restart of a container brings back what the engine keeps. Then
//! the kernel's own values are corrected where they still differ. A container that the engine does not
//! know, or an engine that does not answer, is in [`super::absent`].
//!
//! A restore needs no disk: the memory has the original limits.

use paceline_cgroup::Found;
use paceline_runtime::processes::is_job;
use tracing::warn;

use super::actuator::{kept, silent, unseen};
use super::error::chain;
use super::limit_write::{LimitWrite, Purpose};
use super::originals::Record;
use super::record::{Observed, Original};
use super::restored::{Report, Restored, Values};
use super::target::Target;
use super::{Actuator, LimitError, plan_writes};
use crate::crash;

impl Actuator {
    /// Restores the original limits of container `id`; `None` if nothing was ever written to it.
    pub async fn restore(&self, id: &str) -> Result<Option<Restored>, LimitError> {
        Ok(self.restore_and_report(id).await?.map(|report| report.outcome))
    }

    /// The same, with the values before and after.
    pub async fn restore_and_report(&self, id: &str) -> Result<Option<Report>, LimitError> {
        let record = match self.originals.get(id) {
            Ok(None) => {
                self.written.clear(id);
                return Ok(None);
            }
            Ok(Some(record)) => Ok(record),
            Err(error) => Err(error),
        };
        let report = match record {
            Ok(record) => self.restore_record(id, &record).await?,
            Err(error) => self.without_record(id, error).await?,
        };
        crash::point("before-forgetting");
        if let Err(error) = self.originals.forget(id) {
            // It is not a limit that is left behind: what is in force is what the record has.
            let Report { name, outcome, .. } = &report;
            let why = chain(&error);
            warn!(
                "container {name}: {outcome}; its record cannot be removed, which this run or the next \
                 one tries again: {why}"
            );
        }
        match report.outcome {
            Restored::Gone => self.written.remove(id),
            Restored::Exactly | Restored::Equivalently => self.written.clear(id),
        }
        Ok(Some(report))
    }

    /// Restores a container with a record, whether its engine answers and knows it or not.
    async fn restore_record(&self, id: &str, record: &Record) -> Result<Report, LimitError> {
        // The group of our last write, whatever a record of that id says now.
        if is_job(id)
            && let Some(report) = self.restore_without_engine(record)?
        {
            return Ok(report);
        }
        // An engine that answers slowly would take longer than this process has.
        if self.silence.is_hurried()
            && let Some(report) = self.restore_unanswered(record)?
        {
            return Ok(report);
        }
        if self.silence.lasts() {
            let name = || record.original.name.clone();
            return self.restore_unanswered(record)?.ok_or_else(|| silent(name()));
        }
        match self.restore_limits(id).await {
            Err(LimitError::Gone(_)) => self.restore_absent(record).await,
            Err(error @ (LimitError::Engine(..) | LimitError::Silent { .. })) => {
                let now = self.originals.get(id).ok().flatten();
                self.restore_unanswered(now.as_ref().unwrap_or(record))?.ok_or(error)
            }
            other => other,
        }
    }

    async fn restore_limits(&self, id: &str) -> Result<Report, LimitError> {
        let target = self.inspect(id).await?;
        // Limits that the owner has set meanwhile must not be undone.
        self.follow_owner(&target, Purpose::Restore).await?;
        let failed = |error| kept(target.name(), error);
        let Some(record) = self.originals.get(id).map_err(failed)? else {
            return Err(LimitError::Gone(target.name()));
        };
        let found = target.observe();
        let mut refused = self.restore_by_engine(&target, &record).await?;
        let target = self.inspect(id).await?;
        refused.extend(self.restore_files(&target, &record.original).await?);
        if let Some(report) = self.restore_hidden(&target, &record)? {
            return Ok(report);
        }
        let (was, read) = (&record.original, target.observe());
        let values = Some(Values::new(&found, was, &read));
        let kernel_is_right = target.cgroup.is_none() || is_restored(&read, was, self.cpus);
        if kernel_is_right && read.host == was.host_config {
            Ok(Report::new(was, Restored::Exactly, values))
        } else if kernel_is_right && plan_writes::equivalent(was.host_config, read.host, self.cpus)
        {
            Ok(Report::new(was, Restored::Equivalently, values))
        } else {
            Err(not_restored(target.name(), refused, Values::new(&found, was, &read)))
        }
    }

    /// Restores a limit of ours in a control group that the engine's description did not lead to: the
    /// description is old, or the group cannot be seen from here. `None` without such a limit.
    fn restore_hidden(
        &self,
        target: &Target,
        record: &Record,
    ) -> Result<Option<Report>, LimitError> {
        if target.cgroup.is_some() || record.is_of_engine() {
            return Ok(None);
        }
        match self.find_group(record) {
            Some(Found::Here(cgroup)) => self.restore_group(&cgroup, record).map(Some),
            Some(Found::Unseen) | None if target.container.pid.is_some() => Err(unseen(target)),
            // It has ended, or its container has.
            Some(Found::Ended | Found::Replaced(_) | Found::Unseen) | None => Ok(None),
        }
    }

    /// Restores what the engine keeps, if it was ever asked to change that. Returns the errors.
    async fn restore_by_engine(
        &self,
        target: &Target,
        record: &Record,
    ) -> Result<Vec<String>, LimitError> {
        let (was, is) = (record.original.host_config, target.container.host_config);
        let mut refused = Vec::new();
        // What only systemd keeps comes back with its next write, unless the engine asks for another value.
        let last = record.last.as_ref().filter(|_| target.is_of_systemd());
        let in_doubt = last.is_some_and(|last| !last.doubted_weight.is_empty());
        let mut described = None;
        if record.is_of_engine() && (was.cpu_shares != is.cpu_shares || in_doubt) {
            let weight = plan_writes::to_weigh(was.cpu_shares);
            refused.extend(self.try_to_restore(target, &[weight]).await?);
            let now = target.observe();
            if was.cpu_shares == 0
                && let Some(again) = plan_writes::to_default_weight(now.scale, now.weight)
            {
                refused.extend(self.try_to_restore(target, &[again]).await?);
            }
            // The record of the next write needs what the engine keeps now.
            described = Some(self.inspect(target.id()).await?);
        }
        let in_doubt = last.is_some_and(|last| !last.doubted_quota.is_empty());
        if record.is_of_engine() && (was.caps() != is.caps() || in_doubt) {
            let writes = plan_writes::to_restore(was, self.cpus);
            let target = described.as_ref().unwrap_or(target);
            refused.extend(self.try_to_restore(target, &writes).await?);
        }
        Ok(refused)
    }

    /// Makes the first write that is accepted. Returns the error if there is none: the kernel's own files
    /// may still be restored.
    async fn try_to_restore(
        &self,
        target: &Target,
        writes: &[LimitWrite],
    ) -> Result<Option<String>, LimitError> {
        let refused = match self.first_accepted(target, writes, Purpose::Restore).await {
            Err(error) if error.is_final() => return Err(error),
            Err(error) => Some(chain(&error)),
            Ok(()) => None,
        };
        crash::point("between-restores");
        Ok(refused)
    }

    /// Restores what the kernel enforces. Returns the errors.
    async fn restore_files(
        &self,
        target: &Target,
        original: &Original,
    ) -> Result<Vec<String>, LimitError> {
        if target.cgroup.is_none() {
            return Ok(Vec::new());
        }
        let mut refused = Vec::new();
        for write in differences(&target.observe(), original) {
            match self.first_accepted(target, &[write], Purpose::Restore).await {
                Err(error) if error.is_final() => return Err(error),
                Err(error) => refused.push(chain(&error)),
                Ok(()) => {}
            }
        }
        let io_weight = original.io_weight.filter(|weight| target.io_weight() != Some(*weight));
        if let Some((io, weight)) = target.io.as_ref().zip(io_weight)
            && let Err(error) = io.set(weight)
        {
            refused.push(format!("block I/O with weight {weight}: {error}"));
        }
        Ok(refused)
    }
}

/// Why limits are not as they were: what was refused, else the values.
pub(super) fn not_restored(name: String, mut refused: Vec<String>, values: Values) -> LimitError {
    if refused.is_empty() {
        let Values { wanted, read, .. } = values;
        refused.push(format!("put back {wanted}, and read back {read}"));
    }
    LimitError::Refused { name, refused: refused.join("; ") }
}

/// The writes to a control group's files that restore its original values.
pub(super) fn differences(now: &Observed, original: &Original) -> Vec<LimitWrite> {
    let quota = original.cgroup.filter(|quota| now.quota != Some(*quota)).map(LimitWrite::File);
    let weight = original.weight.filter(|weight| now.weight != Some(*weight));
    quota.into_iter().chain(weight.map(LimitWrite::WeightFile)).collect()
}

/// Whether the kernel has its original values.
pub(super) fn is_restored(now: &Observed, original: &Original, cpus: f64) -> bool {
    let share = |quota: paceline_cgroup::Quota| quota.share(cpus);
    original.cgroup.is_none_or(|was| now.quota.map(share) == Some(share(was)))
        && original.weight.is_none_or(|was| now.weight == Some(was))
        && original.io_weight.is_none_or(|was| now.io_weight == Some(was))
}
