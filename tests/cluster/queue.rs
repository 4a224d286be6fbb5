//! KOD2's experiment: ten gangs, one every few seconds, and which of them wait.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline_api::live::snapshot::{GangState, GangView, Snapshot};
use paceline_system_tests::AgentFleet;
use tokio::time::{Instant, sleep};

use crate::machines::{Site, Ware};
use crate::table::{say, table};

/// Jobs of three kinds in turn: parameter servers, fewest and most workers, gradients.
const KINDS: [(u32, u32, u32, u32); 3] = [(1, 2, 4, 60), (1, 3, 4, 80), (2, 3, 3, 60)];
const JOBS: u32 = 10;
/// The time between two submissions.
const EVERY: Duration = Duration::from_secs(4);
/// Seconds after which a waiting job starves: KOD2's default.
const STARVES: f64 = 30.0;
/// If no job has started or ended for this time, the arm is in a deadlock.
const STUCK: Duration = Duration::from_mins(1);
/// The Swarm's capacity in tasks of one CPU: four machines of two CPUs.
const ROOM: f64 = 8.0;

/// The result of one arm.
#[derive(Debug, Default)]
struct Arm {
    /// Seconds from a job's submission to its start and its end.
    started: BTreeMap<String, f64>,
    took: BTreeMap<String, f64>,
    /// CPU time reserved by running jobs, in CPU seconds.
    used: f64,
    seconds: f64,
    stuck: bool,
}

/// Whether all jobs end under KOD2.
pub(crate) async fn run(ware: &Ware) -> anyhow::Result<bool> {
    Site::with(ware, None, async |site| arms(site, ware).await).await
}

async fn arms(site: &Site, ware: &Ware) -> anyhow::Result<bool> {
    let fleet = site.fleet()?;
    let (mut rows, mut good) = (Vec::new(), true);
    for policy in ["kod2", "fifo-gang", "fifo"] {
        let arm = arm(ware, &fleet, policy).await?;
        good &= policy != "kod2" || !arm.stuck && arm.took.len() == usize::try_from(JOBS)?;
        rows.push(row(policy, &arm));
    }
    fleet.close().await?;
    let head =
        ["policy", "ended", "mean completion, s", "mean wait, s", "longest wait, s", "room in use"];
    table(&head, &rows)?;
    say(&format!(
        "of {JOBS} jobs; one that never ended is in no mean; KOD2 lets a job that has waited {STARVES:.0} s \
         go before all others"
    ))?;
    Ok(good)
}

fn row(policy: &str, arm: &Arm) -> Vec<String> {
    let mean = |of: &BTreeMap<String, f64>| {
        of.values().sum::<f64>() / f64::from(u32::try_from(of.len()).unwrap_or(u32::MAX))
    };
    let longest = arm.started.values().copied().fold(0.0, f64::max);
    let end = if arm.stuck { ", then deadlock" } else { "" };
    vec![
        policy.to_owned(),
        format!("{}{end}", arm.took.len()),
        format!("{:.1}", mean(&arm.took)),
        format!("{:.1}", mean(&arm.started)),
        format!("{longest:.1}"),
        format!("{:.0} %", 100.0 * arm.used / (ROOM * arm.seconds)),
    ]
}

async fn arm(ware: &Ware, fleet: &AgentFleet, policy: &str) -> anyhow::Result<Arm> {
    let manager = fleet.manager(&["--policy", policy])?;
    let began = Instant::now();
    let mut submitted: BTreeMap<String, Instant> = BTreeMap::new();
    let (mut arm, mut looked, mut news) = (Arm::default(), Instant::now(), Instant::now());
    for number in 0.. {
        if number < JOBS {
            let name = format!("job-{number}");
            fleet.submit_gang(&name, &text(ware, &name, number)).await?;
            submitted.insert(name, Instant::now());
        }
        let until = Instant::now() + EVERY;
        while Instant::now() < until {
            let shown = fleet.status().await?;
            arm.used += taken(&shown) * looked.elapsed().as_secs_f64();
            looked = Instant::now();
            if arm.note(&shown, &submitted)? {
                news = Instant::now();
            }
            sleep(Duration::from_millis(500)).await;
        }
        arm.stuck = number >= JOBS && news.elapsed() > STUCK;
        if arm.took.len() == usize::try_from(JOBS)? || arm.stuck {
            break;
        }
    }
    arm.seconds = began.elapsed().as_secs_f64();
    for name in submitted.keys() {
        fleet.withdraw_gang(name).await?;
    }
    fleet.until_idle().await?;
    manager.end().await?;
    Ok(arm)
}

impl Arm {
    /// Records a snapshot. Returns whether a job has started or ended.
    fn note(
        &mut self,
        shown: &Snapshot,
        submitted: &BTreeMap<String, Instant>,
    ) -> anyhow::Result<bool> {
        let before = (self.started.len(), self.took.len());
        for GangView { job, state, trouble, .. } in &shown.gangs {
            let Some(at) = submitted.get(job) else { continue };
            let seconds = at.elapsed().as_secs_f64();
            match state {
                GangState::Failed => anyhow::bail!("{job}: {trouble:?}"),
                GangState::Running => drop(self.started.entry(job.clone()).or_insert(seconds)),
                GangState::Finished => {
                    self.started.entry(job.clone()).or_insert(seconds);
                    self.took.entry(job.clone()).or_insert(seconds);
                }
                GangState::Incomplete | GangState::Waiting => {}
            }
        }
        Ok(before != (self.started.len(), self.took.len()))
    }
}

/// The CPUs reserved by running jobs.
fn taken(shown: &Snapshot) -> f64 {
    let running = shown.gangs.iter().filter(|gang| gang.state == GangState::Running);
    running.map(|gang| f64::from(gang.ps.placed + gang.workers.placed)).sum()
}

fn text(ware: &Ware, name: &str, number: u32) -> String {
    let kinds = u32::try_from(KINDS.len()).unwrap_or(1);
    let kind = usize::try_from(number % kinds).unwrap_or(0);
    let (servers, min, max, steps) = KINDS.get(kind).copied().unwrap_or_default();
    format!(
        r#"name = "{name}"
image = "{}"
env = {{ PACELINE_DATA = "/data" }}
mounts = ["{}:/data:ro"]

[ps]
count = {servers}
cpus = 1
args = ["mnist", "--role", "ps", "--part", "{{index}}/{{count}}", "--steps", "{steps}"]

[worker]
min = {min}
max = {max}
cpus = 1
args = ["mnist", "--role", "worker", "--servers", "{{servers}}", "--seed", "{{number}}", "--threads", "1"]
"#,
        ware.image,
        ware.data.display()
    )
}
