//! `paceline check CONTAINER`: what the allocator finds out about a container, and its problems.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_api::labels::{ENABLE, Labels, POD_ENABLE, POD_PREFIX, PREFIX};
use paceline_api::plain::{plain, plain_json, print};
use paceline_api::signals::Signals;
use paceline_api::usage::BadUsage;
use paceline_cgroup::Cgroup;
use paceline_node::endpoint::{self, Reach};
use paceline_node::limits::first_write;
use paceline_node::limits::ownership::check_ownership;
use paceline_node::migration::movable;
use paceline_node::observe::calls::CallPool;
use paceline_node::observe::networks::{Member, Networks};
use paceline_node::observe::node::Machine;
use paceline_policy::Share;
use paceline_runtime::{Container, Pod, Runtime};
use serde::Serialize;

use super::containerized::{self, ContainerizedRun};
use super::engine::EngineArgs;
use super::orders::name;
use crate::log::Log;

/// The most names of other containers in one line.
const MAX_NAMES: usize = 5;

/// Show what the allocator finds out about a container, and its problems
///
/// The exit code is 0 if the allocator would manage the container, and 1 if a problem prevents it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  paceline check vae")]
pub(super) struct CheckArgs {
    /// The container's name or id
    #[arg(value_parser = name)]
    container: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The findings, one line each.
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
    let runtime = engine.connect().await?;
    // Check from inside the container that `run` would use, or from here without its image.
    if engine.lacks_rights() && containerized::image(&runtime).await.is_ok() {
        let json = args.json.then_some("--json".to_owned());
        let arguments = ["check".to_owned(), args.container].into_iter().chain(json);
        let arguments = arguments.chain(log.given().arguments()).collect();
        let command =
            ContainerizedRun { arguments, folders: Vec::new(), locks: false, otlp: false };
        return containerized::run(&runtime, engine, command, &Signals::listen()?).await;
    }
    let machine = engine.info(&runtime).await?.machine;
    let found = runtime.inspect(&args.container).await;
    let container = found.context("cannot describe the container")?.ok_or_else(|| {
        let (name, list) = (&args.container, engine.how_to_list());
        BadUsage(format!("unknown container {name:?}: expected a name or an id; {list} shows all"))
    })?;
    let findings = examine(&runtime, &machine, &container).await;
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

    /// One line per finding, problems last.
    fn lines(&self) -> String {
        let seen = self.seen.iter().map(|(what, value)| (*what, value));
        let wrong = self.wrong.iter().map(|wrong| ("WRONG", wrong));
        let line = |(what, text): (&str, &String)| format!("{what:<12} {}\n", plain(text));
        seen.chain(wrong).map(line).collect::<Vec<_>>().concat()
    }
}

/// Whether the container opted in, and may be managed.
fn ownership(found: &mut Findings, machine: &Machine, container: &Container) {
    let label = if container.pod.is_some() { POD_ENABLE } else { ENABLE };
    if Labels::opted_in(&container.labels) {
        found.see("opted in", format!("{label}=true"));
    } else {
        let given = container.labels.get(ENABLE).map(|value| format!("{label}={value:?}"));
        let given = given.map_or(format!("the label {label}=true is missing"), |given| {
            format!("invalid label {given}: expected \"true\"")
        });
        found.wrong.push(format!("{given}: the container is never touched"));
    }
    let refused = match &container.pod {
        Some(pod) => pod.left_alone.clone().or_else(|| pod.watched_only.clone()),
        None => check_ownership(&container.labels, container.host_config, machine.cpus, &[])
            .err()
            .map(|refused| refused.to_string()),
    };
    if let Some(refused) = refused {
        found.wrong.push(format!("the container is left alone: {refused}"));
    }
}

/// Labels that bound the limit by more CPUs than the machine has: perhaps they were meant for another unit.
fn beyond_the_machine(found: &mut Findings, machine: &Machine, labels: &Labels, of_pod: bool) {
    let prefix = if of_pod { POD_PREFIX } else { PREFIX };
    for (name, bound) in [("min-cpus", labels.min_cpus), ("max-cpus", labels.max_cpus)] {
        if let Some(bound) = bound.filter(|bound| *bound > machine.cpus) {
            let all = machine.cpus;
            found.see(
                "bound",
                format!("{prefix}{name}={bound}: more than the machine's {all} CPUs"),
            );
        }
    }
}

/// What Kubernetes says of the container's limits.
fn pod_bounds(found: &mut Findings, pod: &Pod, labels: &Labels) {
    found.see(
        "request",
        match pod.request {
            request if request > 0.0 => {
                format!("{request} CPUs: its limit is never below")
            }
            _ => "none".to_owned(),
        },
    );
    if labels.terminate {
        let why = "paceline.dev/terminate is ignored: its controller would start it again";
        found.see("terminate", why);
    }
}

async fn examine(runtime: &Runtime, machine: &Machine, container: &Container) -> Findings {
    let mut found = Findings::default();
    found.see(
        "container",
        format!("{} ({})", container.name, paceline_runtime::short(&container.id)),
    );
    ownership(&mut found, machine, container);
    let labels = match Labels::parse(&container.labels) {
        Ok(labels) => labels,
        Err(error) => {
            let of_pod = container.pod.is_some();
            found.wrong.push(if of_pod { error.of_pod() } else { error.to_string() });
            return found;
        }
    };
    let own_name = container.pod.as_ref().map_or(&container.name, |pod| &pod.name);
    let job = labels.job.as_deref().unwrap_or(own_name);
    found.see("job", job);
    let Some(pid) = container.pid else {
        found.wrong.push("the container is not running".to_owned());
        return found;
    };
    found.see("process", pid.to_string());
    limits(&mut found, machine, container, pid);
    beyond_the_machine(&mut found, machine, &labels, container.pod.is_some());
    match &container.pod {
        Some(pod) => pod_bounds(&mut found, pod, &labels),
        None => found.see(
            "can move",
            match movable::checkpoints(container, &labels, &[]) {
                Ok(folder) => format!("by its checkpoints in {}", folder.display()),
                Err(why) => format!("no: {why}"),
            },
        ),
    }
    let routes = endpoint::routes(&machine.proc, container, &labels.endpoint);
    let networks = Networks::default();
    // They are counted on their networks until the end of the check, as in a run.
    let _members = network(&mut found, (runtime, &networks), &machine.proc, container, pid).await;
    let reach = Reach::among(&machine.proc, container, &CallPool::default(), &networks)
        .with_sidecars(runtime.clone(), job);
    for route in &routes {
        match endpoint::read(&reach, std::slice::from_ref(route)).await {
            Ok((_, progress)) => {
                let loss = progress.eval.value.map_or("none yet".to_owned(), |x| format!("{x:.6}"));
                found.see("endpoint", format!("{route} answers"));
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
    let prefix = if container.pod.is_some() { POD_PREFIX } else { PREFIX };
    found.wrong.push(format!(
        "no progress report comes from its endpoint: the job is left alone; start it by \
         `paceline-sidecar exec`, embed the reporter, or name its port by {prefix}endpoint"
    ));
    found
}

/// Says who shares the container's network. Returns the other opted-in containers' parts in it.
async fn network(
    found: &mut Findings,
    (runtime, networks): (&Runtime, &Networks),
    proc: &Path,
    container: &Container,
    pid: u32,
) -> Vec<Member> {
    let own = networks.enter(proc, pid);
    let (mut names, mut members) = (Vec::new(), Vec::new());
    let others = match runtime.opted_in(&[]).await {
        Ok(ids) => ids,
        Err(error) => {
            let error = anyhow::Error::from(error);
            found.see("network", format!("cannot list other opted-in containers: {error:#}"));
            Vec::new()
        }
    };
    for id in others.iter().filter(|id| **id != container.id) {
        // One that has ended meanwhile shares nothing.
        let Ok(Some(other)) = runtime.inspect(id).await else { continue };
        let member = other.pid.map(|pid| networks.enter(proc, pid));
        if let Some(member) = member.filter(|member| own.shares_with(member)) {
            names.push(other.name);
            members.push(member);
        }
    }
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match (own.is_of_the_machine(), names.is_empty()) {
        (true, true) => found.see("network", "the machine's: who listens is checked"),
        (true, false) => found
            .see("network", format!("the machine's, as of {shown}{more}: who listens is checked")),
        (false, false) => found
            .see("network", format!("shared with opted-in {shown}{more}: who listens is checked")),
        (false, true) => {}
    }
    members
}

fn limits(found: &mut Findings, machine: &Machine, container: &Container, pid: u32) {
    let means = match Cgroup::for_container(&machine.proc, pid, &container.id) {
        Ok(cgroup) => {
            let place = cgroup.cpu_folder().display();
            found.see("cgroup", format!("version {}, {place}", cgroup.version()));
            if let Ok(quota) = cgroup.quota() {
                found.see("limit", describe(quota.share(machine.cpus), machine.cpus));
            }
            if let Ok(used) = cgroup.used() {
                found.see("CPU time", format!("{:.1} s so far", used.cpu_seconds));
            }
            match cgroup.check_writable() {
                Ok(()) if container.pod.is_some() => "the container runtime".to_owned(),
                Ok(()) => "its control group's files".to_owned(),
                Err(error) => format!("the engine (cannot write its control group: {error})"),
            }
        }
        Err(error) => {
            found.see("cgroup", format!("unreadable ({error}): the engine's statistics are used"));
            let limit = container.host_config.share(machine.cpus);
            found.see("limit", describe(limit, machine.cpus));
            "the engine".to_owned()
        }
    };
    let half = first_write(container.host_config, Share::nearest(0.5), machine.cpus);
    found.see("limited by", format!("{means}; by the engine, half of the machine would be {half}"));
}

fn describe(share: Share, cpus: f64) -> String {
    if share.is_all() {
        return format!("none ({cpus} CPUs)");
    }
    format!("{share} of {cpus} CPUs, that is {:.2}", share.get() * cpus)
}
