//! The last steps of a move: the successor replaces the source, or the source resumes.

use paceline_api::labels::MOVED_FROM;
use paceline_runtime::Container;

use super::{Containers, failed};
use crate::migration::{Move, StepError, StepOutcome};

impl Containers {
    /// Removes the source, unless the job runs there. This is checked again, because the proof may be
    /// old and a user may have changed the containers since.
    pub(super) async fn retire(&self, plan: &Move) -> Result<StepOutcome, StepError> {
        if self.inspect(&plan.source).await?.is_none() {
            return Ok(StepOutcome::None);
        }
        if !self.has_successor(plan).await? {
            return Ok(StepOutcome::Refuted("the container on the target is gone".to_owned()));
        }
        let given_up = self.give_up(&plan.source).await?;
        Ok(given_up.map_or(StepOutcome::None, StepOutcome::Refuted))
    }

    /// Removes a container that is paused or has ended. Returns the reason if it is running.
    pub async fn give_up(&self, id: &str) -> Result<Option<String>, StepError> {
        let Some(source) = self.inspect(id).await? else { return Ok(None) };
        if source.state.running && !source.state.paused {
            return Ok(Some("the container at the source was resumed".to_owned()));
        }
        self.remove(id).await.map(|()| None)
    }

    /// Whether the container that was created for this move exists, under either of its names.
    async fn has_successor(&self, plan: &Move) -> Result<bool, StepError> {
        for name in [&plan.successor(), &plan.name] {
            if self.inspect(name).await?.is_some_and(|it| is_successor(&it, plan)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) async fn rename(&self, plan: &Move) -> Result<(), StepError> {
        // If no container has the temporary name, the rename is already done.
        if self.inspect(&plan.successor()).await?.is_none() {
            return Ok(());
        }
        let renamed = self.runtime.rename(&plan.successor(), &plan.name).await;
        renamed.map_err(failed("rename the container"))
    }

    /// Removes the container on the target, if it was created for this move.
    pub(super) async fn discard(&self, plan: &Move) -> Result<(), StepError> {
        let name = plan.successor();
        let Some(container) = self.inspect(&name).await? else { return Ok(()) };
        if is_successor(&container, plan) {
            self.remove(&container.id).await?;
        }
        Ok(())
    }

    /// Resumes a paused container.
    pub async fn thaw(&self, id: &str) -> Result<(), StepError> {
        let Some(source) = self.inspect(id).await? else { return Ok(()) };
        if !source.state.paused {
            return Ok(());
        }
        let resumed = self.runtime.resume(id).await;
        resumed.map_err(failed("resume the container"))
    }

    /// Removes a container and kills its processes. A paused container does not run again.
    pub async fn remove(&self, id: &str) -> Result<(), StepError> {
        match self.runtime.remove(id, false).await {
            Err(error) if !error.is_missing() => Err(failed("remove the container")(error)),
            _ => Ok(()),
        }
    }
}

/// Whether a container was created for this move.
fn is_successor(container: &Container, plan: &Move) -> bool {
    container.labels.get(MOVED_FROM) == Some(&plan.source)
}
