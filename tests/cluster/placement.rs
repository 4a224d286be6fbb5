//! DLTAP's experiment: two parameter servers and three workers on three machines, and the bytes
//! sent from one machine to another in each layout.

use std::time::Duration;

use anyhow::Context;
use paceline_api::live::snapshot::{GangState, GangView};
use paceline_policy::unit::counter;
use paceline_system_tests::AgentFleet;
use tokio::time::{Instant, sleep};

use crate::machines::{Site, Ware};
use crate::table::{say, table};

/// Gradients until the job ends.
const STEPS: u32 = 300;
/// How far the bytes of a step may be from what the pairs of tasks predict, as a fraction.
const NEAR: f64 = 0.05;
/// The longest time a job may take.
const JOB_TIMEOUT: Duration = Duration::from_mins(10);

/// The layouts: the machines of the parameter servers (`None`: DLTAP places them). Then, for each
/// of the workers on w1, w3 and w1, how many servers are on another machine.
const LAYOUTS: [(&str, Option<&str>, [u32; 3]); 3] = [
    ("default", Some(r#"["w2", "w2"]"#), [2, 2, 2]),
    ("ideal", Some(r#"["w1", "w2"]"#), [1, 2, 1]),
    ("dltap", None, [0, 2, 0]),
];

/// What was measured in one layout.
struct Measured {
    /// Bytes sent between machines for one gradient of each worker.
    bytes: f64,
    /// The same if all workers had computed equally many gradients.
    even: f64,
}

/// Whether the bytes are in proportion to the pairs.
pub(crate) async fn run(ware: &Ware) -> anyhow::Result<bool> {
    Site::with(ware, None, async |site| layouts(site, ware).await).await
}

async fn layouts(site: &Site, ware: &Ware) -> anyhow::Result<bool> {
    let fleet = site.fleet()?;
    let manager = fleet.manager(&["--policy", "dltap"])?;
    let mut measured = Vec::new();
    for (name, servers, cross) in LAYOUTS {
        let bytes = layout(site, ware, &fleet, (name, servers, cross)).await;
        measured.push((name, cross.iter().sum::<u32>(), bytes.with_context(|| manager.said())?));
    }
    manager.end().await?;
    fleet.close().await?;
    // What one pair exchanges for a gradient, by the layout with the most of them.
    let (_, most, first) = measured.first().context("there are layouts")?;
    let one = first.even / f64::from(*most);
    let mut good = true;
    let mut rows = Vec::new();
    for (name, pairs, Measured { bytes, even }) in &measured {
        let near = (even / one / f64::from(*pairs) - 1.0).abs() <= NEAR;
        good &= near;
        rows.push(vec![
            (*name).to_owned(),
            pairs.to_string(),
            format!("{:.2}", bytes / 1e6),
            format!("{:.2}", bytes / one),
            format!("{:.2}", even / one),
            if near { "yes".to_owned() } else { "NO".to_owned() },
        ]);
    }
    let head = ["layout", "pairs that cross", "MB a step", "in pairs", "evenly", "within 5 %"];
    table(&head, &rows)?;
    say(
        "A step is one gradient of each worker. Bytes are those sent over the machines' cables, less\n\
                 what these exchange without a job. Workers do not wait for each other, so some compute more\n\
                 gradients than others: `evenly` is the same for workers that compute equally many.",
    )?;
    Ok(good)
}

/// The bytes of a step in one layout.
async fn layout(
    site: &Site,
    ware: &Ware,
    fleet: &AgentFleet,
    (name, servers, cross): (&str, Option<&str>, [u32; 3]),
) -> anyhow::Result<Measured> {
    let nodes = servers.map_or(String::new(), |nodes| format!("nodes = {nodes}\n"));
    let text = format!(
        r#"name = "{name}"
image = "{}"
env = {{ PACELINE_DATA = "/data" }}
mounts = ["{}:/data:ro"]

[ps]
count = 2
cpus = 0.1
args = ["mnist", "--role", "ps", "--part", "{{index}}/{{count}}", "--steps", "{STEPS}"]
{nodes}
[worker]
min = 3
cpus = 0.5
args = ["mnist", "--role", "worker", "--servers", "{{servers}}", "--seed", "{{number}}", "--threads", "1"]
nodes = ["w1", "w3", "w1"]
"#,
        ware.image,
        ware.data.display()
    );
    let idle = idle(site).await?;
    let (before, began) = (sent(site).await?, Instant::now());
    fleet.submit_gang(name, &text).await?;
    let ended = loop {
        anyhow::ensure!(began.elapsed() < JOB_TIMEOUT, "{name} does not end");
        sleep(Duration::from_millis(500)).await;
        let shown = fleet.status().await?.gangs;
        if let Some(gang) = shown.into_iter().find(|gang| gang.job == name && is_over(gang)) {
            break gang;
        }
    };
    anyhow::ensure!(ended.state == GangState::Finished, "{ended:?}");
    let seconds = began.elapsed().as_secs_f64();
    let bytes = sent(site).await? - before - idle * seconds;
    let mut made = [0.0; 3];
    for (worker, made) in made.iter_mut().enumerate() {
        let printed = fleet.printed_by(&format!("{name}-worker-{worker}")).await?;
        *made = counter(gradients(&printed).with_context(|| format!("{worker}: {printed}"))?);
    }
    fleet.withdraw_gang(name).await?;
    let all: f64 = made.iter().sum();
    // In exchanges with a server on another machine.
    let exchanges: f64 = made.iter().zip(cross).map(|(made, of)| made * f64::from(of)).sum();
    let pairs = f64::from(cross.iter().sum::<u32>());
    Ok(Measured { bytes: 3.0 * bytes / all, even: bytes / exchanges * pairs })
}

fn is_over(gang: &GangView) -> bool {
    [GangState::Finished, GangState::Failed].contains(&gang.state)
}

/// How many gradients a worker has computed, from its last line.
fn gradients(printed: &str) -> Option<u64> {
    let (_, last) = printed.rsplit_once("finished: steps=")?;
    last.split_whitespace().next()?.parse().ok()
}

/// Bytes that the workers have sent to one another so far.
async fn sent(site: &Site) -> anyhow::Result<f64> {
    let mut bytes = 0;
    for engine in site.engines().iter().skip(1) {
        let (_, went) = engine.traffic().await?;
        bytes += went;
    }
    Ok(counter(bytes))
}

/// Bytes that they send in a second without a job.
async fn idle(site: &Site) -> anyhow::Result<f64> {
    let (before, began) = (sent(site).await?, Instant::now());
    sleep(Duration::from_secs(5)).await;
    Ok((sent(site).await? - before) / began.elapsed().as_secs_f64())
}
