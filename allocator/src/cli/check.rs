//! `paceline check CONTAINER`: what the allocator sees of a container, and what is wrong with it.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_policy::Share;
use serde::Serialize;

use super::engine::EngineArgs;
use super::own_container::{self, Errand};
use super::plain::{plain, plain_json, print};
use crate::actuate::fence::fence;
use crate::actuate::first_way;
use crate::exit::BadUsage;
use crate::labels::{ENABLE, Labels};
use crate::log::Log;
use crate::migrate::movable;
use crate::observe::cgroup::Cgroup;
use crate::observe::container::{self, Container};
use crate::observe::endpoint;
use crate::observe::node::Machine;
use crate::signals::Signals;

/// Say what the allocator sees of a container, and what is wrong
///
/// Exit code 0 when the container would be managed, 1 when something is in the way.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  paceline check vae")]
pub(super) struct CheckArgs {
    /// The container's name or id
    container: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found, a line each.
#[derive(Debug, Default, Serialize)]
struct Findings {
    seen: Vec<(&'static str, String)>,
    wrong: Vec<String>,
}

pub(super) async fn run(
    args: CheckArgs,
    engine: &EngineArgs,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let docker = engine.connect().await?;
    // What `run` would see from there; without its image, what can be seen from here.
    if own_container::is_needed() && own_container::image(&docker).await.is_ok() {
        let json = args.json.then_some("--json".to_owned());
        let words = ["check".to_owned(), args.container].into_iter().chain(json);
        let words = words.chain(log.given().words()).collect();
        let errand = Errand { words, folders: Vec::new() };
        return own_container::run(&docker, engine, errand, &Signals::listen()?).await;
    }
    let machine = engine.info(&docker).await?.machine;
    let found = container::inspect(&docker, &args.container).await;
    let container = found
        .context("the engine does not describe the container")?
        .ok_or_else(|| BadUsage(format!("there is no container {:?}", args.container)))?;
    let findings = look(&machine, &container).await;
    print(&if args.json {
        plain_json(&serde_json::to_string_pretty(&findings)?) + "\n"
    } else {
        findings.lines()
    })?;
    Ok(if findings.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Findings {
    fn see(&mut self, what: &'static str, value: impl Into<String>) {
        self.seen.push((what, value.into()));
    }

    /// A line for each, what is wrong last.
    fn lines(&self) -> String {
        let seen = self.seen.iter().map(|(what, value)| (*what, value));
        let wrong = self.wrong.iter().map(|wrong| ("WRONG", wrong));
        let line = |(what, text): (&str, &String)| format!("{what:<12} {}\n", plain(text));
        seen.chain(wrong).map(line).collect::<Vec<_>>().concat()
    }
}

async fn look(machine: &Machine, container: &Container) -> Findings {
    let mut found = Findings::default();
    found.see("container", format!("{} ({})", container.name, crate::driver::short(&container.id)));
    if Labels::opted_in(&container.labels) {
        found.see("opted in", format!("{ENABLE}=true"));
    } else {
        found.wrong.push(format!("label {ENABLE}=true is missing: it is never touched"));
    }
    if let Err(refused) = fence(&container.labels, container.host_config, machine.cpus, &[]) {
        found.wrong.push(format!("it is left alone: {refused}"));
    }
    let labels = match Labels::parse(&container.labels) {
        Ok(labels) => labels,
        Err(error) => {
            found.wrong.push(error.to_string());
            return found;
        }
    };
    found.see("job", labels.job.as_deref().unwrap_or(&container.name));
    let Some(pid) = container.pid else {
        found.wrong.push("it does not run".to_owned());
        return found;
    };
    found.see("process", pid.to_string());
    limits(&mut found, machine, container, pid);
    found.see(
        "can move",
        match movable::checkpoints(container, &labels, &[]) {
            Ok(folder) => format!("by its checkpoints in {}", folder.display()),
            Err(why) => format!("no: {why}"),
        },
    );
    let ways = endpoint::ways(&machine.proc, container, &labels.endpoint);
    for way in &ways {
        match endpoint::read(&machine.proc, std::slice::from_ref(way)).await {
            Ok((_, progress)) => {
                let loss = progress.eval.value.map_or("none yet".to_owned(), |x| format!("{x:.6}"));
                found.see("endpoint", format!("{way} answers"));
                found.see(
                    "progress",
                    format!(
                        "job {}, {:?}, step {}, {} {loss}",
                        progress.job,
                        progress.state,
                        progress.step.map_or("unknown".to_owned(), |step| step.to_string()),
                        progress.eval.name,
                    ),
                );
                return found;
            }
            Err(error) => found.see("endpoint", format!("{:#}", anyhow::Error::from(error))),
        }
    }
    found.wrong.push("no way to its endpoint gives a progress report: it is left alone".to_owned());
    found
}

fn limits(found: &mut Findings, machine: &Machine, container: &Container, pid: u32) {
    match Cgroup::of(&machine.proc, pid) {
        Ok(cgroup) => {
            let place = cgroup.cpu_folder().display();
            found.see("cgroup", format!("version {}, {place}", cgroup.version()));
            if let Ok(quota) = cgroup.quota() {
                found.see("limit", in_words(quota.share(machine.cpus), machine.cpus));
            }
            if let Ok(used) = cgroup.used() {
                found.see("CPU time", format!("{:.1} s so far", used.cpu_seconds));
            }
        }
        Err(error) => {
            found.see("cgroup", format!("cannot be seen ({error}): the engine's statistics serve"));
            let limit = container.host_config.share(machine.cpus);
            found.see("limit", in_words(limit, machine.cpus));
        }
    }
    let half = first_way(container.host_config, Share::nearest(0.5), machine.cpus);
    found.see("limited by", format!("the engine; half of the machine would be {half}"));
}

fn in_words(share: Share, cpus: f64) -> String {
    if share.is_all() {
        return format!("none ({cpus} CPUs)");
    }
    format!("{share} of {cpus} CPUs, that is {:.2}", share.get() * cpus)
}
