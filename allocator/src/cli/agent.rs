//! `paceline agent`: the allocator of one machine of a cluster.

use std::process::ExitCode;

use clap::Args;

use super::control_args::listens_at;
use super::engine::EngineArgs;
use super::run::{self, AGENT_ADDRESS, RunArgs};
use crate::log::Log;

/// Manage the opted-in containers of one machine of a Swarm or of a Kubernetes node
///
/// On a machine of a Swarm, the agent is `paceline run` that also manages containers of the Swarm. By default it listens
/// for the manager on 0.0.0.0:7224. This address needs a token and TLS. `paceline manager` shows
/// the token and trusts the certificate.
///
/// With `--runtime cri` it is `paceline run` for the pods of a Kubernetes node. Each node decides by its own
/// policy. It needs no manager, and its page is on the loopback.
#[derive(Debug, Args)]
#[command(mut_arg("listen", |arg| {
    listens_at(arg, &format!("{AGENT_ADDRESS}; with `--runtime cri` 127.0.0.1:7224"))
}))]
#[command(after_help = "Examples:
  paceline agent --token-file token --tls-certificate agent.pem --tls-key agent.key
  paceline agent --runtime cri
  paceline agent --policy none --listen 10.0.0.2:7224 --token-file token \\
    --tls-certificate agent.pem --tls-key agent.key")]
pub(super) struct AgentArgs {
    #[command(flatten)]
    run: RunArgs,
}

pub(super) async fn run(
    args: AgentArgs,
    engine: &EngineArgs,
    log: Log,
) -> anyhow::Result<ExitCode> {
    // A Kubernetes node has no manager that would ask it.
    let args = if engine.is_of_kubernetes() { args.run } else { args.run.of_cluster() };
    run::run(args, engine, log).await
}
