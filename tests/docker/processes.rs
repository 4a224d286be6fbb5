//! Jobs outside containers beside containers, under one allocator.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context;
use paceline_cgroup::job_group::JobGroup;
use paceline_system_tests::{Allocator, Job, TestEnv, program, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::flowcon::{QUICK, all_cpus, ensure_unlimited, flat_and_growing};
use crate::promise::{BURNERS, Ended, Idle, PACELINE, ensure_kept};

/// The jobs outside containers: one whose loss falls throughout, and two whose loss is constant.
const JOBS: [(&str, &[&str]); 3] =
    [("outside-growing", &["--half-life", "40000"]), ("outside-a", &[]), ("outside-b", &[])];
/// The jobs with a constant loss, which get less.
const FLAT: [&str; 2] = ["outside-a", "outside-b"];

/// `paceline` with the test's own folder of jobs.
fn paceline(env: &TestEnv, words: &[&str]) -> anyhow::Result<Command> {
    let mut command = Allocator::command(words)?;
    command.env("PACELINE_JOBS", jobs(env)).env_remove("PACELINE_LISTEN");
    Ok(command)
}

fn jobs(env: &TestEnv) -> PathBuf {
    env.file("jobs")
}

/// Starts a job by `paceline exec`. It is killed when the result is dropped.
fn start(env: &TestEnv, name: &str, args: &[&str]) -> anyhow::Result<Child> {
    let label = env.label();
    let words = ["exec", "--job", name, "--sidecar", "none", "--label", &label, "--"];
    let mut command = paceline(env, &words)?;
    command.arg(program("toy-job")?).args(args);
    command.stdin(Stdio::null()).stdout(File::create(output(env, name))?).stderr(Stdio::null());
    Ok(command.spawn()?)
}

/// The file with the output of a job outside containers.
fn output(env: &TestEnv, name: &str) -> PathBuf {
    env.file(&format!("{name}.log"))
}

/// The groups of all recorded jobs, by the job's name.
fn groups(env: &TestEnv) -> anyhow::Result<BTreeMap<String, JobGroup>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(jobs(env))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_suffix(".json") else { continue };
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let record: Value = serde_json::from_str(&text)?;
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        if let Ok(group) = JobGroup::from_text(Path::new("/proc"), id, text("groups")) {
            found.insert(text("name").to_owned(), group);
        }
    }
    Ok(found)
}

/// The limit and the weight of each job outside containers.
fn limits(env: &TestEnv) -> anyhow::Result<BTreeMap<String, (Option<u64>, u64)>> {
    let of = |(name, group): (String, JobGroup)| {
        let group = group.cgroup();
        Ok((name, (group.quota()?.quota, group.weight()?)))
    };
    groups(env)?.into_iter().map(of).collect()
}

pub(crate) async fn containers_and_jobs_outside_are_managed_by_one_policy(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    std::fs::create_dir(jobs(&env))?;
    let mut started =
        JOBS.iter().map(|(name, args)| start(&env, name, args)).collect::<Result<Vec<_>, _>>()?;
    let container = flat_and_growing(&env).await?;
    let before = until("all jobs are recorded", || async {
        Ok(Some(limits(&env)?).filter(|limits| limits.len() == JOBS.len()))
    })
    .await?;
    anyhow::ensure!(before.values().all(|(quota, _)| quota.is_none()), "{before:?}");

    let allocator = Allocator::spawn(allocator(&env, &QUICK)?)?;
    let all = u64::try_from(all_cpus(&env).await? / 10_000)?;
    let is_cut = |quota: Option<u64>| quota.is_some_and(|quota| quota < all / 2);
    until("the flat jobs of both kinds are cut", || async {
        let outside = limits(&env)?;
        let quota = |name: &str| outside.get(name).and_then(|(quota, _)| *quota);
        let kernel = env.limits(&container).await?.kernel.and_then(|kernel| kernel.quota);
        Ok((FLAT.iter().all(|name| is_cut(quota(name))) && is_cut(kernel)).then_some(()))
    })
    .await
    .with_context(|| allocator.said())?;
    let snapshot = snapshot(&env).await?;
    let listed = snapshot.get("jobs").and_then(Value::as_array).map_or(0, Vec::len);
    anyhow::ensure!(listed == JOBS.len() + 2, "{snapshot}");
    allocator.end().await?;

    let after = limits(&env)?;
    anyhow::ensure!(after == before, "{after:?}, and not {before:?}");
    for name in env.ids().await? {
        ensure_unlimited(&env, &name).await?;
    }
    let folders: Vec<PathBuf> =
        groups(&env)?.values().map(|group| group.cgroup().cpu_folder().to_owned()).collect();
    for job in &mut started {
        let pid = i32::try_from(job.id().context("the job runs")?)?;
        kill_process(Pid::from_raw(pid).context("a process has an id")?, Signal::TERM)?;
        job.wait().await?;
    }
    until_gone(&folders).await
}

async fn until_gone(folders: &[PathBuf]) -> anyhow::Result<()> {
    until("the groups are gone", || async {
        Ok(folders.iter().all(|folder| !folder.exists()).then_some(()))
    })
    .await
}

pub(crate) async fn no_job_of_either_kind_ends_later_than_under_equal_sharing(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    std::fs::create_dir(jobs(&env))?;
    let allocator = Allocator::spawn(allocator(&env, &PACELINE)?)?;
    let args = |steps| [&BURNERS[..], &["--steps", steps]].concat();
    let container = |name, steps| Job { name, args: args(steps), ..Job::default() };
    let outside = [
        ("outside-small", "400", 400),
        ("outside-middle", "800", 800),
        ("outside-large", "1600", 1600),
    ];
    let idle = Idle::watch();
    let mut started = Vec::new();
    for (name, steps, _) in outside {
        started.push(start(&env, name, &args(steps))?);
    }
    let (small, large) = tokio::try_join!(
        env.start(container("inside-small", "600")),
        env.start(container("inside-large", "1200"))
    )?;
    let folders = until("a limit of each kind moves", || async {
        let groups = groups(&env)?;
        let mut cgroups = groups.values().map(JobGroup::cgroup);
        let moved = cgroups.any(|group| group.quota().is_ok_and(|quota| quota.quota.is_some()));
        let kernel = env.limits(&large).await?.kernel.and_then(|kernel| kernel.quota);
        let folders = groups.values().map(|group| group.cgroup().cpu_folder().to_owned()).collect();
        let are_all = groups.len() == outside.len();
        Ok((are_all && moved && kernel.is_some()).then_some::<Vec<PathBuf>>(folders))
    })
    .await
    .with_context(|| allocator.said())?;

    let mut ended = Vec::new();
    for ((name, _, steps), mut job) in outside.into_iter().zip(started) {
        let status = job.wait().await?;
        anyhow::ensure!(status.success(), "{name}: {status}");
        let log = std::fs::read_to_string(output(&env, name))?;
        ended.push(Ended::read(name, steps, true, &log)?);
    }
    for (name, steps) in [(&small, 600), (&large, 1200)] {
        anyhow::ensure!(env.ended(name).await? == 0, "{name} failed");
        ended.push(Ended::read(name, steps, true, &env.log(name).await?)?);
    }
    allocator.end().await?;
    ensure_kept(&ended, &idle)?;
    until_gone(&folders).await
}

/// The allocator of both kinds under `policy`, confined to the test's jobs.
fn allocator(env: &TestEnv, policy: &[&str]) -> anyhow::Result<Command> {
    let mut command = Allocator::running(env)?;
    command.args(["--runtime", "docker,processes", "--listen", "none"]).args(policy);
    command.env("PACELINE_JOBS", jobs(env));
    Ok(command)
}

async fn snapshot(env: &TestEnv) -> anyhow::Result<Value> {
    let mut command = paceline(env, &["status", "--json", "--control"])?;
    let output = command.arg(Allocator::control(env)).output().await?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))
}
