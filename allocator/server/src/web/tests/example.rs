//! Sample snapshots with every field set.

use std::collections::BTreeMap;

use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::{
    CostView, DecisionView, JobView, NodeView, PolicyView, SCHEMA, ShadowView, Snapshot, Standing,
};
use paceline_wire::Targets;

/// A name that would be a script if it were read as markup.
pub(in crate::web) const HOSTILE: &str = "<img src=x onerror=\"alert(1)\">\\ü\n/?#&";

/// The snapshot `t` seconds after the run began.
pub(in crate::web) fn example(t: f64) -> Snapshot {
    Snapshot {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        pid: 7,
        started_at: 1000.0,
        now: 1000.0 + t,
        t,
        node: NodeView {
            name: "box".to_owned(),
            cpus: 2.0,
            memory: 8e9,
            cpu: Some(0.9),
            trouble: None,
        },
        policy: PolicyView {
            name: "flowcon".to_owned(),
            variant: "resolved".to_owned(),
            params: BTreeMap::from([("alpha".to_owned(), 0.01), ("interval".to_owned(), 20.0)]),
            enforcement: "quota+leftover".to_owned(),
            actuator: "engine".to_owned(),
            dry_run: false,
            guards: vec![Guard::Canary],
        },
        jobs: vec![job("vae", t), job(HOSTILE, t)],
        decision: Some(DecisionView { number: 3, at: 1000.0, interval: 20.0 }),
        shadows: vec![ShadowView {
            policy: "tradl".to_owned(),
            limits: BTreeMap::from([("vae".to_owned(), 1.0)]),
            distance: Some(0.25),
            decisions: 3,
            disagreements: 1,
        }],
        cost: CostView {
            cpu_seconds: 12.25,
            memory: Some(2e7),
            writes: 9,
            failed_writes: 1,
            write_seconds: 0.3,
            drifts: 2,
            moves: 3,
            failed_moves: 1,
            move_seconds: 4.5,
            guard_actions: BTreeMap::from([("canary".to_owned(), 1)]),
        },
        ..Snapshot::default()
    }
}

fn job(name: &str, t: f64) -> JobView {
    JobView {
        job: name.to_owned(),
        container: "c0ffee".repeat(10),
        name: format!("container-of-{name}"),
        standing: Standing::Managed,
        page: Some("http://127.0.0.1:7223/".to_owned()),
        state: Some("running".to_owned()),
        loss: Some(100.0 - t),
        last_loss: Some(99.5 - t),
        targets: Targets {
            acceptable: Some(80.0),
            objective: Some(60.0),
            batch_latency: Some(0.04),
        },
        step: Some(1234),
        total_steps: Some(46_900),
        batch_latency: Some(0.031),
        reported_at: Some(1000.0 + t),
        cpu: Some(0.48),
        throttled: Some(0.1),
        memory: Some(3e8),
        memory_peak: Some(4e8),
        blkio: Some(1e6),
        net: Some(2e6),
        limit: Some(0.5),
        chosen: Some(0.5),
        min: Some(0.05),
        max: Some(1.0),
        weight: 1.0,
        guards: vec![Guard::Canary],
        class: Some("NL".to_owned()),
        score: Some(0.02),
        why: Some("growth 0.02 is 1/2 of the sum".to_owned()),
        work_left: Some(12.5),
        ends_at: Some(1040.0 + t),
        fair_ends_at: Some(1062.0 + t),
        waits_for: Some("vae".to_owned()),
        ..JobView::default()
    }
}
