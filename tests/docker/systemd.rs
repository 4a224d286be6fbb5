//! Engines that leave control groups to systemd. It keeps a limit of its own for each scope, and writes it
//! into the group again after a change. Each test does the same with a container that is not managed:
//! in the end both must have the same limits.

use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::RestartContainerOptionsBuilder;
use paceline_api::audit::{Entry, Record, read};
use paceline_system_tests::{Allocator, Job, Limits, TestEnv, until};

use crate::faults::others::decisions;
use crate::flowcon::{all_cpus, cut_job, until_cut};
use crate::parent::systemctl;

/// What happens to a container.
#[derive(Clone, Copy)]
enum Event {
    Reload,
    Property,
    Restart,
}

impl Event {
    async fn happen(self, env: &TestEnv, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Reload => systemctl(&["daemon-reload"]).map(drop),
            Self::Property => {
                let scope = format!("docker-{}.scope", env.inspect(name).await?.id);
                systemctl(&["set-property", &scope, "CPUQuota=137%"]).map(drop)
            }
            Self::Restart => {
                let now = RestartContainerOptionsBuilder::default().t(0).build();
                Ok(env.docker().restart_container(name, Some(now)).await?)
            }
        }
    }
}

/// How many entries of the audit log are like this.
fn entries(env: &TestEnv, like: impl Fn(&Entry) -> bool) -> anyhow::Result<usize> {
    let records = read::last(&Allocator::state(env), usize::MAX)?;
    Ok(records.iter().filter(|record: &&Record| like(&record.entry)).count())
}

fn is_drift(entry: &Entry) -> bool {
    matches!(entry, Entry::Drifted { .. })
}

/// Lets `events` happen to a job that is limited, and to its twin that is not managed.
async fn outlived(env: &TestEnv, actuator: &str, events: &[Event]) -> anyhow::Result<()> {
    // It only sleeps.
    let args = vec!["--hold", "/never"];
    let twin = env.start(Job { name: "twin", args, stranger: true, ..Job::default() }).await?;
    let created = env.limits(&twin).await?;
    let (flat, allocator) = cut_job(env, &["--actuator", actuator]).await?;
    for event in events {
        let drifts = entries(env, is_drift)?;
        let restored = entries(env, |entry| matches!(entry, Entry::Restored { .. }))?;
        event.happen(env, &flat).await?;
        event.happen(env, &twin).await?;
        if matches!(event, Event::Restart) {
            until("the limit of its last life is put back", || async {
                let now = entries(env, |entry| matches!(entry, Entry::Restored { .. }))?;
                Ok((now > restored).then_some(()))
            })
            .await?;
        } else {
            // Every sample sees whether a limit is right.
            let now = decisions(env)?;
            until("there are more samples", || async {
                Ok((decisions(env)? >= now + 3).then_some(()))
            })
            .await?;
            let answers = entries(env, is_drift)? - drifts;
            anyhow::ensure!(answers <= 1, "{answers} samples: {}", allocator.said());
        }
        until_cut(env, &flat).await.with_context(|| allocator.said())?;
    }
    let said = allocator.said();
    allocator.end().await?;
    if actuator == "engine" && !events.iter().any(|event| matches!(event, Event::Restart)) {
        // The engine does not know a property of its scope. What it knows is put back.
        return env.limits(&flat).await?.ensure_back(&created, all_cpus(env).await?).context(said);
    }
    ensure_alike(env, &flat, &twin, actuator).await.with_context(|| said.clone())?;
    if actuator == "engine" && events.iter().any(|event| matches!(event, Event::Property)) {
        // The scope keeps the engine's limit as its property.
        return Ok(());
    }
    systemctl(&["daemon-reload"])?;
    ensure_alike(env, &flat, &twin, actuator).await.context("after another reload").context(said)
}

/// Fails unless the managed container has the limits of its twin.
async fn ensure_alike(env: &TestEnv, flat: &str, twin: &str, actuator: &str) -> anyhow::Result<()> {
    let (now, wanted): (Limits, Limits) = (env.limits(flat).await?, env.limits(twin).await?);
    now.ensure_back(&wanted, all_cpus(env).await?)?;
    anyhow::ensure!(actuator == "engine" || now == wanted, "{now:?}, and not {wanted:?}");
    Ok(())
}

async fn with_each_actuator(env: &TestEnv, events: &[Event]) -> anyhow::Result<()> {
    for actuator in ["cgroup", "engine", "auto"] {
        let outcome = outlived(env, actuator, events).await;
        let cleared = env.clear().await.context("clear");
        outcome.and(cleared).with_context(|| format!("--actuator {actuator}"))?;
    }
    Ok(())
}

pub(crate) async fn limits_outlive_reloads_and_a_restart(env: Arc<TestEnv>) -> anyhow::Result<()> {
    with_each_actuator(&env, &[Event::Reload, Event::Restart, Event::Reload]).await
}

pub(crate) async fn property_of_a_scope_is_overruled_and_restored(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    with_each_actuator(&env, &[Event::Property, Event::Reload]).await
}

pub(crate) async fn property_of_a_scope_ends_with_its_restart(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    with_each_actuator(&env, &[Event::Property, Event::Restart]).await
}
