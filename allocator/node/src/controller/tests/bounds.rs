//! What a container's owner has set bounds what is decided about it, and no name of a job harms others.

use paceline_api::live::snapshot::Standing;
use paceline_api::live::{Refusal, Snapshot};

use super::test_env::TestEnv;
use super::{audited, has_standing, manage, pin, policy, release, view};

fn decided(job: &'static str) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| snapshot.jobs.iter().any(|one| one.job == job && one.chosen.is_some())
}

#[tokio::test]
async fn owners_cap_is_an_upper_bound() {
    let env = TestEnv::sampling(policy("none"), &["capped", "b"]);
    let snapshot = env.wait_until("a decision", decided("capped")).await;
    assert_eq!((view(&snapshot, "capped").max, view(&snapshot, "b").max), (Some(0.25), None));
    env.wait_for_samples(4).await;
    assert_eq!((env.quota("capped"), env.quota("b")), (50_000, -1));
    assert!(audited(&env.end().await, "limited").is_empty(), "nothing is lifted");
}

#[tokio::test]
async fn only_a_label_raises_the_owners_cap() {
    let env = TestEnv::sampling(policy("none"), &["raised"]);
    env.has_quota("raised", 150_000).await;
    let snapshot = env.wait_until("the bound", decided("raised")).await;
    assert_eq!(view(&snapshot, "raised").max, Some(0.75));
    env.end().await;
}

#[tokio::test]
async fn cap_that_the_owner_changes_is_the_new_bound() {
    let env = TestEnv::sampling(policy("none"), &["capped"]);
    env.wait_until("a decision", decided("capped")).await;
    env.update_outside("capped", 1.5);
    env.wait_until("the new bound", |snapshot| view(snapshot, "capped").max == Some(0.75)).await;
    env.wait_for_samples(4).await;
    assert_eq!(env.quota("capped"), 150_000);
    env.end().await;
}

/// As by `systemctl set-property`.
#[tokio::test]
async fn cap_that_only_the_kernel_has_is_an_upper_bound() {
    let env = TestEnv::sampling(policy("none"), &["scoped", "b"]);
    let snapshot = env.wait_until("a decision", decided("scoped")).await;
    assert_eq!((view(&snapshot, "scoped").max, view(&snapshot, "b").max), (Some(0.3), None));
    env.wait_for_samples(4).await;
    assert_eq!((env.quota("scoped"), env.quota("b")), (60_000, -1));
    // What we write is not the owner's.
    env.order(pin("scoped", 0.1)).await.unwrap();
    env.has_quota("scoped", 20_000).await;
    env.wait_for_samples(12).await;
    assert_eq!(view(&env.live.now(), "scoped").max, Some(0.3));
    env.order(manage("scoped")).await.unwrap();
    env.has_quota("scoped", 60_000).await;
    env.end().await;
}

#[tokio::test]
async fn cap_that_only_the_kernel_has_bounds_a_container_of_an_order() {
    let env = TestEnv::sampling(policy("none"), &["stranger-scoped"]);
    env.order(manage("stranger-scoped")).await.unwrap();
    let snapshot = env.wait_until("a decision", decided("stranger-scoped")).await;
    assert_eq!(view(&snapshot, "stranger-scoped").max, Some(0.3));
    env.wait_for_samples(4).await;
    assert_eq!(env.quota("stranger-scoped"), 60_000);
    assert!(audited(&env.end().await, "limited").is_empty(), "nothing is lifted");
}

#[tokio::test]
async fn our_own_cap_is_not_the_owners_after_a_restart() {
    let env = TestEnv::sampling(policy("none"), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.order(pin("a", 0.25)).await.unwrap();
    env.has_quota("a", 50_000).await;
    env.restart("a", "again");
    env.wait_until("the job again", |snapshot| {
        has_standing("a", Standing::Pinned)(snapshot) && view(snapshot, "a").max.is_none()
    })
    .await;
    env.order(manage("a")).await.unwrap();
    env.is_unlimited("a").await;
    env.end().await;
}

#[tokio::test]
async fn name_that_a_label_copies_is_refused_with_both_ids() {
    // The first one's label names the second one's container.
    let env = TestEnv::sampling(policy("none"), &["called-victim", "victim"]);
    env.wait_until("both", |snapshot| {
        snapshot.jobs.iter().filter(|j| j.chosen.is_some()).count() == 2
    })
    .await;
    for order in [pin("victim", 0.5), release("victim")] {
        let Refusal::Ambiguous(why) = env.order(order).await.unwrap_err() else {
            panic!("it is carried out")
        };
        assert!(why.contains("called-victi") && why.contains("victim000000"), "{why}");
    }
    env.order(pin("called-victim", 0.5)).await.unwrap();
    env.end().await;
}

#[tokio::test]
async fn job_with_a_long_name_is_refused_and_others_are_recorded() {
    let env = TestEnv::sampling(policy("none"), &["a", "long-name"]);
    let snapshot =
        env.wait_until("both", |snapshot| snapshot.jobs.len() == 2 && decided("a")(snapshot)).await;
    let refused = view(&snapshot, "long-name").trouble.clone().unwrap();
    assert!(refused.starts_with("invalid label paceline.job=\"xxx"), "{refused}");
    assert!(refused.len() < 300 && refused.contains("at most 64 characters"), "{refused}");
    let folder = env.end().await;
    assert!(!audited(&folder, "decided").is_empty() && audited(&folder, "missed").is_empty());
}

#[tokio::test]
async fn text_of_a_report_is_cut_where_it_enters() {
    let env = TestEnv::sampling(policy("none"), &["a"]);
    env.report("a", |progress| progress.instance = "x\n".repeat(10_000));
    let counts = |snapshot: &Snapshot| view(snapshot, "a").counts.clone();
    let snapshot = env
        .wait_until("the report", |snapshot| {
            snapshot.jobs.len() == 1
                && counts(snapshot).is_some_and(|counts| counts.instance.starts_with('x'))
        })
        .await;
    let instance = counts(&snapshot).unwrap().instance;
    assert!(instance.chars().count() == 64 && !instance.contains('\n'), "{instance:?}");
    env.end().await;
}
