//! One life of a control group. A container that is started again gets a new group at the same path,
//! in which nothing of the old one is left.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::{Cgroup, mounts};

/// One life of a control group, to be remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Its path within the hierarchy that holds the CPU limit.
    path: PathBuf,
    /// The number of its folder, which the kernel gives to no later one.
    inode: u64,
    /// The boot of the machine; empty if unknown.
    boot: String,
    /// The control group namespace that the path is relative to; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<u64>,
}

impl PartialEq for Instance {
    /// An earlier version did not record the namespace.
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.inode, &self.boot) == (&other.path, other.inode, &other.boot)
    }
}

impl Eq for Instance {}

/// The number of the machine's own control group namespace, as the kernel defines it.
const MACHINES_NAMESPACE: u64 = 0xEFFF_FFFB;

/// What is left of a remembered control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It exists.
    Here(Cgroup),
    /// It has ended, and a later one has its path.
    Replaced(Cgroup),
    /// It has ended.
    Ended,
    /// Its hierarchy cannot be seen from here.
    Unseen,
}

impl Cgroup {
    /// What identifies the present life of this group.
    pub fn instance(&self, proc: &Path) -> io::Result<Instance> {
        let inode = fs::metadata(self.cpu_folder())?.ino();
        let (path, namespace) = (self.path.clone(), namespace(proc));
        Ok(Instance { path, inode, boot: boot(proc), namespace })
    }
}

impl Instance {
    /// Finds the group again.
    pub fn find(&self, proc: &Path) -> Found {
        let path = self.path.display();
        // With a line for each version, the mounted hierarchies decide.
        let groups = format!("1:cpu:{path}\n1:cpuacct:{path}\n1:memory:{path}\n0::{path}\n");
        match Cgroup::from_text(proc, &groups) {
            Ok(group) => {
                let now = group.instance(proc);
                if now.is_ok_and(|now| (now.inode, now.boot) == (self.inode, self.boot.clone())) {
                    Found::Here(group)
                } else if self.is_of_this_namespace(proc) {
                    Found::Replaced(group)
                } else {
                    Found::Unseen
                }
            }
            Err(_) if self.is_of_this_namespace(proc) => self.without_a_group(proc),
            Err(_) => Found::Unseen,
        }
    }

    /// Whether its path means the same here as where it was recorded. In a container with a namespace of
    /// its own, the same path is another group, or missing.
    fn is_of_this_namespace(&self, proc: &Path) -> bool {
        match (self.namespace, namespace(proc)) {
            (Some(then), now) => Some(then) == now,
            (None, Some(now)) => now == MACHINES_NAMESPACE,
            // A kernel without such namespaces.
            (None, None) => true,
        }
    }

    /// Whether the hierarchy is visible, in which the group is not.
    fn without_a_group(&self, proc: &Path) -> Found {
        let Ok(mountinfo) = fs::read_to_string(proc.join("self/mountinfo")) else {
            return Found::Unseen;
        };
        let path = self.path.display();
        let groups = format!("1:cpu:{path}\n1:cpuacct:{path}\n0::{path}\n");
        match mounts::folders(&groups, &mountinfo) {
            Some(folders) => {
                let group = Cgroup { folders, path: self.path.clone() };
                if group.cpu_folder().exists() { Found::Unseen } else { Found::Ended }
            }
            None => Found::Unseen,
        }
    }
}

/// The control group namespace of this process.
fn namespace(proc: &Path) -> Option<u64> {
    fs::metadata(proc.join("self/ns/cgroup")).ok().map(|file| file.ino())
}

/// The id of the machine's present boot.
fn boot(proc: &Path) -> String {
    let id = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).unwrap_or_default();
    id.trim().to_owned()
}
