//! Limits that are written to control groups alone.

use super::*;
use crate::actuate::Means;

#[tokio::test]
async fn what_the_survey_has_described_is_limited_without_asking_the_engine_again() {
    let bed = Bed::by(Means::Cgroup, policy("none"), Vec::new(), &["a"]);
    bed.shows("the job", stands("a", Standing::Managed)).await;
    let described = bed.described("a");
    for (share, quota) in [(0.3, 60_000), (0.6, 120_000)].repeat(5) {
        bed.order(pin("a", share)).await.unwrap();
        assert_eq!(bed.quota("a"), quota);
    }
    // Surveys may have come in between.
    let asked = bed.described("a") - described;
    assert!(asked < 5, "{asked} times for 10 writes");
    bed.order(release("a")).await.unwrap();
    assert_eq!(bed.quota("a"), -1);
    bed.end().await;
}
