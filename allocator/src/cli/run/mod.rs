//! `paceline run`: the daemon.

mod args;
mod containerized;
mod reload;
mod settings;
mod shown;

use std::path::PathBuf;
use std::process::ExitCode;

use paceline_api::audit::{Audit, Entry};
use paceline_api::json_lines::JsonLines;
use paceline_api::live;
use paceline_api::nodes::Nodes;
use paceline_api::service_manager::ServiceManager;
use paceline_api::signals::Signals;
use paceline_api::usage::BadUsage;
use paceline_node::controller::{Controller, Hooks, Inventory, Records};
use paceline_node::limits::Actuator;
use paceline_node::limits::originals::{Originals, START_WAIT, Scope};
use paceline_node::migration::agent_actions::AgentActions;
use paceline_node::migration::containers::Containers;
use paceline_node::migration::journal::Folder;
use paceline_node::migration::{self, Ended};
use paceline_node::observe::node::Machine;
use paceline_policy::limiter::{LimiterSettings, SettingError};
use paceline_policy::{AnyEngine, Cluster, Engine, Policy};
use paceline_runtime::Runtime;
use paceline_server::web::{self, Snapshots};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, info, warn};

use super::engine::{EngineArgs, EngineInfo};
use super::{locks, priority};
use crate::log::Log;
use reload::Reloads;
use settings::{Built, Fixed};

use args::Place;
pub(super) use args::RunArgs;
pub(super) use containerized::absolute;
pub(super) use settings::AGENT_ADDRESS;

pub(super) async fn run(args: RunArgs, engine: &EngineArgs, log: Log) -> anyhow::Result<ExitCode> {
    let place = if engine.is_of_kubernetes() { Place::Kubernetes } else { args.place };
    let args = RunArgs { place, ..args };
    let settings = args.settings(log.given())?;
    let Built { policy, shadows, nodes } = settings.build()?;
    log.set_filter(&settings.log_level)?;
    log.set_format(settings.log_format)?;
    let export = web::Export::new(&settings.fixed.web)?;
    let signals = Signals::listen_as_a_service()?;
    if args.until_stdin_closes {
        signals.end_with_stdin()?;
    }
    allow_many_files();
    priority::raise();
    // An engine that does not answer must not delay the end.
    let runtime = tokio::select! {
        runtime = engine.connect() => runtime?,
        ending = signals.ended() => return Ok(ending.into()),
    };
    if engine.needs_container()? {
        let command = args.containerized(&settings, log.given())?;
        return super::containerized::run(&runtime, engine, command, &signals).await;
    }
    // Before anything is written: a page that cannot be served ends the run.
    settings.fixed.web.check_all().await?;
    let _managing = engine.manage_processes()?;
    let described = tokio::select! {
        described = engine.info(&runtime) => described?,
        ending = signals.ended() => return Ok(ending.into()),
    };
    let by = settings.policy_view(&policy.params());
    nodes.check_against(described.machine.cpus).map_err(|error| BadUsage(error.to_string()))?;
    let (live, channels) = live::pair(shown::first_snapshot(&described, &nodes, by));
    let fixed = &settings.fixed;
    let state = fixed.state.folder();
    let control = if engine.is_of_user() { fixed.control.of_user() } else { fixed.control.clone() };
    let containers = Containers::new(runtime.clone(), described.machine.proc.clone());
    let (actuator, journal, audit) = if fixed.dry_run {
        (None, None, None)
    } else {
        let purpose = format!("policy {}", policy.name());
        let (actuator, journal, mut audit) =
            write_limits(fixed, &described, &purpose, runtime.clone(), &containers).await?;
        put_back_leftovers(&actuator, &mut audit, &signals).await;
        (Some(actuator), Some(journal), Some(audit))
    };
    let EngineInfo { name, machine, .. } = described;
    let frames = create(args.record.as_ref())?;
    let records = Records { frames, samples: create(args.samples.as_ref())?, audit };
    let cpus = machine.cpus;
    let engine = decision_engine(name.clone(), &machine, &nodes, policy, settings.chosen.limiter)
        .map_err(|error| BadUsage(error.to_string()))?;
    let migration = journal.filter(|_| !nodes.is_empty()).map(|it| (it, fixed.migration));
    let actions = (args.place == Place::Swarm)
        .then(|| AgentActions::new(runtime.clone(), machine.proc.clone()));
    let inventory = Inventory::new(runtime, machine, fixed.with_label.clone())
        .adopting(fixed.adopt.clone())
        .on(nodes);
    // Both live to the end, after the limits are restored.
    let snapshots = Snapshots::from(live);
    let _page = web::serve(&fixed.web, snapshots.clone(), actions).await?;
    let _exporting = export.map(|export| export.start(&snapshots));
    let _control = control.serve(snapshots, state, args.control_group.as_deref())?;
    info!(policy = settings.chosen.policy, node = name, cpus, "allocator runs");
    let level = log.clone();
    let hooks = Hooks { log_level: Some(Box::new(move |it| level.set_level(it))) };
    let (reloads, renewals) = Reloads::new(args, settings, log);
    let controller = Controller::new(engine, inventory, actuator, records, channels)
        .shadowed_by(shadows)
        .with_reloads(renewals)
        .with_hooks(hooks)
        .served_by(ServiceManager::from_env());
    let controller = match migration {
        Some((journal, settings)) => controller.moving_by(containers, journal, settings),
        None => controller,
    };
    tokio::select! {
        ended = Box::pin(controller.run(signals.ending())) => Ok(ended?.into()),
        never = Box::pin(reloads.follow(signals.reloads())) => match never {},
    }
}

/// Takes the locks, and what earlier runs have left: originals and moves.
async fn write_limits(
    fixed: &Fixed,
    described: &EngineInfo,
    purpose: &str,
    runtime: Runtime,
    containers: &Containers,
) -> anyhow::Result<(Actuator, Folder, Audit)> {
    let scope = if fixed.with_label.is_empty() { Scope::All } else { Scope::Some };
    if let Some(folder) = locks::given() {
        let (variable, folder) = (locks::VARIABLE, folder.display());
        warn!("{variable} is set: allocators whose locks are not in {folder} are not noticed");
    }
    let state = fixed.state.folder();
    let originals = Originals::open(&state, &described.id, purpose)?.lock_engine(
        &locks::folder(),
        &described.data,
        (scope, START_WAIT),
    )?;
    let journal = Folder::open(originals.folder())?;
    let machine = &described.machine;
    let actuator = Actuator::new(runtime, originals, machine.proc.clone(), machine.cpus)
        .with_backend(fixed.actuator, fixed.on_drift);
    let mut audit = Audit::open(&state)?;
    for leftover in actuator.adopt_leftovers().await {
        warn!("{leftover}");
    }
    end_moves(containers, &journal, &mut audit).await;
    Ok((actuator, journal, audit))
}

/// Raises the limit of open files as far as allowed: each job's connection takes one.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        debug!("cannot raise the limit of open files above {:?}: {error}", limit.current);
    }
}

/// The decision engine: for the machine as one node, or for several nodes.
fn decision_engine(
    name: String,
    machine: &Machine,
    nodes: &Nodes,
    policy: Box<dyn Policy>,
    limiter: LimiterSettings,
) -> Result<AnyEngine, SettingError> {
    let Machine { cpus, memory, .. } = *machine;
    Ok(if nodes.is_empty() {
        Engine::new(name, cpus, Some(memory), policy).with_limiter(limiter)?.into()
    } else {
        Cluster::new(cpus, memory, nodes.specs(), policy).with_limiter(limiter)?.into()
    })
}

/// Completes or undoes moves that a killed run left unfinished. A move that cannot be finished does
/// not stop the run.
async fn end_moves(containers: &Containers, journal: &Folder, audit: &mut Audit) {
    let (results, unread) = migration::recover(containers, journal, |_| true).await;
    for result in results {
        info!("a move that an earlier run had left: {}", result.entry());
        audit.write(&result.entry());
        if let Ended::Stuck(why) = &result.ended {
            let job = &result.plan.job;
            warn!("cannot complete or undo the move of job {job}: {why}");
        }
    }
    for error in unread {
        let error = anyhow::Error::from(error);
        warn!("cannot finish a move that an earlier run had left: {error:#}");
    }
}

/// Restores the limits of a killed run before new ones are written. A container for which that fails
/// does not stop the run; it is tried again later. After a signal to end, the rest is left to the end of
/// the run, which restores several side by side, each in a bounded time.
async fn put_back_leftovers(actuator: &Actuator, audit: &mut Audit, signals: &Signals) {
    for id in actuator.pending() {
        if signals.ending().borrow().is_some() {
            return;
        }
        let name = actuator.name_of(&id);
        match actuator.restore_and_report(&id).await {
            Ok(Some(report)) => {
                info!("restored container {name}, limited by an earlier run: {report}");
                let how = format!("left by an earlier run, {}", report.outcome);
                audit.write(&Entry::Restored { container: id, how });
            }
            Ok(None) => {}
            Err(error) => warn!("{:#}", anyhow::Error::from(error)),
        }
    }
}

fn create(path: Option<&PathBuf>) -> anyhow::Result<Option<JsonLines>> {
    let create = |path: &PathBuf| {
        JsonLines::create(path)
            .map_err(|error| BadUsage(format!("cannot create {}: {error}", path.display())))
    };
    Ok(path.map(create).transpose()?)
}
