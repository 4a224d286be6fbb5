//! Unplanned ends of the allocator, and what follows them.

use std::sync::Arc;

use paceline_system_tests::{Allocator, TestEnv, until};
use rustix::process::Signal;

use crate::faults::update;
use crate::flowcon::{QUICK, cut_job, ensure_unlimited};

/// Starts two jobs and kills the allocator once it has cut the flat one. Returns the flat job's name.
pub(crate) async fn killed(env: &TestEnv) -> anyhow::Result<String> {
    let (flat, mut allocator) = cut_job(env, &[]).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    anyhow::ensure!(
        ensure_unlimited(env, &flat).await.is_err(),
        "the limit is gone before any restore"
    );
    Ok(flat)
}

pub(crate) async fn after_a_kill_restore_puts_every_limit_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = killed(&env).await?;
    let said = Allocator::restore(&env).await?;
    anyhow::ensure!(said.contains("as it was"), "{said}");
    ensure_unlimited(&env, &flat).await?;
    let said = Allocator::restore(&env).await?;
    anyhow::ensure!(said.contains("nothing to restore"), "{said}");
    Ok(())
}

pub(crate) async fn owners_update_after_a_kill_outlives_restore(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    for actuator in ["engine", "cgroup"] {
        let (flat, mut allocator) = cut_job(&env, &["--actuator", actuator]).await?;
        allocator.signal(Signal::KILL)?;
        allocator.ended().await?;
        let (cpus, quota) = update(&env, &flat).await?;
        let said = Allocator::restore(&env).await?;
        anyhow::ensure!(said.contains("put back") && said.contains("read back"), "{said}");
        let now = env.limits(&flat).await?;
        let kept = now.host.nano_cpus == cpus && now.kernel == Some(quota);
        anyhow::ensure!(kept, "{actuator}: {now:?}, {said}");
        env.clear().await?;
    }
    Ok(())
}

pub(crate) async fn other_state_folder_makes_no_second_allocator(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, first) = cut_job(&env, &[]).await?;
    let other = |words: &[&str]| {
        let mut command = Allocator::command(words)?;
        command.args(["--listen", "none", "--control", "none"]).args(QUICK);
        command.arg("--state-dir").arg(env.file("other"));
        Allocator::spawn(command)
    };
    // Without a label it would manage all containers of the engine.
    let mut alone = other(&["run"])?;
    anyhow::ensure!(alone.ended().await?.code() == Some(1), "{}", alone.said());
    alone.says(&["another allocator works on this engine"]).await?;
    // With the same label it is not alone with any of these containers.
    let label = env.label();
    let second = other(&["run", "--with-label", &label])?;
    let holder = format!("process {} on ", first.id()?);
    second.says(&["left alone", "another allocator works on this container", &holder]).await?;
    second.end().await?;
    first.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn restore_continues_after_its_reader_left(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = killed(&env).await?;
    let state = Allocator::state(&env);
    // The second one has nothing to restore.
    for _ in 0..2 {
        let unread =
            Allocator::unread(&["restore", "--state-dir", &state.to_string_lossy()]).await?;
        anyhow::ensure!(unread.status.success() && unread.stderr.is_empty(), "{unread:?}");
        ensure_unlimited(&env, &flat).await?;
    }
    Ok(())
}

/// `paceline restore` in a mount namespace of its own, in which `script` has run.
async fn restore_within(env: &TestEnv, script: &str) -> anyhow::Result<std::process::Output> {
    let paceline = Allocator::command(&["restore"])?;
    let mut command = tokio::process::Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-ec",
        &format!("{script}; exec \"$1\" restore --state-dir \"$2\""),
    ]);
    command.arg("sh").arg(paceline.as_std().get_program()).arg(Allocator::state(env));
    for (name, value) in paceline.as_std().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Ok(command.output().await?)
}

pub(crate) async fn restore_by_a_read_only_state_folder_puts_limits_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, mut allocator) = cut_job(&env, &["--actuator", "cgroup"]).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    let read_only = "mount --bind \"$2\" \"$2\"; mount -o remount,bind,ro \"$2\"";
    let output = restore_within(&env, read_only).await?;
    anyhow::ensure!(output.status.success(), "{output:?}");
    ensure_unlimited(&env, &flat).await?;
    // A run would record nothing there, so it does not start.
    let run = "mount --bind \"$2\" \"$2\"; mount -o remount,bind,ro \"$2\"; exec \"$1\" run \
               --listen none --control none --state-dir \"$2\"";
    let output = restore_within(&env, run).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.code() == Some(1) && said.contains("ead-only"), "{output:?}");
    Ok(())
}

pub(crate) async fn restore_without_sight_of_control_groups_keeps_the_record(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, mut allocator) = cut_job(&env, &["--actuator", "cgroup"]).await?;
    allocator.signal(Signal::KILL)?;
    allocator.ended().await?;
    let output = restore_within(&env, "umount -R -l /sys/fs/cgroup").await?;
    let said = String::from_utf8_lossy(&output.stdout);
    let is_kept = said.contains("NOT restored") && said.contains("cannot read its control group");
    anyhow::ensure!(output.status.code() == Some(1) && is_kept, "{output:?}");
    Allocator::restore(&env).await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn next_run_restores_limits_of_a_killed_run(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = killed(&env).await?;
    let allocator = Allocator::run(&env, &["--policy", "none"])?;
    allocator.says(&["limited by an earlier run", "as it was"]).await?;
    // On a slow machine the growing job may have had a limit too, and be the one that is logged.
    until("the flat job is without a limit", || async {
        Ok(ensure_unlimited(&env, &flat).await.ok())
    })
    .await?;
    allocator.end().await
}

pub(crate) async fn ctrl_c_puts_every_limit_back_and_ends_with_130(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, mut allocator) = cut_job(&env, &[]).await?;
    allocator.signal(Signal::INT)?;
    let status = allocator.ended().await?;
    anyhow::ensure!(status.code() == Some(130), "{status}");
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn a_second_allocator_is_turned_away(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let first = Allocator::run(&env, &["--policy", "none"])?;
    first.says(&["allocator runs"]).await?;
    let mut second = Allocator::run(&env, &["--policy", "none"])?;
    let status = second.ended().await?;
    anyhow::ensure!(status.code() == Some(1), "{status}");
    let holder = format!("process {} on ", first.id()?);
    second.says(&["another allocator", &holder, " since 2", "policy none"]).await?;
    first.end().await
}
