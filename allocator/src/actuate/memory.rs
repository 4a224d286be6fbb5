//! Memory limits. A limit that a job runs into ends it, so there is a floor: no limit is ever
//! written that lies under what the job has used and a fifth more.

use super::actuator::{kept, unseen};
use super::originals::OriginalMemory;
use super::way::Way;
use super::{Actuator, LimitError, Means};
use crate::crash;
use crate::observe::cgroup::MemoryLimit;
use crate::observe::container::HostMemory;

/// The smallest limit that the engine accepts, in bytes.
const LEAST: u64 = 6 << 20;
/// What the engine is given for "no limit", for which it has no word: the largest number of whole
/// pages, which the kernel shows as no limit.
const NO_LIMIT: i64 = i64::MAX - 4095;

/// The least memory limit for a job that has used up to `peak` bytes: a fifth more.
pub fn floor(peak: u64) -> u64 {
    peak.saturating_add(peak.div_ceil(5)).max(LEAST)
}

/// The engine's fields for a limit of `bytes`. The swap that the container may use beside its
/// memory stays what it is.
fn to_limit(now: HostMemory, bytes: u64) -> HostMemory {
    let memory = i64::try_from(bytes).unwrap_or(NO_LIMIT).min(NO_LIMIT);
    let swap = now.memory_swap.saturating_sub(now.memory);
    let bounded = now.memory > 0 && now.memory_swap > 0 && swap >= 0;
    HostMemory { memory, memory_swap: if bounded { memory.saturating_add(swap) } else { -1 } }
}

/// The same for the kernel's files. Only version 1 counts memory into swap.
fn to_write(now: MemoryLimit, bytes: u64, version: u8) -> MemoryLimit {
    let swap = match (now.swap, now.memory) {
        (Some(both), Some(memory)) if version == 1 => {
            Some(both.saturating_sub(memory).saturating_add(bytes))
        }
        (Some(both), None) if version == 1 => Some(both.max(bytes)),
        (swap, _) => swap,
    };
    MemoryLimit { memory: Some(bytes), swap }
}

/// The limit that the kernel has once the engine keeps this.
pub(super) fn in_force(host: HostMemory) -> Option<u64> {
    u64::try_from(host.memory).ok().filter(|_| host.memory < NO_LIMIT)
}

/// What the engine is given to put back what it kept.
pub(super) fn to_restore(was: HostMemory) -> HostMemory {
    if was.memory > 0 { was } else { HostMemory { memory: NO_LIMIT, memory_swap: -1 } }
}

/// Whether what the engine keeps now is as good as `was`: equal, or without a limit as it was.
pub(super) fn equivalent(was: HostMemory, now: HostMemory) -> bool {
    was == now || (was.memory == 0 && now.memory == NO_LIMIT && now.memory_swap <= 0)
}

impl Actuator {
    /// Limits the memory of container `id` to `wanted` bytes, or to the floor if that is more.
    /// Returns what was written. Nothing is written where the peak is not known.
    pub async fn limit_memory(&self, id: &str, wanted: u64) -> Result<u64, LimitError> {
        let target = self.prepare(id).await?;
        let cgroup = target.cgroup.as_ref().ok_or_else(|| unseen(&target))?;
        let refused = |error: std::io::Error| LimitError::Refused {
            name: target.name(),
            refused: format!("its memory cannot be read: {error}"),
        };
        let (peak, now) = cgroup
            .memory_peak()
            .and_then(|peak| Ok((peak, cgroup.memory_limit()?)))
            .map_err(refused)?;
        let failed = |error| kept(target.name(), error);
        if let Some(mut original) = self.originals.get(id).map_err(failed)?
            && original.memory.is_none()
        {
            let host_config = target.container.host_memory;
            original.memory = Some(OriginalMemory { host_config, cgroup: Some(now) });
            crash::point("before-snapshot");
            self.originals.replace(&original).map_err(failed)?;
        }
        crash::point("after-snapshot");
        // The kernel counts whole pages.
        let bytes = wanted.max(floor(peak)).next_multiple_of(4096);
        let way = match self.means {
            Means::Engine => Way::Memory(to_limit(target.container.host_memory, bytes)),
            Means::Cgroup => Way::MemoryFile(to_write(now, bytes, cgroup.version())),
        };
        self.first_accepted(&target, &[way]).await?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_floor_is_a_fifth_above_the_peak_and_never_under_what_the_engine_takes() {
        assert_eq!(floor(100 * MIB), 120 * MIB);
        assert_eq!(floor(7 * MIB + 1), 7 * MIB + 1 + (7 * MIB + 1).div_ceil(5));
        assert_eq!(floor(0), 6 * MIB);
        assert_eq!(floor(u64::MAX), u64::MAX);
    }

    #[test]
    fn memory_and_swap_are_written_together_and_swap_stays_what_it_was() {
        let unset = HostMemory::default();
        assert_eq!(to_limit(unset, 64), HostMemory { memory: 64, memory_swap: -1 });
        let bounded = HostMemory { memory: 100, memory_swap: 150 };
        assert_eq!(to_limit(bounded, 64), HostMemory { memory: 64, memory_swap: 114 });
        let none = HostMemory { memory: 100, memory_swap: 100 };
        assert_eq!(to_limit(none, 64), HostMemory { memory: 64, memory_swap: 64 });
        let any = HostMemory { memory: 100, memory_swap: -1 };
        assert_eq!(to_limit(any, 64), HostMemory { memory: 64, memory_swap: -1 });
    }

    #[test]
    fn the_kernels_swap_counts_memory_in_version_1_only() {
        let now = MemoryLimit { memory: Some(100), swap: Some(150) };
        assert_eq!(to_write(now, 64, 1), MemoryLimit { memory: Some(64), swap: Some(114) });
        assert_eq!(to_write(now, 64, 2), MemoryLimit { memory: Some(64), swap: Some(150) });
        let free = MemoryLimit::default();
        assert_eq!(to_write(free, 64, 1), MemoryLimit { memory: Some(64), swap: None });
    }

    #[test]
    fn no_limit_is_put_back_as_the_largest_there_is() {
        let (unset, set) = (HostMemory::default(), HostMemory { memory: 100, memory_swap: 150 });
        assert_eq!(to_restore(set), set);
        assert!(equivalent(unset, to_restore(unset)) && equivalent(set, set));
        assert!(!equivalent(unset, set) && !equivalent(set, unset));
    }

    proptest! {
        #[test]
        fn memory_alone_never_exceeds_memory_and_swap(
            memory in 0..1_i64 << 50, swap in -1..1_i64 << 50, bytes in 0..1_u64 << 60,
        ) {
            let limit = to_limit(HostMemory { memory, memory_swap: swap }, bytes);
            prop_assert!(limit.memory_swap == -1 || limit.memory_swap >= limit.memory);
        }
    }
}
