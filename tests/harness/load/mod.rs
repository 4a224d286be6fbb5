//! Many fake containers, and a fake engine that lists them: as many real ones would need a large
//! machine.
//!
//! To the kernel they are real: each is a process with a control group and a network namespace of
//! its own. They do nothing. This process serves their endpoints.

mod endpoint;
mod engine;
mod groups;
mod http;

use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeWriter, pipe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use paceline_cgroup::Cgroup;
use serde_json::json;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::wait::until;
use endpoint::Job;
use engine::Container;
use groups::Groups;

/// Seconds between two jobs that become acceptable, so that there is always something to decide.
const BETWEEN: f64 = 2.0;

/// The containers, their endpoints and their engine. Dropping this removes all of them.
#[derive(Debug)]
pub struct Load {
    engine: PathBuf,
    _servers: JoinSet<()>,
    // The order matters: processes must end before their groups are removed.
    _processes: Processes,
    _groups: Groups,
}

impl Load {
    /// Makes `count` containers with sockets in `folder`. It needs root.
    pub async fn start(folder: &Path, count: u32) -> anyhow::Result<Self> {
        let groups = Groups::make(&format!("paceline-test-{}", std::process::id()))?;
        let processes = Processes::start(count)?;
        let mut containers = BTreeMap::new();
        let mut servers = JoinSet::new();
        for (number, process) in (0..count).zip(processes.ids()) {
            let id = format!("{number:08x}{:056}", 0);
            groups.put(&id, process)?;
            let socket = folder.join(format!("{number}.sock"));
            let labels = json!({
                "paceline.enable": "true",
                "paceline.endpoint": format!("unix:{}", socket.display()),
                "paceline.job": format!("job-{number}"),
            });
            let cgroup = Cgroup::for_process(Path::new("/proc"), process)?;
            containers.insert(id.clone(), Container::new(&id, process, cgroup, &labels)?);
            let job = Job::new(&format!("job-{number}"), BETWEEN * f64::from(number + 1))?;
            let phase = Duration::from_secs(1) * number / count;
            servers.spawn(endpoint::serve(UnixListener::bind(socket)?, job, phase));
        }
        processes.have_networks().await?;
        let engine = folder.join("engine.sock");
        servers.spawn(engine::serve(UnixListener::bind(&engine)?, Arc::new(containers)));
        Ok(Self { engine, _servers: servers, _processes: processes, _groups: groups })
    }

    /// The engine's address, as in `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.engine.display())
    }
}

/// Processes that wait for the end of a pipe that only this process can write to: they end when it
/// does, however it ends.
#[derive(Debug)]
struct Processes {
    children: Vec<Child>,
    pipe: Option<PipeWriter>,
}

impl Processes {
    fn start(count: u32) -> anyhow::Result<Self> {
        let (end, pipe) = pipe()?;
        let mut processes = Self { children: Vec::new(), pipe: Some(pipe) };
        for _ in 0..count {
            let mut command = Command::new("unshare");
            command.args(["--net", "cat"]).stdin(end.try_clone()?).stdout(Stdio::null());
            let child = command.spawn().context("unshare, of util-linux, cannot be started")?;
            processes.children.push(child);
        }
        Ok(processes)
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(Child::id)
    }

    /// Waits until each has a network of its own.
    async fn have_networks(&self) -> anyhow::Result<()> {
        let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net"));
        let machine = network("self")?;
        until("every process has a network of its own", || async {
            let own = |id: u32| network(&id.to_string()).is_ok_and(|network| network != machine);
            Ok(self.ids().all(own).then_some(()))
        })
        .await
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.pipe = None;
        for child in &mut self.children {
            // An error means that it has ended already.
            drop(child.wait());
        }
    }
}
