//! What the owners of containers have set last.

use std::collections::BTreeMap;

use paceline_cgroup::{Quota, WeightScale};
use paceline_runtime::HostCpu;
use serde_json::Value;

use super::*;
use crate::limits::plan_writes::equivalent;
use crate::limits::record::engines_quota;

/// What one owner has set.
#[derive(Clone, Debug)]
struct Wanted {
    host: HostCpu,
    quota: Quota,
    weight: u64,
    /// What the owner had set by the engine each time it wrote past it.
    before_writes: Vec<HostCpu>,
}

/// All owners.
#[derive(Debug)]
pub(super) struct Owners {
    groups: Groups,
    wanted: BTreeMap<String, Wanted>,
}

impl Owners {
    pub(super) fn new(groups: Groups, containers: &[&str]) -> Self {
        let wanted = |id: &&str| ((*id).to_owned(), Wanted::by_engine(groups, HostCpu::default()));
        Self { groups, wanted: containers.iter().map(wanted).collect() }
    }

    /// A container was created with what the engine keeps for it.
    pub(super) fn created(&mut self, stub: &Stub, id: &str) {
        self.wanted.insert(id.to_owned(), Wanted::by_engine(self.groups, host(stub, id)));
        stub.restart(id);
    }

    /// An update by the engine, if its rules allow it.
    pub(super) fn update(&mut self, stub: &Stub, id: &str, body: &Value) {
        let field = |name: &str, before: i64| body[name].as_i64().unwrap_or(before);
        let before = self.get(id).host;
        // An owner may set the same value again, at once or later, to undo an own write past the engine.
        // That looks the same as an engine that applies what it keeps.
        let host = HostCpu {
            nano_cpus: field("NanoCpus", before.nano_cpus),
            cpu_quota: field("CpuQuota", before.cpu_quota),
            cpu_period: field("CpuPeriod", before.cpu_period),
            cpu_shares: field("CpuShares", before.cpu_shares),
        };
        let undoes = self.get(id).before_writes.contains(&host);
        if host == before || undoes || self.applies_again(id, body) || !stub.update(id, body) {
            return;
        }
        let groups = self.groups;
        let wanted = self.get(id);
        wanted.host = host;
        let engines = Wanted::by_engine(groups, wanted.host);
        if groups != Groups::First {
            (wanted.quota, wanted.weight) = (engines.quota, engines.weight);
        } else if body["CpuPeriod"].is_i64() && engines.quota.quota.is_none() {
            wanted.quota.period = engines.quota.period;
        } else if body["CpuShares"].is_null() {
            wanted.quota = engines.quota;
        }
        if body["CpuShares"].is_i64() && groups == Groups::First {
            wanted.weight = engines.weight;
        }
    }

    /// Whether systemd would end a write past the engine with a request for something else. That it did
    /// cannot be seen where our own request did so before.
    fn applies_again(&mut self, id: &str, body: &Value) -> bool {
        let groups = self.groups;
        let wanted = self.get(id);
        let kept = Wanted::by_engine(groups, wanted.host);
        let sets_quota = ["NanoCpus", "CpuQuota"].iter().any(|field| body[field].is_i64());
        let quota = !sets_quota && wanted.quota != kept.quota;
        let weight = body["CpuShares"].is_null() && wanted.weight != kept.weight;
        groups != Groups::First && (quota || weight)
    }

    /// A limit that was written past the engine.
    pub(super) fn write_file(&mut self, stub: &Stub, id: &str, us: u64) {
        if !stub.has_group(id) {
            return;
        }
        let period = self.get(id).quota.period;
        match self.groups {
            Groups::First => {
                fs::write(stub.file(id, "cpu.cfs_quota_us"), us.to_string()).unwrap();
            }
            Groups::Second(_) => {
                fs::write(stub.file(id, "cpu.max"), format!("{us} {period}")).unwrap();
            }
        }
        let wanted = self.get(id);
        wanted.quota = Quota { quota: Some(us), period };
        wanted.before_writes.push(wanted.host);
    }

    /// A weight that was written past the engine.
    pub(super) fn write_weight(&mut self, stub: &Stub, id: &str, weight: u64) {
        if !stub.has_group(id) {
            return;
        }
        stub.cgroup(id).set_weight(weight).unwrap();
        let wanted = self.get(id);
        wanted.weight = weight;
        wanted.before_writes.push(wanted.host);
    }

    /// A new life of the container begins with what the owner has set by the engine.
    pub(super) fn restart(&mut self, stub: &Stub, id: &str) {
        stub.restart(id);
        let groups = self.groups;
        let wanted = self.get(id);
        *wanted = Wanted::by_engine(groups, wanted.host);
    }

    /// All containers have begun a new life.
    pub(super) fn booted(&mut self) {
        for wanted in self.wanted.values_mut() {
            *wanted = Wanted::by_engine(self.groups, wanted.host);
        }
    }

    /// Systemd applies what it keeps, where that does not undo what an owner has written past the engine.
    pub(super) fn apply_again(&self, stub: &Stub) {
        for (id, wanted) in &self.wanted {
            let kept = Wanted::by_engine(self.groups, wanted.host);
            let is_kept = (wanted.quota, wanted.weight) == (kept.quota, kept.weight);
            if self.groups != Groups::First && is_kept && stub.has_group(id) {
                stub.apply_again(id);
            }
        }
    }

    /// Fails unless all containers have what their owners want.
    pub(super) fn check(&self, stub: &Stub, backend: ActuatorBackend) {
        let cpus = f64::from(stub.state.lock().unwrap().cpus);
        for (id, wanted) in &self.wanted {
            let kept = host(stub, id);
            if backend == ActuatorBackend::Engine {
                assert!(equivalent(wanted.host, kept, cpus), "{id}: {wanted:?}, kept {kept:?}");
            } else {
                assert_eq!(kept, wanted.host, "{id}");
            }
            // With too few CPUs, the engine does not start a container as its owner wants it.
            if stub.has_group(id) {
                let group = stub.cgroup(id);
                let (quota, weight) = (group.quota().unwrap(), group.weight().unwrap());
                // After a restart, the engine writes what it keeps in place of "not set".
                let by_engine = backend == ActuatorBackend::Engine
                    && quota.share(cpus) == wanted.quota.share(cpus);
                let right = by_engine || quota.is_near(wanted.quota);
                assert!(right, "{id}: {wanted:?}, in force {quota}");
                assert_eq!(weight, wanted.weight, "{id}");
            }
        }
    }

    fn get(&mut self, id: &str) -> &mut Wanted {
        self.wanted.get_mut(id).unwrap()
    }
}

impl Wanted {
    /// What the engine writes at a start.
    fn by_engine(groups: Groups, host: HostCpu) -> Self {
        let weight = match groups {
            Groups::First => host.weight().unwrap_or(1024),
            Groups::Second(rule) => {
                host.weight().map_or(100, |weight| WeightScale::Weight.by_engines(weight)[rule])
            }
        };
        Self { host, quota: engines_quota(host), weight, before_writes: Vec::new() }
    }
}

/// What the engine keeps for a container.
fn host(stub: &Stub, id: &str) -> HostCpu {
    HostCpu {
        nano_cpus: stub.kept(id, "NanoCpus"),
        cpu_quota: stub.kept(id, "CpuQuota"),
        cpu_period: stub.kept(id, "CpuPeriod"),
        cpu_shares: stub.kept(id, "CpuShares"),
    }
}
