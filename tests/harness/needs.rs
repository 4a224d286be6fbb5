use std::fmt;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::private::PrivateEngine;
use crate::swarm::PrivateSwarm;
use crate::wait::WAIT_TIMEOUT;

/// What a test needs besides an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// Nothing else.
    Nothing,
    /// Root: to write control groups, and to become another user.
    Root,
    /// An engine that leaves control groups of version 2 to systemd; and root.
    Systemd,
    /// To start an engine of its own.
    PrivateEngine,
    /// To start a Swarm of the tests' own.
    PrivateSwarm,
    /// The same, and the command `docker stack`.
    DockerStack,
    /// Python's frameworks, which `make test-frameworks` installs.
    Frameworks,
    /// Python's libraries that draw bars, which `make docker-tests` installs if it can.
    Bars,
}

impl Needs {
    /// Everything that a machine may lack.
    pub const ALL: [Self; 7] = [
        Self::Root,
        Self::Systemd,
        Self::PrivateEngine,
        Self::PrivateSwarm,
        Self::DockerStack,
        Self::Frameworks,
        Self::Bars,
    ];

    /// Whether this machine has it.
    pub fn are_met(self) -> bool {
        let root = rustix::process::geteuid().is_root();
        match self {
            Self::Nothing => true,
            Self::Root => root,
            Self::Systemd => root && has_scopes(),
            Self::PrivateEngine => root && PrivateEngine::is_possible(),
            Self::PrivateSwarm => root && PrivateSwarm::is_possible(),
            Self::DockerStack => root && PrivateSwarm::is_possible() && has_stacks(),
            Self::Frameworks => frameworks().is_some(),
            Self::Bars => bars().is_some(),
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Root => "root",
            Self::Systemd => "root, and an engine with cgroup v2 and systemd (make test-cgroup2)",
            Self::PrivateEngine => "root, dockerd and unshare",
            Self::PrivateSwarm => "root, dockerd, ip, nsenter, taskset and unshare",
            Self::DockerStack => "what a Swarm needs, and docker stack",
            Self::Frameworks => "Python's frameworks (make test-frameworks)",
            Self::Bars => "tqdm and rich (sidecar/frameworks/bars.sh target/bars)",
        })
    }
}

/// Where Python's frameworks are installed, if they are.
pub fn frameworks() -> Option<PathBuf> {
    std::env::var_os("PACELINE_FRAMEWORKS").map(PathBuf::from)
}

/// The virtual environment with the libraries that draw bars, if it is complete.
pub fn bars() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bars");
    // The file is written last.
    folder.canonicalize().ok().filter(|folder| folder.join("pins").exists())
}

/// Whether the engine at the usual socket leaves control groups of version 2 to systemd.
fn has_scopes() -> bool {
    let described = || -> std::io::Result<String> {
        let mut engine = UnixStream::connect("/var/run/docker.sock")?;
        engine.set_read_timeout(Some(WAIT_TIMEOUT))?;
        engine.write_all(b"GET /info HTTP/1.0\r\nHost: engine\r\n\r\n")?;
        let mut answer = String::new();
        engine.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let words = [r#""CgroupDriver":"systemd""#, r#""CgroupVersion":"2""#];
    described().is_ok_and(|answer| words.iter().all(|word| answer.contains(word)))
}

/// Whether the command `docker stack` works.
fn has_stacks() -> bool {
    let mut command = Command::new("docker");
    command.args(["stack", "deploy", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
