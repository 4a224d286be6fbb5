//! The cluster of `DQoES` (Song, Fordham University): inference jobs on four machines, each with a
//! target for its batch time, under the engine alone and with `DQoES` on every machine.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use paceline_api::live::snapshot::{CountsView, JobView};
use paceline_policy::unit::counter;
use paceline_system_tests::{AgentFleet, OneTask, until_within};
use tokio::time::{Instant, sleep};

use crate::machines::{Site, Ware};
use crate::table::{say, table};

/// CPUs of a machine.
const CPUS: f64 = 0.5;
/// The targets, as multiples of the batch time of a job alone on a machine. Every machine has one
/// job of each: together they need 85 % of it, and with equal shares none meets its target exactly.
const TARGETS: [f64; 3] = [2.2, 4.0, 7.0];
/// The machines of the Swarm.
const MACHINES: u32 = 4;
/// How far a batch time may be from its target, as a fraction: the thesis's α.
const NEAR: f64 = 0.1;
/// The time between two measurements, and their number, from the first batch of the last job.
const EVERY: Duration = Duration::from_secs(15);
const LOOKS: u32 = 8;
/// The longest wait for the jobs to be at work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// `DQoES`, quick enough for a demonstration.
const DQOES: [&str; 7] =
    ["dqoes", "--enforcement", "quota", "--param", "interval=3", "--param", "beta=0.2"];

/// How many jobs meet their targets at one measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Within a tenth of their targets: the papers' set S.
    within: u32,
    /// At most a tenth slower than their targets: what their owners asked for.
    met: u32,
}

/// Whether more jobs are in S over time under `DQoES`: the thesis's figure.
pub(crate) async fn run(ware: &Ware) -> anyhow::Result<bool> {
    Site::with(ware, Some(CPUS), async |site| both(site, ware).await).await
}

async fn both(site: &Site, ware: &Ware) -> anyhow::Result<bool> {
    let fleet = site.fleet()?;
    let alone = alone(ware, &fleet).await?;
    say(&format!("a batch takes {:.0} ms with a machine to itself", alone * 1e3))?;
    let plain = arm(ware, &fleet, alone).await?;
    fleet.close().await?;
    let fleet = site.fleet_under(&DQOES)?;
    let limited = arm(ware, &fleet, alone).await?;
    fleet.close().await?;
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

/// The batch time of a job alone on a machine, in seconds.
async fn alone(ware: &Ware, fleet: &AgentFleet) -> anyhow::Result<f64> {
    let manager = fleet.manager(&["--policy", "none"])?;
    serve(ware, fleet, ("alone", "0", 1.0)).await?;
    let counts = async || anyhow::Ok(batches(fleet).await?.remove("alone"));
    let from = until_within(WAIT_TIMEOUT, "the job alone is at work", || async {
        Ok(counts().await?.filter(|counts| counts.batches > 10))
    })
    .await?;
    sleep(Duration::from_secs(8)).await;
    let to = counts().await?.context("the job alone is still there")?;
    manager.end().await?;
    fleet.clear().await?;
    mean(&from, &to).context("it has made no batch")
}

/// How many jobs meet their targets at each measurement.
async fn arm(ware: &Ware, fleet: &AgentFleet, alone: f64) -> anyhow::Result<Vec<Standing>> {
    let manager = fleet.manager(&["--policy", "none"])?;
    let mut targets = BTreeMap::new();
    // The engine spreads tasks: each machine gets one of each kind.
    for (kind, times) in TARGETS.iter().enumerate() {
        for number in 1..=MACHINES {
            let (name, target) = (format!("resnet-{kind}-{number}"), times * alone);
            serve(ware, fleet, (&name, &format!("{kind}{number}"), target)).await?;
            targets.insert(name, target);
        }
    }
    let all = until_within(WAIT_TIMEOUT, "every job has made a batch", || async {
        let counts = batches(fleet).await?;
        let at_work = counts.values().filter(|counts| counts.batches > 0).count();
        Ok((at_work == targets.len()).then_some(counts))
    });
    let mut before = all.await.with_context(|| manager.said())?;
    let (mut standings, began) = (Vec::new(), Instant::now());
    for look in 1..=LOOKS {
        sleep((EVERY * look).saturating_sub(began.elapsed())).await;
        let now = batches(fleet).await?;
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
    fleet.clear().await?;
    Ok(standings)
}

/// The mean batch time between two measurements, in seconds.
fn mean(from: &CountsView, to: &CountsView) -> Option<f64> {
    let batches = to.batches.checked_sub(from.batches).filter(|batches| *batches > 0)?;
    Some((to.batch_seconds - from.batch_seconds) / counter(batches))
}

/// The batches of every job so far.
async fn batches(fleet: &AgentFleet) -> anyhow::Result<BTreeMap<String, CountsView>> {
    // A manager that has just begun does not answer yet.
    let jobs = fleet.status().await.map(|shown| shown.jobs).unwrap_or_default();
    Ok(jobs.into_iter().filter_map(|JobView { job, counts, .. }| Some((job, counts?))).collect())
}

async fn serve(
    ware: &Ware,
    fleet: &AgentFleet,
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
    fleet.serve(&one).await
}
