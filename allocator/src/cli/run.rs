//! `paceline run`: the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_policy::policies::{self, AnyPolicy, Scope};
use paceline_policy::{Engine, Policy};
use tracing::info;

use super::engine::{self, EngineArgs};
use super::own_container::{self, Errand};
use super::policy_args::{Chosen, PolicyArgs};
use super::state::StateArgs;
use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::driver::{Driver, Records, Roster};
use crate::exit::BadUsage;
use crate::json_lines::JsonLines;
use crate::signals::Signals;

/// Manage the opted-in containers of this machine until SIGTERM or Ctrl-C
///
/// Every limit is put back at the end. A user who is not root but may use the engine is served too:
/// the allocator then runs in a container of its own.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  paceline run --policy flowcon --param alpha=0.05 --param interval=30
  paceline run --policy none --samples samples.jsonl")]
pub(super) struct RunArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Decide, but write no limit
    #[arg(long)]
    dry_run: bool,

    /// Manage only those opted-in containers that also have this label; may be given several times
    #[arg(long = "with-label", value_name = "KEY=VALUE")]
    with_label: Vec<String>,

    /// Write what the policy saw: one JSON line for each of its runs
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Write loss, CPU use and limit of every job: one JSON line a second
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,

    /// End when standard input closes, as by a signal
    #[arg(long, hide = true)]
    until_stdin_closes: bool,

    #[command(flatten)]
    state: StateArgs,
}

impl RunArgs {
    /// The policy, if it is one that a single node can run.
    fn build_policy(&self) -> Result<Box<dyn Policy>, BadUsage> {
        let name = self.policy.chosen()?.policy;
        let of_cluster =
            policies::ALL.iter().any(|entry| entry.name == name && entry.scope == Scope::Cluster);
        match self.policy.build()? {
            AnyPolicy::Jobs(policy) if !of_cluster => Ok(policy),
            AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => {
                Err(BadUsage(format!(
                    "{name} is a policy of a cluster, and `paceline run` manages one node: \
                 `paceline manager` is to run it"
                )))
            }
        }
    }

    /// The same arguments for a process that is to end with this one.
    fn errand(&self) -> anyhow::Result<Errand> {
        let state = self.state.folder();
        let mut folders = vec![std::path::absolute(&state)?];
        let mut words = vec!["run".to_owned(), "--until-stdin-closes".to_owned()];
        let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        let Chosen { policy, variant, params, limiter } = self.policy.chosen()?;
        add("policy", policy);
        add("variant", variant.to_string());
        add("enforcement", limiter.enforcement.to_string());
        for (name, value) in params.iter() {
            add("param", format!("{name}={value}"));
        }
        for label in &self.with_label {
            add("with-label", label.clone());
        }
        for (name, file) in [("record", &self.record), ("samples", &self.samples)] {
            if let Some(file) = file {
                add(name, absolute(file)?);
                folders.extend(std::path::absolute(file)?.parent().map(Path::to_owned));
            }
        }
        // What the command line rules over is read from the file once more.
        if let Some(file) = &self.policy.config {
            add("config", absolute(file)?);
            folders.extend(std::path::absolute(file)?.parent().map(Path::to_owned));
        }
        add("state-dir", absolute(&state)?);
        if self.dry_run {
            words.push("--dry-run".to_owned());
        }
        folders.sort();
        folders.dedup();
        Ok(Errand { words, folders })
    }
}

/// A path that means the same in another process.
pub(super) fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)?;
    path.into_os_string().into_string().ok().context("a path is not valid UTF-8")
}

pub(super) async fn run(args: RunArgs, engine: &EngineArgs) -> anyhow::Result<ExitCode> {
    let policy = args.build_policy()?;
    let signals = Signals::listen()?;
    if args.until_stdin_closes {
        signals.end_with_stdin()?;
    }
    let docker = engine.connect().await?;
    if own_container::is_needed() {
        return own_container::run(&docker, engine, args.errand()?, &signals).await;
    }
    let described = engine::info(&docker).await?;
    let machine = described.machine;
    let actuator = if args.dry_run {
        None
    } else {
        let originals = Originals::open(&args.state.folder(), &described.id)?;
        let actuator = Actuator::new(docker.clone(), originals, machine.proc.clone(), machine.cpus);
        put_back_leftovers(&actuator).await?;
        Some(actuator)
    };
    let records = Records { frames: create(args.record)?, samples: create(args.samples)? };
    info!(policy = policy.name(), node = described.name, cpus = machine.cpus, "allocator runs");
    let engine = Engine::new(described.name, machine.cpus, Some(machine.memory), policy)
        .limited_by(args.policy.chosen()?.limiter)
        .map_err(|error| BadUsage(error.to_string()))?;
    let roster = Roster::new(docker, machine, args.with_label);
    let ended = Driver::new(engine, roster, actuator, records).run(signals.ending()).await?;
    Ok(ended.into())
}

/// A run that was killed has left its limits: they go before new ones come.
async fn put_back_leftovers(actuator: &Actuator) -> anyhow::Result<()> {
    for id in actuator.pending()? {
        if let Some(restored) = actuator.restore(&id).await? {
            info!(
                "an earlier run left limits on container {}: {restored}",
                crate::driver::short(&id)
            );
        }
    }
    Ok(())
}

fn create(path: Option<PathBuf>) -> anyhow::Result<Option<JsonLines>> {
    let create = |path: PathBuf| {
        JsonLines::create(&path)
            .map_err(|error| BadUsage(format!("{} cannot be made: {error}", path.display())))
    };
    Ok(path.map(create).transpose()?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    #[test]
    fn arguments_survive_being_handed_to_another_process() {
        let line = "run --policy flowcon --variant published --enforcement quota \
                    --param alpha=0.05 --param beta=2 --with-label a=b --record /tmp/frames --samples /tmp/samples \
                    --state-dir /tmp/state --dry-run --until-stdin-closes";
        let given = Line::try_parse_from(line.split_whitespace()).unwrap().run;
        let errand = given.errand().unwrap();
        assert_eq!(errand.folders, [Path::new("/tmp"), Path::new("/tmp/state")]);
        assert_eq!(Line::try_parse_from(errand.words).unwrap().run, given);
    }
}
