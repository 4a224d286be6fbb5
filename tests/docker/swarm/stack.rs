//! The agents and the manager as services of the Swarm itself, by the stack file of the examples.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use paceline_allocator::live::Snapshot;
use paceline_system_tests::{Bed, Offices, SWARM_ALLOCATOR, TestSwarm, until_within};
use tokio::process::Command;

use super::{PATIENCE, on_machines, two_on_w1};
use crate::moves::{ensure_goes_on, processes};

/// What the stack is called.
const STACK: &str = "paceline";
/// The manager is told so much more, to be quick enough for a test.
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

pub(crate) async fn the_stack_of_the_examples_moves_a_job(bed: Arc<Bed>) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    let machines = TestSwarm::shared(bed.folder()).await?;
    on_machines(&bed, machines, async |folder, swarm| {
        let offices = Offices::unmanned(folder, swarm)?;
        deploy(&offices).await?;
        two_on_w1(&offices, "go-on").await?;
        until_within(PATIENCE, "the job has moved", || async {
            let shown = status(&offices).await.ok();
            let moved = |shown: &Snapshot| {
                let flat = shown.jobs.iter().find(|job| job.job == "flat");
                let elsewhere = flat.is_some_and(|flat| flat.node.as_deref() != Some("w1"));
                let well = shown.nodes.iter().all(|node| node.trouble.is_none());
                shown.cost.moves == 1 && shown.nodes.len() == 3 && elsewhere && well
            };
            Ok(shown.filter(moved))
        })
        .await?;
        ensure_goes_on(&kept).await?;
        anyhow::ensure!(processes(&kept)?.len() == 2, "it was started more than once");
        docker(&offices, &["stack", "rm", STACK]).await?;
        offices.clear().await?;
        until_within(PATIENCE, "all services have gone", || async {
            Ok(offices.are_idle().await?.then_some(()))
        })
        .await
    })
    .await
}

/// Has the engine start the stack, and agents by the sockets of its machines.
async fn deploy(offices: &Offices) -> anyhow::Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy");
    let (stack, quick) = (offices.folder().join("stack.yaml"), offices.folder().join("quick.yaml"));
    let text = std::fs::read_to_string(examples.join("swarm-stack.yaml"))?;
    let version = text.lines().find(|line| line.starts_with("version:")).context("a version")?;
    std::fs::write(&quick, format!("{version}\n{QUICK}"))?;
    std::fs::write(&stack, text)?;
    let (stack, quick) = (stack.display().to_string(), quick.display().to_string());
    let files = ["--compose-file", &stack, "--compose-file", &quick];
    docker(
        offices,
        &[&["stack", "deploy", "--resolve-image", "never"], &files[..], &[STACK]].concat(),
    )
    .await
    .map(drop)
}

/// What the manager knows, asked in its own container.
async fn status(offices: &Offices) -> anyhow::Result<Snapshot> {
    let name = format!("name={STACK}_manager");
    let containers = docker(offices, &["ps", "--quiet", "--filter", &name]).await?;
    let container = containers.lines().next().context("there is a manager")?;
    let words = ["exec", container, "/paceline", "status", "--cluster", "--json"];
    Ok(serde_json::from_str(&docker(offices, &words).await?)?)
}

/// What the engine's command says, where the Swarm is managed.
async fn docker(offices: &Offices, words: &[&str]) -> anyhow::Result<String> {
    let sockets = offices.swarm().folder().join("{{.Node.Hostname}}/docker.sock");
    let mut command = Command::new("docker");
    command.args(["--host", &offices.swarm().manager()?.address()]).args(words);
    command.env("ALLOCATOR_IMAGE", SWARM_ALLOCATOR).env("DOCKER_SOCKET", sockets);
    let output = command.output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
