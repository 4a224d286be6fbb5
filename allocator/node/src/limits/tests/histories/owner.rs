//! What the owners of containers have set last.

use std::collections::BTreeMap;

use paceline_cgroup::Quota;
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
pub(super) struct Owners(BTreeMap<String, Wanted>);

impl Owners {
    pub(super) fn new(containers: &[&str]) -> Self {
        let wanted = |id: &&str| ((*id).to_owned(), Wanted::by_engine(HostCpu::default()));
        Self(containers.iter().map(wanted).collect())
    }

    /// A container was created with what the engine keeps for it.
    pub(super) fn created(&mut self, stub: &Stub, id: &str) {
        self.0.insert(id.to_owned(), Wanted::by_engine(host(stub, id)));
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
        if host == before || undoes || !stub.update(id, body) {
            return;
        }
        let wanted = self.get(id);
        wanted.host = host;
        let engines = Wanted::by_engine(wanted.host);
        if body["CpuPeriod"].is_i64() {
            wanted.quota.period = engines.quota.period;
        } else if body["CpuShares"].is_null() {
            wanted.quota = engines.quota;
        }
        if body["CpuShares"].is_i64() {
            wanted.weight = engines.weight;
        }
    }

    /// A limit that was written past the engine.
    pub(super) fn write_file(&mut self, stub: &Stub, id: &str, us: u64) {
        if !stub.file(id, "cpu.cfs_quota_us").exists() {
            return;
        }
        fs::write(stub.file(id, "cpu.cfs_quota_us"), us.to_string()).unwrap();
        let wanted = self.get(id);
        wanted.quota = Quota { quota: Some(us), period: wanted.quota.period };
        wanted.before_writes.push(wanted.host);
    }

    /// A new life of the container begins with what the owner has set by the engine.
    pub(super) fn restart(&mut self, stub: &Stub, id: &str) {
        stub.restart(id);
        let wanted = self.get(id);
        *wanted = Wanted::by_engine(wanted.host);
    }

    /// All containers have begun a new life.
    pub(super) fn booted(&mut self) {
        for wanted in self.0.values_mut() {
            *wanted = Wanted::by_engine(wanted.host);
        }
    }

    /// Fails unless all containers have what their owners want.
    pub(super) fn check(&self, stub: &Stub, backend: ActuatorBackend) {
        let cpus = f64::from(stub.state.lock().unwrap().cpus);
        for (id, wanted) in &self.0 {
            let kept = host(stub, id);
            if backend == ActuatorBackend::Engine {
                assert!(equivalent(wanted.host, kept, cpus), "{id}: {wanted:?}, kept {kept:?}");
            } else {
                assert_eq!(kept, wanted.host, "{id}");
            }
            // With too few CPUs, the engine does not start a container as its owner wants it.
            if stub.file(id, "cpu.shares").exists() {
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
        self.0.get_mut(id).unwrap()
    }
}

impl Wanted {
    /// What the engine writes at a start.
    fn by_engine(host: HostCpu) -> Self {
        Self {
            host,
            quota: engines_quota(host),
            weight: host.weight().unwrap_or(1024),
            before_writes: Vec::new(),
        }
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
