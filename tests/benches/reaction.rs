//! Measures the time from a job's loss becoming acceptable to the new quota in its control group,
//! beside a bare `docker update` in the same run: `make bench-reaction`.
//!
//! Jobs start one after another under a running TRADL, each beside a job that never becomes
//! acceptable. The job's endpoint reports when it reached its target. The control group's file,
//! read two thousand times a second, shows when the quota changed. The reading thread has a
//! real-time priority: otherwise its own wait for a CPU, up to 2.5 ms here, would count as the
//! allocator's.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::Docker;
use bollard::models::ContainerUpdateBody;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use paceline_api::clock::Clock;
use paceline_api::labels::Endpoint;
use paceline_cgroup::{Cgroup, Quota};
use paceline_node::endpoint::{self, Reach};
use paceline_system_tests::{
    Allocator, BUSY, Job, TestEnv, image_of, quantiles, quota_change, until,
};

/// Jobs measured for each actuator, unless the variable `SAMPLES` is set.
const SAMPLES: usize = 50;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
        let image = format!("paceline-test/toy-job:{}", std::process::id());
        image_of(&docker, &image, &[env!("CARGO_BIN_EXE_toy-job").as_ref()]).await?;
        let mut outcome = Ok(());
        for actuator in ["engine", "cgroup", "auto"] {
            let env = Arc::new(TestEnv::new(docker.clone(), &image, actuator)?);
            outcome = outcome.and(measure(&env, actuator).await);
            env.clear().await?;
        }
        let force = bollard::query_parameters::RemoveImageOptionsBuilder::default().force(true);
        docker.remove_image(&image, Some(force.build()), None).await?;
        outcome
    })
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
async fn measure(env: &TestEnv, actuator: &str) -> anyhow::Result<()> {
    let never = Job {
        name: "never",
        env: vec!["PACELINE_ACCEPTABLE=0".to_owned()],
        args: vec!["--burners", "1"],
        ..Job::default()
    };
    env.start(never).await?;
    // Between two jobs the machine is briefly idle, and TRADL would lift all caps: with alpha 0 it
    // never does.
    let policy = ["--policy", "tradl", "--param", "alpha=0"];
    let words = [&policy[..], &["--enforcement", "quota", "--actuator", actuator]].concat();
    let allocator = Allocator::run(env, &words)?;
    allocator.says(&["job appeared", "never"]).await?;
    let (mut reactions, mut updates) = (Vec::new(), Vec::new());
    let asked = std::env::var("SAMPLES").ok().and_then(|samples| samples.parse().ok());
    for _ in 0..asked.unwrap_or(SAMPLES) {
        reactions.push(reaction(env).await.with_context(|| allocator.said())?);
        updates.push(bare_update(env).await?);
    }
    allocator.end().await?;
    let ([half, most], [bare_half, bare_most]) = (quantiles(reactions), quantiles(updates));
    println!(
        "{actuator:>6}: reaction p50 {half:6.1} ms, p99 {most:6.1} ms; bare docker update p50 \
         {bare_half:5.1} ms, p99 {bare_most:5.1} ms; ratio of p99 {:.2}",
        most / bare_most
    );
    Ok(())
}

/// One job's reaction, in milliseconds.
async fn reaction(env: &TestEnv) -> anyhow::Result<f64> {
    let job = Job {
        name: "crossing",
        args: BUSY.to_vec(),
        // Set by the environment and not by a label, so that the endpoint reports when it was reached.
        env: vec!["PACELINE_ACCEPTABLE=1".to_owned()],
        ..Job::default()
    };
    let name = env.start(job).await?;
    let container = env.inspect(&name).await?;
    let cgroup = Cgroup::for_process(Path::new("/proc"), container.pid.context("it runs")?)?;
    let before = cgroup.quota()?;
    let changed = quota_change(cgroup, before).await?;
    let routes = endpoint::routes(Path::new("/proc"), &container, &Endpoint::Port(7223));
    let reach = Reach::new(Path::new("/proc"), &container);
    let (_, progress) = endpoint::read(&reach, &routes).await?;
    let reached = progress.reached.acceptable_at.context("cut before it was acceptable")?;
    let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    env.docker().remove_container(&name, Some(force)).await?;
    Ok((changed - reached) * 1000.0)
}

/// One `docker update` of a container that the allocator does not know, from the request to the
/// quota in the kernel, in milliseconds.
async fn bare_update(env: &TestEnv) -> anyhow::Result<f64> {
    let job = Job { name: "bare", args: BUSY.to_vec(), stranger: true, ..Job::default() };
    let name = env.start(job).await?;
    let container = env.inspect(&name).await?;
    let cgroup = Cgroup::for_process(Path::new("/proc"), container.pid.context("it runs")?)?;
    let body = ContainerUpdateBody { nano_cpus: Some(500_000_000), ..Default::default() };
    let clock = Clock::start();
    env.docker().update_container(&name, body).await?;
    let half = Quota { quota: Some(50_000), period: 100_000 };
    until("the quota is there", || async { Ok((cgroup.quota()? == half).then_some(())) }).await?;
    let taken = clock.now().seconds();
    let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    env.docker().remove_container(&name, Some(force)).await?;
    Ok(taken * 1000.0)
}
