//! How one job's endpoint is reached, and who may answer there.
//!
//! Nothing that the container provides is opened on the calling thread: see [`crate::observe::calls`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_api::labels::SIDECAR_OF;
use paceline_runtime::{Container, Runtime, Stage, processes};
use tokio::net::{TcpStream, UnixStream};

use super::{ANSWER_TIMEOUT, unix};
use crate::observe::calls::{CallPool, JobCalls};
use crate::observe::namespace;
use crate::observe::networks::{Member, Networks};
use crate::observe::owner::{self, NotOwned, SearchBudget};

/// The most sidecars of one job that are looked at.
const MAX_SIDECARS: usize = 8;

/// The way to one container's endpoint.
#[derive(Clone, Debug)]
pub struct Reach {
    proc: PathBuf,
    container: String,
    /// The user who must answer on a socket, if the job is not a container.
    owner: Option<u32>,
    calls: JobCalls,
    /// `None` if the container is not running.
    network: Option<Arc<Member>>,
    budget: SearchBudget,
    /// The engine that names the job's sidecars, and the job.
    engine: Option<(Runtime, String)>,
    /// The control groups of the sidecars that answered before.
    sidecars: Arc<Mutex<Vec<PathBuf>>>,
}

impl Reach {
    /// The way to a container that is looked at by itself.
    pub fn new(proc: &Path, container: &Container) -> Self {
        Self::among(proc, container, &CallPool::default(), &Networks::default())
    }

    /// The way to one of several watched containers.
    pub fn among(proc: &Path, container: &Container, pool: &CallPool, networks: &Networks) -> Self {
        Self {
            proc: proc.to_owned(),
            container: container.id.clone(),
            owner: processes::owner(container),
            calls: pool.of_job(),
            network: container.pid.map(|pid| Arc::new(networks.enter(proc, pid))),
            budget: SearchBudget::default(),
            engine: None,
            sidecars: Arc::default(),
        }
    }

    /// The same, also accepting answers of containers that are labelled as sidecars of `job`.
    #[must_use]
    pub fn with_sidecars(self, runtime: Runtime, job: &str) -> Self {
        Self { engine: Some((runtime, job.to_owned())), ..self }
    }

    /// Whether who listens must be checked.
    pub(super) fn must_be_checked(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.must_be_checked())
    }

    /// How many opted-in containers are on its network.
    pub(super) fn seen(&self) -> usize {
        self.network.as_ref().map_or(0, |network| network.seen())
    }

    /// Waits until an opted-in container has entered or left its network since `seen`.
    pub(super) async fn changed(&self, seen: usize) {
        match &self.network {
            Some(network) => network.changed(seen).await,
            None => std::future::pending().await,
        }
    }

    /// Connects to a port of the loopback of process `pid`.
    pub(super) async fn connect(&self, pid: u32, port: u16) -> Result<TcpStream, NotOwned> {
        let proc = self.proc.clone();
        let stream =
            self.calls.run(move |_| namespace::connect(&proc, pid, port, ANSWER_TIMEOUT)).await?;
        if self.must_be_checked() {
            self.ensure_own(pid, port).await?;
        }
        Ok(TcpStream::from_std(stream)?)
    }

    /// Connects to a Unix socket by its path inside the container.
    pub(super) async fn connect_unix(
        &self,
        root: &Path,
        path: &Path,
    ) -> std::io::Result<UnixStream> {
        let (root, path) = (root.to_owned(), path.to_owned());
        let stream = self.calls.run(move |_| unix::connect(&root, &path)).await?;
        let stream = UnixStream::from_std(stream)?;
        // Without a container around it, the path may lead to any socket of the machine.
        match self.owner {
            Some(owner) if stream.peer_cred()?.uid() != owner => {
                let why = "the socket belongs to another user than the job";
                Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, why))
            }
            _ => Ok(stream),
        }
    }

    /// Fails unless the container itself or one of its sidecars listens on the port.
    async fn ensure_own(&self, pid: u32, port: u16) -> Result<(), NotOwned> {
        let known = self.sidecars.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = match self.search(pid, port, known.clone()).await {
            Err(refused @ NotOwned::Stranger(_)) => refused,
            searched => return searched,
        };
        // The engine is asked only if need be.
        let sidecars = self.find_sidecars().await;
        if sidecars.is_empty() || sidecars == known {
            return Err(refused);
        }
        self.search(pid, port, sidecars.clone()).await?;
        *self.sidecars.lock().unwrap_or_else(PoisonError::into_inner) = sidecars;
        Ok(())
    }

    /// Looks for the port's listeners in the container and in these groups of sidecars.
    async fn search(&self, pid: u32, port: u16, sidecars: Vec<PathBuf>) -> Result<(), NotOwned> {
        let (proc, container) = (self.proc.clone(), self.container.clone());
        let budget = self.budget.clone();
        let searching = self.calls.search(move |cancelled| {
            namespace::enter(&proc, pid)?;
            let (version, own) = owner::group_folder(&proc, pid, &container)?;
            let folders: Vec<PathBuf> = std::iter::once(own).chain(sidecars).collect();
            let groups = (version, folders.as_slice());
            Ok(owner::ensure_listens(&proc, (pid, port), groups, &budget, cancelled))
        });
        searching.await?
    }

    /// The control groups of the job's running sidecars.
    async fn find_sidecars(&self) -> Vec<PathBuf> {
        let Some((runtime, job)) = &self.engine else { return Vec::new() };
        let label = format!("{SIDECAR_OF}={job}");
        // Without an answer of the engine, the next connection asks again.
        let listed = runtime.list(&[&label]).await.unwrap_or_default();
        let mut found = Vec::new();
        for sidecar in listed.iter().filter(|one| one.stage == Stage::Runs).take(MAX_SIDECARS) {
            let described = runtime.inspect(&sidecar.id).await.ok().flatten();
            let Some(pid) = described.and_then(|described| described.pid) else { continue };
            found.extend(owner::group_folder(&self.proc, pid, &sidecar.id).map(|(_, group)| group));
        }
        found
    }
}
