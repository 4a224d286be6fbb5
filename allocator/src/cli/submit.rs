//! `paceline submit`: a distributed job for a Swarm.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::engine::EngineArgs;
use super::plain::{plain_json, print};
use crate::cluster::gangs::Gang;
use crate::cluster::gangs::submit::{self, Submitted};
use crate::cluster::swarm;
use crate::exit::BadUsage;

/// Submit a distributed job, of parameter servers and workers, to a Swarm
///
/// Each task becomes a service of its own, without a container as yet. A manager under dltap, kod2,
/// fifo or fifo-gang gives it one, where its policy wants it.
///
/// It runs where a manager of the Swarm runs, as `paceline manager` does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline submit mnist.toml
  paceline submit --dry-run mnist.toml | jq '.[].Name'
  paceline submit --withdraw mnist
  paceline status --cluster                what waits, what runs, and where

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
    /// The job's file
    #[arg(value_name = "JOB.toml", required_unless_present = "withdraw")]
    file: Option<PathBuf>,

    /// Print the services that would be made, as JSON, and make none
    #[arg(long, requires = "file")]
    dry_run: bool,

    /// Remove a job by its name instead, whether it waits, runs or has ended
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
    let docker = engine.connect().await?;
    swarm::look(&docker).await.context(
        "the engine does not tell of a Swarm: jobs are submitted where a manager of the Swarm runs",
    )?;
    let said = match (&gang, &args.withdraw) {
        (Some(gang), _) => {
            let Submitted { made, kept } = submit::submit(&docker, gang).await?;
            let before =
                if kept > 0 { format!(", beside {kept} of before") } else { String::new() };
            format!(
                "{} is submitted: {made} services{before} wait for a manager; `paceline status \
                 --cluster` shows them\n",
                gang.name
            )
        }
        (None, Some(name)) => match submit::withdraw(&docker, name).await? {
            0 => return Err(BadUsage(format!("there is no job {name}")).into()),
            services => format!("{name} is removed, with {services} services\n"),
        },
        (None, None) => String::new(),
    };
    print(&said)?;
    Ok(ExitCode::SUCCESS)
}
