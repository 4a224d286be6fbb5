//! New settings while jobs run.

use paceline_policy::limiter::{Enforcement, LimiterSettings, Slew};
use paceline_policy::{Policy, Shadow};
use serde_json::json;

use super::bed::Bed;
use super::{audited, pin, policy, stands, view};
use crate::driver::Renewal;
use crate::live::Snapshot;
use crate::live::order::Guard;
use crate::live::snapshot::{PolicyView, Standing};

fn limiter(enforcement: Enforcement) -> LimiterSettings {
    LimiterSettings { enforcement, ..LimiterSettings::default() }
}

fn renewal(policy: Option<Box<dyn Policy>>, limiter: LimiterSettings) -> Renewal {
    Renewal {
        policy,
        limiter,
        shadows: Vec::new(),
        view: PolicyView { name: "renewed".to_owned(), ..PolicyView::default() },
        changes: vec!["this: before -> after".to_owned()],
    }
}

#[tokio::test]
async fn another_policy_takes_over_at_once_and_jobs_and_pins_stay() {
    let bed = Bed::new(policy("none"), Vec::new(), &["a", "b", "c"]);
    for job in ["a", "b", "c"] {
        bed.shows(job, stands(job, Standing::Managed)).await;
    }
    bed.order(pin("c", 0.3)).await.unwrap();
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    let free = Slew { max_decrease: 1.0, max_increase: None };
    let settings = LimiterSettings { slew: Some(free), ..limiter(Enforcement::Quota) };
    bed.renew(renewal(Some(policy("tradl")), settings)).await;
    bed.has_quota("a", 66_666).await;
    assert_eq!((bed.quota("b"), bed.quota("c")), (-1, 60_000));
    let snapshot = bed.shows("it", |snapshot| snapshot.policy.name == "renewed").await;
    assert_eq!(view(&snapshot, "a").guards, [Guard::Slew]);
    assert_eq!(view(&snapshot, "c").standing, Standing::Pinned);
    let folder = bed.end().await;
    let changes = json!(["this: before -> after"]);
    let [entry] = &audited(&folder, "reloaded")[..] else { panic!("not one entry") };
    assert_eq!(entry["changes"], changes);
    assert_eq!(audited(&folder, "appeared").len(), 3, "nobody came anew");
}

#[tokio::test]
async fn caps_become_weights_and_weights_caps_and_nothing_of_the_other_stays() {
    let bed = Bed::looking(policy("tradl"), &["a", "b"]);
    bed.shows("both", stands("b", Standing::Managed)).await;
    bed.says("a", |progress| progress.reached.acceptable_at = Some(1.0));
    bed.has_quota("a", 66_666).await;
    bed.renew(renewal(None, limiter(Enforcement::Shares))).await;
    bed.has_quota("a", -1).await;
    bed.shows("a weight", |_| bed.weight("a") != 1024).await;
    bed.renew(renewal(None, limiter(Enforcement::Quota))).await;
    bed.has_quota("a", 66_666).await;
    assert_eq!(bed.weight("a"), 1024, "it was put back before the cap was written");
    bed.end().await;
}

#[tokio::test]
async fn shadows_that_stay_go_on_and_others_begin() {
    let shadow = |name| Shadow::new(policy(name));
    let bed = Bed::new(policy("none"), vec![shadow("tradl"), shadow("dqoes")], &["a", "b"]);
    let decided = |snapshot: &Snapshot, name: &str| {
        snapshot.shadows.iter().find(|one| one.policy == name).map(|one| one.decisions)
    };
    bed.shows("a decision", |snapshot| decided(snapshot, "tradl") > Some(0)).await;
    let before = decided(&bed.live.now(), "tradl").unwrap();
    let shadows = vec![shadow("flowcon"), shadow("tradl")];
    bed.renew(Renewal { shadows, ..renewal(None, limiter(Enforcement::Quota)) }).await;
    let snapshot = bed.shows("flowcon", |snapshot| decided(snapshot, "flowcon").is_some()).await;
    assert!(decided(&snapshot, "tradl") >= Some(before), "{:?}", snapshot.shadows);
    assert_eq!(decided(&snapshot, "dqoes"), None);
    bed.end().await;
}
