//! Measures what the allocator costs beside many jobs, and whether it still samples each of them
//! every second: `make bench-scale`. Fails when a goal is missed.
//!
//! It runs once beside 60 real containers that report ten times a second and do nothing else. It
//! runs again beside 1,000 simulated ones, with a fake engine (see `Load`).

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use futures_util::{StreamExt, TryStreamExt};
use paceline_api::clock::{Clock, unix_seconds};
use paceline_api::samples::Sample;
use paceline_policy::Moment;
use paceline_system_tests::{Allocator, Cost, Job, Load, TestEnv, image_of, json_lines, until};

/// Seconds that are measured, unless the variable `SAMPLES` is set …
const SAMPLES: u32 = 60;
/// … after all jobs are managed and the first decisions have been made.
const SETTLE: Duration = Duration::from_secs(15);
/// How many containers are started at once.
const CONCURRENCY: usize = 4;

/// What a run must reach, and beside how many containers.
#[derive(Clone, Copy, Debug)]
struct Goal {
    containers: u32,
    /// Percent of one core.
    cpu: f64,
    /// MiB.
    memory: Option<f64>,
}

const REAL: Goal = Goal { containers: 60, cpu: 3.0, memory: Some(40.0) };
const SIMULATED: Goal = Goal { containers: 1000, cpu: 25.0, memory: None };

/// What was measured.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Percent of one core.
    cpu: f64,
    /// The most at one time, in MiB.
    memory: f64,
    looks: usize,
    /// Seconds in which no sample began although one was due.
    missed: usize,
    /// The longest time from the end of one sample to the end of the next, in seconds.
    longest_gap: f64,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Either can run alone: `cargo bench … --bench scale -- simulated`.
        let words: Vec<String> =
            std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
        let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
        let mut rows = Vec::new();
        if wanted("real") {
            rows.push(("real", REAL, beside_real_ones(REAL).await?));
        }
        if wanted("simulated") {
            rows.push(("simulated", SIMULATED, beside_simulated_ones(SIMULATED).await?));
        }
        print(&rows);
        let missed = rows.iter().any(|(_, goal, figures)| !goal.is_met(figures));
        anyhow::ensure!(!missed, "a goal is missed");
        Ok(())
    })
}

async fn beside_real_ones(goal: Goal) -> anyhow::Result<Figures> {
    let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
    let image = format!("paceline-test/toy-job:{}", std::process::id());
    image_of(&docker, &image, &[env!("CARGO_BIN_EXE_toy-job").as_ref()]).await?;
    let env = TestEnv::new(docker.clone(), &image, "scale")?;
    let figures = beside_jobs_of(&env, goal).await;
    env.clear().await?;
    let force = bollard::query_parameters::RemoveImageOptionsBuilder::default().force(true);
    docker.remove_image(&image, Some(force.build()), None).await?;
    figures
}

async fn beside_jobs_of(env: &TestEnv, goal: Goal) -> anyhow::Result<Figures> {
    let job = |number: u32| Job {
        // Leaked: it lives as long as this program.
        name: format!("job-{number}").leak(),
        args: vec!["--sleep", "100000"],
        ..Job::default()
    };
    let starts =
        futures_util::stream::iter(0..goal.containers).map(|number| env.start(job(number)));
    starts.buffer_unordered(CONCURRENCY).try_collect::<Vec<_>>().await?;
    let words = ["--with-label".to_owned(), env.label()];
    measure(goal, env.folder(), &words).await
}

async fn beside_simulated_ones(goal: Goal) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir()?;
    let load = Load::start(folder.path(), goal.containers).await?;
    measure(goal, folder.path(), &["--host".to_owned(), load.host()]).await
}

/// Runs the allocator with everything that it does by default, and `words`.
async fn measure(goal: Goal, folder: &Path, words: &[String]) -> anyhow::Result<Figures> {
    let samples = folder.join("samples.jsonl");
    let mut command = Allocator::command(&["run", "--policy", "flowcon", "--listen"])?;
    command.arg("127.0.0.1:0").arg("--state-dir").arg(folder.join("state"));
    command.arg("--control").arg(folder.join("control.sock"));
    command.arg("--samples").arg(&samples).args(words);
    let allocator = Allocator::spawn(command)?;
    let appeared = || allocator.said().matches("job appeared").count();
    let all = usize::try_from(goal.containers)?;
    let managed =
        until("every job is managed", || async { Ok((appeared() >= all).then_some(())) }).await;
    managed.with_context(|| format!("{} of {all} are; {}", appeared(), allocator.said()))?;
    tokio::time::sleep(SETTLE).await;
    let process = allocator.id()?;
    let asked = std::env::var("SAMPLES").ok().and_then(|samples| samples.parse().ok());
    let seconds = asked.unwrap_or(SAMPLES);
    let (clock, began, before) = (Clock::start(), unix_seconds(), Cost::for_process(process)?);
    let mut memory = before.resident;
    for second in 1..=seconds {
        let second = Moment::from_seconds(f64::from(second));
        tokio::time::sleep_until(clock.instant(second)).await;
        memory = memory.max(Cost::for_process(process)?.resident);
    }
    let (lasted, after) = (clock.now().seconds(), Cost::for_process(process)?);
    let cpu = (after.cpu_seconds - before.cpu_seconds) / lasted * 100.0;
    // The last second's sample may be about to begin.
    tokio::time::sleep(Duration::from_secs(3)).await;
    allocator.end().await?;
    let looks = looks(&samples, began, seconds)?;
    let at: BTreeSet<String> = looks.iter().map(|look| look.t.floor().to_string()).collect();
    let gaps = looks.windows(2).filter_map(|two| Some(two.last()?.unix - two.first()?.unix));
    Ok(Figures {
        cpu,
        memory,
        looks: looks.len(),
        missed: usize::try_from(seconds)?.saturating_sub(at.len()),
        longest_gap: gaps.fold(0.0, f64::max),
    })
}

/// The samples of `seconds` seconds of the run, from the first one that ended after `began`.
fn looks(samples: &Path, began: f64, seconds: u32) -> anyhow::Result<Vec<Sample>> {
    let looks = json_lines(samples)?.into_iter().map(serde_json::from_value::<Sample>);
    let mut looks: Vec<Sample> = looks.collect::<Result<_, _>>()?;
    looks.retain(|look| look.unix >= began);
    let first = looks.first().context("it never looks")?.t.floor();
    looks.retain(|look| look.t < first + f64::from(seconds));
    Ok(looks)
}

impl Goal {
    fn is_met(&self, figures: &Figures) -> bool {
        figures.cpu <= self.cpu
            && self.memory.is_none_or(|most| figures.memory <= most)
            && figures.missed == 0
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn print(rows: &[(&str, Goal, Figures)]) {
    println!(
        "{:>10} {:>10} {:>12} {:>9} {:>6} {:>7} {:>12}  {:<28} ok",
        "", "containers", "CPU % of 1", "RSS MiB", "looks", "missed", "longest gap", "goal"
    );
    for (name, goal, figures) in rows {
        let memory = goal.memory.map(|most| format!(", {most} MiB")).unwrap_or_default();
        println!(
            "{name:>10} {:>10} {:>12.2} {:>9.1} {:>6} {:>7} {:>10.2} s  {:<28} {}",
            goal.containers,
            figures.cpu,
            figures.memory,
            figures.looks,
            figures.missed,
            figures.longest_gap,
            format!("{} %{memory}, none missed", goal.cpu),
            if goal.is_met(figures) { "yes" } else { "NO" },
        );
    }
}
