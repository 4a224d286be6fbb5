//! Prepares a write: inspects the container, follows changes by its owner, and records what the write
//! may leave.

use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_cgroup::Cgroup;
use paceline_cgroup::block_io::IoWeight;
use paceline_runtime::Container;
use tokio::time::Instant;
use tracing::{info, warn};

use super::actuator::{ENGINE_TIMEOUT, kept, silent};
use super::error::chain;
use super::follow::follow;
use super::limit_write::{LimitWrite, Purpose};
use super::means::Means;
use super::originals::{Original, Originals, OriginalsError};
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

    /// Inspects container `id`, and follows its owner. Returns the means of its writes as well.
    pub(super) async fn prepare(&self, id: &str) -> Result<(Arc<Target>, Means), LimitError> {
        let state = self.written.get(id).unwrap_or_default();
        if state.yielded {
            return Err(LimitError::Yielded(id.to_owned()));
        }
        // What the engine keeps may have changed since it was described. Only files do not depend on that.
        let seen = state.as_seen().map(|target| (self.means(&target), target));
        let (means, target) = match seen {
            Some((Means::Files, target)) => (Means::Files, target),
            Some((Means::Engine, _)) | None => {
                let target = self.inspect_and_remember(id).await?;
                (self.means(&target), target)
            }
        };
        self.adopt_late(&target).await?;
        let purpose = Purpose::Limit { io: None };
        if self.follow_owner(&target, purpose).await? && self.on_drift == OnDrift::Yield {
            self.yield_to_owner(&target).await?;
            return Err(LimitError::Yielded(target.name()));
        }
        self.written.update(target.id(), |state| state.before_write(&target));
        Ok((target, means))
    }

    /// Records the values that the next write may leave in a container, and with the first one its
    /// original limits. On return the record survives what the write survives: for one by the engine,
    /// the machine. A control group does not survive it, so such a write need not wait for the disk.
    ///
    /// A restore goes on without the disk: the memory has the original limits.
    pub(super) async fn write_ahead(
        &self,
        target: &Target,
        before: &Observed,
        last: LastWrite,
        (write, purpose): (LimitWrite, Purpose),
    ) -> Result<(), LimitError> {
        crash::point("before-snapshot");
        let failed = |error| kept(target.name(), error);
        let record = self.originals.get(target.id()).map_err(failed)?;
        let original = record.map_or_else(
            || Original::new(&target.container, before, unix_seconds()),
            |record| record.original,
        );
        let by_engine = write.change().is_some();
        let ahead = move |originals: &Originals| match purpose {
            Purpose::Limit { .. } => originals.write_ahead(&original, last, by_engine),
            Purpose::Restore => originals.write_ahead_of_restore(&original, last, by_engine),
        };
        let recorded = if by_engine { self.on_disk(ahead).await } else { ahead(&self.originals) };
        unless_it_restores(target, purpose, recorded)?;
        crash::point("after-snapshot");
        Ok(())
    }

    /// Runs a call that waits for the disk on another thread.
    pub(super) async fn on_disk(
        &self,
        call: impl FnOnce(&Originals) -> Result<(), OriginalsError> + Send + 'static,
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
    pub(super) async fn follow_owner(
        &self,
        target: &Target,
        purpose: Purpose,
    ) -> Result<bool, LimitError> {
        let failed = |error| kept(target.name(), error);
        let Some(record) = self.originals.get(target.id()).map_err(failed)? else {
            return Ok(false);
        };
        let followed = follow(&record, &target.observe());
        let changed = followed.as_ref().is_some_and(|followed| followed.cap || followed.weight);
        let original = followed.map_or_else(|| record.original.clone(), |it| it.original);
        // The engine knows the container again.
        let original = Original { absent: None, ..original };
        if original == record.original {
            return Ok(false);
        }
        if changed {
            info!(
                "the limits of container {} were changed outside Paceline: recorded as its originals",
                target.name()
            );
        }
        let replaced = self.on_disk(move |originals| match purpose {
            Purpose::Limit { .. } => originals.replace(&original),
            Purpose::Restore => originals.replace_to_restore(&original),
        });
        unless_it_restores(target, purpose, replaced.await)?;
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
        let began = Instant::now();
        let asked = tokio::time::timeout(ENGINE_TIMEOUT, self.runtime.inspect(id)).await;
        self.heard(matches!(asked, Ok(Ok(_))), began).await;
        let container = match asked {
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
        let io = container.pid.zip(cgroup.as_ref()).and_then(|(pid, group)| {
            IoWeight::for_container(&self.proc, (pid, &container.id), group.cpu_folder())
        });
        Target { container, cgroup, proc: self.proc.clone(), io }
    }
}

/// The result of recording something. A failure of the disk does not stop a restore.
fn unless_it_restores(
    target: &Target,
    purpose: Purpose,
    recorded: Result<(), OriginalsError>,
) -> Result<(), LimitError> {
    match recorded {
        Err(error) if purpose == Purpose::Restore && !error.is_of_one_container() => {
            let name = target.name();
            warn!("container {name} is restored without its files: {}", chain(&error));
            Ok(())
        }
        recorded => recorded.map_err(|error| kept(target.name(), error)),
    }
}
