//! `paceline run`: the daemon.

mod args;
mod errand;
mod reload;
mod settings;
mod shown;

use std::path::PathBuf;
use std::process::ExitCode;

use paceline_policy::limiter::{LimiterSettings, SettingError};
use paceline_policy::{AnyEngine, Cluster, Engine, Policy};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, info, warn};

use super::engine::{EngineArgs, EngineInfo};
use super::own_container;
use super::priority;
use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::audit::{Audit, Entry};
use crate::cluster::Hands;
use crate::driver::{self, Driver, Hooks, Records, Roster};
use crate::exit::BadUsage;
use crate::json_lines::JsonLines;
use crate::live;
use crate::log::Log;
use crate::migrate::containers::Containers;
use crate::migrate::journal::Folder;
use crate::migrate::{self, Ended};
use crate::nodes::Nodes;
use crate::observe::node::Machine;
use crate::signals::Signals;
use crate::web;
use reload::Reloads;
use settings::Built;

pub(super) use args::RunArgs;
pub(super) use errand::absolute;

pub(super) async fn run(args: RunArgs, engine: &EngineArgs, log: Log) -> anyhow::Result<ExitCode> {
    let settings = args.settings(log.given())?;
    let Built { policy, shadows, nodes } = settings.build()?;
    log.set_filter(&settings.log_level)?;
    log.set_format(settings.log_format)?;
    let signals = Signals::listen_as_a_service()?;
    if args.until_stdin_closes {
        signals.end_with_stdin()?;
    }
    allow_many_files();
    priority::raise();
    let docker = engine.connect().await?;
    if own_container::is_needed() {
        let errand = args.errand(&settings, log.given())?;
        return own_container::run(&docker, engine, errand, &signals).await;
    }
    let described = engine.info(&docker).await?;
    let by = settings.policy_view(&policy.params());
    nodes.are_of(described.machine.cpus).map_err(|error| BadUsage(error.to_string()))?;
    let (live, stage) = live::pair(shown::first_snapshot(&described, &nodes, by));
    let EngineInfo { id, name, machine } = described;
    let fixed = &settings.fixed;
    let state = fixed.state.folder();
    let carrier = Containers::new(docker.clone(), machine.proc.clone());
    let (actuator, journal, audit) = if fixed.dry_run {
        (None, None, None)
    } else {
        let purpose = format!("policy {}", policy.name());
        let originals = Originals::open(&state, &id, &purpose)?;
        let journal = Folder::open(originals.folder())?;
        let actuator = Actuator::new(docker.clone(), originals, machine.proc.clone(), machine.cpus)
            .by(fixed.actuator, fixed.on_drift);
        let mut audit = Audit::open(&state)?;
        end_moves(&carrier, &journal, &mut audit).await;
        put_back_leftovers(&actuator, &mut audit).await?;
        (Some(actuator), Some(journal), Some(audit))
    };
    let frames = create(args.record.as_ref())?;
    let records = Records { frames, samples: create(args.samples.as_ref())?, audit };
    info!(policy = policy.name(), node = name, cpus = machine.cpus, "allocator runs");
    let engine = deciding(name, &machine, &nodes, policy, settings.chosen.limiter)
        .map_err(|error| BadUsage(error.to_string()))?;
    let migration = journal.filter(|_| !nodes.is_empty()).map(|it| (it, fixed.migration));
    let hands = args.of_cluster.then(|| Hands::new(docker.clone(), machine.proc.clone()));
    let roster = Roster::new(docker, machine, fixed.with_label.clone())
        .adopting(fixed.adopt.clone())
        .on(nodes);
    // Both are there to the end: the limits are put back first.
    let _page = web::serve(&fixed.web, live.clone(), hands).await?;
    let _control = fixed.control.serve(live, state)?;
    let level = log.clone();
    let hooks = Hooks { log_level: Some(Box::new(move |it| level.set_level(it))) };
    let (reloads, renewals) = Reloads::new(args, settings, log);
    let driver = Driver::new(engine, roster, actuator, records, stage)
        .shadowed_by(shadows)
        .renewed_by(renewals)
        .with_hooks(hooks);
    let driver = match migration {
        Some((journal, settings)) => driver.moving_by(carrier, journal, settings),
        None => driver,
    };
    tokio::select! {
        ended = Box::pin(driver.run(signals.ending())) => Ok(ended?.into()),
        never = Box::pin(reloads.follow(signals.reloads())) => match never {},
    }
}

/// Each job that is listened to takes a file: as many may be open as this process can be allowed.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        debug!("no more than {:?} files may be open: {error}", limit.current);
    }
}

/// What decides: for the machine as one node, or for several.
fn deciding(
    name: String,
    machine: &Machine,
    nodes: &Nodes,
    policy: Box<dyn Policy>,
    limiter: LimiterSettings,
) -> Result<AnyEngine, SettingError> {
    let Machine { cpus, memory, .. } = *machine;
    Ok(if nodes.is_empty() {
        Engine::new(name, cpus, Some(memory), policy).limited_by(limiter)?.into()
    } else {
        Cluster::new(cpus, memory, nodes.specs(), policy).limited_by(limiter)?.into()
    })
}

/// A run that was killed may have left a job in the middle of a move. One that cannot be brought to
/// its end keeps nobody from managing all others.
async fn end_moves(carrier: &Containers, journal: &Folder, audit: &mut Audit) {
    let (trips, unread) = migrate::recover(carrier, journal, |_| true).await;
    for trip in trips {
        info!("an earlier run left a move in its middle: {}", trip.entry());
        audit.write(&trip.entry());
        if let Ended::Stuck(why) = &trip.ended {
            let job = &trip.plan.job;
            warn!("the move of job {job} can be neither completed nor undone: {why}");
        }
    }
    for error in unread {
        warn!("a move that an earlier run left is as it was: {:#}", anyhow::Error::from(error));
    }
}

/// A run that was killed has left its limits: they go before new ones come.
async fn put_back_leftovers(actuator: &Actuator, audit: &mut Audit) -> anyhow::Result<()> {
    for id in actuator.pending()? {
        if let Some(restored) = actuator.restore(&id).await? {
            info!("an earlier run left limits on container {}: {restored}", driver::short(&id));
            let how = format!("left by an earlier run, {restored}");
            audit.write(&Entry::Restored { container: id, how });
        }
    }
    Ok(())
}

fn create(path: Option<&PathBuf>) -> anyhow::Result<Option<JsonLines>> {
    let create = |path: &PathBuf| {
        JsonLines::create(path)
            .map_err(|error| BadUsage(format!("{} cannot be made: {error}", path.display())))
    };
    Ok(path.map(create).transpose()?)
}
