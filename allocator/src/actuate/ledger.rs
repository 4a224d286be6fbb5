//! What this process has written, container by container: what drift is measured by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_policy::Share;

use super::target::Target;
use crate::observe::cgroup::{Cgroup, Quota};
use crate::observe::container::{Container, HostCpu};

/// All accounts, by the engine's full id.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<BTreeMap<String, Account>>);

/// What was written to one container.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// What the engine may keep by our doing: what it had when we last looked, and what it was
    /// asked for since. Anything else is somebody else's word.
    ours: Vec<HostCpu>,
    /// The cap that was asked for, and what the kernel had then.
    pub(super) cap: Option<(Share, Option<Quota>)>,
    /// The weight that was asked for, and what the kernel had then in its own measure.
    pub(super) weight: Option<(u64, Option<u64>)>,
    cgroup: Option<Cgroup>,
    /// The container as the engine has described it, as long as it says nothing else.
    seen: Option<Seen>,
    /// The container is left alone.
    pub(super) yielded: bool,
}

/// A container at one look.
#[derive(Clone, Debug)]
struct Seen {
    target: Arc<Target>,
    quota: Option<Quota>,
    weight: Option<u64>,
}

impl Ledger {
    /// What is known of one container.
    pub(super) fn get(&self, id: &str) -> Option<Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Changes one account.
    pub(super) fn enter(&self, id: &str, change: impl FnOnce(&mut Account)) {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(accounts.entry(id.to_owned()).or_default());
    }

    /// Forgets what was written. That a container is left alone is not forgotten.
    pub(super) fn close(&self, id: &str) {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.remove(id).filter(|account| account.yielded) {
            accounts
                .insert(id.to_owned(), Account { yielded: account.yielded, ..Account::default() });
        }
    }

    /// Forgets a container that is no more.
    pub(super) fn bury(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl Account {
    /// The container is about to be written to, as it is now.
    pub(super) fn look(&mut self, target: &Target) {
        self.ours = vec![target.container.host_config];
        self.cgroup.clone_from(&target.cgroup);
    }

    /// The engine has just described the container like this.
    pub(super) fn see(&mut self, target: Arc<Target>) {
        let (quota, weight) = (target.quota(), target.weight());
        self.seen = Some(Seen { target, quota, weight });
    }

    /// Whether the engine has described it like this before.
    pub(super) fn has_seen(&self, container: &Container) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.target.container == *container)
    }

    /// What the engine has said of it holds no more.
    pub(super) fn forget_seen(&mut self) {
        self.seen = None;
    }

    /// Whether anything was written to it.
    pub(super) fn is_written(&self) -> bool {
        self.cap.is_some() || self.weight.is_some()
    }

    /// The container as the engine has described it, if the kernel has for it exactly what it had
    /// then, or after our last write: then the engine needs not be asked again.
    pub(super) fn as_seen(&self) -> Option<Arc<Target>> {
        let seen = self.seen.as_ref()?;
        let quota = self.cap.map_or(seen.quota, |(_, left)| left)?;
        let weight = self.weight.map_or(seen.weight, |(_, left)| left)?;
        let now = &seen.target;
        let holds = now.quota() == Some(quota) && now.weight() == Some(weight);
        holds.then(|| Arc::clone(now))
    }

    /// The engine is asked for this.
    pub(super) fn ask(&mut self, host: HostCpu) {
        self.ours.push(host);
    }

    /// Whether the caps that the engine keeps are somebody else's.
    pub(super) fn has_foreign_cap(&self, now: HostCpu) -> bool {
        !self.ours.is_empty() && self.ours.iter().all(|ours| ours.caps() != now.caps())
    }

    /// The same for the weight.
    pub(super) fn has_foreign_weight(&self, now: HostCpu) -> bool {
        !self.ours.is_empty() && self.ours.iter().all(|ours| ours.cpu_shares != now.cpu_shares)
    }

    /// Whether the kernel still has what it had after the last write. That takes no more than
    /// reading a file or two; `None` when it cannot be told like that.
    pub(super) fn holds(&self) -> Option<bool> {
        let cgroup = self.cgroup.as_ref()?;
        let cap = match self.cap {
            Some((_, left)) => cgroup.quota().ok()?.is_near(left?),
            None => true,
        };
        let weight = match self.weight {
            Some((_, left)) => cgroup.weight().ok()? == left?,
            None => true,
        };
        Some(cap && weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: HostCpu =
        HostCpu { nano_cpus: 500_000_000, cpu_quota: 0, cpu_period: 0, cpu_shares: 0 };

    #[test]
    fn what_was_asked_for_is_never_taken_for_somebody_elses() {
        let mut account = Account::default();
        assert!(!account.has_foreign_cap(HALF), "nothing was written yet");
        account.ask(HostCpu::default());
        assert!(account.has_foreign_cap(HALF) && !account.has_foreign_weight(HALF));
        account.ask(HALF);
        // Whether the engine has carried it out, or not yet, or never will.
        assert!(!account.has_foreign_cap(HALF) && !account.has_foreign_cap(HostCpu::default()));
        let heavy = HostCpu { cpu_shares: 2048, ..HALF };
        assert!(!account.has_foreign_cap(heavy) && account.has_foreign_weight(heavy));
    }

    #[test]
    fn a_container_that_is_left_alone_stays_so_until_it_is_no_more() {
        let ledger = Ledger::default();
        ledger.enter("4f2a", |account| account.yielded = true);
        ledger.close("4f2a");
        assert!(ledger.get("4f2a").is_some_and(|account| account.yielded));
        ledger.bury("4f2a");
        assert!(ledger.get("4f2a").is_none());
    }
}
