//! The agents and the manager as services of the Swarm, from the examples' stack file.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use paceline_api::live::Snapshot;
use paceline_system_tests::{AgentFleet, SWARM_ALLOCATOR, TestEnv, TestSwarm, until_within};
use tokio::process::Command;

use super::{SWARM_TIMEOUT, on_machines, two_on_w1};
use crate::moves::{ensure_continues, ensure_one_at_a_time};

/// The stack's name.
const STACK: &str = "paceline";
/// Further options of the manager, which make it quick enough for a test.
const QUICK: &str = "services:
  manager:
    command:
      - manager
      - --agent-token-file=/run/secrets/token
      - --agent-ca=/agent.pem
      - --agent-name=paceline-agent
      - --param=interval=0.5
      - --param=alpha=0.000001
      - --moves=1
";

pub(crate) async fn the_stack_of_the_examples_moves_a_job(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    let machines = TestSwarm::shared(env.folder()).await?;
    on_machines(&env, machines, async |folder, swarm| {
        let fleet = AgentFleet::without_agents(folder, swarm)?;
        deploy(&fleet).await?;
        two_on_w1(&fleet, "go-on").await?;
        until_within(SWARM_TIMEOUT, "the job has moved", || async {
            let shown = status(&fleet).await.ok();
            let moved = |shown: &Snapshot| {
                let flat = shown.jobs.iter().find(|job| job.job == "flat");
                let elsewhere = flat.is_some_and(|flat| flat.node.as_deref() != Some("w1"));
                let well = shown.nodes.iter().all(|node| node.trouble.is_none());
                shown.cost.moves == 1 && shown.nodes.len() == 3 && elsewhere && well
            };
            Ok(shown.filter(moved))
        })
        .await?;
        ensure_continues(&kept).await?;
        // On a busy machine a first attempt to move may be given up.
        ensure_one_at_a_time(&kept)?;
        docker(&fleet, &["stack", "rm", STACK]).await?;
        fleet.clear().await?;
        until_within(SWARM_TIMEOUT, "all services have gone", || async {
            Ok(fleet.are_idle().await?.then_some(()))
        })
        .await
    })
    .await
}

/// Deploys the stack, with agents that use the sockets of their machines.
async fn deploy(fleet: &AgentFleet) -> anyhow::Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy");
    let (stack, quick) = (fleet.folder().join("stack.yaml"), fleet.folder().join("quick.yaml"));
    let text = std::fs::read_to_string(examples.join("swarm-stack.yaml"))?;
    let version = text.lines().find(|line| line.starts_with("version:")).context("a version")?;
    std::fs::write(&quick, format!("{version}\n{QUICK}"))?;
    std::fs::write(&stack, text)?;
    let (stack, quick) = (stack.display().to_string(), quick.display().to_string());
    let files = ["--compose-file", &stack, "--compose-file", &quick];
    docker(
        fleet,
        &[&["stack", "deploy", "--resolve-image", "never"], &files[..], &[STACK]].concat(),
    )
    .await
    .map(drop)
}

/// The manager's status, asked in its own container.
async fn status(fleet: &AgentFleet) -> anyhow::Result<Snapshot> {
    let name = format!("name={STACK}_manager");
    let containers = docker(fleet, &["ps", "--quiet", "--filter", &name]).await?;
    let container = containers.lines().next().context("there is a manager")?;
    let words = ["exec", container, "/paceline", "status", "--cluster", "--json"];
    Ok(serde_json::from_str(&docker(fleet, &words).await?)?)
}

/// The output of a `docker` command on the machine that manages the Swarm.
async fn docker(fleet: &AgentFleet, words: &[&str]) -> anyhow::Result<String> {
    let sockets = fleet.swarm().folder().join("{{.Node.Hostname}}/docker.sock");
    let mut command = Command::new("docker");
    command.args(["--host", &fleet.swarm().manager()?.address()]).args(words);
    command.env("ALLOCATOR_IMAGE", SWARM_ALLOCATOR).env("DOCKER_SOCKET", sockets);
    let output = command.output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
