//! The agents of a Swarm's machines, and its manager, as a user starts them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::{
    Mount, MountType, ServiceSpec, ServiceSpecMode, ServiceSpecModeReplicated, TaskSpec,
    TaskSpecContainerSpec, TaskSpecPlacement, TaskSpecRestartPolicy,
    TaskSpecRestartPolicyConditionEnum,
};
use bollard::query_parameters::{ListContainersOptionsBuilder, ListServicesOptions};
use paceline_allocator::live::Snapshot;
use paceline_system_tests::{Allocator, Bed, PrivateSwarm, SwarmEngine, image_of, program};

/// The image of the jobs, on every machine.
const IMAGE: &str = "paceline-test/toy-job:swarm";
/// What stands in the agents' certificate.
const NAME: &str = "paceline-agent";

/// An agent on every machine of a Swarm, and what a manager needs to reach them.
pub(super) struct Offices {
    bed: Arc<Bed>,
    swarm: Arc<PrivateSwarm>,
    agents: BTreeMap<String, Allocator>,
}

impl Offices {
    pub(super) async fn open(bed: Arc<Bed>, swarm: Arc<PrivateSwarm>) -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        for (name, text) in [
            ("token", "a token of the test's own".replace(' ', "-")),
            ("agent.pem", made.cert.pem()),
            ("agent.key", made.signing_key.serialize_pem()),
        ] {
            let path = bed.file(name);
            std::fs::write(&path, text)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        }
        let toy = env!("CARGO_BIN_EXE_toy-job").as_ref();
        let mut offices = Self { bed, swarm, agents: BTreeMap::new() };
        for engine in Arc::clone(&offices.swarm).engines() {
            image_of(engine.docker(), IMAGE, &[toy]).await?;
            offices.start_agent(&engine.host)?;
        }
        Ok(offices)
    }

    fn engine(&self, host: &str) -> anyhow::Result<&SwarmEngine> {
        let engine = self.swarm.engines().iter().find(|engine| engine.host == host);
        engine.context("there is such a machine")
    }

    /// Starts the agent of a machine.
    pub(super) fn start_agent(&mut self, host: &str) -> anyhow::Result<()> {
        let engine = self.engine(host)?;
        let mut command = engine.command(&program("paceline")?);
        command.args(["agent", "--policy", "none", "--host", &engine.address()]);
        command.arg("--token-file").arg(self.bed.file("token"));
        command.arg("--tls-certificate").arg(self.bed.file("agent.pem"));
        command.arg("--tls-key").arg(self.bed.file("agent.key"));
        command.arg("--state-dir").arg(self.bed.file(&format!("state-of-{host}")));
        command.arg("--control").arg(self.bed.file(&format!("{host}.sock")));
        let agent = Allocator::spawn(command)?;
        self.agents.insert(host.to_owned(), agent);
        Ok(())
    }

    /// Ends the agent of a machine.
    pub(super) async fn end_agent(&mut self, host: &str) -> anyhow::Result<()> {
        self.agents.remove(host).context("it runs")?.end().await
    }

    /// `paceline manager`, told more by `words`.
    pub(super) fn manager(&self, words: &[&str]) -> anyhow::Result<Allocator> {
        self.manager_that_crashes(words, None)
    }

    /// The same, killed at a step.
    pub(super) fn manager_that_crashes(
        &self,
        words: &[&str],
        at: Option<&str>,
    ) -> anyhow::Result<Allocator> {
        let engine = self.swarm.manager()?;
        let mut command = engine.command(&program("paceline")?);
        command.args(["manager", "--host", &engine.address(), "--listen", "none"]);
        command.arg("--agent-token-file").arg(self.bed.file("token"));
        command.arg("--agent-ca").arg(self.bed.file("agent.pem"));
        command.args(["--agent-name", NAME]).args(words);
        command.arg("--state-dir").arg(self.bed.file("state-of-manager"));
        command.arg("--control").arg(self.socket());
        if let Some(step) = at {
            command.env("PACELINE_CRASH_AT", step);
        }
        Allocator::spawn(command)
    }

    fn socket(&self) -> PathBuf {
        self.bed.file("manager.sock")
    }

    /// What the manager knows.
    pub(super) async fn status(&self) -> anyhow::Result<Snapshot> {
        let mut command = Allocator::command(&["status", "--cluster", "--json"])?;
        let output = command.arg("--control").arg(self.socket()).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{said}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// A job that converges at once and can be moved, doing as `resume` says with a checkpoint, and
    /// one that goes on growing beside it: both begin on w1.
    pub(super) async fn two_on_w1(&self, resume: &str) -> anyhow::Result<()> {
        let flat = ["--checkpoint", "/ckpt/saved", "--trace", "/ckpt/trace", "--resume", resume];
        self.submit("growing", &["--half-life", "40000"], &[]).await?;
        self.submit("flat", &flat, &[("paceline.checkpoint", "/ckpt")]).await
    }

    async fn submit(
        &self,
        name: &str,
        args: &[&str],
        labels: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        let own = [("paceline.enable", "true")];
        let labels =
            own.iter().chain(labels).map(|(key, value)| (key.to_string(), value.to_string()));
        let mount = Mount {
            typ: Some(MountType::BIND),
            source: self.bed.folder().to_str().map(str::to_owned),
            target: Some("/ckpt".to_owned()),
            ..Mount::default()
        };
        let container = TaskSpecContainerSpec {
            image: Some(IMAGE.to_owned()),
            args: Some(args.iter().map(|word| (*word).to_owned()).collect()),
            labels: Some(labels.collect()),
            mounts: Some(vec![mount]),
            ..TaskSpecContainerSpec::default()
        };
        let place = TaskSpecPlacement {
            constraints: Some(vec!["node.hostname==w1".to_owned()]),
            ..TaskSpecPlacement::default()
        };
        let restart = TaskSpecRestartPolicy {
            condition: Some(TaskSpecRestartPolicyConditionEnum::NONE),
            ..TaskSpecRestartPolicy::default()
        };
        let task = TaskSpec {
            container_spec: Some(container),
            placement: Some(place),
            restart_policy: Some(restart),
            ..TaskSpec::default()
        };
        let replicated = Some(ServiceSpecModeReplicated { replicas: Some(1) });
        let spec = ServiceSpec {
            name: Some(name.to_owned()),
            task_template: Some(task),
            mode: Some(ServiceSpecMode { replicated, ..ServiceSpecMode::default() }),
            ..ServiceSpec::default()
        };
        self.swarm.manager()?.docker().create_service(spec, None).await?;
        Ok(())
    }

    /// The names of all services.
    pub(super) async fn services(&self) -> anyhow::Result<Vec<String>> {
        let docker = self.swarm.manager()?.docker();
        let services = docker.list_services(None::<ListServicesOptions>).await?.into_iter();
        let mut names: Vec<String> =
            services.filter_map(|service| service.spec.and_then(|spec| spec.name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes every service.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        let docker = self.swarm.manager()?.docker();
        for name in self.services().await? {
            docker.delete_service(&name).await?;
        }
        Ok(())
    }

    /// Whether no container of a job is left on any machine.
    pub(super) async fn are_idle(&self) -> anyhow::Result<bool> {
        for engine in self.swarm.engines() {
            let all = ListContainersOptionsBuilder::default().all(true).build();
            if !engine.docker().list_containers(Some(all)).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the agents.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        for agent in self.agents.into_values() {
            agent.end().await?;
        }
        Ok(())
    }
}
