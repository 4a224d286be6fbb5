//! The whole controller, with a fake container engine, fake control groups and fake jobs.

mod adoptions;
mod bounds;
mod cgroup_backend;
mod faults;
mod moves;
mod pods;
mod reload;
mod test_env;

use std::time::Duration;

use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::{JobView, Standing};
use paceline_api::live::{Command, Refusal, Snapshot};
use paceline_policy::policies::{self, AnyPolicy};
use paceline_policy::{Params, Policy, Share, Variant};
use paceline_wire::{State, Targets};
use serde_json::Value;
use tempfile::TempDir;

use super::Shadow;
use super::timetable::COALESCE;
use test_env::{HANG_TIMEOUT, TestEnv, names};

fn policy(name: &str) -> Box<dyn Policy> {
    let mut params = Params::default();
    // These run only when something happens …
    if name == "tradl" || name == "flowcon" {
        params.set("interval", 3600.0);
    }
    if name == "tradl" {
        // … and even when the node is almost idle.
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

fn has_standing(job: &'static str, standing: Standing) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| snapshot.jobs.iter().any(|one| one.job == job && one.standing == standing)
}

fn are_managed(jobs: [&'static str; 2]) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| jobs.iter().all(|job| has_standing(job, Standing::Managed)(snapshot))
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
async fn pin_is_in_force_at_the_answer_and_manage_lifts_it() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "b"]);
    env.wait_until("both", |snapshot| {
        ["a", "b"].iter().all(|job| {
            snapshot.jobs.iter().any(|v| v.job == *job && v.standing == Standing::Managed)
        })
    })
    .await;
    let answer = env.order(pin("a", 0.3)).await.unwrap();
    assert_eq!(answer, "job a is held at 30.0 % of the node");
    assert_eq!(env.quota("a"), 60_000, "the limit is in force at the answer");
    let snapshot = env.wait_until("the pin", has_standing("a", Standing::Pinned)).await;
    assert_eq!(view(&snapshot, "a").chosen, None, "the policy does not decide about it");
    assert_eq!(env.quota("b"), -1);
    assert_eq!(env.order(manage("a")).await.unwrap(), "job a is managed again");
    assert_eq!(env.quota("a"), -1);
    env.wait_until("the job under the policy", has_standing("a", Standing::Managed)).await;
    env.end().await;
}

#[tokio::test]
async fn jobs_running_before_appear_together_despite_a_slow_one() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "late"]);
    env.wait_until("both", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.chosen.is_some()).count() == 2
    })
    .await;
    let decided = audited(&env.end().await, "decided");
    let first: Vec<&Value> = decided.iter().filter(|entry| entry["number"] == 1).collect();
    assert_eq!(first.len(), 2, "{decided:?}");
}

#[tokio::test]
async fn container_becomes_a_job_at_its_first_report() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "silent"]);
    env.report("silent", |progress| progress.state = State::Starting);
    env.wait_until("the other", has_standing("a", Standing::Managed)).await;
    let snapshot = env.wait_until("why it waits", |snapshot| {
        snapshot.jobs.iter().any(|one| one.job == "silent" && one.trouble.is_some())
    });
    let snapshot = snapshot.await;
    let silent = view(&snapshot, "silent");
    assert_eq!(silent.trouble.as_deref(), Some("it has not reported yet"));
    assert_eq!((silent.standing, silent.chosen), (Standing::Waiting, None));
    env.report("silent", |progress| progress.state = State::Running);
    let snapshot =
        env.wait_until("the job", |snapshot| view(snapshot, "silent").chosen.is_some()).await;
    assert_eq!(view(&snapshot, "silent").trouble, None);
    env.end().await;
}

#[tokio::test]
async fn pin_is_written_once() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    // Right after a decision, the next one would wait until the write is done.
    tokio::time::sleep(2 * COALESCE).await;
    let before = number(&env.live.now());
    env.order(pin("a", 0.3)).await.unwrap();
    env.wait_until("the decision without it", |snapshot| number(snapshot) > before).await;
    // A write that followed from that decision would be done before this one.
    env.order(pin("b", 0.3)).await.unwrap();
    let limited = audited(&env.end().await, "limited");
    let of_a = limited.iter().filter(|entry| entry["job"] == "a");
    assert_eq!(of_a.count(), 1, "{limited:?}");
}

#[tokio::test]
async fn pin_to_the_present_limit_replaces_one_being_written() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.order(pin("a", 0.3)).await.unwrap();
    // All three are accepted before the first of them is written.
    let (under_way, queued, last) =
        tokio::join!(env.order(pin("a", 0.6)), env.order(pin("a", 0.5)), env.order(pin("a", 0.3)));
    under_way.unwrap();
    assert!(matches!(queued, Err(Refusal::Failed(why)) if why.contains("another order")));
    last.unwrap();
    assert_eq!(env.quota("a"), 60_000);
    env.end().await;
}

#[tokio::test]
async fn released_job_has_its_original_limits_and_is_not_managed() {
    let env = TestEnv::sampling(policy("tradl"), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("a", 66_666).await;
    let answer = env.order(release("a")).await.unwrap();
    assert_eq!(answer, "job a is released, its original limits are restored");
    assert_eq!(env.quota("a"), -1);
    let before = number(&env.live.now());
    env.report("b", |progress| progress.reached.acceptable_at = Some(1.0));
    env.wait_until("a decision about b", |snapshot| {
        number(snapshot) > before && view(snapshot, "b").acceptable_at == Some(1.0)
    })
    .await;
    env.wait_for_samples(20).await;
    assert_eq!(env.quota("a"), -1);
    assert_eq!(env.live.now().jobs.len(), 2, "it is still shown");
    assert!(env.order(manage("a")).await.unwrap().contains("is watched"));
    env.wait_until("the job under the policy", has_standing("a", Standing::Managed)).await;
    env.end().await;
}

#[tokio::test]
async fn orders_hold_after_a_restart_of_the_container() {
    let env = TestEnv::sampling(policy("tradl"), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.order(release("a")).await.unwrap();
    env.order(pin("b", 0.25)).await.unwrap();
    let targets = Targets { acceptable: Some(3.0), ..Targets::default() };
    env.order(Command::Set { name: "b".to_owned(), targets }).await.unwrap();
    env.restart("a", "again");
    env.restart("b", "again");
    env.wait_until("the pinned job again", |snapshot| {
        has_standing("b", Standing::Pinned)(snapshot)
            && view(snapshot, "b").targets.acceptable == Some(3.0)
    })
    .await;
    env.has_quota("b", 50_000).await;
    env.wait_for_samples(20).await;
    env.wait_until("the released job", has_standing("a", Standing::Released)).await;
    env.is_unlimited("a").await;
    env.order(manage("a")).await.unwrap();
    env.wait_until("the job under the policy", has_standing("a", Standing::Managed)).await;
    env.end().await;
}

#[tokio::test]
async fn orders_about_a_removed_container_are_forgotten() {
    let env = TestEnv::sampling(policy("none"), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.order(pin("a", 0.25)).await.unwrap();
    env.remove("a");
    env.wait_until("one", |snapshot| names(snapshot) == ["b"].into()).await;
    // Each survey of all containers describes the other one.
    let before = env.described("b");
    env.wait_until("further surveys", |_| env.described("b") >= before + 3).await;
    env.create_again("a");
    env.wait_until("the job under the policy", has_standing("a", Standing::Managed)).await;
    env.end().await;
}

#[tokio::test]
async fn job_that_reaches_its_target_is_limited_at_once() {
    let env = TestEnv::new(policy("tradl"), Vec::new(), &["a", "b", "c"]);
    env.wait_until("all", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.standing == Standing::Managed).count() == 3
    })
    .await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("a", 50_000).await;
    let folder = env.end().await;
    let group = folder.path().join("cgroup").join(format!("a{}", "0".repeat(63)));
    let quota = std::fs::read_to_string(group.join("cpu.cfs_quota_us")).unwrap();
    assert_eq!(quota.trim(), "-1", "every limit is restored");
}

#[tokio::test]
async fn policy_without_targets_does_not_run_when_one_is_reached() {
    let env = TestEnv::new(policy("flowcon"), Vec::new(), &["a", "b"]);
    let asked = env.wait_until("a decision about the newcomers", |snapshot| {
        snapshot.jobs.iter().filter(|view| view.class.is_some()).count() == 2
    });
    let asked = asked.await;
    let before = number(&asked);
    // A decision about the first would be shown before the second one is.
    for job in ["a", "b"] {
        env.report(job, |progress| progress.reached.acceptable_at = Some(1.0));
        env.wait_until("the target", |snapshot| view(snapshot, job).acceptable_at == Some(1.0))
            .await;
    }
    assert_eq!(number(&env.live.now()), before);
    env.end().await;
}

#[tokio::test]
async fn target_set_by_an_order_is_in_force_and_watched() {
    let env = TestEnv::new(policy("tradl"), Vec::new(), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    let targets = Targets { acceptable: Some(3.0), ..Targets::default() };
    let answer = env.order(Command::Set { name: "a".to_owned(), targets }).await;
    assert_eq!(answer.unwrap(), "job a: acceptable is 3");
    let set = |snapshot: &Snapshot| view(snapshot, "a").targets.acceptable == Some(3.0);
    env.wait_until("the target", set).await;
    // The job does not know of the target.
    env.report("a", |progress| {
        progress.eval.value = Some(2.0);
        (progress.eval.count, progress.eval.sum) = (2, 6.0);
    });
    env.has_quota("a", 66_666).await;
    env.end().await;
}

#[tokio::test]
async fn container_without_the_label_is_managed_only_by_an_order() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "stranger"]);
    let snapshot = env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    assert_eq!(names(&snapshot), ["a"].into());
    let answer = env.order(manage("stranger")).await;
    assert!(answer.unwrap().contains("container stranger is watched"));
    env.wait_until("the stranger", has_standing("stranger", Standing::Managed)).await;
    env.order(pin("stranger", 0.5)).await.unwrap();
    assert_eq!(env.quota("stranger"), 100_000);
    env.order(release("stranger")).await.unwrap();
    assert_eq!(env.quota("stranger"), -1);
    env.wait_until("the job alone", |snapshot| names(snapshot) == ["a"].into()).await;
    env.end().await;
}

#[tokio::test]
async fn impossible_order_is_refused_with_the_reason() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["ab", "ac"]);
    env.wait_until("both", are_managed(["ab", "ac"])).await;
    let unknown = || Refusal::Unknown("unknown".to_owned());
    let both = r#""a" names the containers ab0000000000, ac0000000000"#;
    let none = Command::Set { name: "ab".to_owned(), targets: Targets::default() };
    for (command, expected) in [
        (pin("unknown", 0.5), Some(unknown())),
        (manage("unknown"), Some(unknown())),
        (release("a"), Some(Refusal::Ambiguous(both.to_owned()))),
        (none, None),
    ] {
        let refusal = env.order(command).await.unwrap_err();
        let impossible = matches!(refusal, Refusal::Impossible(_));
        assert!(expected.map_or(impossible, |expected| refusal == expected), "{refusal:?}");
    }
    let on = Command::Guard { name: "ab".to_owned(), guard: Guard::Canary, on: true };
    assert_eq!(env.order(on).await.unwrap(), "job ab: guard canary is on");
    let on = |snapshot: &Snapshot| view(snapshot, "ab").guards == [Guard::Canary];
    env.wait_until("the guard", on).await;
    env.end().await;
}

#[tokio::test]
async fn limit_changed_outside_is_noticed_and_written_again() {
    let env = TestEnv::sampling(policy("none"), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.order(pin("a", 0.25)).await.unwrap();
    env.set_quota_outside("a", 10_000);
    env.wait_until("the drift", |snapshot| snapshot.cost.drifts == 1).await;
    env.has_quota("a", 50_000).await;
    env.end().await;
}

#[tokio::test]
async fn change_is_noticed_also_after_one_that_was_too_small() {
    let env = TestEnv::sampling(policy("none"), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.order(pin("a", 0.25)).await.unwrap();
    env.set_quota_outside("a", 50_400);
    let rounded = |snapshot: &Snapshot| view(snapshot, "a").limit == Some(0.252);
    env.wait_until("the small change", rounded).await;
    // It has been checked once a later order is answered.
    env.order(pin("a", 0.25)).await.unwrap();
    env.set_quota_outside("a", 50_400);
    env.wait_until("the small change", rounded).await;
    env.set_quota_outside("a", 10_000);
    env.wait_until("the drift", |snapshot| snapshot.cost.drifts == 1).await;
    env.has_quota("a", 50_000).await;
    env.end().await;
}

#[tokio::test]
async fn dry_run_records_limits_that_others_set() {
    let env = TestEnv::dry_run(policy("tradl"), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.set_quota_outside("a", 100_000);
    env.wait_until("the limit", |snapshot| view(snapshot, "a").limit == Some(0.5)).await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    env.wait_until("the class", |snapshot| view(snapshot, "a").class.as_deref() == Some("AS"))
        .await;
    assert_eq!(env.quota("a"), 100_000, "nothing is written");
    let folder = env.end().await;
    let frames = std::fs::read_to_string(folder.path().join("frames.jsonl")).unwrap();
    let last: Value = serde_json::from_str(frames.lines().last().unwrap()).unwrap();
    assert_eq!(last["jobs"][0]["limit"]["applied"], 0.5);
}

#[tokio::test]
async fn close_frames_hold_the_batches_between_them() {
    let env = TestEnv::dry_run(policy("dqoes"), &["a"]);
    env.report("a", |progress| progress.targets.batch_latency = Some(0.1));
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    let known = || -> Vec<f64> {
        let frames = std::fs::read_to_string(env.path("frames.jsonl")).unwrap();
        // The last line may be incomplete.
        let frames = frames.lines().filter_map(|line| serde_json::from_str(line).ok());
        let took = |frame: Value| frame["jobs"][0]["batch_latency"].as_f64();
        frames.filter_map(took).collect()
    };
    let waited = tokio::time::timeout(HANG_TIMEOUT, async {
        while known().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            env.report("a", |progress| {
                progress.batch_latency.count += 2;
                progress.batch_latency.sum += 0.1;
            });
        }
    });
    waited.await.expect("two frames with batches are recorded");
    let known = known();
    assert!(known.iter().all(|took| (took - 0.05).abs() < 1e-9), "{known:?}");
    env.end().await;
}

#[tokio::test]
async fn all_actions_are_recorded_in_the_audit_log() {
    let env = TestEnv::new(policy("tradl"), Vec::new(), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("a", 66_666).await;
    env.order(release("a")).await.unwrap();
    env.order(release("unknown")).await.unwrap_err();
    let folder = env.end().await;
    let written = audit(&folder);
    let kinds: Vec<&str> = written.iter().filter_map(|entry| entry["what"].as_str()).collect();
    for kind in ["began", "appeared", "decided", "limited", "ordered", "restored", "ended"] {
        assert!(kinds.contains(&kind), "{kind}: {written:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "ordered").count(), 2, "refused ones, too");
    // The log itself begins before the run.
    assert_eq!((kinds.get(1), kinds.last()), (Some(&"began"), Some(&"ended")));
}

#[tokio::test]
async fn container_that_is_gone_is_not_shown() {
    let env = TestEnv::sampling(policy("none"), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.remove("a");
    env.wait_until("one", |snapshot| names(snapshot) == ["b"].into()).await;
    assert!(env.order(release("a")).await.is_err());
    env.end().await;
}

#[tokio::test]
async fn snapshot_holds_jobs_decisions_shadows_and_costs() {
    let shadows = vec![Shadow::new(policy("tradl")), Shadow::new(policy("dqoes"))];
    let env = TestEnv::new(policy("none"), shadows, &["a", "b"]);
    let whole = |snapshot: &Snapshot| {
        snapshot.decision.is_some() && snapshot.jobs.iter().all(|view| view.class.is_some())
    };
    let snapshot =
        env.wait_until("a decision", |snapshot| snapshot.jobs.len() == 2 && whole(snapshot));
    let snapshot = snapshot.await;
    let a = view(&snapshot, "a");
    assert_eq!((a.state.as_deref(), a.last_loss, a.step), (Some("running"), Some(4.0), Some(1)));
    assert_eq!((a.limit, a.chosen, a.weight), (Some(1.0), Some(1.0), 1.0));
    assert_eq!(a.targets.acceptable, Some(1.0));
    assert_eq!(a.container.len(), 64);
    let names: Vec<&str> = snapshot.shadows.iter().map(|one| one.policy.as_str()).collect();
    assert_eq!(names, ["tradl", "dqoes"]);
    assert!(snapshot.shadows.iter().all(|one| one.decisions > 0));
    env.end().await;
}
