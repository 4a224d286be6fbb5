//! `paceline manager`: one policy over all machines of a Swarm.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_policy::params::Param;
use paceline_policy::policies::{self, AnyPolicy, SpeCon, Unlimited};
use paceline_policy::{Params, Policy, Variant};
use tracing::info;

use super::control_args::ControlArgs;
use super::engine::EngineArgs;
use super::state::StateArgs;
use crate::audit::Audit;
use crate::clock::unix_seconds;
use crate::cluster::gangs::Mind;
use crate::cluster::{Asker, Manager, Records, ask, swarm};
use crate::exit::BadUsage;
use crate::json_lines::JsonLines;
use crate::live;
use crate::live::snapshot::{PolicyView, SCHEMA, Snapshot};
use crate::log::Log;
use crate::migrate;
use crate::signals::Signals;
use crate::web::{self, Address};

/// Where a manager is asked: a machine may have an agent, too.
pub(super) const SOCKET: &str = "/run/paceline/manager.sock";
/// Where its page is, for the same reason.
const PAGE: &str = "127.0.0.1:7225";

/// Let one policy move or place jobs on the machines of a Swarm
///
/// Under specon a job is a service with one task, whose checkpoints lie where all machines have them.
/// It is moved in two phases: there always is one that can go on, and never two that do. Under dltap,
/// kod2, fifo and fifo-gang a job is one of `paceline submit`, of many tasks.
///
/// It runs on a machine that manages the Swarm, whose engine tells it of the machines; each needs
/// `paceline agent`. `paceline status --cluster` shows what it knows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline manager --agent-token-file token --agent-ca ca.pem
  paceline manager --dry-run --param interval=10 --record frames.jsonl \\
    --agent-token-file token --agent-ca ca.pem --agent-name paceline-agent
  paceline manager --policy kod2 --agent-token-file token --agent-ca ca.pem")]
pub(super) struct ManagerArgs {
    /// The policy: specon or none, or, for distributed jobs, dltap, kod2, fifo or fifo-gang
    #[arg(long, value_name = "NAME", default_value = SpeCon::NAME)]
    policy: String,

    /// How closely to keep to the print of the policy's paper
    #[arg(long, default_value_t)]
    variant: Variant,

    /// A parameter of the policy; may be given several times
    #[arg(long = "param", value_name = "NAME=NUMBER")]
    params: Vec<Param>,

    /// Decide, but neither move nor place anything
    #[arg(long)]
    dry_run: bool,

    /// Give a job so long to save its checkpoint, and as long to report from its new machine; it
    /// stays where it is otherwise
    #[arg(long, value_name = "SECONDS", default_value_t = migrate::Settings::default().within)]
    move_within: f64,

    /// Move one job at most so often
    #[arg(long, value_name = "N", default_value_t = migrate::Settings::default().most)]
    moves: u32,

    #[command(flatten)]
    agents: ask::Settings,

    /// Write what the policy saw: one JSON line for each of its runs
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
    let asker = Asker::new(&args.agents)?;
    log.set_filter(&log.given().level.clone().unwrap_or_default())?;
    let signals = Signals::listen()?;
    let docker = engine.connect().await?;
    let found = swarm::look(&docker).await.context(
        "the engine does not tell of a Swarm: the manager runs where a manager of the Swarm runs",
    )?;
    let state = args.state.folder().join("manager");
    let audit = Some(Audit::open(&state)?);
    let frames = args.record.as_ref().map(|path| {
        JsonLines::create(path)
            .map_err(|error| BadUsage(format!("{} cannot be made: {error}", path.display())))
    });
    let records = Records { frames: frames.transpose()?, audit };
    let (policy, mind) = match policy {
        AnyPolicy::Jobs(policy) => (policy, None),
        // Nobody moves the tasks of jobs that are placed as wholes.
        AnyPolicy::Tasks(mind) => (free()?, Some(Mind::Tasks(mind))),
        AnyPolicy::Gangs(mind) => (free()?, Some(Mind::Gangs(mind))),
    };
    let (live, stage) = live::pair(args.first_snapshot(policy.as_ref(), mind.is_some()));
    let listen = args.web.listen.clone().unwrap_or_else(|| Address::Tcp(PAGE.to_owned()));
    let web = web::Settings { listen: Some(listen), ..args.web.clone() };
    let _page = web::serve(&web, live.clone(), None).await?;
    let _control = args.control.over(Some(&SOCKET.into())).serve(live, state)?;
    info!(policy = args.policy, machines = found.members.len(), "manager runs");
    let manager = Manager::new((docker.clone(), found), asker, policy, records, stage);
    // What an earlier manager had begun to move is completed or undone under any policy.
    let manager =
        if args.dry_run { manager } else { manager.moving(docker.clone(), settings).await };
    let manager = match mind {
        Some(mind) => manager.placing(docker, mind, args.dry_run),
        None => manager,
    };
    Ok(manager.run(signals.ending()).await.into())
}

impl ManagerArgs {
    fn migration(&self) -> migrate::Settings {
        let by = migrate::Means::Restart;
        migrate::Settings { by, within: self.move_within, most: self.moves }
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
                "policy {}: a manager runs {} or {}, or one of distributed jobs; policies of one \
                 machine are run by its agent",
                self.policy,
                SpeCon::NAME,
                Unlimited::NAME
            )));
        }
        Ok(policy)
    }

    /// What is known before the first look.
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

/// The policy of jobs that nobody moves.
fn free() -> Result<Box<dyn Policy>, BadUsage> {
    let free = Unlimited::new(&Params::default()).map_err(|error| BadUsage(error.to_string()))?;
    Ok(Box::new(free))
}
