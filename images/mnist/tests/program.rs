//! The program as people run it.

use paceline_harness::{
    Program, answers_requests, keeps_the_checkpoint_before, refuses_bad_input, resumes_exactly,
};

fn program() -> Program {
    Program::new("mnist", env!("CARGO_BIN_EXE_mnist"))
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
fn bad_input_is_refused_with_one_line() {
    refuses_bad_input(&program());
}

#[test]
fn a_checkpoint_is_written_on_request_and_at_the_acceptable_loss() {
    answers_requests(&program());
}
