//! `paceline manager`: one policy over all machines of a Swarm.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_api::audit::Audit;
use paceline_api::clock::unix_seconds;
use paceline_api::json_lines::JsonLines;
use paceline_api::live;
use paceline_api::live::snapshot::{PolicyView, SCHEMA, Snapshot};
use paceline_api::signals::Signals;
use paceline_api::usage::{BadUsage, whole_number};
use paceline_cluster::gangs::PlacementPolicy;
use paceline_cluster::{AgentClient, Manager, Records, agent_client, swarm};
use paceline_node::migration;
use paceline_policy::params::Param;
use paceline_policy::policies::{self, AnyPolicy, SpeCon, Unlimited};
use paceline_policy::{Params, Policy, Variant};
use paceline_server::web::{self, Address, Snapshots};
use tracing::info;

use super::control_args::{ControlArgs, listens_at};
use super::engine::EngineArgs;
use super::node_args::seconds;
use super::state::StateArgs;
use crate::log::Log;

/// The manager's control socket. It differs from an agent's, since a machine may run both.
pub(super) const SOCKET: &str = "/run/paceline/manager.sock";
/// The address of the manager's page, which differs for the same reason.
const PAGE: &str = "127.0.0.1:7225";

/// Let one policy move or place jobs on the machines of a Swarm
///
/// With specon, a job is a service with one task and with checkpoints in a folder that all machines
/// share. The manager moves it in two phases, so that one copy can always continue and two never
/// run. With dltap, kod2, fifo and fifo-gang, a job has many tasks and comes from `paceline
/// submit`.
///
/// The manager runs on a manager node of the Swarm. Docker lists the machines; each needs
/// `paceline agent`. `paceline status --cluster` shows all machines and jobs.
#[derive(Debug, Args)]
// Its defaults are not those of `run`.
#[command(
    mut_arg("control", |arg| arg.help(format!("The manager's own Unix socket [default: {SOCKET}]"))),
    mut_arg("listen", |arg| listens_at(arg, PAGE))
)]
#[command(after_help = "Examples:
  paceline manager --agent-token-file token --agent-ca ca.pem
  paceline manager --dry-run --param interval=10 --record frames.jsonl \\
    --agent-token-file token --agent-ca ca.pem --agent-name paceline-agent
  paceline manager --policy kod2 --agent-token-file token --agent-ca ca.pem")]
pub(super) struct ManagerArgs {
    /// The policy: specon or none; for distributed jobs dltap, kod2, fifo or fifo-gang
    #[arg(long, value_name = "NAME", default_value = SpeCon::NAME)]
    policy: String,

    /// The version of the policy: with corrections (resolved), or exactly as in its paper
    /// (published)
    #[arg(long, default_value_t)]
    variant: Variant,

    /// A parameter of the policy. Repeat the option for several
    #[arg(long = "param", value_name = "NAME=NUMBER")]
    params: Vec<Param>,

    /// Decide, but move and place no job
    #[arg(long)]
    dry_run: bool,

    /// Time limit for a job to save its checkpoint, and again to report from its new machine.
    /// After
    /// it the job stays on its old machine
    #[arg(
        long, value_name = "SECONDS", default_value_t = migration::Settings::default().within,
        value_parser = seconds
    )]
    move_within: f64,

    /// The largest number of moves for one job
    #[arg(
        long, value_name = "N", default_value_t = migration::Settings::default().most,
        value_parser = whole_number(0, u32::MAX)
    )]
    moves: u32,

    #[command(flatten)]
    agents: agent_client::Settings,

    /// Write the policy's input: one JSON line for each of its runs
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[command(flatten)]
    control: ControlArgs,

    #[command(flatten)]
    web: web::Settings,

    #[command(flatten)]
    state: StateArgs,
}

pub(super) async fn run(
    args: ManagerArgs,
    engine: &EngineArgs,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let policy = args.policy()?;
    let settings = args.migration();
    settings.check().map_err(|error| BadUsage(error.to_string()))?;
    let client = AgentClient::new(&args.agents)?;
    let export = web::Export::new(&args.web)?;
    log.set_filter(&log.given().level.clone().unwrap_or_default())?;
    let signals = Signals::listen()?;
    // An engine that does not answer must not delay the end.
    let connected = async {
        let docker = engine.docker().await?.client().clone();
        let found = swarm::read(&docker).await.context(
            "cannot read the Swarm from Docker: run `paceline manager` on a manager node of the Swarm",
        )?;
        anyhow::Ok((docker, found))
    };
    let (docker, found) = tokio::select! {
        connected = connected => connected?,
        ending = signals.ended() => return Ok(ending.into()),
    };
    let state = args.state.folder().join("manager");
    let audit = Some(Audit::open(&state)?);
    let frames = args.record.as_ref().map(|path| {
        JsonLines::create(path)
            .map_err(|error| BadUsage(format!("cannot create {}: {error}", path.display())))
    });
    let records = Records { frames: frames.transpose()?, audit };
    let (policy, placement) = match policy {
        AnyPolicy::Jobs(policy) => (policy, None),
        // Placed tasks are never moved.
        AnyPolicy::Tasks(policy) => (free()?, Some(PlacementPolicy::Tasks(policy))),
        AnyPolicy::Gangs(policy) => (free()?, Some(PlacementPolicy::Gangs(policy))),
    };
    let (live, channels) = live::pair(args.first_snapshot(policy.as_ref(), placement.is_some()));
    let listen = args.web.listen.clone().unwrap_or_else(|| Address::Tcp(PAGE.to_owned()));
    let web = web::Settings { listen: Some(listen), ..args.web.clone() };
    let snapshots = Snapshots::from(live);
    let _page = web::serve(&web, snapshots.clone(), None).await?;
    let _exporting = export.map(|export| export.start(&snapshots));
    let _control = args.control.over(Some(&SOCKET.into())).serve(snapshots, state, None)?;
    info!(policy = args.policy, machines = found.members.len(), "manager runs");
    let manager = Manager::new((docker.clone(), found), client, policy, records, channels);
    // Unfinished moves of an earlier manager are completed or undone under any policy.
    let manager = if args.dry_run { manager } else { manager.moving(docker.clone(), settings) };
    let manager = match placement {
        Some(placement) => manager.placing(docker, placement, args.dry_run),
        None => manager,
    };
    Ok(Box::pin(manager.run(signals.ending())).await.into())
}

impl ManagerArgs {
    fn migration(&self) -> migration::Settings {
        let by = migration::MigrationMethod::Restart;
        migration::Settings { by, within: self.move_within, most: self.moves }
    }

    fn policy(&self) -> Result<AnyPolicy, BadUsage> {
        let mut params = Params::default();
        for Param { name, value } in &self.params {
            params.set(name.clone(), *value);
        }
        let policy = policies::build(&self.policy, self.variant, &params)
            .map_err(|error| BadUsage(error.to_string()))?;
        if let AnyPolicy::Jobs(policy) = &policy
            && ![SpeCon::NAME, Unlimited::NAME].contains(&policy.name())
        {
            return Err(BadUsage(format!(
                "invalid policy {:?} for a manager: expected {} or {}, or a policy of distributed \
                 jobs; `paceline agent` runs policies of one machine",
                self.policy,
                SpeCon::NAME,
                Unlimited::NAME
            )));
        }
        Ok(policy)
    }

    /// The snapshot before the first round.
    fn first_snapshot(&self, policy: &dyn Policy, places: bool) -> Snapshot {
        let known = policies::ALL.iter().filter(|entry| places && entry.name == self.policy);
        let defaults = known.flat_map(|entry| entry.parameters);
        let defaults = defaults.map(|parameter| (parameter.name, parameter.default));
        let own = policy.params().into_iter().chain(defaults);
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let said = self.params.iter().map(|param| (param.name.clone(), param.value));
        Snapshot {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_at: unix_seconds(),
            policy: PolicyView {
                name: self.policy.clone(),
                variant: self.variant.to_string(),
                params: own.chain(said).collect(),
                enforcement: if places { "placement" } else { "moves" }.to_owned(),
                actuator: "swarm".to_owned(),
                dry_run: self.dry_run,
                guards: Vec::new(),
            },
            ..Snapshot::default()
        }
    }
}

/// A policy that moves no job.
fn free() -> Result<Box<dyn Policy>, BadUsage> {
    let free = Unlimited::new(&Params::default()).map_err(|error| BadUsage(error.to_string()))?;
    Ok(Box::new(free))
}
