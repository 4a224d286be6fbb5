//! What goes wrong around a limit: the allocator killed at every step, containers that change under
//! it, others who write, a full disk, an engine that restarts. Whatever it is, limits end right.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::{ContainerUpdateBody, HostConfig};
use bollard::query_parameters::{RemoveContainerOptionsBuilder, RestartContainerOptionsBuilder};
use paceline_allocator::actuate::originals::Originals;
use paceline_allocator::actuate::{Actuator, LimitError, Restored};
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_policy::Share;
use paceline_policy::limiter::Setting;
use paceline_system_tests::{Allocator, Bed, Job, Limits, PrivateEngine, image_of, until};
use rustix::process::Signal;

use crate::flowcon::{QUICK, all_cpus, ensure_unlimited, flat, growing, until_cut};
use crate::limits::Parent;

/// The steps of a plan, and of putting back, at which the allocator can be killed.
const STEPS: [&str; 6] = [
    "before-snapshot",
    "after-snapshot",
    "between-writes",
    "before-audit",
    "between-writes:1",
    "before-forgetting",
];

/// What the containers of a bed have, by name.
async fn all_limits(bed: &Bed, names: &[String]) -> anyhow::Result<Vec<Limits>> {
    let mut limits = Vec::new();
    for name in names {
        limits.push(bed.limits(name).await?);
    }
    Ok(limits)
}

/// Fails unless every container has what it had.
async fn ensure_back(bed: &Bed, names: &[String], before: &[Limits]) -> anyhow::Result<()> {
    let cpus = all_cpus(bed).await?;
    for ((now, before), name) in all_limits(bed, names).await?.iter().zip(before).zip(names) {
        now.ensure_back(before, cpus).with_context(|| name.clone())?;
    }
    Ok(())
}

/// How many containers the allocator of a bed has something to put back for.
fn left_behind(bed: &Bed) -> usize {
    let engines = fs::read_dir(Allocator::state(bed)).into_iter().flatten().flatten();
    let files = engines.flat_map(|engine| fs::read_dir(engine.path()).into_iter().flatten());
    files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "json")).count()
}

pub(crate) async fn killed_at_any_step_the_allocator_leaves_a_way_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let names = [
        bed.start(flat()).await?,
        bed.start(Job { name: "level", ..flat() }).await?,
        bed.start(growing()).await?,
    ];
    let before = all_limits(&bed, &names).await?;
    for (round, step) in STEPS.iter().enumerate() {
        for means in ["engine", "cgroup"] {
            let mut command = Allocator::command(&["run", "--with-label", &bed.label()])?;
            command.args(["--listen", "none", "--control", "none"]);
            command.arg("--state-dir").arg(Allocator::state(&bed));
            command.args(QUICK).args(["--actuator", means]).env("PACELINE_CRASH_AT", step);
            let mut allocator = Allocator::spawn(command)?;
            if *step == "before-forgetting" {
                until_any_cut(&bed, &names).await?;
                allocator.signal(Signal::TERM)?;
            }
            let status = allocator.ended().await?;
            anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
            let kept = left_behind(&bed);
            anyhow::ensure!((kept > 0) == (*step != "before-snapshot"), "{step}: {kept} are kept");
            // Two ways to come back, in turn: the command, and the next run.
            if round % 2 == 0 {
                Allocator::restore(&bed).await?;
            } else {
                let next = Allocator::run(&bed, &["--policy", "none"])?;
                next.says(&["allocator runs"]).await?;
                next.end().await?;
            }
            ensure_back(&bed, &names, &before).await.with_context(|| format!("{step}, {means}"))?;
            anyhow::ensure!(left_behind(&bed) == 0, "{step}: something is still to be put back");
        }
    }
    Ok(())
}

/// Waits until the kernel has a quota for one of these containers.
async fn until_any_cut(bed: &Bed, names: &[String]) -> anyhow::Result<()> {
    until("a job is cut", || async {
        let limits = all_limits(bed, names).await?;
        let cut = |limits: &Limits| limits.kernel.is_some_and(|quota| quota.quota.is_some());
        Ok(limits.iter().any(cut).then_some(()))
    })
    .await
}

/// Limits of every kind on an engine with `all` billionths of a CPU, and none below `parent`.
fn of_every_kind(all: i64, parent: &Parent) -> Vec<(&'static str, HostConfig)> {
    let none = HostConfig::default;
    let mib = 1 << 20;
    vec![
        ("cpus", HostConfig { nano_cpus: Some(all / 5 * 3), ..none() }),
        ("quota", HostConfig { cpu_period: Some(50_000), cpu_quota: Some(45_000), ..none() }),
        ("shares", HostConfig { cpu_shares: Some(700), ..none() }),
        ("memory", HostConfig { memory: Some(256 * mib), memory_swap: Some(300 * mib), ..none() }),
        ("below", HostConfig { cgroup_parent: Some(parent.path()), ..none() }),
        ("free", none()),
    ]
}

/// A growing job, and one for each kind of limit.
async fn one_of_each(bed: &Bed, parent: &Parent) -> anyhow::Result<Vec<String>> {
    let mut names = vec![bed.start(growing()).await?];
    for (name, host) in of_every_kind(all_cpus(bed).await?, parent) {
        names.push(bed.start(Job { name, host, ..flat() }).await?);
    }
    Ok(names)
}

/// Kills the allocator twenty times after a while that is different each time, and starts it again.
async fn kill_and_kill_again(bed: &Bed, means: &str) -> anyhow::Result<()> {
    let mut wait = 17_u64;
    let mut interrupted = 0;
    for _ in 0..20 {
        let words = ["--param", "interval=1", "--actuator", means];
        let mut allocator = Allocator::run(bed, &[&QUICK[..], &words].concat())?;
        wait = wait * 1_103 % 3_989;
        tokio::time::sleep(Duration::from_millis(500 + wait)).await;
        allocator.signal(Signal::KILL)?;
        allocator.ended().await?;
        interrupted += usize::from(left_behind(bed) > 0);
    }
    anyhow::ensure!(interrupted >= 5, "only {interrupted} runs of 20 had written when killed");
    Ok(())
}

pub(crate) async fn twenty_kills_later_every_value_is_what_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let parent = Parent::make(bed.name("parent"), all_cpus(&bed).await? / 40_000 * 3)?;
    let names = one_of_each(&bed, &parent).await?;
    let before = all_limits(&bed, &names).await?;
    let killed = kill_and_kill_again(&bed, "engine").await;
    let restored = Allocator::restore(&bed).await;
    let back = ensure_back(&bed, &names, &before).await;
    bed.clear().await?;
    drop(parent);
    killed.and(restored.map(drop)).and(back)
}

pub(crate) async fn twenty_kills_of_the_cgroup_actuator_leave_no_trace(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let parent = Parent::make(bed.name("parent"), all_cpus(&bed).await? / 40_000 * 3)?;
    let names = one_of_each(&bed, &parent).await?;
    let before = all_limits(&bed, &names).await?;
    let killed = kill_and_kill_again(&bed, "cgroup").await;
    let restored = Allocator::restore(&bed).await;
    let after = all_limits(&bed, &names).await?;
    bed.clear().await?;
    drop(parent);
    killed.and(restored.map(drop))?;
    anyhow::ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}

/// An actuator of this process, with originals in the bed's folder.
async fn actuator(bed: &Bed) -> anyhow::Result<Actuator> {
    let cpus = u32::try_from(all_cpus(bed).await? / 1_000_000_000)?;
    let originals = Originals::open(&bed.file("own"), "engine", "a test")?;
    Ok(Actuator::new(bed.docker().clone(), originals, "/proc".into(), f64::from(cpus)))
}

pub(crate) async fn a_container_that_changes_in_mid_update_gets_its_limits_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let actuator = actuator(&bed).await?;
    let name = bed.start(flat()).await?;
    let id = bed.inspect(&name).await?.id;
    let before = bed.limits(&name).await?;
    let cap = |percent: u32| Setting::Cap(Share::nearest(f64::from(percent) / 100.0));
    for percent in [20, 30, 40] {
        let (set, paused) =
            tokio::join!(actuator.set(&id, cap(percent)), bed.docker().pause_container(&name),);
        paused?;
        anyhow::ensure!(set? == cap(percent), "a paused container is limited like any other");
        let unpaused = bed.docker().unpause_container(&name);
        let (set, unpaused) = tokio::join!(actuator.set(&id, cap(percent + 5)), unpaused);
        unpaused?;
        set?;
    }
    for percent in [25, 35, 45] {
        let options = RestartContainerOptionsBuilder::default().t(0).build();
        let (set, restarted) = tokio::join!(
            actuator.set(&id, cap(percent)),
            bed.docker().restart_container(&name, Some(options)),
        );
        restarted?;
        // Whether the write came before its end, after its start, or between.
        drop(set);
    }
    actuator.restore(&id).await?;
    bed.limits(&name).await?.ensure_back(&before, all_cpus(&bed).await?)?;
    actuator.set(&id, cap(20)).await?;
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    let (set, removed) = tokio::join!(
        actuator.set(&id, cap(30)),
        bed.docker().remove_container(&name, Some(force)),
    );
    removed?;
    drop(set);
    let late = actuator.set(&id, cap(40)).await;
    anyhow::ensure!(matches!(late, Err(LimitError::Gone(_))), "{late:?}");
    anyhow::ensure!(actuator.restore(&id).await? == Some(Restored::Gone), "it is gone");
    anyhow::ensure!(actuator.pending()?.is_empty(), "something is still to be put back");
    Ok(())
}

/// Three quarters of the machine by `docker update`, as somebody else would.
async fn update(bed: &Bed, name: &str) -> anyhow::Result<(i64, Quota)> {
    let cpus = all_cpus(bed).await? / 4 * 3;
    let body = ContainerUpdateBody { nano_cpus: Some(cpus), ..ContainerUpdateBody::default() };
    bed.docker().update_container(name, body).await?;
    Ok((cpus, Quota { quota: Some(u64::try_from(cpus / 10_000)?), period: 100_000 }))
}

pub(crate) async fn somebody_elses_update_is_overruled_and_comes_back_at_the_end(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = bed.start(flat()).await?;
    bed.start(growing()).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    let (cpus, quota) = update(&bed, &flat).await?;
    allocator.says(&["flat", "by somebody else's doing", "reassert"]).await?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

pub(crate) async fn somebody_elses_update_stays_where_the_allocator_yields(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = bed.start(flat()).await?;
    bed.start(growing()).await?;
    let allocator = Allocator::run(&bed, &[&QUICK[..], &["--on-drift", "yield"]].concat())?;
    until_cut(&bed, &flat).await?;
    let (cpus, quota) = update(&bed, &flat).await?;
    allocator.says(&["is left alone until"]).await?;
    // Two more runs of the policy, which would cut it.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    allocator.end().await?;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

pub(crate) async fn a_limit_that_was_changed_past_the_engine_is_written_again(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = bed.start(flat()).await?;
    bed.start(growing()).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    let pid = bed.inspect(&flat).await?.pid.context("it runs")?;
    let lost = Quota { quota: None, period: 100_000 };
    Cgroup::of(Path::new("/proc"), pid)?.set_quota(lost)?;
    allocator.says(&["flat", "is 100.0 %", "reassert"]).await?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn without_room_for_the_originals_nothing_is_limited(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let flat = bed.start(flat()).await?;
    bed.start(growing()).await?;
    let before = bed.limits(&flat).await?;
    let state = Allocator::state(&bed);
    fs::create_dir_all(&state)?;
    // A small file system, which nobody sees but the allocator: all is filled but one page, which is
    // the lock's. When there is room again, the audit log wants its part of it, too.
    let script = "mount -t tmpfs -o size=128k none \"$1\" && head -c 126976 /dev/zero >\"$1/ballast\" \
                  && shift && exec \"$@\"";
    let paceline = Allocator::command(&[])?.as_std().get_program().to_owned();
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(&state).arg(paceline);
    command.args(["run", "--listen", "none", "--control", "none", "--with-label", &bed.label()]);
    command.arg("--state-dir").arg(&state).args(QUICK);
    let allocator = Allocator::spawn(command)?;
    allocator.says(&["flat", "cannot be kept", "No space left"]).await?;
    anyhow::ensure!(bed.limits(&flat).await? == before, "it was limited without a way back");
    // As soon as there is room, all is as usual.
    let inside = format!("/proc/{}/root{}", allocator.id()?, state.join("ballast").display());
    fs::remove_file(inside)?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn an_engine_that_restarts_in_mid_run_keeps_nothing_of_ours(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let mut engine = PrivateEngine::start(bed.file("engine")).await?;
    let outcome = across_a_restart(&mut engine).await;
    engine.clear().await?;
    outcome
}

async fn across_a_restart(engine: &mut PrivateEngine) -> anyhow::Result<()> {
    let toy = env!("CARGO_BIN_EXE_toy-job").as_ref();
    image_of(engine.docker(), "paceline-test/toy-job:private", &[toy]).await?;
    let inner = Bed::new(engine.docker().clone(), "paceline-test/toy-job:private", "inner")?;
    let names = [inner.start(flat()).await?, inner.start(growing()).await?];
    let before = all_limits(&inner, &names).await?;
    let mut command = Allocator::command(&["run", "--with-label", &inner.label()])?;
    command.args(["--listen", "none", "--control", "none"]);
    command.arg("--state-dir").arg(Allocator::state(&inner)).args(QUICK);
    let allocator = Allocator::spawn({
        command.env("DOCKER_HOST", engine.host());
        command
    })?;
    let [flat, _] = &names;
    until_cut(&inner, flat).await?;
    engine.restart().await?;
    anyhow::ensure!(inner.runs(flat).await?, "the job does not outlive its engine");
    until_cut(&inner, flat).await?;
    update(&inner, flat).await?;
    allocator.says(&["flat", "by somebody else's doing", "reassert"]).await?;
    until_cut(&inner, flat).await?;
    allocator.end().await?;
    // The update after the restart is the word that counts; the other job was never touched.
    let cpus = all_cpus(&inner).await?;
    let after = all_limits(&inner, &names).await?;
    let ([now, other], [_, untouched]) = (&after[..], &before[..]) else {
        anyhow::bail!("there are two jobs");
    };
    anyhow::ensure!(now.host.nano_cpus == cpus / 4 * 3, "{now:?}");
    other.ensure_back(untouched, cpus)
}
