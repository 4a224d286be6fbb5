//! What a pod's request and limit mean to the controller, with a fake container runtime of Kubernetes.

use std::sync::Arc;

use paceline_api::live::snapshot::Standing;
use paceline_api::live::{Command, Refusal, Snapshot};
use paceline_runtime::testing::{Fake, id};

use super::test_env::TestEnv;
use super::{audited, has_standing, pin, policy, release, view};

fn decided(snapshot: &Snapshot, jobs: &[&str]) -> bool {
    jobs.iter().all(|job| snapshot.jobs.iter().any(|one| one.job == *job && one.chosen.is_some()))
}

/// The quotas that the runtime was asked to write for one job.
fn written(fake: &Fake, job: &str) -> Vec<i64> {
    let updates = fake.updates();
    let of_job = updates.iter().filter(|(container, ..)| *container == id(job));
    of_job.map(|(_, quota, _)| *quota).collect()
}

/// Why an order is refused as impossible.
async fn refused(env: &TestEnv, order: Command) -> String {
    match env.order(order).await {
        Err(Refusal::Impossible(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cut_ends_at_the_request_of_the_pod() {
    let (env, fake) = TestEnv::pods(policy("tradl"), &["b", "c"]);
    env.wait_until("both", |snapshot| decided(snapshot, &["b", "c"])).await;
    // Without a request, the one of two jobs that is cut would have a third of the machine.
    env.report("b", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("b", 120_000).await;
    env.end().await;
    assert_eq!(written(&fake, "b"), [120_000, 160_000], "it ends as its owner set it");
    assert!(written(&fake, "c").is_empty());
}

#[tokio::test]
async fn limit_of_the_pod_is_an_upper_bound() {
    let (env, fake) = TestEnv::pods(policy("none"), &["b", "c"]);
    let snapshot = env.wait_until("both", |snapshot| decided(snapshot, &["b", "c"])).await;
    assert_eq!((view(&snapshot, "b").max, view(&snapshot, "c").max), (Some(0.8), None));
    env.wait_for_samples(8).await;
    assert!(audited(&env.end().await, "limited").is_empty());
    assert!(fake.updates().is_empty(), "nothing is lifted");
}

#[tokio::test]
async fn pin_is_held_between_request_and_limit() {
    let (env, fake) = TestEnv::pods(policy("none"), &["b", "c"]);
    env.wait_until("both", |snapshot| decided(snapshot, &["b", "c"])).await;
    let why = refused(&env, pin("b", 0.5)).await;
    assert!(why.starts_with("cannot pin job b: ") && why.contains("request of 1.2 CPUs"), "{why}");
    let why = refused(&env, pin("b", 0.9)).await;
    assert!(why.contains("own limit of 1.60 CPUs"), "{why}");
    assert!(fake.updates().is_empty(), "a refused order writes nothing");
    env.order(pin("b", 0.7)).await.unwrap();
    assert_eq!(env.quota("b"), 140_000, "the limit is in force at the answer");
    // A pod without a request may be held at any share.
    env.order(pin("c", 0.05)).await.unwrap();
    assert_eq!(env.quota("c"), 10_000);
    env.wait_until("the pin", has_standing("b", Standing::Pinned)).await;
    env.wait_for_samples(8).await;
    assert_eq!(written(&fake, "b"), [140_000], "it is written once");
    env.order(release("b")).await.unwrap();
    assert_eq!(env.quota("b"), 160_000);
    env.end().await;
    assert_eq!(
        (written(&fake, "b"), written(&fake, "c")),
        (vec![140_000, 160_000], vec![10_000, -1])
    );
}

#[tokio::test]
async fn guaranteed_pod_is_never_written() {
    let (env, fake) = TestEnv::pods(policy("tradl"), &["9", "c", "d"]);
    env.wait_until("the others", |snapshot| decided(snapshot, &["c", "d"])).await;
    let watched = |snapshot: &Snapshot| {
        snapshot.jobs.iter().any(|one| {
            one.job == "9" && one.trouble.as_ref().is_some_and(|why| why.contains("guaranteed"))
        })
    };
    let snapshot: Arc<Snapshot> = env.wait_until("the reason", watched).await;
    assert_eq!(view(&snapshot, "9").chosen, None);
    let why = refused(&env, pin("9", 0.3)).await;
    assert!(why.contains("its pod is guaranteed: request and limit are equal"), "{why}");
    env.report("9", |progress| progress.reached.acceptable_at = Some(1.0));
    env.report("c", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("c", 66_667).await;
    env.end().await;
    assert!(written(&fake, "9").is_empty());
}

#[tokio::test]
async fn deleted_pod_fails_its_order_and_others_go_on() {
    let (env, fake) = TestEnv::pods(policy("none"), &["c", "d"]);
    env.wait_until("both", |snapshot| decided(snapshot, &["c", "d"])).await;
    // The runtime forgets it before the controller knows.
    fake.delete("c");
    assert!(env.order(pin("c", 0.3)).await.is_err());
    env.order(pin("d", 0.3)).await.unwrap();
    assert_eq!(env.quota("d"), 60_000);
    env.wait_until("that it is gone", |snapshot| snapshot.jobs.iter().all(|one| one.job != "c"))
        .await;
    env.end().await;
    assert_eq!(written(&fake, "d"), [60_000, -1]);
}
