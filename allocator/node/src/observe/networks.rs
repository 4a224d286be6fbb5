//! Which networks the opted-in containers use, and how many of them share each.
//!
//! Containers may share a network, as a job and its sidecar do. On a network with one opted-in
//! container, whatever listens there answers for it. With several, or on the machine's own network,
//! who listens must be checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fs, io};

use tokio::sync::watch;

/// The networks of all opted-in containers of a machine.
#[derive(Clone, Debug, Default)]
pub struct Networks(Arc<Mutex<BTreeMap<String, Weak<watch::Sender<usize>>>>>);

/// One opted-in container's part in its network. It leaves the network when this is dropped.
#[derive(Debug)]
pub struct Member {
    /// The number of opted-in containers on this network; `None` on the machine's own network, and
    /// where the network cannot be read.
    members: Option<Arc<watch::Sender<usize>>>,
    of_the_machine: bool,
}

impl Networks {
    /// Adds the container whose first process is `pid`.
    pub fn enter(&self, proc: &Path, pid: u32) -> Member {
        let of_the_machine = is_of_the_machine(proc, pid).unwrap_or(false);
        let name = name(proc, &pid.to_string()).ok().filter(|_| !of_the_machine);
        Member { members: name.map(|name| self.count(name)), of_the_machine }
    }

    fn count(&self, name: String) -> Arc<watch::Sender<usize>> {
        let mut networks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        networks.retain(|_, members| members.strong_count() > 0);
        let known = networks.get(&name).and_then(Weak::upgrade);
        let members = known.unwrap_or_else(|| Arc::new(watch::channel(0).0));
        networks.insert(name, Arc::downgrade(&members));
        members.send_modify(|members| *members += 1);
        members
    }
}

impl Member {
    /// Whether who listens must be checked: several opted-in containers share the network, or it is
    /// the machine's own.
    pub fn must_be_checked(&self) -> bool {
        let several = self.members.as_ref().is_some_and(|members| *members.borrow() > 1);
        self.of_the_machine || several
    }

    /// Whether both are on one network.
    pub fn shares_with(&self, other: &Self) -> bool {
        match (&self.members, &other.members) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => self.of_the_machine && other.of_the_machine,
        }
    }

    /// Whether it is the machine's own network.
    pub fn is_of_the_machine(&self) -> bool {
        self.of_the_machine
    }

    /// Waits until an opted-in container has entered or left the network since `seen`.
    pub async fn changed(&self, seen: usize) {
        match &self.members {
            Some(members) => {
                // The sender lives as long as this.
                drop(members.subscribe().wait_for(|members| *members != seen).await);
            }
            None => std::future::pending().await,
        }
    }

    /// How many opted-in containers the network has now.
    pub fn seen(&self) -> usize {
        self.members.as_ref().map_or(0, |members| *members.borrow())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(members) = &self.members {
            members.send_modify(|members| *members = members.saturating_sub(1));
        }
    }
}

/// Whether process `pid` has the same network as this one.
pub(super) fn is_of_the_machine(proc: &Path, pid: u32) -> io::Result<bool> {
    Ok(name(proc, &pid.to_string())? == name(proc, "self")?)
}

/// The kernel's name of a process's network namespace.
fn name(proc: &Path, process: &str) -> io::Result<String> {
    Ok(fs::read_link(proc.join(process).join("ns/net"))?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn proc(processes: &[(&str, &str)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        for (process, network) in processes {
            fs::create_dir_all(proc.path().join(process).join("ns")).unwrap();
            symlink(network, proc.path().join(process).join("ns/net")).unwrap();
        }
        proc
    }

    #[test]
    fn shared_and_the_machines_network_must_be_checked() {
        let proc =
            proc(&[("self", "net:[1]"), ("7", "net:[1]"), ("8", "net:[2]"), ("9", "net:[2]")]);
        let networks = Networks::default();
        assert!(networks.enter(proc.path(), 7).must_be_checked());
        let alone = networks.enter(proc.path(), 8);
        assert!(!alone.must_be_checked());
        let other = networks.enter(proc.path(), 9);
        assert!(alone.must_be_checked() && other.must_be_checked());
        assert!(alone.shares_with(&other) && !alone.is_of_the_machine());
        let machine = networks.enter(proc.path(), 7);
        assert!(machine.shares_with(&networks.enter(proc.path(), 7)));
        assert!(!machine.shares_with(&other) && machine.is_of_the_machine());
        drop(other);
        assert!(!alone.must_be_checked());
        assert!(!networks.enter(proc.path(), 10).must_be_checked(), "it has no process");
    }

    #[tokio::test]
    async fn member_notices_another_one() {
        let proc = proc(&[("self", "net:[1]"), ("8", "net:[2]"), ("9", "net:[2]")]);
        let networks = Networks::default();
        let first = networks.enter(proc.path(), 8);
        let seen = first.seen();
        let enters = async { networks.enter(proc.path(), 9) };
        let ((), second) = tokio::join!(first.changed(seen), enters);
        assert_eq!((seen, second.seen()), (1, 2));
    }
}
