//! The way back.
//!
//! The engine's ways come first, since what it keeps is what a restart brings back. Then the
//! kernel's own values are set right where the engine's words for them differ.

use std::fmt;

use super::actuator::{kept, write_file};
use super::error::chain;
use super::originals::Original;
use super::target::Target;
use super::way::Way;
use super::{Actuator, LimitError, memory, ways};
use crate::crash;

/// How a container's limits were put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The kernel enforces what it did, and the engine keeps what it did.
    Exactly,
    /// The kernel enforces what it did; the engine, which has no way back to "not set", keeps
    /// something that comes to the same.
    Equivalently,
    /// The container is no more.
    Gone,
}

impl Actuator {
    /// Puts back what container `id` had before the first write; nothing if there was none.
    pub async fn restore(&self, id: &str) -> Result<Option<Restored>, LimitError> {
        let failed = |error| kept(id.to_owned(), error);
        if self.originals.get(id).map_err(failed)?.is_none() {
            self.ledger.close(id);
            return Ok(None);
        }
        let restored = match self.put_back(id).await {
            Err(LimitError::Gone(_)) => Restored::Gone,
            other => other?,
        };
        crash::point("before-forgetting");
        self.originals.forget(id).map_err(failed)?;
        match restored {
            Restored::Gone => self.ledger.bury(id),
            Restored::Exactly | Restored::Equivalently => self.ledger.close(id),
        }
        Ok(Some(restored))
    }

    async fn put_back(&self, id: &str) -> Result<Restored, LimitError> {
        let target = self.look(id).await?;
        // What somebody else has set meanwhile is not ours to undo.
        self.follow_owner(&target)?;
        let failed = |error| kept(target.name(), error);
        let Some(original) = self.originals.get(id).map_err(failed)? else {
            return Ok(Restored::Exactly);
        };
        let mut refused = self.put_back_by_engine(&target, &original).await?;
        let target = self.look(id).await?;
        refused.extend(put_back_files(&target, &original));
        let (was, now) = (&original, &target.container);
        let kernel_is_right = target.cgroup.is_none() || is_back(&target, &original, self.cpus);
        let memory = was.memory.map(|memory| memory.host_config);
        if kernel_is_right
            && now.host_config == was.host_config
            && memory.is_none_or(|memory| memory == now.host_memory)
        {
            Ok(Restored::Exactly)
        } else if kernel_is_right
            && ways::equivalent(was.host_config, now.host_config, self.cpus)
            && memory.is_none_or(|memory| memory::equivalent(memory, now.host_memory))
        {
            Ok(Restored::Equivalently)
        } else {
            Err(LimitError::Refused { name: target.name(), refused: refused.join("; ") })
        }
    }

    /// What the engine keeps. Returns what it has refused.
    async fn put_back_by_engine(
        &self,
        target: &Target,
        original: &Original,
    ) -> Result<Vec<String>, LimitError> {
        let (was, is) = (original.host_config, target.container.host_config);
        let mut tasks = Vec::new();
        if was.cpu_shares != is.cpu_shares {
            tasks.push(vec![ways::to_weigh(was.cpu_shares)]);
        }
        if was.caps() != is.caps() {
            tasks.push(ways::to_restore(was, self.cpus));
        }
        if let Some(memory) = original.memory
            && memory.host_config != target.container.host_memory
        {
            tasks.push(vec![Way::Memory(memory::to_restore(memory.host_config))]);
        }
        let mut refused = Vec::new();
        for ways in tasks {
            match self.first_accepted(target, &ways).await {
                Err(error) if error.is_final() => return Err(error),
                // The kernel's own files may still be set right.
                Err(error) => refused.push(chain(&error)),
                Ok(()) => {}
            }
            crash::point("between-restores");
        }
        Ok(refused)
    }
}

/// What the kernel enforces. Returns what it has refused.
fn put_back_files(target: &Target, original: &Original) -> Vec<String> {
    let Some(cgroup) = &target.cgroup else { return Vec::new() };
    let mut wrong = Vec::new();
    if let Some(quota) = original.cgroup.filter(|quota| target.quota() != Some(*quota)) {
        wrong.push(Way::File(quota));
    }
    if let Some(weight) = original.weight.filter(|weight| target.weight() != Some(*weight)) {
        wrong.push(Way::WeightFile(weight));
    }
    let memory = original.memory.and_then(|memory| memory.cgroup);
    if let Some(memory) = memory.filter(|memory| target.memory() != Some(*memory)) {
        wrong.push(Way::MemoryFile(memory));
    }
    let write = |way: Way| write_file(cgroup, way).err().map(|error| format!("{way}: {error}"));
    let mut refused: Vec<String> = wrong.into_iter().filter_map(write).collect();
    let io_weight = original.io_weight.filter(|weight| target.io_weight() != Some(*weight));
    if let Some((io, weight)) = target.io.as_ref().zip(io_weight)
        && let Err(error) = io.set(weight)
    {
        refused.push(format!("block I/O with weight {weight}: {error}"));
    }
    refused
}

/// Whether the kernel has what it had.
fn is_back(target: &Target, original: &Original, cpus: f64) -> bool {
    let share = |quota: crate::observe::cgroup::Quota| quota.share(cpus);
    original.cgroup.is_none_or(|was| target.quota().map(share) == Some(share(was)))
        && original.weight.is_none_or(|was| target.weight() == Some(was))
        && original.io_weight.is_none_or(|was| target.io_weight() == Some(was))
        && original
            .memory
            .and_then(|memory| memory.cgroup)
            .is_none_or(|was| target.memory().is_some_and(|now| now.memory == was.memory))
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exactly => "as it was",
            Self::Equivalently => "as it was (the engine keeps all CPUs in place of no limit)",
            Self::Gone => "the container is gone",
        })
    }
}
