//! Orders to an allocator that runs: how soon they are in force, and what comes of many at once.

pub(crate) mod clients;
pub(crate) mod timing;

use std::path::Path;

use anyhow::Context;
use paceline_allocator::audit::verify::verify;
use paceline_allocator::audit::{Entry, read};
use paceline_allocator::control::{self, Reply, Request};
use paceline_allocator::live::Command;
use paceline_allocator::live::snapshot::{JobView, Standing};
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_system_tests::{Allocator, Bed, until};

use crate::flowcon::all_cpus;

/// What the allocator of a bed answers.
async fn ask(bed: &Bed, request: &Request) -> anyhow::Result<Reply> {
    Ok(control::ask(&Allocator::control(bed), request).await?)
}

/// Gives an order, and fails unless it is carried out.
pub(crate) async fn order(bed: &Bed, command: Command) -> anyhow::Result<()> {
    let answer = ask(bed, &Request::Order(command)).await?;
    anyhow::ensure!(matches!(answer, Reply::Done(_)), "{answer:?}");
    Ok(())
}

/// What the allocator knows of a job.
pub(crate) async fn view(bed: &Bed, job: &str) -> anyhow::Result<JobView> {
    let Reply::Status(status) = ask(bed, &Request::Status).await? else {
        anyhow::bail!("it does not say what it knows");
    };
    let mut jobs = status.jobs.into_iter();
    jobs.find(|one| one.job == job).with_context(|| format!("there is no job {job}"))
}

async fn until_managed(bed: &Bed, job: &str) -> anyhow::Result<()> {
    until("the job is managed", || async {
        // Before the first look nothing is known of it, and before that nobody answers.
        let view = view(bed, job).await.ok();
        Ok(view.filter(|view| view.standing == Standing::Managed).map(drop))
    })
    .await
}

/// A share as the kernel holds it.
async fn quota(bed: &Bed, share: f64) -> anyhow::Result<Quota> {
    let cpus = u32::try_from(all_cpus(bed).await? / 1_000_000_000)?;
    // A whole number of microseconds, which prints without a fraction.
    let us = format!("{:.0}", share * f64::from(cpus) * 100_000.0).parse()?;
    Ok(Quota { quota: Some(us), period: 100_000 })
}

/// Waits until the kernel holds a container at a share.
pub(crate) async fn until_quota(bed: &Bed, name: &str, share: f64) -> anyhow::Result<()> {
    let (wanted, cgroup) = (quota(bed, share).await?, cgroup(bed, name).await?);
    until("the quota is there", || async { Ok((cgroup.quota()? == wanted).then_some(())) }).await
}

async fn cgroup(bed: &Bed, name: &str) -> anyhow::Result<Cgroup> {
    let pid = bed.inspect(name).await?.pid.context("it runs")?;
    Ok(Cgroup::of(Path::new("/proc"), pid)?)
}

/// Runs a command of `paceline` until it has said what came of it.
async fn run(bed: &Bed, words: &[&str]) -> anyhow::Result<()> {
    let mut command = Allocator::command(words)?;
    let output = command.arg("--control").arg(Allocator::control(bed)).output().await?;
    anyhow::ensure!(output.status.success(), "{words:?}: {output:?}");
    Ok(())
}

/// The orders in the audit log, and whether each was carried out. Fails where the log is broken.
fn ordered(bed: &Bed) -> anyhow::Result<Vec<(Command, bool)>> {
    let folder = Allocator::state(bed);
    let verdict = verify(&folder, None)?;
    anyhow::ensure!(verdict.holds(), "{verdict:?}");
    let orders = read::last(&folder, usize::MAX)?.into_iter().filter_map(|record| {
        let Entry::Ordered { command, done, .. } = record.entry else { return None };
        Some((command, done))
    });
    Ok(orders.collect())
}
