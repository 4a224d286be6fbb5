//! The end of a move: its successor takes the source's place, or the source goes on.

use bollard::query_parameters::{RemoveContainerOptionsBuilder, RenameContainerOptionsBuilder};

use super::{Containers, MOVED_FROM, failed, is_paused, runs};
use crate::migrate::{CarryError, Fact, Move};
use crate::observe::container::{Container, is_missing};

impl Containers {
    /// Removes the source, unless that is where the job is: what was proved may be long ago, and
    /// somebody may have been there since.
    pub(super) async fn retire(&self, plan: &Move) -> Result<Fact, CarryError> {
        if self.inspect(&plan.source).await?.is_none() {
            return Ok(Fact::None);
        }
        if !self.has_successor(plan).await? {
            return Ok(Fact::Refuted("the container on the target is gone".to_owned()));
        }
        let given_up = self.give_up(&plan.source).await?;
        Ok(given_up.map_or(Fact::None, Fact::Refuted))
    }

    /// Removes a container that is frozen, or has ended; why not, where it runs.
    pub async fn give_up(&self, id: &str) -> Result<Option<String>, CarryError> {
        let Some(source) = self.inspect(id).await? else { return Ok(None) };
        if runs(&source) && !is_paused(&source) {
            return Ok(Some("somebody has let the container at the source go on".to_owned()));
        }
        self.remove(id).await.map(|()| None)
    }

    /// Whether the container that was made for this move is there, under its first name or its last.
    async fn has_successor(&self, plan: &Move) -> Result<bool, CarryError> {
        for name in [&plan.successor(), &plan.name] {
            if self.inspect(name).await?.is_some_and(|it| is_successor(&it.into(), plan)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) async fn rename(&self, plan: &Move) -> Result<(), CarryError> {
        // It has been done where nobody has the other name any more.
        if self.inspect(&plan.successor()).await?.is_none() {
            return Ok(());
        }
        let options = RenameContainerOptionsBuilder::default().name(&plan.name).build();
        let renamed = self.docker.rename_container(&plan.successor(), options).await;
        renamed.map_err(failed("rename the container"))
    }

    /// Removes the container on the target, if it is the one that was made for this move.
    pub(super) async fn discard(&self, plan: &Move) -> Result<(), CarryError> {
        let name = plan.successor();
        let Some(twin) = self.inspect(&name).await? else { return Ok(()) };
        let container = Container::from(twin);
        if is_successor(&container, plan) {
            self.remove(&container.id).await?;
        }
        Ok(())
    }

    /// Lets a container go on that is frozen.
    pub async fn thaw(&self, id: &str) -> Result<(), CarryError> {
        let Some(source) = self.inspect(id).await? else { return Ok(()) };
        if !is_paused(&source) {
            return Ok(());
        }
        let resumed = self.docker.unpause_container(id).await;
        resumed.map_err(failed("let the container go on"))
    }

    /// Removes a container and ends what runs in it, without another moment of it if it is frozen.
    pub async fn remove(&self, id: &str) -> Result<(), CarryError> {
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        match self.docker.remove_container(id, Some(force)).await {
            Err(error) if !is_missing(&error) => Err(failed("remove the container")(error)),
            _ => Ok(()),
        }
    }
}

/// Whether a container was made for this move.
fn is_successor(container: &Container, plan: &Move) -> bool {
    container.labels.get(MOVED_FROM) == Some(&plan.source)
}
