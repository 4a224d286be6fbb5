//! An engine that refuses what it is asked to do, or never answers.

use std::time::Duration;

use paceline_api::live::Refusal;
use paceline_api::live::snapshot::Standing;
use paceline_policy::policies::{self, AnyPolicy};
use paceline_policy::{Params, Policy, Variant};
use paceline_runtime::testing::Behavior;

use super::test_env::{EngineAnswers, TestEnv, names};
use super::{audited, has_standing, number, pin, policy, release, view};

/// So many jobs that no time is left for an engine that hangs for each of them, even if several are restored
/// at once.
const JOBS: [&str; 30] = [
    "c11", "c12", "c13", "c14", "c15", "c16", "c17", "c18", "c19", "c21", "c22", "c23", "c24",
    "c25", "c26", "c27", "c28", "c29", "c31", "c32", "c33", "c34", "c35", "c36", "c37", "c38",
    "c39", "c41", "c42", "c43",
];
/// After this time, service managers kill the allocator.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);

/// A policy that runs often, and ends a job at its first loss at the objective.
fn ending() -> Box<dyn Policy> {
    let mut params = Params::default();
    params.set("interval", 0.1);
    params.set("confirm", 1.0);
    match policies::build("tradl", Variant::Resolved, &params).unwrap() {
        AnyPolicy::Jobs(policy) => policy,
        other @ (AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_)) => panic!("{other:?}"),
    }
}

/// Pins a job, and releases it while the engine refuses to change its container.
async fn release_in_vain(env: &TestEnv) {
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    env.order(pin("a", 0.3)).await.unwrap();
    env.answers("a", EngineAnswers::Refused);
    let refusal = env.order(release("a")).await.unwrap_err();
    let Refusal::Failed(why) = &refusal else { panic!("{refusal:?}") };
    assert!(why.starts_with("cannot restore the limits of a: "), "{why}");
    assert_eq!(env.kept("a"), 600_000_000, "the engine still has the limit");
}

#[tokio::test]
async fn failed_restore_of_a_released_job_is_repeated_until_it_succeeds() {
    let env = TestEnv::sampling(policy("none"), &["a"]);
    release_in_vain(&env).await;
    let before = env.refusals("a");
    env.wait_until("another try", |_| env.refusals("a") > before).await;
    env.answers("a", EngineAnswers::Done);
    env.wait_until("the original limit", |_| env.kept("a") == 2_000_000_000).await;
    env.wait_until("the job", has_standing("a", Standing::Released)).await;
    env.end().await;
}

#[tokio::test]
async fn second_release_restores_what_the_first_could_not() {
    // This controller does not try again by itself.
    let env = TestEnv::new(policy("none"), Vec::new(), &["a"]);
    release_in_vain(&env).await;
    assert!(matches!(env.order(release("a")).await, Err(Refusal::Failed(_))));
    env.answers("a", EngineAnswers::Done);
    let answer = env.order(release("a")).await.unwrap();
    assert_eq!(answer, "job a was released before, its original limits are restored now");
    assert_eq!((env.kept("a"), env.quota("a")), (2_000_000_000, -1));
    assert_eq!(env.order(release("a")).await.unwrap(), "job a is already released");
    env.end().await;
}

/// A job at its objective, whose end the engine answers so.
async fn at_its_objective(answers: EngineAnswers) -> TestEnv {
    let env = TestEnv::sampling(ending(), &["ends"]);
    env.wait_until("a decision", |snapshot| number(snapshot) > 0).await;
    env.answers("ends", answers);
    env.report("ends", |progress| {
        progress.targets.objective = Some(5.0);
        (progress.eval.count, progress.eval.sum) = (2, 8.0);
    });
    env
}

#[tokio::test]
async fn job_that_could_not_be_ended_is_tried_again_and_recorded_once() {
    let env = at_its_objective(EngineAnswers::Refused).await;
    env.wait_until("several tries", |_| env.refusals("ends") >= 3).await;
    let decisions = number(&env.live.now());
    assert!(u64::try_from(env.refusals("ends")).unwrap() <= decisions + 1, "one for each decision");
    env.answers("ends", EngineAnswers::Done);
    env.wait_until("its end", |snapshot| names(snapshot).is_empty()).await;
    assert_eq!(audited(&env.end().await, "terminated").len(), 1);
}

#[tokio::test]
async fn job_that_could_not_be_ended_keeps_its_restart_policy() {
    let env = at_its_objective(EngineAnswers::KeepsRunning).await;
    env.wait_until("a try", |_| env.refusals("ends") > 0).await;
    assert!(env.restarts("ends"), "its owner wants it to run again after a crash");
    env.end().await;
}

#[tokio::test]
async fn end_of_the_run_waits_for_a_job_that_is_being_ended() {
    let mut env = at_its_objective(EngineAnswers::EndsLate).await;
    env.wait_until("its end", has_standing("ends", Standing::Ending)).await;
    env.ended().await.unwrap();
    assert!(!env.exists("ends"), "it still runs");
}

#[tokio::test(start_paused = true)]
async fn container_that_is_never_described_stops_no_survey() {
    let env = TestEnv::sampling(policy("none"), &["a", "mute"]);
    env.wait_until("the other job", has_standing("a", Standing::Managed)).await;
    env.answers("mute", EngineAnswers::Done);
    env.wait_until("the job", has_standing("mute", Standing::Managed)).await;
    // A known one is not taken for gone.
    let before = env.described("a");
    env.answers("a", EngineAnswers::Never);
    env.wait_until("further surveys", |_| env.described("a") >= before + 3).await;
    assert_eq!(names(&env.live.now()), ["a", "mute"].into());
    env.answers("a", EngineAnswers::Done);
    env.end().await;
}

/// Ends a controller whose engine does not answer any more. The clock jumps from timeout to timeout.
async fn ends_without_engine(mut env: TestEnv) {
    tokio::time::pause();
    // It panics if the engine is waited for once for each container.
    let error = env.ended_within(STOP_TIMEOUT).await.unwrap_err().to_string();
    assert!(error.contains("cannot restore the limits of 30 containers"), "{error}");
}

#[tokio::test]
async fn engine_that_hangs_at_the_end_is_not_tried_again() {
    let env = TestEnv::sampling(policy("none"), &JOBS);
    for job in JOBS {
        env.wait_until(job, has_standing(job, Standing::Managed)).await;
        env.order(pin(job, 0.03)).await.unwrap();
    }
    for job in JOBS {
        env.answers(job, EngineAnswers::Never);
    }
    ends_without_engine(env).await;
}

#[tokio::test]
async fn container_runtime_that_hangs_at_the_end_is_not_tried_again() {
    let (env, fake) = TestEnv::pods(policy("none"), &JOBS);
    for job in JOBS {
        env.wait_until(job, |snapshot| {
            names(snapshot).contains(job) && view(snapshot, job).chosen.is_some()
        })
        .await;
        env.order(pin(job, 0.03)).await.unwrap();
    }
    fake.behave(Behavior::Hangs);
    ends_without_engine(env).await;
}
