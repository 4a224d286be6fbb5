//! Orders that opt in a container which is not known yet.

use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::Standing;
use paceline_api::live::{Answer, Command, Order, Refusal, Who};
use tokio::sync::oneshot::{self, Receiver};

use super::moves::ManualController;
use super::test_env::TestEnv;
use super::{has_standing, manage, pin, policy, release};
use crate::controller::Controller;

/// Gives an order to a controller that the test drives.
fn give(controller: &mut Controller, command: Command) -> Receiver<Answer> {
    let (answer, answered) = oneshot::channel();
    controller.serve(Order { command, who: Who { uid: 0, pid: None }, answer });
    answered
}

#[tokio::test]
async fn order_about_an_unknown_container_delays_no_other() {
    let mut manual = ManualController::with_job();
    let controller = &mut manual.controller;
    let mut unknown = give(controller, manage("unknown"));
    let guard = Command::Guard { name: "vae".to_owned(), guard: Guard::Canary, on: true };
    assert!(give(controller, guard).try_recv().unwrap().is_ok());
    // It may be about the same container.
    let mut later = give(controller, release("other"));
    let mut last = give(controller, release("unknown"));
    for waits in [&mut unknown, &mut later, &mut last] {
        assert!(waits.try_recv().is_err(), "the engine has not answered");
    }
    let described = controller.adoptions.described().await;
    controller.described_for_order(described);
    let refusal = unknown.try_recv().unwrap().unwrap_err();
    assert!(matches!(&refusal, Refusal::Failed(why) if why.contains("cannot describe")));
    for (mut waited, name) in [(later, "other"), (last, "unknown")] {
        assert_eq!(waited.try_recv().unwrap(), Err(Refusal::Unknown(name.to_owned())));
    }
}

#[tokio::test]
async fn order_that_waits_at_the_end_of_the_run_is_refused() {
    let mut manual = ManualController::with_job();
    let mut unknown = give(&mut manual.controller, manage("unknown"));
    let mut later = give(&mut manual.controller, pin("unknown", 0.5));
    manual.controller.finish().await;
    for waited in [&mut unknown, &mut later] {
        assert_eq!(waited.try_recv().unwrap(), Err(Refusal::Ending));
    }
}

#[tokio::test]
async fn later_order_about_an_adopted_container_comes_after_it() {
    let env = TestEnv::new(policy("none"), Vec::new(), &["a", "stranger"]);
    env.wait_until("the job", has_standing("a", Standing::Managed)).await;
    // All three are given before the engine has described the container.
    let (managed, released, pinned) = tokio::join!(
        env.order(manage("stranger")),
        env.order(release("a")),
        env.order(pin("stranger000", 0.5))
    );
    assert!(managed.unwrap().contains("container stranger is watched"));
    released.unwrap();
    assert!(pinned.unwrap().contains("job stranger is held at"));
    assert_eq!(env.quota("stranger"), 100_000);
    env.end().await;
}
