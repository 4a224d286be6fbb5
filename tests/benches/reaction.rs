//! From a job's loss that reaches what is acceptable to the control group that holds the new quota,
//! beside a bare `docker update` in the same run: `make bench-reaction`.
//!
//! Jobs come one after another to a TRADL that runs, each beside one that never is acceptable. A
//! job's own endpoint says when it reached its target; the control group's file, read two thousand
//! times a second, when the quota was there. The thread that reads it has a real-time priority:
//! behind jobs that never pause, its own wait for a CPU would count as the allocator's, which is up to
//! 2.5 ms here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::models::ContainerUpdateBody;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use paceline_allocator::clock::{Clock, unix_seconds};
use paceline_allocator::labels::Endpoint;
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_allocator::observe::endpoint;
use paceline_system_tests::{Allocator, Bed, Job, image_of, until};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::sync::oneshot;

/// So many jobs for each actuator, unless `SAMPLES` says otherwise.
const SAMPLES: usize = 50;
/// Seconds until a job must have been cut.
const PATIENCE: f64 = 60.0;
/// Between two looks at a quota.
const PAUSE: Duration = Duration::from_micros(500);

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
        let image = format!("paceline-test/toy-job:{}", std::process::id());
        image_of(&docker, &image, &[env!("CARGO_BIN_EXE_toy-job").as_ref()]).await?;
        let mut outcome = Ok(());
        for means in ["engine", "cgroup"] {
            let bed = Arc::new(Bed::new(docker.clone(), &image, means)?);
            outcome = outcome.and(measure(&bed, means).await);
            bed.clear().await?;
        }
        let force = bollard::query_parameters::RemoveImageOptionsBuilder::default().force(true);
        docker.remove_image(&image, Some(force.build()), None).await?;
        outcome
    })
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
async fn measure(bed: &Bed, means: &str) -> anyhow::Result<()> {
    let never = Job {
        name: "never",
        env: vec!["PACELINE_ACCEPTABLE=0".to_owned()],
        args: vec!["--burners", "1"],
        ..Job::default()
    };
    bed.start(never).await?;
    // Between two jobs the machine has moments of rest, in which TRADL would lift all caps: here it
    // never does.
    let policy = ["--policy", "tradl", "--param", "alpha=0"];
    let words = [&policy[..], &["--enforcement", "quota", "--actuator", means]].concat();
    let allocator = Allocator::run(bed, &words)?;
    allocator.says(&["job appeared", "never"]).await?;
    let (mut reactions, mut updates) = (Vec::new(), Vec::new());
    let asked = std::env::var("SAMPLES").ok().and_then(|samples| samples.parse().ok());
    for _ in 0..asked.unwrap_or(SAMPLES) {
        reactions.push(reaction(bed).await.with_context(|| allocator.said())?);
        updates.push(bare_update(bed).await?);
    }
    allocator.end().await?;
    let ([half, most], [bare_half, bare_most]) = (quantiles(reactions), quantiles(updates));
    println!(
        "{means:>6}: reaction p50 {half:6.1} ms, p99 {most:6.1} ms; bare docker update p50 \
         {bare_half:5.1} ms, p99 {bare_most:5.1} ms; ratio of p99 {:.2}",
        most / bare_most
    );
    Ok(())
}

/// One job's reaction, in milliseconds.
async fn reaction(bed: &Bed) -> anyhow::Result<f64> {
    let job = Job {
        name: "crossing",
        args: vec!["--half-life", "200", "--burners", "1"],
        // Its own word, and not a label's: the endpoint is to say when it was reached.
        env: vec!["PACELINE_ACCEPTABLE=1".to_owned()],
        ..Job::default()
    };
    let name = bed.start(job).await?;
    let container = bed.inspect(&name).await?;
    let cgroup = Cgroup::of(Path::new("/proc"), container.pid.context("it runs")?)?;
    let before = cgroup.quota()?;
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || tell.send(change(&cgroup, before)));
    let changed = told.await??;
    let ways = endpoint::ways(Path::new("/proc"), &container, &Endpoint::Port(7223));
    let (_, progress) = endpoint::read(Path::new("/proc"), &ways).await?;
    let reached = progress.reached.acceptable_at.context("cut before it was acceptable")?;
    let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    bed.docker().remove_container(&name, Some(force)).await?;
    Ok((changed - reached) * 1000.0)
}

/// When the quota was no longer what it was `before`, in Unix seconds.
#[expect(clippy::disallowed_methods, reason = "no task of a runtime, whose timers are too coarse")]
fn change(cgroup: &Cgroup, before: Quota) -> anyhow::Result<f64> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).map_err(
        |error| anyhow::anyhow!("only root may observe at a real-time priority: {error}"),
    )?;
    let began = Clock::start();
    while cgroup.quota()? == before {
        anyhow::ensure!(began.now().seconds() < PATIENCE, "the job is never cut");
        std::thread::sleep(PAUSE);
    }
    Ok(unix_seconds())
}

/// One `docker update` of a container that the allocator does not know, from the request to the
/// quota in the kernel, in milliseconds.
async fn bare_update(bed: &Bed) -> anyhow::Result<f64> {
    let job = Job { name: "bare", stranger: true, ..Job::default() };
    let name = bed.start(job).await?;
    let container = bed.inspect(&name).await?;
    let cgroup = Cgroup::of(Path::new("/proc"), container.pid.context("it runs")?)?;
    let body = ContainerUpdateBody { nano_cpus: Some(500_000_000), ..Default::default() };
    let clock = Clock::start();
    bed.docker().update_container(&name, body).await?;
    let half = Quota { quota: Some(50_000), period: 100_000 };
    until("the quota is there", || async { Ok((cgroup.quota()? == half).then_some(())) }).await?;
    let taken = clock.now().seconds();
    let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    bed.docker().remove_container(&name, Some(force)).await?;
    Ok(taken * 1000.0)
}

/// The middle and the 99th of a hundred.
fn quantiles(mut samples: Vec<f64>) -> [f64; 2] {
    samples.sort_by(f64::total_cmp);
    let at = |of: usize| samples.get((samples.len() * of).div_ceil(100).saturating_sub(1));
    [50, 99].map(|of| at(of).copied().unwrap_or(f64::NAN))
}
