//! Jobs outside containers. `paceline exec` starts each in a control group of its own, and records it.
//!
//! No engine can be asked: a folder of records names the jobs ([`folder`]), and
//! the kernel says whether they run. Limits are written into the groups' files alone. A record may set
//! only its owner's own job: the job's id names its user, and the same user must own the control group and
//! the process that answers on the endpoint's socket.
//!
//! Users decide how many files and groups there are to read, so another thread reads them, and one look at
//! all jobs follows the other.
//!
//! Root manages the jobs of all users, and each other user may manage their own. A user's allocator does
//! not start beside root's, and root's leaves the jobs of a user alone whose own allocator runs
//! (`managers`). A limit that one of them has left is not taken for the owner's by the other (`mark`).

pub mod folder;
mod job;
mod managers;
mod mark;
mod reap;
mod record;
mod stop;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use paceline_cgroup::Used;
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};
use tracing::debug;

use super::docker::Docker;
use super::{Change, Container, ContainerEvent, Description, Listed, RuntimeError, Stage};
use folder::{Folder, Place};
use job::Job;

pub use job::{clean, owner};
pub use managers::{ManagerError, Managing, is_managed_by_root};
pub use mark::{Mark, mark, mark_of_another, unmark};
pub use reap::remove_after_end;
pub use record::{Record, is_job, new_id, socket};

/// The id of this runtime, where an engine would have one.
const ID: &str = "processes";

/// The jobs of one user or of all users, alone or together with the containers of an engine.
#[derive(Clone, Debug)]
pub struct Processes {
    shared: Arc<Shared>,
    /// Held by the look at all jobs.
    turn: Arc<Mutex<()>>,
    /// The engine of containers beside them.
    beside: Option<Docker>,
}

#[derive(Debug)]
struct Shared {
    proc: PathBuf,
    uid: u32,
    /// The folders to look at; `None` means all.
    only: Option<Vec<Place>>,
}

impl Processes {
    /// All jobs that user `uid` may manage: for root all, else the user's own. `/proc` is at `proc`.
    pub fn new(proc: &Path, uid: u32, beside: Option<Docker>) -> Self {
        let only = (uid != 0).then(|| Place::visible_to(uid));
        Self::of(Shared { proc: proc.to_owned(), uid, only }, beside)
    }

    fn of(shared: Shared, beside: Option<Docker>) -> Self {
        Self { shared: Arc::new(shared), turn: Arc::default(), beside }
    }

    /// Runs a call on another thread.
    async fn aside<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let shared = Arc::clone(&self.shared);
        match spawn_blocking(move || call(&shared)).await.map_err(JoinError::try_into_panic) {
            Ok(done) => Ok(done),
            Err(Ok(panic)) => resume_unwind(panic),
            Err(Err(cancelled)) => Err(RuntimeError::Failed(cancelled.into())),
        }
    }

    /// All jobs that run and have all of `labels` (`KEY` or `KEY=VALUE`).
    async fn described(&self, labels: Vec<String>) -> Result<Vec<Container>, RuntimeError> {
        // It goes with the call, which a caller that has given up does not end.
        let turn = Arc::clone(&self.turn).lock_owned().await;
        self.aside(move |shared| {
            let found = shared.described(&labels);
            drop(turn);
            found
        })
        .await
    }

    /// The engine for what only containers have.
    pub(super) fn engine(&self) -> Result<&Docker, RuntimeError> {
        self.beside.as_ref().ok_or_else(|| only_containers("do this"))
    }

    /// The engine of a container; `None` for a job.
    pub(super) fn engine_of(&self, id: &str) -> Result<Option<&Docker>, RuntimeError> {
        if is_job(id) { Ok(None) } else { self.engine().map(Some) }
    }

    /// The engine of a container, for what a job cannot do.
    pub(super) fn container(&self, id: &str) -> Result<&Docker, RuntimeError> {
        self.engine_of(id)?.ok_or_else(|| only_containers("be moved or paused"))
    }

    pub(super) async fn describe(&self) -> Result<Description, RuntimeError> {
        match &self.beside {
            Some(docker) => docker.describe().await,
            None => Ok(self.shared.description()),
        }
    }

    pub(super) async fn opted_in(&self, labels: &[String]) -> Result<Vec<String>, RuntimeError> {
        let mut ids = match &self.beside {
            Some(docker) => docker.opted_in(labels).await?,
            None => Vec::new(),
        };
        ids.extend(self.described(labels.to_vec()).await?.into_iter().map(|job| job.id));
        Ok(ids)
    }

    pub(super) async fn list(&self, labels: &[&str]) -> Result<Vec<Listed>, RuntimeError> {
        let mut listed = match &self.beside {
            Some(docker) => docker.list(labels).await?,
            None => Vec::new(),
        };
        let listing = |job: Container| Listed {
            id: job.id,
            created: seconds(&job.started_at),
            stage: Stage::Runs,
            labels: job.labels,
        };
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        listed.extend(self.described(labels).await?.into_iter().map(listing));
        Ok(listed)
    }

    pub(super) async fn inspect(&self, name: &str) -> Result<Option<Container>, RuntimeError> {
        if is_job(name) {
            let id = name.to_owned();
            return self.aside(move |shared| shared.read(&id)?.describe()).await;
        }
        let mut named = self.described(Vec::new()).await?;
        let fits =
            |job: &Container| job.name == name || (name.len() > 4 && job.id.starts_with(name));
        named.retain(fits);
        match (named.len(), &self.beside) {
            (0, Some(docker)) => docker.inspect(name).await,
            (0 | 1, _) => Ok(named.pop()),
            _ => {
                let ids: Vec<&str> = named.iter().map(|job| job.id.as_str()).collect();
                let why = format!("{name:?} fits several jobs: {}", ids.join(", "));
                Err(RuntimeError::Ambiguous(why.into()))
            }
        }
    }

    /// Calls `on_event` for each job that has begun or ended, and for the events of the engine beside
    /// them. Ends with the engine's stream.
    pub(super) async fn follow(&self, on_event: impl FnMut(ContainerEvent)) {
        let on_event = std::sync::Mutex::new(on_event);
        let call = |event| {
            let mut on_event = on_event.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            on_event(event);
        };
        match &self.beside {
            Some(docker) => tokio::select! {
                () = docker.follow(call) => {}
                never = self.watch(call) => match never {},
            },
            None => match self.watch(call).await {},
        }
    }

    pub(super) async fn was_removed(
        &self,
        id: &str,
        since: f64,
        now: f64,
    ) -> Result<bool, RuntimeError> {
        match self.engine_of(id)? {
            Some(docker) => docker.was_removed(id, since, now).await,
            // A record may be out of sight; the control group says more.
            None => Ok(false),
        }
    }

    pub(super) async fn follow_use(&self, id: &str, on_event: impl FnMut(Used)) {
        match self.engine_of(id) {
            Ok(Some(docker)) => docker.follow_use(id, on_event).await,
            // Only the control group has the figures.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    pub(super) async fn update(&self, id: &str, change: Change) -> Result<(), RuntimeError> {
        match self.engine_of(id)? {
            Some(docker) => docker.update(id, change).await,
            // Nothing starts a job again.
            None if change == Change::StaysEnded => Ok(()),
            None => Err(only_containers("keep a limit outside of its control group")),
        }
    }

    pub(super) async fn stop(&self, id: &str, seconds: i32) -> Result<(), RuntimeError> {
        if let Some(docker) = self.engine_of(id)? {
            return docker.stop(id, seconds).await;
        }
        let wanted = id.to_owned();
        match self.aside(move |shared| shared.read(&wanted)).await? {
            Some(job) => stop::stop(&self.shared.proc, &job, seconds).await,
            None => Err(RuntimeError::Missing("the job has ended".into())),
        }
    }
}

impl Shared {
    fn places(&self) -> Vec<Place> {
        self.only.clone().unwrap_or_else(Place::all)
    }

    /// The folders that exist.
    fn folders(&self) -> Vec<Folder> {
        self.places().iter().filter_map(|place| place.open().ok()).collect()
    }

    /// A job that is recorded.
    fn read(&self, id: &str) -> Option<Job> {
        let folder = Record::folder_of(&self.places(), id)?;
        let job = Job::read(&self.proc, &folder, id).ok()?;
        self.may_manage(&folder, job.uid).then_some(job)
    }

    fn may_manage(&self, folder: &Folder, uid: u32) -> bool {
        // Root's own allocator holds the lock of root's jobs itself.
        self.uid == uid || (self.uid == 0 && !managers::manages(folder, uid))
    }

    /// All jobs that run and have all of `labels` (`KEY` or `KEY=VALUE`). What ended ones have left is
    /// removed.
    fn described(&self, labels: &[String]) -> Vec<Container> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for folder in self.folders() {
            for id in job::ids(&folder) {
                // The first record of a job counts.
                if !seen.insert(id.clone()) {
                    continue;
                }
                let job = match Job::read(&self.proc, &folder, &id) {
                    Ok(job) if self.may_manage(&folder, job.uid) => job,
                    Ok(_) => continue,
                    Err(error) => {
                        debug!("cannot use the record of job {id}: {error}");
                        continue;
                    }
                };
                match job.describe() {
                    Some(container) => found.push(container),
                    None => {
                        // What cannot be removed now is looked at again.
                        let _gone = job.remove(&folder);
                    }
                }
            }
        }
        found.retain(|job| labels.iter().all(|wanted| has(&job.labels, wanted)));
        found
    }

    fn description(&self) -> Description {
        let read = |name: &str| fs::read_to_string(self.proc.join(name)).unwrap_or_default();
        let stat = read("stat");
        let is_cpu = |line: &&str| {
            let number = line.strip_prefix("cpu").and_then(|rest| rest.split(' ').next());
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let memory = read("meminfo");
        let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib = total.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok());
        let trimmed = |name: &str| Some(read(name).trim().to_owned()).filter(|it| !it.is_empty());
        Description {
            id: Some(ID.to_owned()),
            data: self.places().first().map(|place| place.path().display().to_string()),
            name: trimmed("sys/kernel/hostname"),
            cpus: stat.lines().filter(is_cpu).count().try_into().ok(),
            memory: kib.map(|kib| kib.saturating_mul(1024)),
            kernel: trimmed("sys/kernel/osrelease"),
            ..Description::default()
        }
    }
}

fn has(labels: &BTreeMap<String, String>, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|it| it == value),
        None => labels.contains_key(wanted),
    }
}

/// A time in RFC 3339, in whole Unix seconds.
fn seconds(text: &str) -> i64 {
    let at = humantime::parse_rfc3339(text).ok();
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}

pub(super) fn only_containers(what: &str) -> RuntimeError {
    RuntimeError::Failed(format!("a job outside containers cannot {what}").into())
}

#[cfg(test)]
mod tests;
