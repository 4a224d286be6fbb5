//! The command line.

mod actuator_arg;
mod agent;
mod audit;
mod check;
mod config;
mod containerized;
mod control_args;
mod doctor;
mod engine;
mod exec;
mod explain;
mod inject;
mod laboratory;
mod locks;
mod manager;
mod node_args;
mod orders;
mod policies;
mod policy_args;
mod priority;
mod replay;
mod restore;
mod run;
mod state;
mod status;
mod submit;
mod top;
mod watch;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use paceline_api::plain;
use paceline_api::usage::BadUsage;
use paceline_manual::{CompletionsArgs, ManArgs, ManError};
use signal_hook::consts::SIGXFSZ;

use crate::exit;
use crate::log::{self, Log, LogArgs};
use engine::EngineArgs;

/// Move CPU between the training jobs that share a machine
#[derive(Debug, Parser)]
#[command(name = "paceline", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    log: LogArgs,

    #[command(subcommand)]
    command: Command,
}

/// How long work on other threads may take after a command has ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  paceline run                             manage all opted-in containers of this machine
  paceline run --dry-run                   decide and report, but write no limit
  paceline exec -- python train.py         run a job outside containers
  paceline check vae                       examine container vae
  paceline doctor                          find out what is wrong with this machine
  paceline status                          show all jobs; `top` updates continuously
  paceline watch                           show single jobs, without an allocator
  paceline explain vae                     show the last decisions on job vae
  paceline pin vae 25%                     hold its limit; `release`, `manage`, `set`, `guard` …
  paceline restore                         restore limits after a crash
  paceline agent, paceline manager         manage each machine of a Swarm, and all together
  paceline submit job.toml                 submit a distributed job to the Swarm
  paceline config check paceline.toml      check a configuration file; `show` prints all settings
  paceline inject -f train.yaml            put the sidecar into Kubernetes manifests
  paceline policies                        list the policies
  paceline replay --policy tradl frames.jsonl
  paceline simulate FC-3                   compare policies with each other and with the optimum
  paceline fit frames.jsonl > mine.toml    make a scenario from recorded frames
  paceline bench examples/schedules/demo.toml

A container opts in with the label paceline.enable=true. Other containers are never touched.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 engine not reachable, 130 Ctrl-C.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  paceline restore                                          after a crash
  paceline restore --config /etc/paceline/paceline.toml     with the state folder of its file
  paceline restore --user                                   one's own jobs of `paceline exec`";

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Exec(Box<exec::ExecArgs>),
    #[command(name = exec::REMOVE, hide = true)]
    RemoveJob(exec::RemoveArgs),
    Agent(Box<agent::AgentArgs>),
    Manager(Box<manager::ManagerArgs>),
    Submit(submit::SubmitArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
    Watch(watch::WatchArgs),
    Explain(explain::ExplainArgs),
    #[command(flatten)]
    Orders(orders::Orders),
    Audit(audit::AuditArgs),
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(restore::RestoreArgs),
    Check(check::CheckArgs),
    Doctor(doctor::DoctorArgs),
    Inject(inject::InjectArgs),
    Policies(policies::PoliciesArgs),
    Replay(replay::ReplayArgs),
    Config(config::ConfigArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(flatten)]
    Laboratory(laboratory::Laboratory),
}

/// Parses the command line, runs the command, and returns its exit code.
pub fn main() -> ExitCode {
    // The kernel's signal for a file beyond the process's limit would end an allocator whose limits are in
    // force. Once it is caught, such a write is an error, as on a full disk. A program that this one
    // starts, or becomes, has the default again.
    drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(error) = stray_command(&error) {
                print_error(&error);
                return exit::code(&error);
            }
            let wrong = error.use_stderr();
            // A closed output is ignored, since errors are reported there.
            drop(error.print());
            return ExitCode::from(if wrong { exit::USAGE } else { 0 });
        }
    };
    // The command takes the place of this process, so nothing else is started before.
    if let Command::Exec(args) = &cli.command {
        return exec::run(args, &cli.engine);
    }
    if let Command::RemoveJob(args) = &cli.command {
        return exec::remove(args, &cli.engine.proc);
    }
    let log = match log::to_stderr(cli.log) {
        Ok(log) => log,
        Err(error) => {
            let error = BadUsage(format!("{:#}", anyhow::Error::from(error))).into();
            print_error(&error);
            return exit::code(&error);
        }
    };
    // The command that finds out more, where a limit may be left behind, the machine is not as it must
    // be, or no engine answers.
    let writes_limits =
        matches!(cli.command, Command::Run(_) | Command::Agent(_) | Command::Restore(_));
    let code = cli.start(log.clone()).unwrap_or_else(|error| {
        let may_help =
            exit::lacks_engine(&error) || writes_limits && exit::is_of_the_machine(&error);
        let hint = if may_help { "; run `paceline doctor` to find out more" } else { "" };
        log.print(&words(&error, hint));
        exit::code(&error)
    });
    log.flush();
    code
}

impl Cli {
    fn start(self, log: Log) -> anyhow::Result<ExitCode> {
        let runtime =
            paceline_server::runtime().map_err(|error| anyhow::anyhow!("cannot start: {error}"))?;
        let code = runtime.block_on(self.dispatch(log));
        // A thread that waits for a disk must not keep the program from its end.
        runtime.shutdown_timeout(END_TIMEOUT);
        code
    }

    async fn dispatch(self, log: Log) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => run::run(*args, &self.engine, log).await,
            Command::Exec(args) => Ok(exec::run(&args, &self.engine)),
            Command::RemoveJob(args) => Ok(exec::remove(&args, &self.engine.proc)),
            Command::Agent(args) => agent::run(*args, &self.engine, log).await,
            Command::Manager(args) => Box::pin(manager::run(*args, &self.engine, &log)).await,
            Command::Submit(args) => submit::run(args, &self.engine).await,
            Command::Status(args) => status::run(args).await,
            Command::Top(args) => top::run(args).await,
            Command::Watch(args) => Box::pin(watch::run(args)).await,
            Command::Explain(args) => explain::run(args).await,
            Command::Orders(orders) => orders::run(orders).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Restore(args) => restore::run(args, &self.engine, &log).await,
            Command::Check(args) => check::run(args, &self.engine, &log).await,
            Command::Doctor(args) => doctor::run(args, &self.engine, &log).await,
            Command::Inject(args) => inject::run(&args, &log),
            Command::Policies(args) => policies::run(&args),
            Command::Replay(args) => replay::run(&args, &log),
            Command::Config(args) => config::run(&args, &log).await,
            Command::Completions(args) => manual(args.run(command())),
            Command::Man(args) => manual(args.run(command())),
            Command::Laboratory(laboratory) => laboratory.run(&self.engine).await,
        }
    }
}

/// Parses the command line.
fn parse() -> Result<Cli, clap::Error> {
    let settled = without_empty_variables(with_negative_numbers(command()));
    let matches = settled.try_get_matches()?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
}

/// Commands that use a container engine or the jobs of `paceline exec`. All others need none.
const WITH_ENGINE: [&str; 10] = [
    "run",
    "exec",
    "agent",
    "manager",
    "submit",
    "restore",
    "check",
    "doctor",
    "bench",
    "experiments",
];

/// The whole command. The help of a command without an engine leaves the options of the engine out, although they
/// are allowed everywhere.
fn command() -> clap::Command {
    let engine = EngineArgs::augment_args(clap::Command::default());
    let ids: Vec<_> = engine.get_arguments().map(|arg| arg.get_id().clone()).collect();
    let mut command = Cli::command();
    command.build();
    command.mut_subcommands(|subcommand| {
        let uses = WITH_ENGINE.contains(&subcommand.get_name());
        if uses { subcommand } else { without(subcommand, &ids) }
    })
}

/// The command, whose help leaves some options out.
fn without(command: clap::Command, ids: &[clap::Id]) -> clap::Command {
    let command =
        command.mut_args(|arg| if ids.contains(arg.get_id()) { arg.hide(true) } else { arg });
    command.mut_subcommands(|subcommand| without(subcommand, ids))
}

/// The command in which an empty variable counts as unset, as in shells and in other programs.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let value = arg.get_env().and_then(env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
    });
    command.mut_subcommands(without_empty_variables)
}

/// The command in which a negative number is a value everywhere, so that the error of an option that does
/// not allow one names what is allowed.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes = arg.get_action().takes_values();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The error for `exec python train.py`, which lacks the `--` before the command.
fn stray_command(error: &clap::Error) -> Option<anyhow::Error> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    if error.kind() != ErrorKind::UnknownArgument || words.iter().any(|word| word == "--") {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    // The first word that is one of our commands is the one that was given.
    let is_command = |word: &OsString| {
        let commands = Cli::command();
        word.to_str().is_some_and(|word| commands.find_subcommand(word).is_some())
    };
    let given = words.iter().position(is_command)?;
    if words.get(given)? != "exec" {
        return None;
    }
    let is_after = words.get(given + 1..)?.iter().any(|given| given == word.as_str());
    (is_after && !word.starts_with('-')).then(|| {
        let why = "expected `--` before the command, for example paceline exec --";
        BadUsage(format!("cannot run {word}: {why} {word}")).into()
    })
}

fn manual(written: Result<(), ManError>) -> anyhow::Result<ExitCode> {
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ ManError::Unknown(_)) => Err(BadUsage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

/// The message of a failed command.
fn words(error: &anyhow::Error, hint: &str) -> String {
    let text = format!("{error:#}{hint}");
    let lines: Vec<String> = text.lines().map(plain::plain).collect();
    format!("paceline: {}\n", lines.join("\n"))
}

#[expect(clippy::print_stderr, reason = "the log is not open yet")]
fn print_error(error: &anyhow::Error) {
    eprint!("{}", words(error, ""));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_parsed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_the_engine_only_where_it_is_used() {
        let options = |name: &str| {
            let mut command = command();
            let help = command.find_subcommand_mut(name).map(clap::Command::render_long_help);
            help.unwrap().to_string().matches("--cri").count()
        };
        assert!(WITH_ENGINE.iter().all(|name| options(name) > 0));
        assert!(["status", "replay", "simulate", "policies"].iter().all(|name| options(name) == 0));
        assert!(
            command().try_get_matches_from(["paceline", "status", "--host", "unix:///x"]).is_ok()
        );
    }

    /// What is wrong with the lines below the options of a command, and of those in it.
    #[cfg(all(feature = "bench", feature = "watch"))]
    fn wrong_lines_below(command: &clap::Command, is_shown: bool, wrong: &mut Vec<String>) {
        let name = command.get_name();
        let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let long = below.lines().filter(|line| line.chars().count() > 100);
        wrong.extend(long.map(|line| format!("{name}: a terminal breaks {line:?}")));
        let has_example = below.contains("Example");
        if !has_example && !is_shown && !command.is_hide_set() {
            wrong.push(format!("{name} has no example"));
        }
        // The examples of a command of commands may be those of all of them.
        let is_shown = has_example && name != "paceline";
        for inner in command.get_subcommands() {
            wrong_lines_below(inner, is_shown, wrong);
        }
    }

    // In smaller builds, some commands only say that they are missing.
    #[cfg(all(feature = "bench", feature = "watch"))]
    #[test]
    fn every_command_has_an_example_and_no_line_that_a_terminal_breaks() {
        let mut wrong = Vec::new();
        wrong_lines_below(&Cli::command(), false, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
