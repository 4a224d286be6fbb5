//! The state folder, for data that must outlive the allocator.

use std::path::PathBuf;

use clap::Args;

/// The folder of the original limits.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(super) struct StateArgs {
    /// The folder of original limits and of the audit log
    /// [default: /var/lib/paceline, or ~/.local/state/paceline for a user who is not root]
    #[arg(long, env = "PACELINE_STATE_DIR", value_name = "DIR")]
    pub(super) state_dir: Option<PathBuf>,
}

impl StateArgs {
    /// The same with the value of a file as the default.
    pub(super) fn over(&self, file: Option<&PathBuf>) -> Self {
        Self { state_dir: self.state_dir.as_ref().or(file).cloned() }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.state_dir.clone().unwrap_or_else(default_folder)
    }
}

/// The default folder.
fn default_folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/paceline");
    }
    let home = || std::env::home_dir().unwrap_or_default().join(".local/state");
    // The standard ignores a relative path, and an empty one.
    let given = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    given.filter(|given| given.is_absolute()).unwrap_or_else(home).join("paceline")
}

/// The folder, if only the environment can set it.
#[cfg(feature = "bench")]
pub(super) fn by_environment() -> PathBuf {
    let given = std::env::var_os("PACELINE_STATE_DIR").filter(|given| !given.is_empty());
    given.map_or_else(default_folder, PathBuf::from)
}
