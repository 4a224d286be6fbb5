//! A fork of a job, as data loaders make them: it reports nothing and does not disturb its parent.

#![expect(clippy::exit, reason = "a fork of a test must not come back to the test runner")]

mod client;

use client::{ask, progress};
use fork::{Fork, fork, waitpid};
use paceline_reporter::Reporter;

#[test]
fn fork_reports_nothing_and_gets_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", folder.path().join("job.sock").display());
    let builder = Reporter::builder("vae").acceptable(2.0).stop_at_objective().objective(1.0);
    let reporter = builder.listen(&address).start().unwrap();
    let status = folder.path().join("child");
    (0..100).for_each(|_| reporter.batch().loss(9.0));
    ask(&reporter, "POST /v1/checkpoint", "host: localhost\r\n");
    match fork().unwrap() {
        Fork::Child => {
            // The parent has a waiting request, which the child must not get.
            let mine = reporter.checkpoint_requested().is_some();
            (0..100).for_each(|_| reporter.batch().loss(0.1));
            let stops = reporter.should_stop();
            reporter.finish();
            drop(reporter);
            drop(std::fs::write(&status, format!("{mine} {stops}")));
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            waitpid(child).unwrap();
        }
    }
    assert_eq!(std::fs::read_to_string(&status).unwrap(), "false false");
    let read = progress(&reporter);
    assert_eq!((read.eval.count, read.reached.acceptable_at), (100, None));
    assert_eq!((read.state, read.checkpoint.answered), (paceline_wire::State::Running, 0));
    assert!(reporter.checkpoint_requested().is_some());
}
