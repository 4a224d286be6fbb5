//! `paceline doctor`: what prevents the allocator from working here, and what to do.
//!
//! It only looks. The one thing that it makes is a control group of its own, to find out whether limits
//! can be written; it is removed at once.

mod engine;
mod machine;
mod others;
mod processes;
mod report;
mod state;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use paceline_api::plain::{plain_json, print};
use paceline_api::signals::Signals;
use paceline_api::state_folder;
use paceline_api::usage::BadUsage;
use paceline_node::limits::originals::engine_lock;
use paceline_runtime::Description;

use super::containerized::{self, ContainerizedRun};
use super::engine::EngineArgs;
use super::locks;
use super::run::absolute;
use super::state::StateArgs;
use crate::config::state_dir;
use crate::log::Log;
use report::{Finding, Report};

/// Check this machine: engine, rights, control groups, state folder, leftovers of earlier runs
///
/// Each line is ok, a warning or an error, with what to do. The command changes nothing. The exit code
/// is 0 without an error, and 1 with one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline doctor
  paceline doctor --config /etc/paceline/paceline.toml
  paceline doctor --json | jq '.findings[] | select(.level != \"ok\")'")]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    state: StateArgs,

    /// The TOML file of the run, if it sets the state folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    fn folder(&self) -> Result<PathBuf, BadUsage> {
        let file = self.config.as_deref().map(state_dir).transpose()?.flatten();
        Ok(self.state.over(file.as_ref()).folder())
    }
}

pub(super) async fn run(
    args: DoctorArgs,
    engine: &EngineArgs,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let folder = args.folder()?;
    let connected = engine::connect(engine).await;
    let mut findings = Vec::new();
    let is_root = !engine.lacks_rights();
    if let (false, Ok((runtime, _))) = (is_root, &connected) {
        // Check from inside the container that `run` would use, or from here without its image.
        match containerized::image(runtime).await {
            Ok(_) => {
                let command = containerized(&folder, args.json, log)?;
                let signals = Signals::listen()?;
                return containerized::run(runtime, engine, command, &signals).await;
            }
            Err(error) => findings
                .push(machine::not_root(&error.to_string(), "run as root, or build the image")),
        }
    }
    match &connected {
        Ok((runtime, description)) if !engine.has_containers() => {
            findings.push(processes::machine(description));
            findings.push(processes::jobs(runtime).await);
        }
        Ok((runtime, description)) => {
            findings.extend(engine::findings(description));
            findings.push(engine::jobs(runtime).await);
        }
        Err(finding) => findings.push(finding.clone()),
    }
    findings.extend(of_machine(engine, is_root, connected.is_ok()));
    let owner = state_folder::owner()?;
    let (found, engines) = state::examine(&folder, owner, &engine.as_options());
    findings.extend(found);
    findings.extend(others::locks(locks::given().as_deref()));
    let lock = connected.as_ref().ok().and_then(|(_, description)| lock(description));
    findings.push(others::others(&engine.proc, &engines, lock.as_deref()));
    let report = Report::new(findings);
    print(&if args.json {
        plain_json(&serde_json::to_string_pretty(&report)?) + "\n"
    } else {
        report.to_string()
    })?;
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The file of the engine's lock.
fn lock(description: &Description) -> Option<PathBuf> {
    let data = description.data.as_deref().unwrap_or_default();
    Some(engine_lock(&locks::folder(), description.id.as_deref()?, data))
}

fn of_machine(args: &EngineArgs, is_root: bool, has_engine: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if args.is_of_user() {
        findings.push(processes::user(rustix::process::geteuid().as_raw()));
    } else if is_root {
        findings.extend(machine::user(&args.proc));
        // Without an engine there is no other actuator: the finding about `exec` says whether it works.
        if args.has_containers() {
            findings.push(machine::groups(&args.proc, args.is_of_kubernetes()));
        }
    } else if !has_engine {
        let why = "the allocator would run in a container, and no engine for it was found";
        findings.push(machine::not_root(why, "run as root, or see to the engine first"));
    }
    if args.has_processes() {
        findings.extend(processes::exec(args));
    }
    findings.extend(machine::kernel(&args.proc, is_root));
    findings
}

/// The same command in the allocator's container. A missing folder is not made.
fn containerized(folder: &Path, json: bool, log: &Log) -> anyhow::Result<ContainerizedRun> {
    let folder = std::path::absolute(folder)?;
    let arguments = ["doctor", "--state-dir", &absolute(&folder)?].map(str::to_owned);
    let json = json.then_some("--json".to_owned());
    let arguments = arguments.into_iter().chain(json).chain(log.given().arguments()).collect();
    let folders = folder.exists().then_some(folder).into_iter().collect();
    Ok(ContainerizedRun { arguments, folders, locks: false, otlp: false })
}
