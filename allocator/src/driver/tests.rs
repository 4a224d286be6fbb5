//! The driver as a whole, on a stand-in for the engine, the kernel and the jobs.

mod bed;
mod moves;
mod past_the_engine;
mod renewal;

use std::time::Duration;

use paceline_policy::policies::{self, AnyPolicy};
use paceline_policy::{Params, Policy, Shadow, Share, Variant};
use paceline_wire::{State, Targets};
use serde_json::Value;
use tempfile::TempDir;

use super::COALESCE;
use crate::live::order::Guard;
use crate::live::snapshot::{JobView, Standing};
use crate::live::{Command, Refusal, Snapshot};
use bed::{Bed, PATIENCE, names};

fn policy(name: &str) -> Box<dyn Policy> {
    let mut params = Params::default();
    // They run only when something happens …
    if name == "tradl" || name == "flowcon" {
        params.set("interval", 3600.0);
    }
    if name == "tradl" {
        // … and however little the node has to do.
        params.set("alpha", 0.0);
    }
    if name == "dqoes" {
        params.set("interval", 0.5);
    }
    match policies::build(name, Variant::Resolved, &params).unwrap() {
        AnyPolicy::Jobs(policy) => policy,
        other @ (AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_)) => panic!("{other:?}"),
    }
}

fn number(snapshot: &Snapshot) -> u64 {
    snapshot.decision.as_ref().map_or(0, |decision| decision.number)
}

fn view<'a>(snapshot: &'a Snapshot, job: &str) -> &'a JobView {
    snapshot.jobs.iter().find(|view| view.job == job).unwrap()
}

fn stands(job: &'static str, standing: Standing) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| snapshot.jobs.iter().any(|one| one.job == job && one.standing == standing)
}

/// What a run has left in its audit log.
fn audit(folder: &TempDir) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The entries of one kind.
fn audited(folder: &TempDir, kind: &str) -> Vec<Value> {
    audit(folder).into_iter().filter(|entry| entry["what"] == kind).collect()
}

fn pin(name: &str, share: f64) -> Command {
    Command::Pin { name: name.to_owned(), share: Share::nearest(share) }
}

fn release(name: &str) -> Command {
    Command::Release { name: name.to_owned() }
}

fn manage(name: &str) -> Command {
    Command::Manage { name: name.to_owned() }
}

#[tokio::test]
async fn a_pinned_job_is_held_at_once_and_managed_again_when_that_is_asked_for() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "b"]);
    bed.shows("both", |snapshot| {
        ["a", "b"].iter().all(|job| {
            snapshot.jobs.iter().any(|v| v.job == *job && v.standing == Standing::Managed)
        })
    })
    .await;
    let answer = bed.order(pin("a", 0.3)).await.unwrap();
    assert_eq!(answer, "job a is held at 30.0 % of the node");
    assert_eq!(bed.quota("a"), 60_000, "it was answered when it was so");
    let snapshot = bed.shows("the pin", stands("a", Standing::Pinned)).await;
    assert_eq!(view(&snapshot, "a").chosen, None, "no policy has a say in it");
    assert_eq!(bed.quota("b"), -1);
    assert_eq!(bed.order(manage("a")).await.unwrap(), "job a is managed again");
    assert_eq!(bed.quota("a"), -1);
    bed.shows("the job under the policy", stands("a", Standing::Managed)).await;
    bed.end().await;
}

#[tokio::test]
async fn jobs_that_ran_before_come_together_also_if_one_is_slow_to_answer() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "late"]);
    bed.shows("both", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.chosen.is_some()).count() == 2
    })
    .await;
    let decided = audited(&bed.end().await, "decided");
    let first: Vec<&Value> = decided.iter().filter(|entry| entry["number"] == 1).collect();
    assert_eq!(first.len(), 2, "{decided:?}");
}

#[tokio::test]
async fn a_container_becomes_a_job_at_its_first_report() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "silent"]);
    bed.says("silent", |progress| progress.state = State::Starting);
    bed.shows("the other", stands("a", Standing::Managed)).await;
    let snapshot = bed.shows("why it waits", |snapshot| {
        snapshot.jobs.iter().any(|one| one.job == "silent" && one.trouble.is_some())
    });
    let snapshot = snapshot.await;
    let silent = view(&snapshot, "silent");
    assert_eq!(silent.trouble.as_deref(), Some("it has not reported yet"));
    assert_eq!((silent.standing, silent.chosen), (Standing::Waiting, None));
    bed.says("silent", |progress| progress.state = State::Running);
    let snapshot = bed.shows("the job", |snapshot| view(snapshot, "silent").chosen.is_some()).await;
    assert_eq!(view(&snapshot, "silent").trouble, None);
    bed.end().await;
}

#[tokio::test]
async fn a_pin_is_written_once() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    // After a decision of a moment ago the next one would come when the write is through.
    tokio::time::sleep(2 * COALESCE).await;
    let before = number(&bed.live.now());
    bed.order(pin("a", 0.3)).await.unwrap();
    bed.shows("the decision without it", |snapshot| number(snapshot) > before).await;
    // Whatever that decision had written would be through before this is.
    bed.order(pin("b", 0.3)).await.unwrap();
    let limited = audited(&bed.end().await, "limited");
    let of_a = limited.iter().filter(|entry| entry["job"] == "a");
    assert_eq!(of_a.count(), 1, "{limited:?}");
}

#[tokio::test]
async fn a_pin_to_what_is_in_force_outlives_the_one_that_is_on_its_way() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a"]);
    bed.shows("the job", stands("a", Standing::Managed)).await;
    bed.order(pin("a", 0.3)).await.unwrap();
    // All three are taken in before the first of them is written.
    let (under_way, queued, last) =
        tokio::join!(bed.order(pin("a", 0.6)), bed.order(pin("a", 0.5)), bed.order(pin("a", 0.3)));
    under_way.unwrap();
    assert!(matches!(queued, Err(Refusal::Failed(why)) if why.contains("another order")));
    last.unwrap();
    assert_eq!(bed.quota("a"), 60_000);
    bed.end().await;
}

#[tokio::test]
async fn a_released_job_has_its_limits_back_and_is_left_alone() {
    let bed = Bed::looking(policy("tradl"), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.has_quota("a", 66_666).await;
    let answer = bed.order(release("a")).await.unwrap();
    assert_eq!(answer, "job a is left alone, its limits are what they were");
    assert_eq!(bed.quota("a"), -1);
    let before = number(&bed.live.now());
    bed.says("b", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.shows("a decision about b", |snapshot| {
        number(snapshot) > before && view(snapshot, "b").acceptable_at == Some(1.0)
    })
    .await;
    bed.looks(20).await;
    assert_eq!(bed.quota("a"), -1);
    assert_eq!(bed.live.now().jobs.len(), 2, "it is shown all the same");
    assert!(bed.order(manage("a")).await.unwrap().contains("is watched"));
    bed.shows("the job under the policy", stands("a", Standing::Managed)).await;
    bed.end().await;
}

#[tokio::test]
async fn a_job_that_reaches_its_target_is_limited_at_once_and_looks_do_not_wait_for_it() {
    let bed = Bed::new(policy("tradl"), Vec::new(), &["a", "b", "c"]);
    bed.shows("all", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.standing == Standing::Managed).count() == 3
    })
    .await;
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.has_quota("a", 50_000).await;
    let folder = bed.end().await;
    let group = folder.path().join("cgroup").join(format!("a{}", "0".repeat(63)));
    let quota = std::fs::read_to_string(group.join("cpu.cfs_quota_us")).unwrap();
    assert_eq!(quota.trim(), "-1", "every limit is back");
}

#[tokio::test]
async fn a_policy_that_does_not_go_by_targets_is_not_asked_when_one_is_reached() {
    let bed = Bed::new(policy("flowcon"), Vec::new(), &["a", "b"]);
    let asked = bed.shows("that it was asked about the newcomers", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.class.is_some()).count() == 2
    });
    let asked = asked.await;
    let before = number(&asked);
    // A decision about the first would be shown before the second one is.
    for job in ["a", "b"] {
        bed.says(job, |progress| progress.reached.acceptable_at = Some(1.0));
        bed.shows("the target", |snapshot| view(snapshot, job).acceptable_at == Some(1.0)).await;
    }
    assert_eq!(number(&bed.live.now()), before);
    bed.end().await;
}

#[tokio::test]
async fn a_target_that_is_set_is_in_force_and_watched_for() {
    let bed = Bed::new(policy("tradl"), Vec::new(), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    let targets = Targets { acceptable: Some(3.0), ..Targets::default() };
    let answer = bed.order(Command::Set { name: "a".to_owned(), targets }).await;
    assert_eq!(answer.unwrap(), "job a: acceptable is 3");
    let set = |snapshot: &Snapshot| view(snapshot, "a").targets.acceptable == Some(3.0);
    bed.shows("the target", set).await;
    // The job does not know of the target.
    bed.says("a", |progress| {
        progress.eval.value = Some(2.0);
        (progress.eval.count, progress.eval.sum) = (2, 6.0);
    });
    bed.has_quota("a", 66_666).await;
    bed.end().await;
}

#[tokio::test]
async fn a_container_without_the_label_is_managed_only_when_somebody_says_so() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "stranger"]);
    let snapshot = bed.shows("the job", stands("a", Standing::Managed)).await;
    assert_eq!(names(&snapshot), ["a"].into());
    let answer = bed.order(manage("stranger")).await;
    assert!(answer.unwrap().contains("container stranger is watched"));
    bed.shows("the stranger", stands("stranger", Standing::Managed)).await;
    bed.order(pin("stranger", 0.5)).await.unwrap();
    assert_eq!(bed.quota("stranger"), 100_000);
    bed.order(release("stranger")).await.unwrap();
    assert_eq!(bed.quota("stranger"), -1);
    bed.shows("the job alone", |snapshot| names(snapshot) == ["a"].into()).await;
    bed.end().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_the_reason() {
    let bed = Bed::new(policy("none"), Vec::new(), &["ab", "ac"]);
    bed.shows("both", stands("ac", Standing::Managed)).await;
    let unknown = || Refusal::Unknown("nobody".to_owned());
    let none = Command::Set { name: "ab".to_owned(), targets: Targets::default() };
    for (command, expected) in [
        (pin("nobody", 0.5), Some(unknown())),
        (manage("nobody"), Some(unknown())),
        (release("a"), Some(Refusal::Ambiguous("a".to_owned()))),
        (none, None),
    ] {
        let refusal = bed.order(command).await.unwrap_err();
        let impossible = matches!(refusal, Refusal::Impossible(_));
        assert!(expected.map_or(impossible, |expected| refusal == expected), "{refusal:?}");
    }
    let on = Command::Guard { name: "ab".to_owned(), guard: Guard::Canary, on: true };
    assert_eq!(bed.order(on).await.unwrap(), "job ab: guard canary is on");
    let on = |snapshot: &Snapshot| view(snapshot, "ab").guards == [Guard::Canary];
    bed.shows("the guard", on).await;
    bed.end().await;
}

#[tokio::test]
async fn a_limit_that_somebody_else_changed_is_noticed_and_written_again() {
    let bed = Bed::looking(policy("none"), &["a"]);
    bed.shows("the job", stands("a", Standing::Managed)).await;
    bed.order(pin("a", 0.25)).await.unwrap();
    bed.meddle("a", 10_000);
    bed.shows("the drift", |snapshot| snapshot.cost.drifts == 1).await;
    bed.has_quota("a", 50_000).await;
    bed.end().await;
}

#[tokio::test]
async fn a_dry_run_tells_what_others_make_of_limits() {
    let bed = Bed::watching(policy("tradl"), &["a"]);
    bed.shows("the job", stands("a", Standing::Managed)).await;
    bed.meddle("a", 100_000);
    bed.shows("the limit", |snapshot| view(snapshot, "a").limit == Some(0.5)).await;
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.shows("the class", |snapshot| view(snapshot, "a").class.as_deref() == Some("AS")).await;
    assert_eq!(bed.quota("a"), 100_000, "nothing is written");
    let folder = bed.end().await;
    let frames = std::fs::read_to_string(folder.path().join("frames.jsonl")).unwrap();
    let last: Value = serde_json::from_str(frames.lines().last().unwrap()).unwrap();
    assert_eq!(last["jobs"][0]["limit"]["applied"], 0.5);
}

#[tokio::test]
async fn frames_that_follow_soon_tell_of_the_batches_between_them() {
    let bed = Bed::watching(policy("dqoes"), &["a"]);
    bed.says("a", |progress| progress.targets.batch_latency = Some(0.1));
    bed.shows("the job", stands("a", Standing::Managed)).await;
    let known = || -> Vec<f64> {
        let frames = std::fs::read_to_string(bed.path("frames.jsonl")).unwrap();
        // The last line may be half written.
        let frames = frames.lines().filter_map(|line| serde_json::from_str(line).ok());
        let took = |frame: Value| frame["jobs"][0]["batch_latency"].as_f64();
        frames.filter_map(took).collect()
    };
    let waited = tokio::time::timeout(PATIENCE, async {
        while known().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            bed.says("a", |progress| {
                progress.batch_latency.count += 2;
                progress.batch_latency.sum += 0.1;
            });
        }
    });
    waited.await.expect("there are such frames");
    let known = known();
    assert!(known.iter().all(|took| (took - 0.05).abs() < 1e-9), "{known:?}");
    bed.end().await;
}

#[tokio::test]
async fn all_that_is_done_stands_in_the_audit_log() {
    let bed = Bed::new(policy("tradl"), Vec::new(), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.has_quota("a", 66_666).await;
    bed.order(release("a")).await.unwrap();
    bed.order(release("nobody")).await.unwrap_err();
    let folder = bed.end().await;
    let written = audit(&folder);
    let kinds: Vec<&str> = written.iter().filter_map(|entry| entry["what"].as_str()).collect();
    for kind in ["began", "appeared", "decided", "limited", "ordered", "restored", "ended"] {
        assert!(kinds.contains(&kind), "{kind}: {written:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "ordered").count(), 2, "refused ones, too");
    assert_eq!((kinds.first(), kinds.last()), (Some(&"began"), Some(&"ended")));
}

#[tokio::test]
async fn a_container_that_is_gone_is_shown_no_more() {
    let bed = Bed::looking(policy("none"), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    bed.remove("a");
    bed.shows("one", |snapshot| names(snapshot) == ["b"].into()).await;
    assert!(bed.order(release("a")).await.is_err());
    bed.end().await;
}

#[tokio::test]
async fn the_snapshot_tells_of_jobs_decisions_shadows_and_costs() {
    let shadows = vec![Shadow::new(policy("tradl")), Shadow::new(policy("dqoes"))];
    let bed = Bed::new(policy("none"), shadows, &["a", "b"]);
    let whole = |snapshot: &Snapshot| {
        snapshot.decision.is_some() && snapshot.jobs.iter().all(|view| view.class.is_some())
    };
    let snapshot = bed.shows("a decision", |snapshot| snapshot.jobs.len() == 2 && whole(snapshot));
    let snapshot = snapshot.await;
    let a = view(&snapshot, "a");
    assert_eq!((a.state.as_deref(), a.last_loss, a.step), (Some("running"), Some(4.0), Some(1)));
    assert_eq!((a.limit, a.chosen, a.weight), (Some(1.0), Some(1.0), 1.0));
    assert_eq!(a.targets.acceptable, Some(1.0));
    assert_eq!(a.container.len(), 64);
    let names: Vec<&str> = snapshot.shadows.iter().map(|one| one.policy.as_str()).collect();
    assert_eq!(names, ["tradl", "dqoes"]);
    assert!(snapshot.shadows.iter().all(|one| one.decisions > 0));
    bed.end().await;
}
