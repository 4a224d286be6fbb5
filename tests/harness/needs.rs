use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::private::PrivateEngine;
use crate::swarm::PrivateSwarm;

/// What a test needs beside an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// Nothing else.
    Nothing,
    /// To write control groups, and to become another user.
    Root,
    /// To start an engine of its own.
    PrivateEngine,
    /// To use a Swarm of the tests' own.
    PrivateSwarm,
    /// The same, and the engine's command with its `stack`.
    DockerStack,
    /// Python's frameworks, which `make test-frameworks` installs.
    Frameworks,
}

impl Needs {
    /// All that this machine may lack.
    pub const ALL: [Self; 5] =
        [Self::Root, Self::PrivateEngine, Self::PrivateSwarm, Self::DockerStack, Self::Frameworks];

    /// Whether this machine has it.
    pub fn are_met(self) -> bool {
        let root = rustix::process::geteuid().is_root();
        match self {
            Self::Nothing => true,
            Self::Root => root,
            Self::PrivateEngine => root && PrivateEngine::is_possible(),
            Self::PrivateSwarm => root && PrivateSwarm::is_possible(),
            Self::DockerStack => root && PrivateSwarm::is_possible() && has_stacks(),
            Self::Frameworks => frameworks().is_some(),
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Root => "root",
            Self::PrivateEngine => "root, dockerd and unshare",
            Self::PrivateSwarm => "root, dockerd, ip, nsenter, taskset and unshare",
            Self::DockerStack => "what a Swarm needs, and docker stack",
            Self::Frameworks => "Python's frameworks (make test-frameworks)",
        })
    }
}

/// Where Python's frameworks are installed, if they are.
pub fn frameworks() -> Option<PathBuf> {
    std::env::var_os("PACELINE_FRAMEWORKS").map(PathBuf::from)
}

/// Whether the engine's command knows of stacks.
fn has_stacks() -> bool {
    let mut command = Command::new("docker");
    command.args(["stack", "deploy", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
