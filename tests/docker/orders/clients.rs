//! Two clients that give orders at the same time.

use std::sync::Arc;

use anyhow::Context;
use futures_util::future::try_join_all;
use paceline_api::live::snapshot::Standing;
use paceline_api::live::{Command, Refusal};
use paceline_policy::Share;
use paceline_server::control::{Reply, Request};
use paceline_system_tests::{Allocator, Job, TestEnv, until};

use super::{ask, cgroup, ordered, quota, run, until_managed, view};
use crate::flowcon::{ensure_unlimited, flat};

/// Orders that each of them gives.
const ORDERS: u32 = 20;

/// Twenty shares for one of two clients; no two are equal, and each differs enough to be written.
fn shares(client: u32) -> Vec<f64> {
    (0..ORDERS).map(|order| f64::from(10 + 4 * order + 2 * client) / 100.0).collect()
}

/// An order to pin a job at a share, and whether it was carried out.
type Pin = (f64, bool);

/// Pins a job at one share after another by the command; returns the outcomes. Each order waits
/// for the answer to the last.
async fn client(env: &TestEnv, job: &str, shares: &[f64]) -> anyhow::Result<Vec<Pin>> {
    let mut answers = Vec::new();
    for share in shares {
        let done = match run(env, &["pin", job, &share.to_string()]).await {
            Err(error) if error.to_string().contains(OVERTAKEN) => false,
            other => other.map(|()| true)?,
        };
        answers.push((*share, done));
    }
    Ok(answers)
}

/// The answer to an order that another one replaces.
const OVERTAKEN: &str = "another order came before it was done";

/// The orders to pin a job, from the log.
fn pins(ordered: &[(Command, bool)], job: &str) -> Vec<Pin> {
    let pins = ordered.iter().filter_map(|(command, done)| {
        let Command::Pin { name, share } = command else { return None };
        (name == job).then_some((share.get(), *done))
    });
    pins.collect()
}

/// The share of the last order that was carried out.
fn last(pins: &[Pin]) -> Option<f64> {
    pins.iter().rev().find(|(_, done)| *done).map(|(share, _)| *share)
}

pub(crate) async fn two_clients_at_once_lose_nothing(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let left = env.start(Job { name: "left", ..flat() }).await?;
    let right = env.start(Job { name: "right", ..flat() }).await?;
    let allocator = Allocator::run(&env, &["--policy", "none"])?;
    for job in ["left", "right"] {
        until_managed(&env, job).await?;
    }
    let (even, odd) = (shares(0), shares(1));
    // Each client pins a job of its own.
    let answered = tokio::try_join!(client(&env, "left", &even), client(&env, "right", &odd))?;
    let log = ordered(&env)?;
    anyhow::ensure!(answered == (pins(&log, "left"), pins(&log, "right")), "{answered:?}: {log:?}");
    let all_done = [&answered.0, &answered.1].into_iter().flatten().all(|(_, done)| *done);
    anyhow::ensure!(all_done, "one client's order replaced the other's: {answered:?}");
    ensure_held(&env, &left, "left", last(&answered.0)).await?;
    ensure_held(&env, &right, "right", last(&answered.1)).await?;
    // Both pin the same job.
    let answered = tokio::try_join!(client(&env, "left", &even), client(&env, "left", &odd))?;
    let log = pins(&ordered(&env)?.split_off(log.len()), "left");
    anyhow::ensure!(log.len() == even.len() + odd.len(), "{log:?}");
    for answered in [&answered.0, &answered.1] {
        let its = log
            .iter()
            .filter(|(share, _)| answered.iter().any(|(other, _)| other.total_cmp(share).is_eq()));
        anyhow::ensure!(its.eq(answered), "{answered:?} is {log:?} in the log");
    }
    ensure_held(&env, &left, "left", last(&log)).await?;
    all_at_once(&env, &right, "right", [even, odd].concat()).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &left).await?;
    ensure_unlimited(&env, &right).await
}

/// Gives all orders at the same moment. An order that another one overtakes is refused for that.
async fn all_at_once(env: &TestEnv, name: &str, job: &str, shares: Vec<f64>) -> anyhow::Result<()> {
    let before = ordered(env)?.len();
    let orders = shares.iter().map(|share| {
        let share = Share::nearest(*share);
        let request = Request::Order(Command::Pin { name: job.to_owned(), share });
        async move { ask(env, &request).await }
    });
    let answers = try_join_all(orders).await?;
    let answered = answers.iter().map(|answer| {
        let overtaken = matches!(answer, Reply::Refused(Refusal::Failed(why)) if why == OVERTAKEN);
        anyhow::ensure!(overtaken || matches!(answer, Reply::Done(_)), "{answer:?}");
        Ok(!overtaken)
    });
    let answered: Vec<bool> = answered.collect::<anyhow::Result<_>>()?;
    let mut answered: Vec<Pin> = shares.into_iter().zip(answered).collect();
    let mut log = pins(&ordered(env)?.split_off(before), job);
    let at = last(&log);
    for list in [&mut answered, &mut log] {
        list.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    anyhow::ensure!(answered == log, "{answered:?} is {log:?} in the log");
    ensure_held(env, name, job, at).await
}

/// Fails unless a job is pinned at a share, in the kernel and in the allocator's status.
async fn ensure_held(env: &TestEnv, name: &str, job: &str, at: Option<f64>) -> anyhow::Result<()> {
    let share = at.context("the log has an order that was carried out")?;
    let (now, wanted) = (cgroup(env, name).await?.quota()?, quota(env, share).await?);
    anyhow::ensure!(now == wanted, "{job} has {now:?}, and its last order was {share}");
    until("the status shows it", || async {
        let view = view(env, job).await?;
        let limit = view.limit.unwrap_or_default();
        Ok((view.standing == Standing::Pinned && (limit - share).abs() < 1e-6).then_some(()))
    })
    .await
}
