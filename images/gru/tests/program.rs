//! The program as people run it.

use paceline_harness::{Program, answers_requests, keeps_the_checkpoint_before, resumes_exactly};

fn program() -> Program {
    Program::new("gru", env!("CARGO_BIN_EXE_gru"))
}

#[test]
fn after_sigterm_it_goes_on_exactly() {
    resumes_exactly(&program());
}

#[test]
fn a_full_disk_or_a_kill_leaves_the_checkpoint_before() {
    keeps_the_checkpoint_before(&program());
}

#[test]
fn a_checkpoint_is_written_on_request_and_at_the_acceptable_loss() {
    answers_requests(&program());
}
