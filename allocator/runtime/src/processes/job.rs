//! A job as its record and the kernel describe it. The record belongs to a user, and is trusted for
//! what that user may do anyway: its id and its control group must belong to the same user.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use paceline_api::clock::unix_seconds;
use paceline_api::labels::ENABLE;
use paceline_api::plain;
use paceline_cgroup::job_group::JobGroup;
use rustix::io::Errno;
use tracing::warn;

use super::folder::{Folder, Place};
use super::record::{self, Record};
use crate::{Container, HostCpu, State};

/// The label with the user who owns a job. The runtime sets it; a record cannot.
const OWNER: &str = "paceline.owner";
/// The most settings of one job, and the longest in bytes.
const MAX_SETTINGS: usize = 64;
const MAX_LEN: usize = 2048;
/// The most jobs of one user.
const MAX_JOBS: usize = 256;
/// How old an unfinished file is, in seconds, before it counts as left by a killed `paceline exec`.
const MIN_AGE: f64 = 60.0;
/// The last second that RFC 3339 can write, in Unix seconds.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// A job that is recorded.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) record: Record,
    pub(super) uid: u32,
    /// Its control group; `None` if that has ended.
    pub(super) group: Option<JobGroup>,
}

impl Job {
    /// Reads job `id` of a folder.
    pub(super) fn read(proc: &Path, folder: &Folder, id: &str) -> io::Result<Self> {
        let (record, uid) = Record::read(folder, id)?;
        let group = match JobGroup::from_text(proc, id, &record.groups) {
            Ok(group) => Some(group),
            // The kernel knows no such group. Any other error says only that it cannot be seen from here.
            Err(error) if is_gone(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(group) = &group
            && group.owner()? != uid
        {
            let why = "its control group belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Self { record, uid, group })
    }

    /// The processes that are left of it.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.group.as_ref().map(JobGroup::processes).unwrap_or_default()
    }

    /// Its present description; `None` if it has ended.
    pub(super) fn describe(&self) -> Option<Container> {
        let processes = self.processes();
        let first = processes.iter().find(|pid| **pid == self.record.pid);
        // The first process may end before its children.
        let pid = first.or_else(|| processes.iter().min()).copied()?;
        let settings = self.record.labels.iter().take(MAX_SETTINGS);
        let is_setting =
            |(key, value): &(&String, &String)| key.len() <= MAX_LEN && value.len() <= MAX_LEN;
        let mut labels: BTreeMap<String, String> =
            settings.filter(is_setting).map(|(key, value)| (key.clone(), value.clone())).collect();
        labels.insert(ENABLE.to_owned(), "true".to_owned());
        labels.insert(OWNER.to_owned(), self.uid.to_string());
        Some(Container {
            id: self.record.id.clone(),
            name: plain::name(&self.record.name),
            pid: Some(pid),
            started_at: rfc_3339(self.record.started_at),
            labels,
            addresses: Vec::new(),
            published: Vec::new(),
            host_config: HostCpu::default(),
            cpuset_cpus: String::new(),
            mounted: Vec::new(),
            network_mode: "host".to_owned(),
            state: State { running: true, ..State::default() },
            pod: None,
        })
    }
}

/// A time in RFC 3339, as engines write it. A record may have any number.
fn rfc_3339(seconds: f64) -> String {
    let since = Duration::try_from_secs_f64(seconds.min(LAST_SECOND)).unwrap_or_default();
    humantime::format_rfc3339_nanos(UNIX_EPOCH + since).to_string()
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NODEV].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

/// The user who owns a job outside containers; `None` for a container.
pub fn owner(container: &Container) -> Option<u32> {
    let given = container.labels.get(OWNER).filter(|_| record::is_job(&container.id));
    given.and_then(|uid| uid.parse().ok())
}

/// The ids of the jobs that are recorded in a folder; at most [`MAX_JOBS`] for each user.
pub(super) fn ids(folder: &Folder) -> Vec<String> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Ok((owner, shared)) = folder.owner() else { return Vec::new() };
    let mut count: BTreeMap<u32, usize> = BTreeMap::new();
    let recorded = folder.entries(|name| {
        let id = record::id_of(name)?;
        let uid = record::user_of(id)?;
        // Nothing is opened for the further ones: a user may add many.
        if count.get(&uid).is_some_and(|jobs| *jobs >= MAX_JOBS) {
            if !SAID.swap(true, Ordering::Relaxed) {
                let path = folder.path().display();
                warn!(
                    "user {uid} has more than {MAX_JOBS} jobs in {path}: the others are not seen"
                );
            }
            return None;
        }
        let user = if shared { folder.user_of(name).ok()? } else { owner };
        if user != uid {
            return None;
        }
        *count.entry(uid).or_default() += 1;
        Some(id.to_owned())
    });
    let mut ids = recorded.unwrap_or_default();
    ids.sort();
    ids
}

/// Removes what ended jobs of user `uid` have left in a folder. Root removes it for every user.
pub fn clean(proc: &Path, place: &Place, uid: u32) {
    let Ok(folder) = place.open() else { return };
    let may_remove = |id: &str| uid == 0 || record::user_of(id) == Some(uid);
    let before = unix_seconds() - MIN_AGE;
    let parts = folder.entries(|name| {
        record::id_of_part(name).filter(|id| may_remove(id))?;
        folder.written(name).is_ok_and(|written| written < before).then(|| name.to_owned())
    });
    for part in parts.unwrap_or_default() {
        // What cannot be removed now is looked at again.
        drop(folder.remove(&part));
    }
    for id in ids(&folder).iter().filter(|id| may_remove(id)) {
        match Job::read(proc, &folder, id) {
            Ok(job) if job.processes().is_empty() => {
                // What cannot be removed now is looked at again.
                let _gone = job.remove(&folder);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

impl Job {
    /// Removes its group and its files, after its last process. Returns whether the group is gone.
    pub(super) fn remove(&self, folder: &Folder) -> bool {
        let removed = self.group.as_ref().is_none_or(|group| group.remove().is_ok());
        // A group that has processes again is looked at later.
        if removed {
            drop(Record::remove(folder, &self.record.id));
        }
        removed
    }
}
