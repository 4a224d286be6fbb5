//! `paceline run`: the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_policy::policies::{self, AnyPolicy, Scope};
use paceline_policy::{Engine, Params, Policy, Shadow, Variant};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, info};

use super::actuator_arg::ActuatorArgs;
use super::control_args::ControlArgs;
use super::engine::{self, EngineArgs, EngineInfo};
use super::own_container::{self, Errand};
use super::policy_args::{Chosen, PolicyArgs};
use super::priority;
use super::state::StateArgs;
use crate::actuate::originals::Originals;
use crate::actuate::{Actuator, Means};
use crate::audit::Audit;
use crate::clock::unix_seconds;
use crate::driver::{self, Driver, Hooks, Records, Roster};
use crate::exit::BadUsage;
use crate::json_lines::JsonLines;
use crate::live;
use crate::live::snapshot::{NodeView, PolicyView, SCHEMA, Snapshot};
use crate::log::Log;
use crate::signals::Signals;
use crate::web::{self, Address};

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

    #[command(flatten)]
    actuator: ActuatorArgs,

    /// Decide, but write no limit
    #[arg(long)]
    dry_run: bool,

    /// Let these policies watch and say what they would do; they change nothing
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    shadow: Vec<String>,

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
    control: ControlArgs,

    #[command(flatten)]
    web: web::Settings,

    #[command(flatten)]
    state: StateArgs,
}

impl RunArgs {
    /// The policy, if it is one that a single node can run.
    fn build_policy(&self) -> Result<Box<dyn Policy>, BadUsage> {
        of_one_node(&self.policy.chosen()?.policy, self.policy.build()?)
    }

    /// The policies that watch, as they come without being set.
    fn build_shadows(&self) -> Result<Vec<Shadow>, BadUsage> {
        let build = |name: &String| {
            let policy = policies::build(name, Variant::default(), &Params::default())
                .map_err(|error| BadUsage(format!("--shadow: {error}")))?;
            Ok(Shadow::new(of_one_node(name, policy)?))
        };
        self.shadow.iter().map(build).collect()
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
        for name in &self.shadow {
            add("shadow", name.clone());
        }
        for label in &self.with_label {
            add("with-label", label.clone());
        }
        match self.control.socket() {
            // By default it is in the container, and asked there.
            Some(_) if self.control.is_default() => {}
            Some(path) => {
                add("control", absolute(&path)?);
                folders.extend(std::path::absolute(path)?.parent().map(Path::to_owned));
            }
            None => add("control", "none".to_owned()),
        }
        match &self.web.listen {
            Some(Address::Unix(path)) => {
                add("listen", format!("unix:{}", absolute(path)?));
                folders.extend(std::path::absolute(path)?.parent().map(Path::to_owned));
            }
            Some(address) => add("listen", address.to_string()),
            None => {}
        }
        for (name, file) in [
            ("record", &self.record),
            ("samples", &self.samples),
            ("token-file", &self.web.token_file),
            ("tls-certificate", &self.web.tls_certificate),
            ("tls-key", &self.web.tls_key),
        ] {
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
        words.extend(self.actuator.words());
        if self.dry_run {
            words.push("--dry-run".to_owned());
        }
        folders.sort();
        folders.dedup();
        Ok(Errand { words, folders })
    }
}

fn of_one_node(name: &str, policy: AnyPolicy) -> Result<Box<dyn Policy>, BadUsage> {
    let of_cluster =
        policies::ALL.iter().any(|entry| entry.name == name && entry.scope == Scope::Cluster);
    match policy {
        AnyPolicy::Jobs(policy) if !of_cluster => Ok(policy),
        AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => Err(BadUsage(format!(
            "{name} is a policy of a cluster, and `paceline run` manages one node: \
             `paceline manager` is to run it"
        ))),
    }
}

/// What is known before the first look.
fn first_snapshot(
    chosen: &Chosen,
    described: &EngineInfo,
    actuator: Means,
    dry_run: bool,
) -> Snapshot {
    let entry = policies::ALL.iter().find(|entry| entry.name == chosen.policy);
    let parameters = entry.map(|entry| entry.parameters).unwrap_or_default();
    let defaults = parameters.iter().map(|one| (one.name.to_owned(), one.default));
    let given = chosen.params.iter().map(|(name, value)| (name.to_owned(), value));
    Snapshot {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: unix_seconds(),
        node: NodeView {
            name: described.name.clone(),
            cpus: described.machine.cpus,
            memory: described.machine.memory,
            cpu: None,
        },
        policy: PolicyView {
            name: chosen.policy.clone(),
            variant: chosen.variant.to_string(),
            params: defaults.chain(given).collect(),
            enforcement: chosen.limiter.enforcement.to_string(),
            actuator: actuator.to_string(),
            dry_run,
            guards: chosen.limiter.guards(),
        },
        ..Snapshot::default()
    }
}

/// A path that means the same in another process.
pub(super) fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)?;
    path.into_os_string().into_string().ok().context("a path is not valid UTF-8")
}

pub(super) async fn run(args: RunArgs, engine: &EngineArgs, log: Log) -> anyhow::Result<ExitCode> {
    let (policy, shadows) = (args.build_policy()?, args.build_shadows()?);
    let chosen = args.policy.chosen()?;
    let signals = Signals::listen()?;
    if args.until_stdin_closes {
        signals.end_with_stdin()?;
    }
    allow_many_files();
    priority::raise();
    let docker = engine.connect().await?;
    if own_container::is_needed() {
        let mut errand = args.errand()?;
        errand.words.push(format!("--log-format={}", log.format()));
        return own_container::run(&docker, engine, errand, &signals).await;
    }
    let described = engine::info(&docker).await?;
    let (live, stage) =
        live::pair(first_snapshot(&chosen, &described, args.actuator.actuator, args.dry_run));
    let EngineInfo { id, name, machine } = described;
    let actuator = if args.dry_run {
        None
    } else {
        let purpose = format!("policy {}", policy.name());
        let originals = Originals::open(&args.state.folder(), &id, &purpose)?;
        let actuator = Actuator::new(docker.clone(), originals, machine.proc.clone(), machine.cpus)
            .by(args.actuator.actuator, args.actuator.on_drift);
        put_back_leftovers(&actuator).await?;
        Some(actuator)
    };
    let audit = if args.dry_run { None } else { Some(Audit::open(&args.state.folder())?) };
    let records = Records { frames: create(args.record)?, samples: create(args.samples)?, audit };
    info!(policy = policy.name(), node = name, cpus = machine.cpus, "allocator runs");
    let engine = Engine::new(name, machine.cpus, Some(machine.memory), policy)
        .limited_by(chosen.limiter)
        .map_err(|error| BadUsage(error.to_string()))?;
    let roster = Roster::new(docker, machine, args.with_label).adopting(args.actuator.adopt);
    // Both are there to the end: the limits are put back first.
    let _page = web::serve(&args.web, live.clone()).await?;
    let _control = args.control.serve(live, args.state.folder())?;
    let hooks = Hooks { log_level: Some(Box::new(move |it| log.set_level(it))) };
    let driver = Driver::new(engine, roster, actuator, records, stage)
        .shadowed_by(shadows)
        .with_hooks(hooks);
    let ended = driver.run(signals.ending()).await?;
    Ok(ended.into())
}

/// Each job that is listened to takes a file: as many may be open as this process can be allowed.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        debug!("no more than {:?} files may be open: {error}", limit.current);
    }
}

/// A run that was killed has left its limits: they go before new ones come.
async fn put_back_leftovers(actuator: &Actuator) -> anyhow::Result<()> {
    for id in actuator.pending()? {
        if let Some(restored) = actuator.restore(&id).await? {
            info!("an earlier run left limits on container {}: {restored}", driver::short(&id));
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
        let line = "run --policy flowcon --variant published --enforcement quota --shadow tradl,dqoes \
                    --param alpha=0.05 --param beta=2 --with-label a=b --record /tmp/frames --samples /tmp/samples \
                    --listen 127.0.0.1:7225 --token-file /tmp/token --state-dir /tmp/state \
                    --control /tmp/control.sock \
                    --actuator cgroup --on-drift yield --adopt swarm,compose --dry-run --until-stdin-closes";
        let given = Line::try_parse_from(line.split_whitespace()).unwrap().run;
        let errand = given.errand().unwrap();
        assert_eq!(errand.folders, [Path::new("/tmp"), Path::new("/tmp/state")]);
        assert_eq!(Line::try_parse_from(errand.words).unwrap().run, given);
    }
}
