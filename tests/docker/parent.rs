//! A group above a container's own, with a quota.

use std::path::{Path, PathBuf};
use std::process::Command;

use bollard::models::SystemInfoCgroupDriverEnum;
use paceline_cgroup::Cgroup;
use paceline_system_tests::TestEnv;

/// Where every controller or hierarchy is mounted.
const MOUNTS: &str = "/sys/fs/cgroup";

/// A control group with a quota, above a container's own. Removed when it is dropped.
pub(crate) enum Parent {
    /// A folder that this test has made.
    Folder(String, PathBuf),
    /// A slice, where the engine leaves groups to systemd.
    Slice(String),
}

impl Parent {
    /// Creates it beside the engine's own groups, with a quota of `us` microseconds in 100 ms.
    pub(crate) async fn make(env: &TestEnv, us: i64) -> anyhow::Result<Self> {
        let name = env.name("parent");
        let driver = env.docker().info().await?.cgroup_driver;
        if driver == Some(SystemInfoCgroupDriverEnum::SYSTEMD) {
            return Self::slice(&name, us);
        }
        let own = Cgroup::for_process(Path::new("/proc"), std::process::id())?;
        let all = Path::new(MOUNTS);
        // Version 1 has a folder for each controller there, version 2 has the groups themselves.
        let mut above = own.cpu_folder().ancestors();
        let controller = above.find(|folder| own.version() == 1 && folder.parent() == Some(all));
        let folder = controller.unwrap_or(all).join(name.as_str());
        std::fs::create_dir(&folder)?;
        let parent = Self::Folder(name, folder.clone());
        if folder.join("cpu.max").exists() {
            std::fs::write(folder.join("cpu.max"), format!("{us} 100000"))?;
        } else {
            std::fs::write(folder.join("cpu.cfs_quota_us"), us.to_string())?;
        }
        Ok(parent)
    }

    fn slice(name: &str, us: i64) -> anyhow::Result<Self> {
        // A dash would make it a slice below others.
        let slice = format!("{}.slice", name.replace('-', "_"));
        let percent = format!("CPUQuota={}%", us / 1000);
        let parent = Self::Slice(slice.clone());
        systemctl(&["set-property", "--runtime", &slice, &percent])?;
        systemctl(&["start", &slice])?;
        Ok(parent)
    }

    /// Its path, as the engine's option `cgroup_parent` takes it.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Folder(name, _) => format!("/{name}"),
            Self::Slice(slice) => slice.clone(),
        }
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        match self {
            Self::Folder(name, folder) => {
                // The engine has created the same group for its other controllers.
                for mount in std::fs::read_dir(MOUNTS).into_iter().flatten().flatten() {
                    // Most controllers have no such group.
                    drop(std::fs::remove_dir(mount.path().join(name.as_str())));
                }
                drop(std::fs::remove_dir(folder));
            }
            Self::Slice(slice) => {
                drop(systemctl(&["stop", slice]));
                drop(systemctl(&["revert", slice]));
            }
        }
    }
}

/// Runs `systemctl`; fails with its words if it fails.
pub(crate) fn systemctl(words: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("systemctl").args(words).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "systemctl {}: {said}", words.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}
