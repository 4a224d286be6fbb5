//! The cluster of `DQoES` (Song, Fordham University): inference jobs on four machines, each with a target
//! for the time that a batch takes, under the engine alone and with `DQoES` on every machine.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use paceline_allocator::live::snapshot::{CountsView, JobView};
use paceline_policy::unit::counter;
use paceline_system_tests::{Offices, OneTask, until_within};
use tokio::time::{Instant, sleep};

use crate::machines::{Site, Ware};
use crate::table::{say, table};

/// The CPUs of a machine.
const CPUS: f64 = 0.5;
/// The targets, in times of what a batch takes with a machine to itself. There is one job of each on every
/// machine: they need 85 % of it, and none has its target's time where all are equal.
const TARGETS: [f64; 3] = [2.2, 4.0, 7.0];
/// The machines of the Swarm.
const MACHINES: u32 = 4;
/// So far may a batch be from its target: the thesis's α.
const NEAR: f64 = 0.1;
/// How often is looked, and for how long, from the first batch of the last job.
const EVERY: Duration = Duration::from_secs(15);
const LOOKS: u32 = 8;
/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_mins(3);
/// `DQoES`, quick enough for a demonstration.
const DQOES: [&str; 7] =
    ["dqoes", "--enforcement", "quota", "--param", "interval=3", "--param", "beta=0.2"];

/// How many jobs stand how at one look.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// As slow as their targets, but for a tenth: the papers' set S.
    within: u32,
    /// Not slower than that: what their owners asked for.
    met: u32,
}

/// Whether more jobs are satisfied under `DQoES`, the thesis's figure: those in S, over time.
pub(crate) async fn run(ware: &Ware) -> anyhow::Result<bool> {
    Site::with(ware, Some(CPUS), async |site| both(site, ware).await).await
}

async fn both(site: &Site, ware: &Ware) -> anyhow::Result<bool> {
    let offices = site.offices()?;
    let alone = alone(ware, &offices).await?;
    say(&format!("a batch takes {:.0} ms with a machine to itself", alone * 1e3))?;
    let plain = arm(ware, &offices, alone).await?;
    offices.close().await?;
    let offices = site.offices_under(&DQOES)?;
    let limited = arm(ware, &offices, alone).await?;
    offices.close().await?;
    let rows = plain.iter().zip(&limited).enumerate().map(|(at, (plain, limited))| {
        let seconds = EVERY.as_secs() * (u64::try_from(at).unwrap_or_default() + 1);
        let counts = [plain.within, limited.within, plain.met, limited.met];
        std::iter::once(seconds.to_string()).chain(counts.map(|count| count.to_string())).collect()
    });
    let head = ["after, s", "in S: Swarm alone", "in S: DQoES", "met: Swarm alone", "met: DQoES"];
    table(&head, &rows.collect::<Vec<_>>())?;
    let jobs = MACHINES * u32::try_from(TARGETS.len())?;
    say(&format!(
        "of {jobs} jobs; met: a batch takes at most {:.0} % longer than its target; in S: nor is it that \
         much\nquicker, which leaves the rest to others",
        NEAR * 100.0
    ))?;
    let satisfied = |arm: &[Standing]| arm.iter().map(|standing| standing.within).sum::<u32>();
    Ok(satisfied(&limited) > satisfied(&plain))
}

/// What a batch takes with a machine to itself, in seconds.
async fn alone(ware: &Ware, offices: &Offices) -> anyhow::Result<f64> {
    let manager = offices.manager(&["--policy", "none"])?;
    serve(ware, offices, ("alone", "0", 1.0)).await?;
    let counts = async || anyhow::Ok(batches(offices).await?.remove("alone"));
    let from = until_within(PATIENCE, "the job alone is at work", || async {
        Ok(counts().await?.filter(|counts| counts.batches > 10))
    })
    .await?;
    sleep(Duration::from_secs(8)).await;
    let to = counts().await?.context("the job alone is still there")?;
    manager.end().await?;
    offices.clear().await?;
    mean(&from, &to).context("it has made no batch")
}

/// How the jobs stand at each look.
async fn arm(ware: &Ware, offices: &Offices, alone: f64) -> anyhow::Result<Vec<Standing>> {
    let manager = offices.manager(&["--policy", "none"])?;
    let mut targets = BTreeMap::new();
    // The engine spreads its tasks: those of one kind come one to a machine.
    for (kind, times) in TARGETS.iter().enumerate() {
        for number in 1..=MACHINES {
            let (name, target) = (format!("resnet-{kind}-{number}"), times * alone);
            serve(ware, offices, (&name, &format!("{kind}{number}"), target)).await?;
            targets.insert(name, target);
        }
    }
    let all = until_within(PATIENCE, "every job has made a batch", || async {
        let counts = batches(offices).await?;
        let at_work = counts.values().filter(|counts| counts.batches > 0).count();
        Ok((at_work == targets.len()).then_some(counts))
    });
    let mut before = all.await.with_context(|| manager.said())?;
    let (mut standings, began) = (Vec::new(), Instant::now());
    for look in 1..=LOOKS {
        sleep((EVERY * look).saturating_sub(began.elapsed())).await;
        let now = batches(offices).await?;
        let mut standing = Standing::default();
        for (name, target) in &targets {
            let took = before.get(name).zip(now.get(name)).and_then(|(from, to)| mean(from, to));
            let Some(took) = took else { continue };
            let met = took <= target * (1.0 + NEAR);
            standing.met += u32::from(met);
            standing.within += u32::from(met && took >= target * (1.0 - NEAR));
        }
        standings.push(standing);
        before = now;
    }
    manager.end().await?;
    offices.clear().await?;
    Ok(standings)
}

/// What a batch took on average between two looks.
fn mean(from: &CountsView, to: &CountsView) -> Option<f64> {
    let batches = to.batches.checked_sub(from.batches).filter(|batches| *batches > 0)?;
    Some((to.batch_seconds - from.batch_seconds) / counter(batches))
}

/// What every job has done so far.
async fn batches(offices: &Offices) -> anyhow::Result<BTreeMap<String, CountsView>> {
    // A manager that has just begun does not answer yet.
    let jobs = offices.status().await.map(|shown| shown.jobs).unwrap_or_default();
    Ok(jobs.into_iter().filter_map(|JobView { job, counts, .. }| Some((job, counts?))).collect())
}

async fn serve(
    ware: &Ware,
    offices: &Offices,
    (name, seed, target): (&str, &str, f64),
) -> anyhow::Result<()> {
    let args = ["resnet50", "--inference", "--batch-size", "10", "--threads", "1"];
    let args = [&args[..], &["--epochs", "1000", "--seed", seed]].concat();
    let target = target.to_string();
    let one = OneTask {
        name,
        image: &ware.image,
        args: &args,
        env: &["PACELINE_DATA=/data"],
        labels: &[("paceline.job", name), ("paceline.batch-latency", &target)],
        mounts: &[(&ware.data, "/data")],
        place: None,
    };
    offices.serve(&one).await
}
