//! What is recorded of one container: its owner's limits, and our last write.

use paceline_cgroup::{Instance, Quota, WeightScale};
use paceline_runtime::{Container, DEFAULT_PERIOD, HostCpu};
use serde::{Deserialize, Serialize};

use super::limit_write::LimitWrite;

/// The version of the originals' format. Version 1 had no weight on the kernel's scale. Version 0.1.0
/// wrote format 2 without a last write.
pub(super) const FORMAT: u32 = 2;

/// The limits that the owner of one container wants: those before our first write, with what the owner
/// has changed since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Original {
    pub(super) format: u32,
    /// The container's full id in the engine.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// The limits that the engine kept for it.
    pub host_config: HostCpu,
    /// The kernel's quota, if it could be read.
    pub cgroup: Option<Quota>,
    /// Its CPU weight on the kernel's scale.
    #[serde(default)]
    pub weight: Option<u64>,
    /// The weight of its block I/O, if the kernel supports it.
    #[serde(default)]
    pub io_weight: Option<u64>,
    /// When it was recorded, in Unix seconds.
    #[serde(default)]
    pub since: Option<f64>,
    /// The engine does not know the container.
    #[serde(default)]
    pub absent: Option<Absence>,
}

/// How often an engine was asked for a container that it does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// The engine's id.
    pub engine: String,
    /// When it was asked first, in Unix seconds.
    pub since: f64,
    /// How often it was asked.
    pub times: u32,
    /// When the machine was started, in Unix seconds as they were counted at the last time.
    #[serde(default)]
    pub booted: Option<f64>,
}

/// The values that may be in force because of us. Any other value is a change by the owner.
///
/// It is recorded before each write, with the values before that write, and again after the values
/// were read back. An empty list means that such a value cannot be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWrite {
    /// Whether the engine was ever asked to change the container. Without that, nothing of ours
    /// outlives the control group.
    pub engine: bool,
    /// The life of the control group that was written to.
    pub group: Option<Instance>,
    /// What the engine keeps.
    pub host: Vec<HostCpu>,
    /// The kernel's quota.
    pub quota: Vec<Quota>,
    /// The kernel's CPU weight.
    pub weight: Vec<u64>,
    /// The weight of block I/O.
    pub io_weight: Vec<u64>,
    /// The kernel's quota by requests that failed late or were not answered: systemd may keep it although
    /// the engine does not.
    #[serde(default)]
    pub doubted_quota: Vec<Quota>,
    /// The same for the CPU weight.
    #[serde(default)]
    pub doubted_weight: Vec<u64>,
    /// What the engine may keep by requests that were not answered: it may carry them out later.
    #[serde(default)]
    pub doubted_host: Vec<HostCpu>,
}

/// What is recorded of one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its owner's limits.
    pub original: Original,
    /// Our last write; `None` if it is unknown, as for a record of version 0.1.0.
    pub last: Option<LastWrite>,
}

/// The limits in force for one container.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Observed {
    pub(super) host: HostCpu,
    pub(super) quota: Option<Quota>,
    pub(super) weight: Option<u64>,
    pub(super) io_weight: Option<u64>,
    pub(super) group: Option<Instance>,
    /// The scale of the kernel's weight.
    pub(super) scale: WeightScale,
}

impl Original {
    /// The present limits of `container`, recorded at `now`.
    pub(super) fn new(container: &Container, observed: &Observed, now: f64) -> Self {
        Self {
            format: FORMAT,
            id: container.id.clone(),
            name: container.name.clone(),
            host_config: observed.host,
            cgroup: observed.quota,
            weight: observed.weight,
            io_weight: observed.io_weight,
            since: Some(now),
            absent: None,
        }
    }
}

impl Record {
    /// Whether the engine may keep a limit of ours. A record of an older version does not say.
    pub fn is_of_engine(&self) -> bool {
        self.last.as_ref().is_none_or(|last| last.engine)
    }

    /// Whether a weight of block I/O may be ours.
    pub(super) fn may_leave_io_weight(&self) -> bool {
        let is_ours = |weight: &u64| Some(*weight) != self.original.io_weight;
        self.last.as_ref().is_none_or(|last| last.io_weight.iter().any(is_ours))
    }
}

impl LastWrite {
    /// Before a write: what is in force now is not a later change of the owner.
    pub(super) fn before(observed: &Observed, earlier: Option<&Self>) -> Self {
        let mut last = Self {
            engine: earlier.is_some_and(|earlier| earlier.engine),
            group: observed.group.clone(),
            host: vec![observed.host],
            quota: observed.quota.into_iter().collect(),
            weight: observed.weight.into_iter().collect(),
            io_weight: observed.io_weight.into_iter().collect(),
            ..Self::default()
        };
        if let Some(earlier) = earlier {
            last.doubted_host.clone_from(&earlier.doubted_host);
            for host in &earlier.doubted_host {
                add(&mut last.host, *host);
            }
        }
        // The doubt is about one life of the group.
        if let Some(earlier) = earlier.filter(|earlier| earlier.group == observed.group) {
            last.doubted_quota.clone_from(&earlier.doubted_quota);
            last.doubted_weight.clone_from(&earlier.doubted_weight);
        }
        last
    }

    /// Adds the values that `write` may leave.
    pub(super) fn add(&mut self, write: LimitWrite, observed: &Observed) {
        self.engine |= write.change().is_some();
        let after = write.after(observed.host);
        match write {
            LimitWrite::CpuShares(_) => {
                for weight in engines_weights(after, observed.scale) {
                    doubt(&mut self.doubted_weight, weight);
                }
            }
            LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_) => {
                doubt(&mut self.doubted_quota, engines_quota(after));
            }
            LimitWrite::File(_) | LimitWrite::WeightFile(_) => {}
        }
        add(&mut self.host, after);
        if write.change().is_some() {
            doubt(&mut self.doubted_host, after);
        }
        if let Some(quota) = write.quota(observed.host).filter(|_| !self.quota.is_empty()) {
            add(&mut self.quota, quota);
        }
        match write {
            LimitWrite::WeightFile(weight) if !self.weight.is_empty() => {
                add(&mut self.weight, weight);
            }
            // With each request, systemd applies all that it keeps of a group.
            LimitWrite::CpuShares(_) | LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_)
                if !self.weight.is_empty() =>
            {
                for weight in engines_weights(after, observed.scale) {
                    add(&mut self.weight, weight);
                }
            }
            LimitWrite::WeightFile(_)
            | LimitWrite::CpuShares(_)
            | LimitWrite::NanoCpus(_)
            | LimitWrite::CpuQuota(_)
            | LimitWrite::File(_) => {}
        }
    }

    /// After `write` was accepted: only what is in force now is left of the values. `before` is what was
    /// in force before the write, and `now` was read back.
    pub(super) fn settle(&mut self, write: LimitWrite, before: &Observed, now: &Observed) {
        if write.change().is_some() {
            self.doubted_host.clear();
        }
        self.host = vec![write.after(before.host)];
        for host in &self.doubted_host {
            add(&mut self.host, *host);
        }
        match write {
            LimitWrite::CpuShares(_) => self.doubted_weight.clear(),
            LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_) => self.doubted_quota.clear(),
            LimitWrite::File(_) | LimitWrite::WeightFile(_) => {}
        }
        if let Some(quota) = now.quota
            && self.quota.iter().any(|ours| ours.is_near(quota))
        {
            self.quota = vec![quota];
        }
        // The engine may have another conversion than the known ones.
        let converts = || {
            let of_engine = matches!(write, LimitWrite::CpuShares(_));
            of_engine && now.scale == WeightScale::Weight && before.weight != now.weight
        };
        if let Some(weight) = now.weight
            && (self.weight.is_empty() || self.weight.contains(&weight) || converts())
        {
            self.weight = vec![weight];
        }
    }

    /// The engine has refused a request and changed nothing: what was in doubt before it still is.
    pub(super) fn withdraw(&mut self, before: &Self) {
        self.doubted_quota.clone_from(&before.doubted_quota);
        self.doubted_weight.clone_from(&before.doubted_weight);
        self.doubted_host.clone_from(&before.doubted_host);
    }

    /// Adds the weight of block I/O that is written next.
    pub(super) fn add_io_weight(&mut self, weight: u64) {
        add(&mut self.io_weight, weight);
    }
}

/// How many values in doubt are remembered: systemd keeps the last one.
const MAX_DOUBTED: usize = 4;

/// Adds a value in doubt, in the place of the oldest one if there are several.
fn doubt<T: PartialEq>(list: &mut Vec<T>, value: T) {
    list.retain(|known| *known != value);
    if list.len() >= MAX_DOUBTED {
        list.remove(0);
    }
    list.push(value);
}

fn add<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

/// The kernel's quota that follows from what the engine keeps.
pub(super) fn engines_quota(host: HostCpu) -> Quota {
    let usual = DEFAULT_PERIOD.unsigned_abs();
    let period = if host.cpu_period > 0 { host.cpu_period.unsigned_abs() } else { usual };
    if host.nano_cpus > 0 {
        let quota = host.nano_cpus.unsigned_abs() / (1_000_000_000 / usual);
        return Quota { quota: Some(quota), period: usual };
    }
    let quota = u64::try_from(host.cpu_quota).ok().filter(|quota| *quota > 0);
    Quota { quota, period }
}

/// The kernel's weight that follows from what the engine keeps, by each conversion that it may use.
pub(super) fn engines_weights(host: HostCpu, scale: WeightScale) -> [u64; 2] {
    let shares = u64::try_from(host.cpu_shares).ok().filter(|shares| *shares > 0);
    shares.map_or([scale.default_weight(); 2], |shares| scale.by_engines(shares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_without_an_answer_stays_ours_until_the_engine_has_accepted_another() {
        let keeps = |nano_cpus| HostCpu { nano_cpus, ..HostCpu::default() };
        let before = Observed { quota: Some(engines_quota(keeps(0))), ..Observed::default() };
        let mut last = LastWrite::before(&before, None);
        // The engine does not answer the first, and the file takes the second.
        last.add(LimitWrite::NanoCpus(800_000_000), &before);
        let file = LimitWrite::File(engines_quota(keeps(800_000_000)));
        last.add(file, &before);
        last.settle(file, &before, &before);
        assert!(last.host.contains(&keeps(800_000_000)), "{:?}", last.host);
        let next = LastWrite::before(&before, Some(&last));
        assert!(next.host.contains(&keeps(800_000_000)), "{:?}", next.host);
        let mut accepted = next;
        accepted.add(LimitWrite::NanoCpus(500_000_000), &before);
        accepted.settle(LimitWrite::NanoCpus(500_000_000), &before, &before);
        assert_eq!(accepted.host, [keeps(500_000_000)]);
    }
}
