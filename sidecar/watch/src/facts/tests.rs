use serde_json::json;

use super::*;
use crate::jobs::tests::one;

fn said(change: impl FnOnce(&mut Progress)) -> String {
    let (jobs, now) = one(change);
    let groups = jobs.groups();
    let lines =
        facts(&groups[0], now).into_iter().map(|(name, words)| format!("{name}: {words}\n"));
    lines.collect()
}

#[test]
fn running_job_is_described() {
    assert_eq!(
        said(|_| ()),
        "\
Progress: 30.0 % done, step 1 200 of 4 000, epoch 3, 23 min 20 s left, 2.000 steps/s
Loss: 118.6 smoothed, 118.2 over 5 reports, best 117.9
Validation: 121.0, best 120.5, 3 times
Batch: p50 30.00 ms, p95 44.00 ms, p99 71.00 ms, last 31.00 ms, target 50.00 ms
Acceptable: 120: reached 1 min ago
Objective: 110: in 5 min (8 of 10 cases: 3 min 20 s to 8 min 20 s)
CPU: quota 1.5 cores, room for 2 threads, throttled 12.0 %, 12.50 s lost so far, waiting 3.4 % of the last 10 s
Checkpoint: 1 saved, last 45 s ago, step 1 100, /ckpt/vae.safetensors
Run: for 10 min, 1 200 reports, by reporter, process 7
"
    );
}

#[test]
fn job_of_which_nothing_is_known_has_no_zeros() {
    let said = said(|progress| {
        let state = progress.clone();
        *progress = serde_json::from_value(json!({
            "schema": 1, "job": "new", "pid": 1, "instance": state.instance, "source": "sidecar",
            "state": "starting", "started_at": 1.0, "now": 3.0, "step": null, "epoch": null,
            "total_steps": null,
            "eval": {"name": "loss", "direction": "maximize", "value": null, "window": 5,
                "updated_at": null, "count": 0, "sum": 0.0, "first": null, "best": null,
                "max_abs": null},
            "batch_latency": {"count": 0, "sum": 0.0, "last": null, "p50": null, "p95": null,
                "p99": null},
            "targets": {"acceptable": 0.9, "objective": null, "batch_latency": null},
            "reached": {"acceptable_at": null, "objective_at": null},
            "checkpoint": {"requested": 2, "saved": 0, "step": null, "path": null, "at": null,
                "error": null},
            "dropped": 0, "rejected": 3
        }))
        .unwrap();
    });
    assert_eq!(
        said,
        "\
Progress: no step yet
Loss: none yet
Batch: none yet
Acceptable: 0.9: forecast not yet known
CPU: no quota
Checkpoint: none, 2 requested
Run: for 2 s, 0 reports, 3 not finite, 0 dropped, by sidecar, process 1
"
    );
}

#[test]
fn unknown_total_leaves_out_what_depends_on_it() {
    let said = said(|progress| {
        progress.total_steps = None;
        progress.signals.progress_ratio = None;
        progress.signals.eta_seconds = None;
        progress.signals.steps_per_second = Some(0.25);
    });
    assert!(said.starts_with("Progress: step 1 200, epoch 3, 4.000 s per step\n"), "{said}");
}

#[test]
fn forecasts_say_how_sure_they_are() {
    let words = |seconds, low, high| forecast(Forecast { seconds, low, high, steps: None });
    assert_eq!(words(None, None, None), "most likely never");
    assert_eq!(words(None, Some(60.0), None), "likely never (8 of 10 cases: 1 min or never)");
    assert_eq!(
        words(Some(90.0), Some(60.0), None),
        "in 1 min 30 s (8 of 10 cases: 1 min or never)"
    );
}

#[test]
fn problem_is_named() {
    let wrong = |change: fn(&mut Progress)| {
        let (jobs, _) = one(change);
        let job = jobs.iter().next().unwrap();
        (state(job), health(&job.progress), trouble(job).join(" "))
    };
    assert_eq!(wrong(|_| ()), ("Training", "the loss is sound", String::new()));
    let (state, health, words) = wrong(|progress| progress.signals.health = Health::Diverging);
    assert_eq!((state, health), ("Training", "the loss diverges"));
    assert!(words.contains("far worse than its best"), "{words}");
    let (state, _, words) = wrong(|progress| {
        progress.signals.activity = Activity::Stalled;
        progress.checkpoint.error = Some("disk full".to_owned());
    });
    assert_eq!(state, "Stalled");
    assert!(words.contains("No step for 0 s") && words.contains("failed: disk full"), "{words}");
    let (state, _, words) = wrong(|progress| progress.state = State::Failed);
    assert_eq!((state, words.as_str()), ("Failed", "The job has ended by an error."));
}
