//! New settings while jobs run.

use paceline_api::live::Snapshot;
use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::{PolicyView, Standing};
use paceline_policy::Policy;
use paceline_policy::limiter::{Enforcement, LimiterSettings, Slew};
use serde_json::json;

use super::test_env::TestEnv;
use super::{are_managed, audited, has_standing, pin, policy, view};
use crate::controller::{NewSettings, Shadow};

fn limiter(enforcement: Enforcement) -> LimiterSettings {
    LimiterSettings { enforcement, ..LimiterSettings::default() }
}

fn renewal(policy: Option<Box<dyn Policy>>, limiter: LimiterSettings) -> NewSettings {
    NewSettings {
        policy,
        limiter,
        shadows: Vec::new(),
        view: PolicyView { name: "renewed".to_owned(), ..PolicyView::default() },
        changes: vec!["this: before -> after".to_owned()],
    }
}

#[tokio::test]
async fn new_policy_decides_at_once_and_jobs_and_pins_stay() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "b", "c"]);
    for job in ["a", "b", "c"] {
        env.wait_until(job, has_standing(job, Standing::Managed)).await;
    }
    env.order(pin("c", 0.3)).await.unwrap();
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    let free = Slew { max_decrease: 1.0, max_increase: None };
    let settings = LimiterSettings { slew: Some(free), ..limiter(Enforcement::Quota) };
    env.renew(renewal(Some(policy("tradl")), settings)).await;
    env.has_quota("a", 66_666).await;
    assert_eq!((env.quota("b"), env.quota("c")), (-1, 60_000));
    let snapshot = env.wait_until("it", |snapshot| snapshot.policy.name == "renewed").await;
    assert_eq!(view(&snapshot, "a").guards, [Guard::Slew]);
    assert_eq!(view(&snapshot, "c").standing, Standing::Pinned);
    let folder = env.end().await;
    let changes = json!(["this: before -> after"]);
    let [entry] = &audited(&folder, "reloaded")[..] else { panic!("not one entry") };
    assert_eq!(entry["changes"], changes);
    assert_eq!(audited(&folder, "appeared").len(), 3, "no job appears again");
}

#[tokio::test]
async fn change_between_caps_and_weights_restores_the_other() {
    let env = TestEnv::sampling(policy("tradl"), &["a", "b"]);
    env.wait_until("both", are_managed(["a", "b"])).await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    env.has_quota("a", 66_666).await;
    env.renew(renewal(None, limiter(Enforcement::Shares))).await;
    env.has_quota("a", -1).await;
    env.wait_until("a weight", |_| env.weight("a") != 1024).await;
    env.renew(renewal(None, limiter(Enforcement::Quota))).await;
    env.has_quota("a", 66_666).await;
    assert_eq!(env.weight("a"), 1024, "it is restored before the cap is written");
    env.end().await;
}

#[tokio::test]
async fn weights_keep_the_sum_that_owners_gave() {
    let env = TestEnv::sampling(policy("tradl"), &["a", "b", "heavy"]);
    env.wait_until("all", |snapshot| {
        ["a", "b", "heavy"].iter().all(|job| has_standing(job, Standing::Managed)(snapshot))
    })
    .await;
    env.renew(renewal(None, limiter(Enforcement::Shares))).await;
    env.report("a", |progress| progress.reached.acceptable_at = Some(1.0));
    let weights = || ["a", "b", "heavy"].map(|job| env.weight(job));
    env.wait_until("smaller weight", |_| env.weight("a") < 1000).await;
    env.wait_until("their sum", |_| weights().iter().sum::<i64>() == 1024 + 1024 + 2048).await;
    env.order(pin("b", 0.5)).await.unwrap();
    env.wait_until("their sum with a pin", |_| {
        env.weight("b") != 1024 && weights().iter().sum::<i64>() == 1024 + 1024 + 2048
    })
    .await;
    env.end().await;
}

#[tokio::test]
async fn shadows_that_stay_keep_their_state_and_others_begin() {
    let shadow = |name| Shadow::new(policy(name));
    let env = TestEnv::new(policy("none"), vec![shadow("tradl"), shadow("dqoes")], &["a", "b"]);
    let decided = |snapshot: &Snapshot, name: &str| {
        snapshot.shadows.iter().find(|one| one.policy == name).map(|one| one.decisions)
    };
    env.wait_until("a decision", |snapshot| decided(snapshot, "tradl") > Some(0)).await;
    let before = decided(&env.live.now(), "tradl").unwrap();
    let shadows = vec![shadow("flowcon"), shadow("tradl")];
    env.renew(NewSettings { shadows, ..renewal(None, limiter(Enforcement::Quota)) }).await;
    let snapshot =
        env.wait_until("flowcon", |snapshot| decided(snapshot, "flowcon").is_some()).await;
    assert!(decided(&snapshot, "tradl") >= Some(before), "{:?}", snapshot.shadows);
    assert_eq!(decided(&snapshot, "dqoes"), None);
    env.end().await;
}
