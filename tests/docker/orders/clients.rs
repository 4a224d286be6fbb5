//! Two clients that give orders at the same time.

use std::sync::Arc;

use anyhow::Context;
use futures_util::future::try_join_all;
use paceline_allocator::control::{Reply, Request};
use paceline_allocator::live::snapshot::Standing;
use paceline_allocator::live::{Command, Refusal};
use paceline_policy::Share;
use paceline_system_tests::{Allocator, Bed, Job, until};

use super::{ask, cgroup, ordered, quota, run, until_managed, view};
use crate::flowcon::{ensure_unlimited, flat};

/// So many orders each of them gives.
const ORDERS: u32 = 20;

/// Twenty shares of one of two clients; no two are the same, and all are worth a write.
fn shares(client: u32) -> Vec<f64> {
    (0..ORDERS).map(|order| f64::from(10 + 4 * order + 2 * client) / 100.0).collect()
}

/// An order to pin a job at a share, and whether it was carried out.
type Pin = (f64, bool);

/// Has a job pinned by the command, again and again; gives what was said. Each order waits for the
/// answer to the last.
async fn client(bed: &Bed, job: &str, shares: &[f64]) -> anyhow::Result<Vec<Pin>> {
    let mut answers = Vec::new();
    for share in shares {
        let done = match run(bed, &["pin", job, &share.to_string()]).await {
            Err(error) if error.to_string().contains(OVERTAKEN) => false,
            other => other.map(|()| true)?,
        };
        answers.push((*share, done));
    }
    Ok(answers)
}

/// What an order is answered that another one replaces.
const OVERTAKEN: &str = "another order came before it was done";

/// The orders to pin a job, by the log.
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

pub(crate) async fn two_clients_at_once_lose_nothing(bed: Arc<Bed>) -> anyhow::Result<()> {
    let left = bed.start(Job { name: "left", ..flat() }).await?;
    let right = bed.start(Job { name: "right", ..flat() }).await?;
    let allocator = Allocator::run(&bed, &["--policy", "none"])?;
    for job in ["left", "right"] {
        until_managed(&bed, job).await?;
    }
    let (even, odd) = (shares(0), shares(1));
    // Each with a job of its own.
    let told = tokio::try_join!(client(&bed, "left", &even), client(&bed, "right", &odd))?;
    let log = ordered(&bed)?;
    anyhow::ensure!(told == (pins(&log, "left"), pins(&log, "right")), "{told:?}: {log:?}");
    let all_done = [&told.0, &told.1].into_iter().flatten().all(|(_, done)| *done);
    anyhow::ensure!(all_done, "one client's order came in the way of the other's: {told:?}");
    ensure_held(&bed, &left, "left", last(&told.0)).await?;
    ensure_held(&bed, &right, "right", last(&told.1)).await?;
    // Both with the same.
    let told = tokio::try_join!(client(&bed, "left", &even), client(&bed, "left", &odd))?;
    let log = pins(&ordered(&bed)?.split_off(log.len()), "left");
    anyhow::ensure!(log.len() == even.len() + odd.len(), "{log:?}");
    for told in [&told.0, &told.1] {
        let its = log
            .iter()
            .filter(|(share, _)| told.iter().any(|(other, _)| other.total_cmp(share).is_eq()));
        anyhow::ensure!(its.eq(told), "{told:?} is {log:?} in the log");
    }
    ensure_held(&bed, &left, "left", last(&log)).await?;
    all_at_once(&bed, &right, "right", [even, odd].concat()).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &left).await?;
    ensure_unlimited(&bed, &right).await
}

/// Gives all orders in the same moment: one that another overtakes is told so.
async fn all_at_once(bed: &Bed, name: &str, job: &str, shares: Vec<f64>) -> anyhow::Result<()> {
    let before = ordered(bed)?.len();
    let orders = shares.iter().map(|share| {
        let share = Share::nearest(*share);
        let request = Request::Order(Command::Pin { name: job.to_owned(), share });
        async move { ask(bed, &request).await }
    });
    let answers = try_join_all(orders).await?;
    let told = answers.iter().map(|answer| {
        let overtaken = matches!(answer, Reply::Refused(Refusal::Failed(why)) if why == OVERTAKEN);
        anyhow::ensure!(overtaken || matches!(answer, Reply::Done(_)), "{answer:?}");
        Ok(!overtaken)
    });
    let told: Vec<bool> = told.collect::<anyhow::Result<_>>()?;
    let mut told: Vec<Pin> = shares.into_iter().zip(told).collect();
    let mut log = pins(&ordered(bed)?.split_off(before), job);
    let at = last(&log);
    for list in [&mut told, &mut log] {
        list.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    anyhow::ensure!(told == log, "{told:?} is {log:?} in the log");
    ensure_held(bed, name, job, at).await
}

/// Fails unless a job is pinned at a share, by the kernel and by what the allocator says.
async fn ensure_held(bed: &Bed, name: &str, job: &str, at: Option<f64>) -> anyhow::Result<()> {
    let share = at.context("the log tells of no order")?;
    let (now, wanted) = (cgroup(bed, name).await?.quota()?, quota(bed, share).await?);
    anyhow::ensure!(now == wanted, "{job} has {now:?}, and its last order was {share}");
    until("it is said so", || async {
        let view = view(bed, job).await?;
        let limit = view.limit.unwrap_or_default();
        Ok((view.standing == Standing::Pinned && (limit - share).abs() < 1e-6).then_some(()))
    })
    .await
}
