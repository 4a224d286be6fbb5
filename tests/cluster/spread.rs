//! Eight VAE and MNIST jobs on four machines of half a CPU each: spread by the engine, which never
//! moves a job, and under `SpeCon`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bollard::models::TaskState;
use paceline_system_tests::{AgentFleet, OneTask};
use tokio::time::{Instant, sleep};

use crate::machines::{Site, Ware, tasks};
use crate::table::{say, table};

/// CPUs of a machine.
const CPUS: f64 = 0.5;
/// The time between two submissions.
const EVERY: Duration = Duration::from_secs(3);
/// Steps of each kind of job: a VAE converges early, an MNIST job is short.
const STEPS: [(&str, &str, u64); 2] = [("vae", "2500", 2500), ("mnist", "200", 200)];
/// The longest time all jobs may take.
const JOBS_TIMEOUT: Duration = Duration::from_mins(10);
/// The label by which a moved job's service names its first service.
const FIRST: &str = "paceline.service";

/// The result of one arm.
struct Arm {
    /// Seconds from a job's submission to its end.
    took: BTreeMap<String, f64>,
    moves: u64,
    /// Seconds without progress because of moves.
    lost: f64,
    /// The losses of all steps, by job.
    losses: BTreeMap<String, String>,
}

/// Whether every job ended once, with the same losses in both arms.
pub(crate) async fn run(ware: &Ware) -> anyhow::Result<bool> {
    Site::with(ware, Some(CPUS), async |site| both(site, ware).await).await
}

async fn both(site: &Site, ware: &Ware) -> anyhow::Result<bool> {
    site.show_shares(&ware.image).await?;
    let fleet = site.fleet()?;
    let plain = arm(site, ware, &fleet, "none").await?;
    let moved = arm(site, ware, &fleet, "specon").await?;
    fleet.close().await?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut same = true;
    for (job, took) in &plain.took {
        let other = moved.took.get(job).copied().unwrap_or(f64::NAN);
        let equal = plain.losses.get(job) == moved.losses.get(job);
        same &= equal;
        let verdict = if equal { "equal" } else { "DIFFERENT" };
        rows.push(vec![
            job.clone(),
            format!("{took:.1}"),
            format!("{other:.1}"),
            verdict.to_owned(),
        ]);
    }
    let mean = |arm: &Arm| {
        arm.took.values().sum::<f64>() / f64::from(u32::try_from(arm.took.len()).unwrap_or(1))
    };
    rows.push(vec![
        "mean".to_owned(),
        format!("{:.1}", mean(&plain)),
        format!("{:.1}", mean(&moved)),
        String::new(),
    ]);
    table(&["completion, s", "spreading", "SpeCon", "losses"], &rows)?;
    say(&format!(
        "SpeCon moved {} jobs, {:.1} s without progress in all; every job ended once",
        moved.moves, moved.lost
    ))?;
    Ok(same && moved.moves > 0)
}

async fn arm(site: &Site, ware: &Ware, fleet: &AgentFleet, policy: &str) -> anyhow::Result<Arm> {
    let quick = ["--policy", policy, "--param", "interval=5"];
    let words = if policy == "none" { quick.get(..2).unwrap_or_default() } else { &quick[..] };
    let manager = fleet.manager(words)?;
    let folder = site.shared(policy)?;
    let mut began: BTreeMap<String, Instant> = BTreeMap::new();
    for number in 1..=4 {
        for (kind, steps, _) in STEPS {
            let name = format!("{kind}-{number}");
            let own = site.shared(&format!("{policy}/{name}"))?;
            submit(ware, fleet, (&name, kind, steps, &number.to_string()), &own).await?;
            began.insert(name, Instant::now());
            sleep(EVERY).await;
        }
    }
    let took = watch(fleet, &began).await?;
    let cost = fleet.status().await?.cost;
    manager.end().await?;
    fleet.clear().await?;
    let mut losses = BTreeMap::new();
    for job in began.keys() {
        let text = std::fs::read_to_string(folder.join(job).join("losses"))?;
        let kind = STEPS.iter().find(|(kind, ..)| job.starts_with(kind));
        let steps = kind.map_or(0, |(.., steps)| *steps);
        let numbers = text.lines().filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
        anyhow::ensure!(numbers.eq(1..=steps), "{job}: not every step was made once");
        losses.insert(job.clone(), text);
    }
    Ok(Arm { took, moves: cost.moves, lost: cost.move_seconds, losses })
}

/// Makes the service of a job that can be moved.
async fn submit(
    ware: &Ware,
    fleet: &AgentFleet,
    (name, kind, steps, seed): (&str, &str, &str, &str),
    folder: &Path,
) -> anyhow::Result<()> {
    let args = [
        kind,
        "--threads",
        "1",
        "--seed",
        seed,
        "--steps",
        steps,
        "--resume",
        "--checkpoints",
        "/own",
        "--losses",
        "/own/losses",
    ];
    let one = OneTask {
        name,
        image: &ware.image,
        args: &args,
        env: &["PACELINE_DATA=/data"],
        labels: &[("paceline.checkpoint", "/own"), ("paceline.job", name)],
        mounts: &[(&ware.data, "/data"), (folder, "/own")],
        place: None,
    };
    fleet.serve(&one).await
}

/// Waits until every job has finished; returns how long each took.
async fn watch(
    fleet: &AgentFleet,
    began: &BTreeMap<String, Instant>,
) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut took = BTreeMap::new();
    let from = Instant::now();
    while took.len() < began.len() {
        anyhow::ensure!(from.elapsed() < JOBS_TIMEOUT, "only {:?} have ended", took.keys());
        for task in tasks(fleet).await? {
            let labels = task.spec.labels.unwrap_or_default();
            let name = labels.get(FIRST).cloned().or(task.spec.name).unwrap_or_default();
            let failed = [TaskState::FAILED, TaskState::REJECTED].contains(&task.state);
            anyhow::ensure!(!failed, "{name}: {} {}", task.state, task.error);
            if let Some(began) = began.get(&name).filter(|_| task.state == TaskState::COMPLETE) {
                took.entry(name).or_insert_with(|| began.elapsed().as_secs_f64());
            }
        }
        sleep(Duration::from_millis(300)).await;
    }
    Ok(took)
}
