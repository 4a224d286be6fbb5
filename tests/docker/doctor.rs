//! `paceline doctor` on a real machine.

use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, TestEnv};
use serde_json::Value;
use tokio::process::Command;

use crate::dependability::killed;
use crate::users::{USER, by_user};

/// What doctor finds out: its exit code and its findings.
async fn examine(mut command: Command) -> anyhow::Result<(Option<i32>, Vec<Value>)> {
    let output = command.output().await?;
    let report: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))?;
    let findings = report.get("findings").and_then(Value::as_array).cloned();
    Ok((output.status.code(), findings.context("a report has findings")?))
}

fn doctor(env: &TestEnv) -> anyhow::Result<Command> {
    let mut command = Allocator::command(&["doctor", "--json", "--state-dir"])?;
    command.arg(Allocator::state(env));
    Ok(command)
}

/// The level of a finding, and what was found.
fn finding<'a>(findings: &'a [Value], what: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let is = |finding: &&Value| finding.get("what").and_then(Value::as_str) == Some(what);
    let finding = findings.iter().find(is).with_context(|| format!("no {what} in {findings:?}"))?;
    let text = |key| finding.get(key).and_then(Value::as_str).context("a finding has texts");
    Ok((text("level")?, text("found")?))
}

pub(crate) async fn healthy_machine_has_no_error(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let (code, findings) = examine(doctor(&env)?).await?;
    anyhow::ensure!(code == Some(0), "{findings:?}");
    for what in ["engine", "capabilities", "jobs", "state folder"] {
        anyhow::ensure!(finding(&findings, what)?.0 == "ok", "{findings:?}");
    }
    anyhow::ensure!(!Allocator::state(&env).exists(), "it only looks");
    let allocator = Allocator::run(&env, &["--policy", "none"])?;
    allocator.says(&["allocator runs"]).await?;
    let (code, findings) = examine(doctor(&env)?).await?;
    anyhow::ensure!(code == Some(0), "{findings:?}");
    let (_, lock) = finding(&findings, "lock")?;
    anyhow::ensure!(lock.contains(&format!("process {} on ", allocator.id()?)), "{lock}");
    anyhow::ensure!(finding(&findings, "audit log")?.0 == "ok", "{findings:?}");
    allocator.end().await
}

pub(crate) async fn leftovers_of_a_killed_run_are_named_by_doctor(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = killed(&env).await?;
    let (code, findings) = examine(doctor(&env)?).await?;
    let (level, found) = finding(&findings, "leftovers")?;
    anyhow::ensure!((code, level) == (Some(1), "error") && found.contains(&flat), "{findings:?}");
    Allocator::restore(&env).await?;
    let (code, findings) = examine(doctor(&env)?).await?;
    anyhow::ensure!(code == Some(0), "{findings:?}");
    Ok(())
}

pub(crate) async fn non_root_user_is_examined_in_the_allocators_container(
    env: Arc<TestEnv>,
    image: String,
) -> anyhow::Result<()> {
    let mut command = by_user(&env, &image)?;
    command.args(["doctor", "--json", "--state-dir"]).arg(Allocator::state(&env));
    let (code, findings) = examine(command).await?;
    let (level, found) = finding(&findings, "user")?;
    anyhow::ensure!(level == "ok" && found.contains(&format!("for user {USER}")), "{findings:?}");
    anyhow::ensure!(code == Some(0), "{findings:?}");
    let mut command = by_user(&env, "paceline/no-such-image:1")?;
    command.args(["doctor", "--json", "--state-dir"]).arg(Allocator::state(&env));
    let (code, findings) = examine(command).await?;
    let (level, found) = finding(&findings, "user")?;
    anyhow::ensure!((code, level) == (Some(1), "error"), "{findings:?}");
    anyhow::ensure!(found.contains("paceline/no-such-image:1"), "{found}");
    Ok(())
}
