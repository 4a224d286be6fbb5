//! One life of a control group. A container that is started again gets a new group at the same path,
//! in which nothing of the old one is left.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::{Cgroup, mounts};

/// One life of a control group, to be remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its path within the hierarchy that holds the CPU limit.
    path: PathBuf,
    /// The number of its folder, which the kernel gives to no later one.
    inode: u64,
    /// The boot of the machine; empty if unknown.
    boot: String,
}

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
        Ok(Instance { path: self.path.clone(), inode, boot: boot(proc) })
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
                } else {
                    Found::Replaced(group)
                }
            }
            Err(_) => self.without_a_group(proc),
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

/// The id of the machine's present boot.
fn boot(proc: &Path) -> String {
    let id = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).unwrap_or_default();
    id.trim().to_owned()
}
