//! Limits that are written directly to control groups.

use super::*;
use crate::limits::ActuatorBackend;

#[tokio::test]
async fn surveyed_container_is_limited_without_asking_the_engine() {
    let env = TestEnv::with_backend(ActuatorBackend::Cgroup, policy("none"), Vec::new(), &["a"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    let described = env.described("a");
    for (share, quota) in [(0.3, 60_000), (0.6, 120_000)].repeat(5) {
        env.order(pin("a", share)).await.unwrap();
        assert_eq!(env.quota("a"), quota);
    }
    // Surveys in between may have asked the engine.
    let asked = env.described("a") - described;
    assert!(asked < 5, "{asked} times for 10 writes");
    env.order(release("a")).await.unwrap();
    assert_eq!(env.quota("a"), -1);
    env.end().await;
}
