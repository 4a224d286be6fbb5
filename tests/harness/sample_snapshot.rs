//! Snapshots of an invented run, for tests without an engine: six jobs with most standings, which
//! learn, slow down, are silent or have hostile names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::{
    CostView, DecisionView, GangState, GangView, JobView, NodeView, PlaceView, PolicyView, SCHEMA,
    ShadowView, Snapshot, Standing, TaskCountsView,
};
use paceline_api::live::{DaemonChannels, pair};
use paceline_server::web::{self, Settings, Web};
use paceline_wire::{Direction, Targets};

use crate::wait::WAIT_TIMEOUT;

/// A name that would run a script if it were taken for markup.
pub const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// Seconds between two decisions.
const INTERVAL: f64 = 20.0;
/// The limits that the policy sets, one after the other.
const SHARES: [f64; 5] = [1.0, 0.7, 0.5, 0.35, 0.25];

/// The snapshot of the run that began at `started_at` (Unix seconds), `t` seconds later.
pub fn snapshot(started_at: f64, t: f64) -> Snapshot {
    let turn = (t / INTERVAL).floor();
    let jobs = vec![vae(t, turn), digits(t), translator(t), hostile(t), released(), waiting()];
    let cpu = jobs.iter().filter_map(|job| job.cpu).sum::<f64>() + 0.04;
    Snapshot {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: 4242,
        started_at,
        now: started_at + t,
        t,
        node: NodeView {
            name: "trainer-1".to_owned(),
            cpus: 8.0,
            memory: 3.4e10,
            cpu: Some(cpu),
            trouble: None,
        },
        policy: PolicyView {
            name: "flowcon".to_owned(),
            variant: "resolved".to_owned(),
            params: [("alpha", 0.01), ("beta", 2.0), ("interval", INTERVAL)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            enforcement: "quota+leftover".to_owned(),
            actuator: "engine".to_owned(),
            dry_run: false,
            guards: vec![Guard::Canary, Guard::Fairness],
        },
        jobs: jobs
            .into_iter()
            .map(|job| JobView { reported_at: reported(&job, started_at, t), ..job })
            .collect(),
        decision: Some(DecisionView {
            number: count(turn) + 1,
            at: started_at + turn * INTERVAL,
            interval: INTERVAL,
        }),
        shadows: vec![shadow("tradl", 0.18, turn, 0.6), shadow("dqoes", 0.07, turn, 0.2)],
        cost: CostView {
            cpu_seconds: 0.006 * t,
            memory: Some(1.9e7),
            writes: 2 * count(turn),
            failed_writes: 1,
            write_seconds: 0.054 * turn,
            drifts: 2,
            moves: 0,
            failed_moves: 0,
            move_seconds: 0.0,
            guard_actions: BTreeMap::from([("canary".to_owned(), 1), ("fairness".to_owned(), 4)]),
        },
        ..Snapshot::default()
    }
}

/// The same run on a cluster: one of its machines is not reached, and one of its gangs waits. Names
/// are hostile.
pub fn cluster(started_at: f64, t: f64) -> Snapshot {
    let machine = |name: &str, trouble: Option<&str>| NodeView {
        name: name.to_owned(),
        cpus: 16.0,
        memory: 6.4e10,
        cpu: Some(0.62),
        trouble: trouble.map(str::to_owned),
    };
    let counts = |placed, of| TaskCountsView { placed, over: 0, of };
    let place = |ps, workers| PlaceView { ps, workers };
    let runs = GangView {
        job: "mnist".to_owned(),
        state: GangState::Running,
        submitted: Some(started_at - 200.0),
        ps: counts(1, 1),
        workers: counts(3, 4),
        least: 2,
        places: BTreeMap::from([("w1".to_owned(), place(1, 2)), ("w2".to_owned(), place(0, 1))]),
        ..GangView::default()
    };
    let waits = GangView {
        job: HOSTILE.to_owned(),
        state: GangState::Waiting,
        submitted: Some(started_at),
        ps: counts(0, 2),
        workers: counts(0, 6),
        least: 6,
        why: Some("2 servers and 6 workers: no room, and no job gives capacity".to_owned()),
        ..GangView::default()
    };
    let nodes = vec![
        machine("w1", None),
        machine("w2", Some("cannot reach the agent at 10.0.0.12:7224: connection refused")),
    ];
    Snapshot { nodes, gangs: vec![runs, waits], ..snapshot(started_at, t) }
}

/// A page on `address` that has seen the first `past` seconds of the run, and the channels that feed it.
pub async fn page(
    address: &str,
    started_at: f64,
    past: u32,
) -> anyhow::Result<(Web, DaemonChannels)> {
    let (live, channels) = pair(snapshot(started_at, 0.0));
    let settings = Settings { listen: Some(address.parse()?), ..Settings::default() };
    let web = web::serve(&settings, live, None).await?.context("the page is not served")?;
    for second in 1..=past {
        let shown = Arc::new(snapshot(started_at, f64::from(second)));
        channels.snapshots.send_replace(Arc::clone(&shown));
        // The page must see each snapshot before the next replaces it. Once it has, it holds the
        // third reference beside this function and the channel.
        let seen = async {
            while Arc::strong_count(&shown) < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, seen).await.context("the page does not look")?;
    }
    Ok((web, channels))
}

fn reported(job: &JobView, started_at: f64, t: f64) -> Option<f64> {
    let silent = if job.loss.is_none() && job.standing == Standing::Managed { 90.0 } else { 0.0 };
    job.last_loss.map(|_| started_at + (t - silent).max(0.0))
}

/// A number between −1 and 1 that looks random but is reproducible.
fn noise(t: f64, which: f64) -> f64 {
    let wild = ((t.floor() * 12.989 + which * 78.233).sin() * 43_758.545).fract();
    wild.clamp(-1.0, 1.0)
}

fn base(name: &str, mark: &str, standing: Standing) -> JobView {
    JobView {
        job: name.to_owned(),
        container: mark.repeat(8),
        name: name.to_owned(),
        standing,
        state: Some("running".to_owned()),
        min: Some(0.05),
        max: Some(1.0),
        weight: 1.0,
        ..JobView::default()
    }
}

fn vae(t: f64, turn: f64) -> JobView {
    let loss = 105.0 + 430.0 * (-t / 90.0).exp() + 2.5 * noise(t, 1.0);
    let place = usize::try_from(count(turn / 6.0)).unwrap_or(usize::MAX);
    let share = SHARES.get(place).or(SHARES.last()).copied();
    JobView {
        page: Some("http://127.0.0.1:7230/".to_owned()),
        loss: Some(loss),
        last_loss: Some(loss),
        targets: Targets { acceptable: Some(120.0), objective: Some(107.0), batch_latency: None },
        step: Some(count(t * 8.0)),
        total_steps: Some(46_900),
        batch_latency: share.map(|share| 0.031 / share.max(0.3) + 0.002 * noise(t, 2.0)),
        cpu: share.map(|share| share * 0.45 + 0.02 * noise(t, 3.0)),
        throttled: share.map(|share| if share < 0.5 { 0.4 } else { 0.0 }),
        limit: share,
        chosen: share,
        class: Some("CL".to_owned()),
        score: Some(0.0041),
        why: Some("growth 0.0041 < alpha 0.01 for the third time, so at least 1/(2·4)".to_owned()),
        guards: vec![Guard::Canary, Guard::Fairness],
        memory: Some(6.1e8),
        memory_peak: Some(6.6e8),
        ..base("vae", "3f9ac21d", Standing::Managed)
    }
}

fn digits(t: f64) -> JobView {
    let loss = 0.08 + 2.2 * (-t / 200.0).exp() + 0.02 * noise(t, 4.0);
    JobView {
        loss: Some(loss),
        last_loss: Some(loss),
        targets: Targets { acceptable: Some(0.3), objective: Some(0.1), batch_latency: Some(0.02) },
        step: Some(count(t * 40.0)),
        batch_latency: Some(0.018 + 0.004 * noise(t, 5.0)),
        cpu: Some(0.25 + 0.03 * noise(t, 6.0)),
        throttled: Some(0.0),
        limit: Some(1.0),
        chosen: Some(1.0),
        class: Some("NL".to_owned()),
        score: Some(0.083),
        why: Some("growth 0.083 is 0.89 of all".to_owned()),
        guards: vec![Guard::Canary],
        ..base("mnist-classifier", "b07d55e1", Standing::Managed)
    }
}

/// A job that has not reported for a while.
fn translator(t: f64) -> JobView {
    let accuracy = 0.6;
    JobView {
        loss: (t < 200.0).then_some(accuracy),
        last_loss: Some(accuracy),
        direction: Direction::Maximize,
        targets: Targets { acceptable: Some(0.7), objective: None, batch_latency: None },
        step: Some(310),
        cpu: Some(0.11 + 0.01 * noise(t, 7.0)),
        limit: Some(0.3),
        chosen: Some(0.3),
        class: Some("WL".to_owned()),
        trouble: Some("the endpoint on port 7223 has not answered for 90 s".to_owned()),
        why: Some("unmeasured: stays".to_owned()),
        ..base("translator-en-de-with-a-rather-long-name", "e55a0b44", Standing::Managed)
    }
}

fn hostile(t: f64) -> JobView {
    let loss = 5.0 + noise(t, 8.0);
    JobView {
        page: Some("javascript:alert(1)".to_owned()),
        loss: Some(loss),
        last_loss: Some(loss),
        step: Some(count(t)),
        batch_latency: Some(1.25),
        cpu: Some(0.12),
        limit: Some(0.2),
        chosen: Some(0.4),
        why: Some("held at 0.2 by an order".to_owned()),
        ..base(HOSTILE, "0badc0de", Standing::Pinned)
    }
}

fn released() -> JobView {
    JobView {
        cpu: Some(0.05),
        limit: Some(1.0),
        ..base("notebook", "77aa12cd", Standing::Released)
    }
}

fn waiting() -> JobView {
    JobView {
        state: None,
        trouble: Some("nothing listens on port 7223 of the container's loopback".to_owned()),
        ..base("resnet", "c4d1e9f0", Standing::Waiting)
    }
}

fn shadow(policy: &str, distance: f64, turn: f64, rate: f64) -> ShadowView {
    let limits = [("vae", 0.125), ("mnist-classifier", 1.0)];
    ShadowView {
        policy: policy.to_owned(),
        limits: limits.map(|(name, share)| (name.to_owned(), share)).into(),
        distance: Some(distance),
        decisions: count(turn) + 1,
        disagreements: count(turn * rate),
    }
}

/// A number rounded down to a count; 0 if negative.
fn count(value: f64) -> u64 {
    format!("{:.0}", value.max(0.0).floor()).parse().unwrap_or(0)
}
