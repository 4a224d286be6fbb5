//! The command line of `paceline run`.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use paceline_server::web;

use super::super::actuator_arg::ActuatorArgs;
use super::super::control_args::ControlArgs;
use super::super::node_args::NodeArgs;
use super::super::policy_args::PolicyArgs;
use super::super::state::StateArgs;
use super::super::without_empty_variables;

/// Manage the opted-in containers of this machine until SIGTERM or Ctrl-C
///
/// At the end the allocator restores every limit. For a user who is not root but may use Docker, it
/// runs in a container of its own.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  paceline run
  paceline run --policy flowcon --param alpha=0.05 --param interval=30
  paceline run --policy none --samples samples.jsonl
  paceline run --config /etc/paceline/paceline.toml
  paceline run --policy specon --node a=0 --node b=1
  paceline run --runtime docker,processes      containers, and all users' jobs of `paceline exec`
  paceline run --user                          one's own jobs of `paceline exec`, without root
  paceline run --runtime cri

SIGHUP reloads the --config file. An invalid file is logged and ignored.")]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    pub(super) policy: PolicyArgs,

    #[command(flatten)]
    pub(super) actuator: ActuatorArgs,

    #[command(flatten)]
    pub(super) node: NodeArgs,

    /// Decide, but write no limit
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Also run these policies as shadows: they report their decisions, but change nothing
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(super) shadow: Vec<String>,

    /// Manage only opted-in containers with this label. Repeat the option for several labels
    #[arg(long = "with-label", value_name = "KEY=VALUE")]
    pub(super) with_label: Vec<String>,

    /// Write the policy's input: one JSON line for each of its runs
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Write loss, CPU use and limit of every job: one JSON line per second
    #[arg(long, value_name = "FILE")]
    pub(super) samples: Option<PathBuf>,

    /// End when standard input closes, as by a signal
    #[arg(long, hide = true)]
    pub(super) until_stdin_closes: bool,

    #[command(flatten)]
    pub(super) control: ControlArgs,

    /// Let members of this group open the control socket: a name, or a number. They may read, and give
    /// orders about their own jobs of `paceline exec`
    #[arg(long, env = "PACELINE_CONTROL_GROUP", value_name = "GROUP")]
    pub(super) control_group: Option<String>,

    #[command(flatten)]
    pub(super) web: web::Settings,

    #[command(flatten)]
    pub(super) state: StateArgs,

    /// Whose containers these are.
    #[arg(skip)]
    pub(super) place: Place,
}

/// Whose containers a run manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Those of one machine.
    #[default]
    Machine,
    /// Those of a machine of a Swarm: this is `paceline agent`.
    Swarm,
    /// The pods of a Kubernetes node.
    Kubernetes,
}

/// The options of a run alone.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    run: RunArgs,
}

impl RunArgs {
    /// A run with this configuration file, and no other option.
    pub(in crate::cli) fn with_file(path: &Path) -> Self {
        // No argument is parsed, so only the environment can be invalid: its options take any text.
        let matches = without_empty_variables(Alone::command()).get_matches_from(["paceline"]);
        let parsed = Alone::from_arg_matches(&matches);
        let Alone { mut run } = parsed.unwrap_or_else(|error| error.exit());
        run.policy.config = Some(path.to_owned());
        run
    }

    /// The same for a machine of a cluster. It also manages containers of the Swarm, and
    /// accepts the cluster's manager.
    pub(in crate::cli) fn of_cluster(self) -> Self {
        Self { place: Place::Swarm, ..self }
    }
}
