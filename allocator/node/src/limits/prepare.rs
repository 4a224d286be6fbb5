//! Prepares a write: inspects the container, follows changes by its owner, and records what the write
//! may leave.

use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_cgroup::Cgroup;
use paceline_cgroup::block_io::IoWeight;
use paceline_runtime::Container;
use tracing::info;

use super::actuator::{ENGINE_TIMEOUT, kept, silent};
use super::follow::follow;
use super::originals::{Original, OriginalsError};
use super::record::{LastWrite, Observed};
use super::target::Target;
use super::written_state::WrittenState;
use super::{Actuator, ActuatorBackend, LimitError, OnDrift};
use crate::crash;

impl Actuator {
    /// Takes in the engine's description of a container. A write to a control group's file can use
    /// it instead of asking the engine again, as long as the kernel shows no change.
    pub fn described(&self, container: &Container) {
        let state = self.written.get(&container.id).unwrap_or_default();
        if self.backend == ActuatorBackend::Engine || state.yielded || state.has_seen(container) {
            return;
        }
        if state.is_written() {
            // The next write inspects the container to find out who changed it.
            self.written.update(&container.id, WrittenState::forget_seen);
        } else {
            let target = Arc::new(self.target(container.clone()));
            self.written.update(&container.id, |state| state.see(target));
        }
    }

    /// Inspects container `id`, and follows its owner.
    pub(super) async fn prepare(&self, id: &str) -> Result<Arc<Target>, LimitError> {
        let state = self.written.get(id).unwrap_or_default();
        if state.yielded {
            return Err(LimitError::Yielded(id.to_owned()));
        }
        let seen = state.as_seen().filter(|_| self.backend != ActuatorBackend::Engine);
        let target = match seen {
            Some(target) => target,
            None => self.inspect_and_remember(id).await?,
        };
        self.adopt_late(&target).await?;
        if self.follow_owner(&target).await? && self.on_drift == OnDrift::Yield {
            self.yield_to_owner(&target).await?;
            return Err(LimitError::Yielded(target.name()));
        }
        self.written.update(target.id(), |state| state.before_write(&target));
        Ok(target)
    }

    /// Records the values that the next write may leave in a container, and with the first one its
    /// original limits. On return the record survives what the write survives: for one by the engine,
    /// the machine. A control group does not survive it, so such a write need not wait for the disk.
    pub(super) async fn write_ahead(
        &self,
        target: &Target,
        before: &Observed,
        last: LastWrite,
        by_engine: bool,
    ) -> Result<(), LimitError> {
        crash::point("before-snapshot");
        let failed = |error| kept(target.name(), error);
        let record = self.originals.get(target.id()).map_err(failed)?;
        let original = record.map_or_else(
            || Original::new(&target.container, before, unix_seconds()),
            |record| record.original,
        );
        if by_engine {
            self.on_disk(move |originals| originals.write_ahead(&original, last, true)).await
        } else {
            self.originals.write_ahead(&original, last, false)
        }
        .map_err(failed)?;
        crash::point("after-snapshot");
        Ok(())
    }

    /// Runs a call that waits for the disk on another thread.
    pub(super) async fn on_disk(
        &self,
        call: impl FnOnce(&super::originals::Originals) -> Result<(), OriginalsError> + Send + 'static,
    ) -> Result<(), OriginalsError> {
        let originals = Arc::clone(&self.originals);
        let done = tokio::task::spawn_blocking(move || call(&originals)).await;
        done.unwrap_or_else(|error| {
            let folder = self.originals.folder().to_owned();
            Err(OriginalsError::Io(folder, std::io::Error::other(error)))
        })
    }

    /// Takes limits that the owner has set since our last write for the container's new original
    /// ones. Returns whether there are any.
    pub(super) async fn follow_owner(&self, target: &Target) -> Result<bool, LimitError> {
        let failed = |error| kept(target.name(), error);
        let Some(record) = self.originals.get(target.id()).map_err(failed)? else {
            return Ok(false);
        };
        self.originals.end_absence(&record.original).map_err(failed)?;
        let Some(mut followed) = follow(&record, &target.observe()) else { return Ok(false) };
        let changed = followed.cap || followed.weight;
        if changed {
            info!(
                "the limits of container {} were changed outside Paceline: recorded as its originals",
                target.name()
            );
        }
        followed.original.absent = None;
        self.on_disk(move |originals| originals.replace(&followed.original))
            .await
            .map_err(failed)?;
        Ok(changed)
    }

    /// Inspects a container and remembers its description.
    async fn inspect_and_remember(&self, id: &str) -> Result<Arc<Target>, LimitError> {
        let target = Arc::new(self.inspect(id).await?);
        if self.backend != ActuatorBackend::Engine {
            self.written.update(id, |state| state.see(Arc::clone(&target)));
        }
        Ok(target)
    }

    /// Inspects a container.
    pub(super) async fn inspect(&self, id: &str) -> Result<Target, LimitError> {
        let asked = tokio::time::timeout(ENGINE_TIMEOUT, self.runtime.inspect(id));
        let container = match asked.await {
            Ok(Ok(Some(container))) => container,
            Ok(Ok(None)) => return Err(LimitError::Gone(id.to_owned())),
            Ok(Err(error)) => return Err(LimitError::Engine(id.to_owned(), error)),
            Err(_) => return Err(silent(id.to_owned())),
        };
        Ok(self.target(container))
    }

    /// A described container with its control group.
    fn target(&self, container: Container) -> Target {
        let own = |pid| Cgroup::for_container(&self.proc, pid, &container.id).ok();
        let cgroup = container.pid.and_then(own);
        let seen = container.pid.zip(cgroup.as_ref());
        let io = seen
            .and_then(|(pid, group)| IoWeight::for_process(&self.proc, pid, group.cpu_folder()));
        Target { container, cgroup, proc: self.proc.clone(), io }
    }
}
