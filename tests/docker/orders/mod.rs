//! Orders to a running allocator: how soon they are in force, and many at once.

pub(crate) mod clients;
pub(crate) mod timing;

use std::path::Path;

use anyhow::Context;
use paceline_api::audit::verify::verify;
use paceline_api::audit::{Entry, read};
use paceline_api::live::Command;
use paceline_api::live::snapshot::{JobView, Standing};
use paceline_cgroup::{Cgroup, Quota};
use paceline_server::control::{self, Reply, Request};
use paceline_system_tests::{Allocator, TestEnv, until};

use crate::flowcon::all_cpus;

/// Asks this test's allocator.
async fn ask(env: &TestEnv, request: &Request) -> anyhow::Result<Reply> {
    Ok(control::ask(&Allocator::control(env), request).await?)
}

/// Gives an order, and fails unless it is carried out.
pub(crate) async fn order(env: &TestEnv, command: Command) -> anyhow::Result<()> {
    let answer = ask(env, &Request::Order(command)).await?;
    anyhow::ensure!(matches!(answer, Reply::Done(_)), "{answer:?}");
    Ok(())
}

/// The state of a job in the allocator.
pub(crate) async fn view(env: &TestEnv, job: &str) -> anyhow::Result<JobView> {
    let Reply::Status(status) = ask(env, &Request::Status).await? else {
        anyhow::bail!("the allocator refuses its status");
    };
    let mut jobs = status.jobs.into_iter();
    jobs.find(|one| one.job == job).with_context(|| format!("the status has no job {job}"))
}

async fn until_managed(env: &TestEnv, job: &str) -> anyhow::Result<()> {
    until("the job is managed", || async {
        // Before the first sample the job is unknown, and before that the socket does not answer.
        let view = view(env, job).await.ok();
        Ok(view.filter(|view| view.standing == Standing::Managed).map(drop))
    })
    .await
}

/// A share as the kernel's quota.
async fn quota(env: &TestEnv, share: f64) -> anyhow::Result<Quota> {
    let cpus = u32::try_from(all_cpus(env).await? / 1_000_000_000)?;
    // A whole number of microseconds, which prints without a fraction.
    let us = format!("{:.0}", share * f64::from(cpus) * 100_000.0).parse()?;
    Ok(Quota { quota: Some(us), period: 100_000 })
}

/// Waits until the kernel has the quota of a share for a container.
pub(crate) async fn until_quota(env: &TestEnv, name: &str, share: f64) -> anyhow::Result<()> {
    let (wanted, cgroup) = (quota(env, share).await?, cgroup(env, name).await?);
    until("the quota is there", || async { Ok((cgroup.quota()? == wanted).then_some(())) }).await
}

async fn cgroup(env: &TestEnv, name: &str) -> anyhow::Result<Cgroup> {
    let pid = env.inspect(name).await?.pid.context("it runs")?;
    Ok(Cgroup::for_process(Path::new("/proc"), pid)?)
}

/// Runs a command of `paceline`; fails unless it succeeds.
async fn run(env: &TestEnv, words: &[&str]) -> anyhow::Result<()> {
    let mut command = Allocator::command(words)?;
    let output = command.arg("--control").arg(Allocator::control(env)).output().await?;
    anyhow::ensure!(output.status.success(), "{words:?}: {output:?}");
    Ok(())
}

/// The orders in the audit log, and whether each was carried out. Fails if the log is broken.
fn ordered(env: &TestEnv) -> anyhow::Result<Vec<(Command, bool)>> {
    let folder = Allocator::state(env);
    let verdict = verify(&folder, None)?;
    anyhow::ensure!(verdict.holds(), "{verdict:?}");
    let orders = read::last(&folder, usize::MAX)?.into_iter().filter_map(|record| {
        let Entry::Ordered { command, done, .. } = record.entry else { return None };
        Some((command, done))
    });
    Ok(orders.collect())
}
