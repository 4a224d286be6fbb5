//! Containers that the engine does not know. Such a container may exist all the same: an engine may come
//! up without its data, or with other data. So its record stays until it is known to be gone.
//!
//! A limit that was written into files alone is restored without the engine, also if that does not answer.

use std::time::Duration;
use std::{fs, io};

use paceline_api::clock::unix_seconds;
use paceline_cgroup::block_io::IoWeight;
use paceline_cgroup::{Cgroup, Found};
use tracing::debug;

use super::actuator::{kept, write_file};
use super::follow::follow;
use super::originals::{Absence, Original, OriginalsError, Record};
use super::record::Observed;
use super::restore::{differences, is_restored, not_restored};
use super::restored::{Report, Restored, Values};
use super::{Actuator, LimitError};

/// How long an engine must not know a container until that counts as its end …
const MIN_ABSENCE: f64 = 600.0;
/// … and how often it must be asked in that time.
const MIN_ASKED: u32 = 3;
/// How long the engine may take to report a past removal.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

impl Actuator {
    /// Restores a container that the engine does not know. The limit in its control group is restored
    /// even so; whether its record ends depends on what is known.
    pub(super) async fn restore_absent(&self, record: &Record) -> Result<Report, LimitError> {
        if let Some(report) = self.restore_without_engine(record)? {
            return Ok(report);
        }
        let original = &record.original;
        let id = &original.id;
        let found = self.find_group(record);
        if let Some(Found::Here(cgroup)) = &found {
            self.restore_group(cgroup, record)?;
        }
        let exists = matches!(found, Some(Found::Here(_) | Found::Replaced(_)));
        if self.is_gone(id, original.since.unwrap_or_default(), exists).await {
            return Ok(Report::new(original, Restored::Gone, None));
        }
        Err(self.absent(id, original.name.clone()))
    }

    /// The same without an answer of the engine. `None` if that is not enough: the engine may keep a limit,
    /// or the control group cannot be seen from here.
    pub(super) fn restore_unanswered(&self, record: &Record) -> Result<Option<Report>, LimitError> {
        Ok(match self.restore_without_engine(record)? {
            // The control group has ended, and perhaps not the container: it has its owner's limits.
            Some(Report { outcome: Restored::Gone, .. }) => {
                Some(Report::new(&record.original, Restored::Exactly, None))
            }
            report => report,
        })
    }

    /// Restores a container in which the engine keeps nothing of ours, by the files of its control group
    /// alone. `None` if the engine may keep a limit, or the group cannot be seen from here.
    pub(super) fn restore_without_engine(
        &self,
        record: &Record,
    ) -> Result<Option<Report>, LimitError> {
        if record.is_of_engine() {
            return Ok(None);
        }
        match self.find_group(record) {
            Some(Found::Here(cgroup)) => self.restore_group(&cgroup, record).map(Some),
            // Nothing of ours was anywhere else. A later group of that path is not the one of the write.
            Some(Found::Ended | Found::Replaced(_)) => {
                Ok(Some(Report::new(&record.original, Restored::Gone, None)))
            }
            Some(Found::Unseen) | None => Ok(None),
        }
    }

    /// The control group of our last write.
    pub(super) fn find_group(&self, record: &Record) -> Option<Found> {
        let group = record.last.as_ref().and_then(|last| last.group.as_ref());
        group.map(|group| group.find(&self.proc))
    }

    /// Decides about a record that cannot be read: it ends with its container.
    pub(super) async fn without_record(
        &self,
        id: &str,
        error: OriginalsError,
    ) -> Result<Report, LimitError> {
        let failed = kept(id.to_owned(), error);
        match self.inspect(id).await {
            Err(LimitError::Gone(_)) if self.is_gone(id, 0.0, false).await => {
                let name = paceline_runtime::short(id).to_owned();
                Ok(Report { name, outcome: Restored::Gone, values: None })
            }
            _ => Err(failed),
        }
    }

    /// Whether a container that the engine does not know is known to be gone. `exists` is whether it has
    /// a control group.
    async fn is_gone(&self, id: &str, since: f64, exists: bool) -> bool {
        if self.was_removed(id, since).await {
            return true;
        }
        let Absence { since, times, .. } = self.originals.count_absence(id);
        !exists && times >= MIN_ASKED && unix_seconds() - since >= MIN_ABSENCE
    }

    /// Whether the engine reports that a container was removed, after the time `since`.
    pub(super) async fn was_removed(&self, id: &str, since: f64) -> bool {
        let removed = self.runtime.was_removed(id, since, unix_seconds());
        match tokio::time::timeout(REMOVAL_TIMEOUT, removed).await {
            Ok(Ok(removed)) => removed,
            Ok(Err(error)) => {
                debug!("cannot ask for the removal of container {id}: {error}");
                false
            }
            Err(_) => false,
        }
    }

    fn absent(&self, id: &str, name: String) -> LimitError {
        LimitError::Absent { name, file: self.originals.folder().join(format!("{id}.json")) }
    }

    /// Restores the limits of a control group without its engine.
    pub(super) fn restore_group(
        &self,
        cgroup: &Cgroup,
        record: &Record,
    ) -> Result<Report, LimitError> {
        let observe = || Observed {
            host: record.original.host_config,
            quota: cgroup.quota().ok(),
            weight: cgroup.weight().ok(),
            group: record.last.as_ref().and_then(|last| last.group.clone()),
            scale: cgroup.weight_scale(),
            ..Observed::default()
        };
        let found = observe();
        let followed = follow(record, &found).map(|followed| followed.original);
        let original = followed.unwrap_or_else(|| record.original.clone());
        let io = self.io_weight_of(cgroup, &original.id);
        let mut refused = Vec::new();
        if let Some(weight) = original.io_weight.filter(|_| record.may_leave_io_weight()) {
            let set = io.as_ref().map_or(Err(io::ErrorKind::NotFound.into()), |io| io.set(weight));
            refused
                .extend(set.err().map(|error| format!("block I/O with weight {weight}: {error}")));
        }
        for write in differences(&found, &original) {
            if let Err(error) = write_file(cgroup, write) {
                refused.push(format!("{write}: {error}"));
            }
        }
        let read = Observed { io_weight: io.and_then(|io| io.get().ok()), ..observe() };
        let values = Values::new(&found, &original, &read);
        // Where nothing of ours can be in the weight of block I/O, it need not be seen.
        let io_weight = original.io_weight.filter(|_| record.may_leave_io_weight());
        if is_restored(&read, &Original { io_weight, ..original.clone() }, self.cpus) {
            return Ok(Report::new(&original, Restored::Exactly, Some(values)));
        }
        Err(not_restored(original.name, refused, values))
    }

    /// The weight of block I/O of a container's control group, whose folder one of its processes shows.
    fn io_weight_of(&self, cgroup: &Cgroup, id: &str) -> Option<IoWeight> {
        let folder = cgroup.cpu_folder();
        let processes = fs::read_to_string(folder.join("cgroup.procs")).ok()?;
        let pid = processes.lines().next()?.parse().ok()?;
        IoWeight::for_container(&self.proc, (pid, id), folder)
    }
}
