//! Hundreds of containers, started as fast as the engine can.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use paceline_api::audit::{Entry, read};
use paceline_system_tests::{Allocator, Job, Limits, TestEnv, until_within};

use super::{all_limits, ensure_back};
use crate::flowcon::all_cpus;

/// Number of containers.
const COUNT: usize = 200;
/// Those of them that are to be limited.
const TO_LIMIT: usize = 20;
/// The longest wait for two hundred endpoints and their engine, on a machine with other work.
const LOAD_TIMEOUT: Duration = Duration::from_mins(4);

/// A job that sleeps, at a loss of 4. It needs no network.
fn sleeper(acceptable: &'static str) -> Job {
    Job {
        args: vec!["--sleep", "100000"],
        labels: vec![("paceline.acceptable", acceptable), ("paceline.min-cpus", "0.1")],
        host: HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() },
        ..Job::default()
    }
}

pub(crate) async fn two_hundred_containers_at_once_are_all_seen_and_all_put_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let names: Vec<String> = (0..COUNT).map(|number| env.name(&format!("load-{number}"))).collect();
    let (cut, free) = names.split_at(TO_LIMIT);
    // With alpha 0, TRADL caps acceptable jobs beside others however busy the machine is: here at
    // the least that a label allows, a tenth of a CPU.
    let words = ["--policy", "tradl", "--param", "alpha=0", "--param", "interval=2"];
    let allocator = Allocator::run(&env, &[&words[..], &["--enforcement", "quota"]].concat())?;
    allocator.says(&["allocator runs"]).await?;
    let [acceptable, other] = ["5", "1"].map(sleeper);
    tokio::try_join!(env.start_at_once(cut, &acceptable), env.start_at_once(free, &other))?;
    until_within(LOAD_TIMEOUT, "all are managed", || async {
        Ok((appeared(&env)? == COUNT).then_some(()))
    })
    .await?;
    // A job that was cut while there were few may be so near to that that no write is worth it: within
    // a hundredth of the machine (`MIN_CHANGE`).
    let about_a_tenth = 10_000..10_000 + u64::try_from(all_cpus(&env).await? / 1_000_000)?;
    let is_cut = |limits: &Limits| {
        let quota = limits.kernel.and_then(|kernel| kernel.quota);
        quota.is_some_and(|quota| about_a_tenth.contains(&quota))
    };
    until_within(LOAD_TIMEOUT, "those that are acceptable are cut", || async {
        Ok(all_limits(&env, cut).await?.iter().all(is_cut).then_some(()))
    })
    .await?;
    let unlimited = |limits: &Limits| limits.kernel.is_some_and(|kernel| kernel.quota.is_none());
    let others = all_limits(&env, free).await?;
    anyhow::ensure!(others.iter().all(unlimited), "others were limited, too");
    allocator.end().await?;
    // All were created alike: those that were never written to show what all had.
    let untouched = others.first().copied().context("there are others")?;
    ensure_back(&env, &names, &vec![untouched; COUNT]).await
}

/// How many jobs have appeared, from the audit log.
fn appeared(env: &TestEnv) -> anyhow::Result<usize> {
    let entries = read::last(&Allocator::state(env), usize::MAX)?;
    Ok(entries.iter().filter(|one| matches!(one.entry, Entry::Appeared { .. })).count())
}
