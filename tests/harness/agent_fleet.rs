use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::{
    Mount, MountType, ServiceSpec, ServiceSpecMode, ServiceSpecModeReplicated, TaskSpec,
    TaskSpecContainerSpec, TaskSpecPlacement, TaskSpecRestartPolicy,
    TaskSpecRestartPolicyConditionEnum, TaskState,
};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptions, ListServicesOptions, ListTasksOptions,
};
use paceline_api::labels::JOB;
use paceline_api::live::Snapshot;

use crate::allocator::{Allocator, LOCKS};
use crate::image::program;
use crate::printed::printed;
use crate::swarm::{PrivateSwarm, SwarmEngine};
use crate::wait::until_within;

/// The host name in the agents' certificate.
const NAME: &str = "paceline-agent";
/// The time within which containers must have ended after a request.
const END_TIMEOUT: Duration = Duration::from_secs(90);

/// An agent on every machine of a Swarm, and what a manager needs to reach them.
#[derive(Debug)]
pub struct AgentFleet {
    /// The folder of certificates, states, sockets and the jobs' files.
    folder: PathBuf,
    swarm: Arc<PrivateSwarm>,
    /// The agents' policy, and further options.
    policy: Vec<String>,
    agents: BTreeMap<String, Allocator>,
}

/// A service with one task that has opted in.
#[derive(Clone, Debug, Default)]
pub struct OneTask<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its image, which every machine has.
    pub image: &'a str,
    /// The arguments of its container.
    pub args: &'a [&'a str],
    /// `KEY=value`.
    pub env: &'a [&'a str],
    /// Labels of its container, beside that which opts it in.
    pub labels: &'a [(&'a str, &'a str)],
    /// Folders of every machine, and where they are inside.
    pub mounts: &'a [(&'a Path, &'a str)],
    /// Its placement constraint, such as `node.hostname==w1`.
    pub place: Option<&'a str>,
}

impl AgentFleet {
    /// Starts the agents, which keep everything in `folder` and limit nothing.
    pub fn open(folder: PathBuf, swarm: Arc<PrivateSwarm>) -> anyhow::Result<Self> {
        Self::open_under(&["none"], folder, swarm)
    }

    /// The same, with this policy on each machine; further words are options of the agent.
    pub fn open_under(
        policy: &[&str],
        folder: PathBuf,
        swarm: Arc<PrivateSwarm>,
    ) -> anyhow::Result<Self> {
        let mut fleet = Self::without_agents(folder, swarm)?;
        fleet.policy = policy.iter().map(|word| (*word).to_owned()).collect();
        for engine in Arc::clone(&fleet.swarm).engines() {
            fleet.start_agent(&engine.host)?;
        }
        Ok(fleet)
    }

    /// Makes the credentials of agents and manager: `token`, `agent.pem` and `agent.key` in `folder`.
    pub fn without_agents(folder: PathBuf, swarm: Arc<PrivateSwarm>) -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let fleet = Self { folder, swarm, policy: Vec::new(), agents: BTreeMap::new() };
        for (name, text) in [
            ("token", "a token of the test's own".replace(' ', "-")),
            ("agent.pem", made.cert.pem()),
            ("agent.key", made.signing_key.serialize_pem()),
        ] {
            let path = fleet.file(name);
            std::fs::write(&path, text)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(fleet)
    }

    /// The Swarm.
    pub fn swarm(&self) -> &PrivateSwarm {
        &self.swarm
    }

    /// Where its files are, and those of jobs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A machine.
    pub fn engine(&self, host: &str) -> anyhow::Result<&SwarmEngine> {
        let engine = self.swarm.engines().iter().find(|engine| engine.host == host);
        engine.context("there is such a machine")
    }

    /// Starts the agent of a machine.
    pub fn start_agent(&mut self, host: &str) -> anyhow::Result<()> {
        let engine = self.engine(host)?;
        let mut command = engine.command(&program("paceline")?);
        command.args(["agent", "--host", &engine.address(), "--policy"]).args(&self.policy);
        command.env(LOCKS, Allocator::locks()?);
        command.arg("--token-file").arg(self.file("token"));
        command.arg("--tls-certificate").arg(self.file("agent.pem"));
        command.arg("--tls-key").arg(self.file("agent.key"));
        command.arg("--state-dir").arg(self.file(&format!("state-of-{host}")));
        command.arg("--control").arg(self.file(&format!("{host}.sock")));
        let agent = Allocator::spawn(command)?;
        self.agents.insert(host.to_owned(), agent);
        Ok(())
    }

    /// Ends the agent of a machine.
    pub async fn end_agent(&mut self, host: &str) -> anyhow::Result<()> {
        self.agents.remove(host).context("it runs")?.end().await
    }

    /// Starts `paceline manager` with the further options `words`.
    pub fn manager(&self, words: &[&str]) -> anyhow::Result<Allocator> {
        self.manager_that_crashes(words, None)
    }

    /// The same; with `at`, it is killed at that step.
    pub fn manager_that_crashes(
        &self,
        words: &[&str],
        at: Option<&str>,
    ) -> anyhow::Result<Allocator> {
        let engine = self.swarm.manager()?;
        let mut command = engine.command(&program("paceline")?);
        command.args(["manager", "--host", &engine.address(), "--listen", "none"]);
        command.arg("--agent-token-file").arg(self.file("token"));
        command.arg("--agent-ca").arg(self.file("agent.pem"));
        command.args(["--agent-name", NAME]).args(words);
        command.arg("--state-dir").arg(self.file("state-of-manager"));
        command.arg("--control").arg(self.socket());
        if let Some(step) = at {
            command.env("PACELINE_CRASH_AT", step);
        }
        Allocator::spawn(command)
    }

    fn socket(&self) -> PathBuf {
        self.file("manager.sock")
    }

    /// The manager's status.
    pub async fn status(&self) -> anyhow::Result<Snapshot> {
        let mut command = Allocator::command(&["status", "--cluster", "--json"])?;
        let output = command.arg("--control").arg(self.socket()).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{said}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs `paceline submit` with a gang's file; returns its output.
    pub async fn submit_gang(&self, name: &str, text: &str) -> anyhow::Result<String> {
        let path = self.file(&format!("{name}.toml"));
        std::fs::write(&path, text)?;
        let path = path.to_str().context("a path is text")?;
        self.run_on_manager(&["submit", path]).await
    }

    /// Runs `paceline submit --withdraw`.
    pub async fn withdraw_gang(&self, name: &str) -> anyhow::Result<String> {
        self.run_on_manager(&["submit", "--withdraw", name]).await
    }

    /// Runs a command against the managing engine; returns its output.
    async fn run_on_manager(&self, words: &[&str]) -> anyhow::Result<String> {
        let host = self.swarm.manager()?.address();
        let output = Allocator::command(words)?.args(["--host", &host]).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{words:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The ids of all tasks that run or are about to.
    pub async fn tasks(&self) -> anyhow::Result<BTreeSet<String>> {
        let docker = self.swarm.manager()?.docker();
        let tasks = docker.list_tasks(None::<ListTasksOptions>).await?.into_iter();
        let wanted = tasks.filter(|task| task.desired_state == Some(TaskState::RUNNING));
        Ok(wanted.filter_map(|task| task.id).collect())
    }

    /// The names of the Swarm's networks with this prefix.
    pub async fn networks(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let docker = self.swarm.manager()?.docker();
        let networks = docker.list_networks(None::<ListNetworksOptions>).await?.into_iter();
        Ok(networks
            .filter_map(|network| network.name)
            .filter(|name| name.starts_with(prefix))
            .collect())
    }

    /// Creates a service, which runs until its task ends.
    pub async fn serve(&self, one: &OneTask<'_>) -> anyhow::Result<()> {
        let own = [("paceline.enable", "true")];
        let labels = own.iter().chain(one.labels);
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let owned =
            |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let mount = |(source, target): &(&Path, &str)| Mount {
            typ: Some(MountType::BIND),
            source: source.to_str().map(str::to_owned),
            target: Some((*target).to_owned()),
            ..Mount::default()
        };
        let container = TaskSpecContainerSpec {
            image: Some(one.image.to_owned()),
            args: owned(one.args),
            env: owned(one.env),
            labels: Some(labels.collect()),
            mounts: Some(one.mounts.iter().map(mount).collect()),
            ..TaskSpecContainerSpec::default()
        };
        let constraints = one.place.map(|place| vec![place.to_owned()]);
        let restart = TaskSpecRestartPolicy {
            condition: Some(TaskSpecRestartPolicyConditionEnum::NONE),
            ..TaskSpecRestartPolicy::default()
        };
        let task = TaskSpec {
            container_spec: Some(container),
            placement: Some(TaskSpecPlacement { constraints, ..TaskSpecPlacement::default() }),
            restart_policy: Some(restart),
            ..TaskSpec::default()
        };
        let replicated = Some(ServiceSpecModeReplicated { replicas: Some(1) });
        let spec = ServiceSpec {
            name: Some(one.name.to_owned()),
            task_template: Some(task),
            mode: Some(ServiceSpecMode { replicated, ..ServiceSpecMode::default() }),
            ..ServiceSpec::default()
        };
        self.swarm.manager()?.docker().create_service(spec, None).await?;
        Ok(())
    }

    /// The names of all services.
    pub async fn services(&self) -> anyhow::Result<Vec<String>> {
        let docker = self.swarm.manager()?.docker();
        let services = docker.list_services(None::<ListServicesOptions>).await?.into_iter();
        let mut names: Vec<String> =
            services.filter_map(|service| service.spec.and_then(|spec| spec.name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes every service without waiting for its jobs to end.
    pub async fn clear(&self) -> anyhow::Result<()> {
        self.swarm.empty().await
    }

    /// Waits until no container of a job is left on any machine.
    pub async fn until_idle(&self) -> anyhow::Result<()> {
        until_within(END_TIMEOUT, "nothing runs", || async {
            Ok(self.are_idle().await?.then_some(()))
        })
        .await
    }

    /// Whether no container of a job is left on any machine.
    pub async fn are_idle(&self) -> anyhow::Result<bool> {
        for engine in self.swarm.engines() {
            let all = ListContainersOptionsBuilder::default().all(true).build();
            if !engine.docker().list_containers(Some(all)).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The output of all existing containers of a job, on all machines.
    pub async fn printed_by(&self, job: &str) -> anyhow::Result<String> {
        let filters = [("label".to_owned(), vec![format!("{JOB}={job}")])].into();
        let its = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let mut log = String::new();
        for engine in self.swarm.engines() {
            let containers = engine.docker().list_containers(Some(its.clone())).await?;
            for id in containers.into_iter().filter_map(|container| container.id) {
                log += &printed(engine.docker(), &id).await?;
            }
        }
        Ok(log)
    }

    /// Ends the agents.
    pub async fn close(self) -> anyhow::Result<()> {
        for agent in self.agents.into_values() {
            agent.end().await?;
        }
        Ok(())
    }
}
