use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context;
use paceline_cgroup::mounts::{self, Folders};

/// Real control groups for processes that stand for containers. Dropping this removes them; their
/// processes must have ended before.
#[derive(Debug)]
pub(super) struct Groups {
    /// One in each hierarchy.
    parents: Vec<PathBuf>,
}

impl Groups {
    /// Makes the group `name`, the parent of all others.
    pub(super) fn make(name: &str) -> anyhow::Result<Self> {
        let cgroup = fs::read_to_string("/proc/self/cgroup")?;
        let mountinfo = fs::read_to_string("/proc/self/mountinfo")?;
        let found =
            mounts::folders(&cgroup, &mountinfo).context("no control groups are mounted")?;
        let mut parents: Vec<PathBuf> = match &found {
            Folders::V1 { .. } => ["cpu", "cpuacct", "memory", "blkio"]
                .iter()
                .filter_map(|controller| mounts::v1_folder(controller, &cgroup, &mountinfo))
                .map(|folder| folder.join(name))
                .collect(),
            Folders::V2(own) => {
                // Just below the root: a group with processes cannot have controllers below it.
                let groups = own.ancestors().take_while(|at| at.join("cgroup.procs").exists());
                vec![groups.last().unwrap_or(own).join(name)]
            }
        };
        parents.sort();
        parents.dedup();
        let groups = Self { parents };
        for parent in &groups.parents {
            make(parent).context("only root makes control groups")?;
            if let Folders::V2(_) = found {
                fs::write(parent.join("cgroup.subtree_control"), "+cpu +memory +io")?;
            }
        }
        Ok(groups)
    }

    /// Makes a group and puts a process into it.
    pub(super) fn put(&self, name: &str, process: u32) -> io::Result<()> {
        for parent in &self.parents {
            let group = parent.join(name);
            make(&group)?;
            fs::write(group.join("cgroup.procs"), process.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for parent in &self.parents {
            for below in fs::read_dir(parent).into_iter().flatten().flatten() {
                // A group's files cannot be removed by themselves; they go with it.
                drop(fs::remove_dir(below.path()));
            }
            drop(fs::remove_dir(parent));
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
}
