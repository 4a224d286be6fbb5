//! `paceline submit`: submits a distributed job to a Swarm.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_api::plain::{plain_json, print};
use paceline_api::usage::BadUsage;
use paceline_cluster::gangs::Gang;
use paceline_cluster::gangs::submit::{self, Submitted};
use paceline_cluster::swarm;

use super::engine::EngineArgs;

/// Submit a distributed job, of parameter servers and workers, to a Swarm
///
/// Each task becomes a service of its own, at first without a container. `paceline manager` with
/// the
/// policy dltap, kod2, fifo or fifo-gang places and starts the tasks.
///
/// Run the command on a manager node of the Swarm.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline submit mnist.toml
  paceline submit --dry-run mnist.toml | jq '.[].Name'
  paceline submit --withdraw mnist
  paceline status --cluster                show which tasks wait, and where others run

A job's file:
  name = \"mnist\"
  image = \"paceline/workloads\"
  env = { PACELINE_DATA = \"/data\" }
  mounts = [\"/srv/mnist:/data:ro\"]

  [ps]
  count = 1
  cpus = 0.5
  args = [\"mnist\", \"--role\", \"ps\", \"--part\", \"{index}/{count}\"]

  [worker]
  min = 2
  max = 4
  cpus = 1
  memory = 512e6
  args = [\"mnist\", \"--role\", \"worker\", \"--servers\", \"{servers}\", \"--seed\", \"{number}\"]")]
pub(super) struct SubmitArgs {
    /// The job's file; `-` is standard input
    #[arg(value_name = "JOB.toml", required_unless_present = "withdraw")]
    file: Option<PathBuf>,

    /// Print the services as JSON, but create none
    #[arg(long, requires = "file")]
    dry_run: bool,

    /// Remove the job of this name instead, whether it waits, runs or has ended
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    withdraw: Option<String>,
}

pub(super) async fn run(args: SubmitArgs, engine: &EngineArgs) -> anyhow::Result<ExitCode> {
    let gang = args.file.as_deref().map(Gang::read).transpose()?;
    if let Some(gang) = gang.as_ref().filter(|_| args.dry_run) {
        let (services, _) = submit::plan(gang)?;
        print(&(plain_json(&serde_json::to_string_pretty(&services)?) + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let docker = engine.docker().await?.client().clone();
    swarm::read(&docker).await.context(
        "cannot read the Swarm from Docker: run `paceline submit` on a manager node of the Swarm",
    )?;
    let said = match (&gang, &args.withdraw) {
        (Some(gang), _) => {
            let Submitted { made, kept } = submit::submit(&docker, gang).await?;
            let before =
                if kept > 0 { format!(", after {kept} earlier ones,") } else { String::new() };
            format!(
                "{} is submitted: {made} services{before} wait for a manager; `paceline status \
                 --cluster` shows them\n",
                gang.name
            )
        }
        (None, Some(name)) => match submit::withdraw(&docker, name).await? {
            0 => return Err(BadUsage(format!(
                "unknown job {name:?}: expected a submitted one; `paceline status --cluster` shows all"
            ))
            .into()),
            services => format!("{name} is removed, with {services} services\n"),
        },
        (None, None) => String::new(),
    };
    print(&said)?;
    Ok(ExitCode::SUCCESS)
}
