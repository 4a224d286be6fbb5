//! The allocator over a long time, on a machine where everything comes and goes: `make soak`.
//!
//! 60 real containers live for a minute or two each. The engine is behind a proxy with random faults.
//! Hostile jobs report nonsense, without end, or not at all, and one is restarted all the time. The
//! allocator's memory must stay flat and its CPU time small, a witness must keep the limit that an
//! order has given it, and in the end every limit must be back.
//!
//! `MINUTES` is the length, `SEED` repeats the random choices.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::models::{HostConfig, RestartPolicy, RestartPolicyNameEnum};
use paceline_policy::unit::count;
use paceline_system_tests::{
    Allocator, Cost, FaultyEngine, Job, Limits, Random, TestEnv, image_of, until, until_within,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// Minutes, unless `MINUTES` is set.
const MINUTES: f64 = 60.0;
/// Containers that live at the same time, besides the hostile ones and the witness.
const CONTAINERS: usize = 60;
/// The bounds of a container's life, in seconds.
const LIFE: (u64, u64) = (30, 150);
/// The most containers that are replaced in one second.
const REPLACED: usize = 4;
/// Memory is compared from this time on, in seconds; of a shorter run, from its first third on.
const SETTLED: f64 = 600.0;
/// How far the memory may go up or down from then on, in MiB.
const MAX_MEMORY_CHANGE: f64 = 5.0;
/// The most CPU time, in percent of one core.
const MAX_CPU: f64 = 5.0;
/// How long the witness's limit may be missing, in seconds: its container is looked at from outside
/// while the allocator writes it again.
const MAX_WRONG: u32 = 3;
/// How long limits may take to be restored at the end.
const END_TIMEOUT: Duration = Duration::from_mins(5);
/// The share of the witness, as an order has it.
const SHARE: f64 = 0.25;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(soak())
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> anyhow::Result<T> {
    let Ok(text) = std::env::var(name) else { return Ok(default) };
    text.parse().ok().with_context(|| format!("invalid {name} {text:?}: expected a number"))
}

async fn soak() -> anyhow::Result<()> {
    let (minutes, seed) = (number("MINUTES", MINUTES)?, number("SEED", 1)?);
    let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
    let image = format!("paceline-test/toy-job:{}", std::process::id());
    image_of(&docker, &image, &[env!("CARGO_BIN_EXE_toy-job").as_ref()]).await?;
    let env = TestEnv::new(docker.clone(), &image, "soak")?;
    let found = run(&env, Duration::from_secs_f64(minutes * 60.0), seed).await;
    env.clear().await?;
    let force = bollard::query_parameters::RemoveImageOptionsBuilder::default().force(true);
    docker.remove_image(&image, Some(force.build()), None).await?;
    found
}

/// What is seen while it runs.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The memory when it had settled, and the least and the most since then, in MiB.
    memory: Option<[f64; 3]>,
    /// The CPU time and the moment at which it had settled, in seconds.
    settled: Option<(f64, f64)>,
    /// Percent of one core since then.
    cpu: f64,
    /// Consecutive seconds in which the witness had another limit, and the most of them.
    wrong: u32,
    most_wrong: u32,
}

async fn run(env: &TestEnv, length: Duration, seed: u64) -> anyhow::Result<()> {
    let engine = FaultyEngine::start(&socket(), env.folder(), seed)?;
    let witness = env.start(sleeper("witness")).await?;
    let before = env.limits(&witness).await?;
    for job in hostile() {
        env.start(job).await?;
    }
    let mut churn = Churn::new(env, seed);
    churn.fill().await?;
    let mut command = Allocator::running(env)?;
    command.args(["--policy", "flowcon", "--param", "interval=5", "--listen", "none"]);
    command.args(["--host", &engine.host()]);
    let allocator = Allocator::spawn(command)?;
    // A run that cannot reach its engine at the start ends, as it must.
    allocator.says(&["allocator runs"]).await?;
    engine.fail_at_random();
    pin(env).await.with_context(|| allocator.said())?;
    let wanted = witness_quota(env).await?;
    until("the witness has its limit", || async {
        Ok((quota_of(&env.limits(&witness).await?) == Some(wanted)).then_some(()))
    })
    .await
    .with_context(|| allocator.said())?;
    let began = Instant::now();
    let seen = watch(env, (&witness, wanted), &allocator, (began, length));
    let seen = while_churning(seen, churn).await?;
    let (requests, faults) = engine.requests_and_faults();
    engine.calm_down();
    let log = env.file("allocator.log");
    std::fs::write(&log, allocator.said())?;
    tokio::time::timeout(END_TIMEOUT, allocator.end()).await.context("it does not end")??;
    let mut left = Vec::new();
    for name in env.ids().await? {
        let limits = env.limits(&name).await?;
        let same = limits.ensure_back(&before, cpus(env).await? * 1_000_000_000);
        // A container that is restarting has no control group at the moment.
        if limits.kernel.is_some()
            && let Err(error) = same
        {
            left.push(format!("{name}: {error:#}"));
        }
    }
    report(&seen, (requests, faults), &left)
}

/// The engine's socket.
fn socket() -> PathBuf {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock").into()
}

/// A job that reports ten times a second and does nothing else.
fn sleeper(name: &'static str) -> Job {
    Job {
        name,
        args: vec!["--sleep", "1000000"],
        host: HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() },
        ..Job::default()
    }
}

/// Jobs that harm the allocator as far as they can.
fn hostile() -> Vec<Job> {
    let with = |name, args: &[&'static str]| Job { args: args.to_vec(), ..sleeper(name) };
    let labelled = |name, label, value| Job { labels: vec![(label, value)], ..sleeper(name) };
    let always =
        RestartPolicy { name: Some(RestartPolicyNameEnum::ALWAYS), ..RestartPolicy::default() };
    let mut flapping = with("flapping", &["--steps", "1"]);
    flapping.host.restart_policy = Some(always);
    vec![
        with("huge", &["--answer", "huge"]),
        with("endless", &["--answer", "endless"]),
        with("drip", &["--answer", "drip"]),
        with("garbage", &["--answer", "garbage"]),
        with("silence", &["--answer", "silence"]),
        with("nothing", &["--answer", "nothing"]),
        with("no-number", &["--start", "NaN", "--work", "1000"]),
        flapping,
        labelled("newline", "paceline.job", "a\nERROR paceline: every limit is lost"),
        labelled("long", "paceline.job", "x".repeat(200_000).leak()),
        labelled("elsewhere", "paceline.endpoint", "unix:/proc/self/root/var/run/docker.sock"),
        labelled("no-port", "paceline.endpoint", "0"),
        labelled("heavy", "paceline.weight", "1e308"),
    ]
}

/// Containers that come and go.
struct Churn<'a> {
    env: &'a TestEnv,
    random: Random,
    /// When each ends.
    ends: BTreeMap<String, Instant>,
    started: u64,
}

impl<'a> Churn<'a> {
    fn new(env: &'a TestEnv, seed: u64) -> Self {
        Self { env, random: Random::new(seed ^ 0x5eed), ends: BTreeMap::new(), started: 0 }
    }

    /// Starts containers until all are there, some at a time.
    async fn fill(&mut self) -> anyhow::Result<()> {
        while self.ends.len() < CONTAINERS {
            let (first, rest) = LIFE;
            let new = REPLACED.min(CONTAINERS - self.ends.len());
            let names = (0..new).map(|_| {
                self.started += 1;
                // Leaked: it lives as long as this program.
                let name: &'static str = format!("job-{}", self.started).leak();
                name
            });
            let jobs: Vec<Job> = names.map(sleeper).collect();
            let env = self.env;
            let started =
                futures_util::future::try_join_all(jobs.into_iter().map(|job| env.start(job)));
            for name in started.await? {
                let life = Duration::from_secs(first + self.random.below(rest - first));
                self.ends.insert(name, Instant::now() + life);
            }
        }
        Ok(())
    }

    /// Removes what is due, and starts others.
    async fn turn(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        let due = self.ends.iter().filter(|(_, end)| **end <= now).map(|(name, _)| name.clone());
        for name in due.take(REPLACED).collect::<Vec<_>>() {
            self.env.remove(&name).await?;
            self.ends.remove(&name);
        }
        self.fill().await
    }
}

/// Lets containers come and go until `seen` is done.
async fn while_churning<T>(
    seen: impl Future<Output = anyhow::Result<T>>,
    mut churn: Churn<'_>,
) -> anyhow::Result<T> {
    let turns = async {
        loop {
            churn.turn().await?;
            sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        seen = seen => seen,
        stopped = turns => {
            let error: anyhow::Error = match stopped {
                Ok(never) => never,
                Err(error) => error,
            };
            Err(error.context("the containers cannot come and go"))
        }
    }
}

/// Looks at the allocator and the witness once a second.
async fn watch(
    env: &TestEnv,
    (witness, wanted): (&str, u64),
    allocator: &Allocator,
    (began, length): (Instant, Duration),
) -> anyhow::Result<Seen> {
    let settles = SETTLED.min(length.as_secs_f64() / 3.0);
    let mut seen = Seen::default();
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = 0;
    while began.elapsed() < length {
        seconds.tick().await;
        let process =
            allocator.id().with_context(|| format!("it ended: {}", tail(&allocator.said())))?;
        let (cost, at) = (Cost::for_process(process)?, began.elapsed().as_secs_f64());
        if at >= settles {
            let (cpu, since) = *seen.settled.get_or_insert((cost.cpu_seconds, at));
            let [first, least, most] = seen.memory.unwrap_or([cost.resident; 3]);
            seen.memory = Some([first, least.min(cost.resident), most.max(cost.resident)]);
            seen.cpu = (cost.cpu_seconds - cpu) / (at - since).max(1.0) * 100.0;
        }
        let right = quota_of(&env.limits(witness).await?) == Some(wanted);
        seen.wrong = if right { 0 } else { seen.wrong + 1 };
        seen.most_wrong = seen.most_wrong.max(seen.wrong);
        let minute = began.elapsed().as_secs() / 60;
        if minute > said {
            said = minute;
            say(minute, cost.resident, &seen);
        }
    }
    Ok(seen)
}

async fn pin(env: &TestEnv) -> anyhow::Result<()> {
    let control = Allocator::control(env);
    until_within(END_TIMEOUT, "the witness can be pinned", || async {
        let mut command = Allocator::command(&["pin", "witness", "25%", "--control"])?;
        Ok(command.arg(&control).output().await?.status.success().then_some(()))
    })
    .await
}

async fn cpus(env: &TestEnv) -> anyhow::Result<i64> {
    env.docker().info().await?.ncpu.context("the engine reports its CPUs")
}

/// The witness's quota, in microseconds of a period of 100 ms.
async fn witness_quota(env: &TestEnv) -> anyhow::Result<u64> {
    let cpus = count(usize::try_from(cpus(env).await?)?);
    Ok(format!("{:.0}", SHARE * cpus * 100_000.0).parse()?)
}

fn quota_of(limits: &Limits) -> Option<u64> {
    limits.kernel?.quota
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn say(minute: u64, memory: f64, seen: &Seen) {
    println!(
        "minute {minute:>4}: memory {memory:.1} MiB, CPU {:.2} %, witness wrong for at most {} s",
        seen.cpu, seen.most_wrong
    );
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn report(seen: &Seen, (requests, faults): (u64, u64), left: &[String]) -> anyhow::Result<()> {
    let [first, least, most] = seen.memory.context("it was too short to settle")?;
    let change = (first - least).max(most - first);
    let rows = [
        ("memory", format!("{least:.1} to {most:.1} MiB"), change <= MAX_MEMORY_CHANGE),
        ("CPU", format!("{:.2} % of a core", seen.cpu), seen.cpu <= MAX_CPU),
        (
            "witness",
            format!("another limit for at most {} s", seen.most_wrong),
            seen.most_wrong <= MAX_WRONG,
        ),
        ("limits", format!("{} not back", left.len()), left.is_empty()),
        ("faults", format!("{faults} of {requests} requests"), faults > 0),
    ];
    for (what, found, met) in &rows {
        println!("{what:<8} {found:<40} {}", if *met { "yes" } else { "NO" });
    }
    for one in left {
        println!("  {one}");
    }
    anyhow::ensure!(rows.iter().all(|(.., met)| *met), "a goal is missed");
    Ok(())
}
