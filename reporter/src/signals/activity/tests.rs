use super::*;
use crate::signals::samples::{Job, TRAINING};

fn at(job: &Job, task: Task, since: f64) -> Activity {
    activity(&job.history, job.state(), Doing { task, since }, job.sample.at)
}

fn training(job: &Job) -> Activity {
    at(job, Task::Training, TRAINING.since)
}

/// The activity after a wait of `seconds` seconds.
fn after(mut job: Job, seconds: f64) -> Activity {
    job.wait(seconds);
    training(&job)
}

#[test]
fn compiling_and_loading_take_minutes() {
    assert_eq!(after(Job::new(), 1700.0), Activity::Starting);
    assert_eq!(after(Job::new(), 1900.0), Activity::Stalled);
    assert_eq!(after(Job::with_losses(&[1.0], 0.1), 200.0), Activity::Training, "the second step");
    assert_eq!(after(Job::with_losses(&[1.0], 0.1), 400.0), Activity::Stalled);
}

#[test]
fn steps_that_stay_away_are_a_stall() {
    for (rate, well, stalled) in [(100.0, 29.0, 31.0), (1.0, 29.0, 31.0), (0.1, 190.0, 210.0)] {
        let job = || Job::with_losses(&[1.0; 300], rate);
        assert_eq!(after(job(), well), Activity::Training, "{rate}");
        assert_eq!(after(job(), stalled), Activity::Stalled, "{rate}");
    }
    let mut job = Job::with_losses(&[1.0; 100], 10.0);
    job.wait(100.0);
    job.train(&[1.0; 2], 10.0);
    assert_eq!(training(&job), Activity::Training, "training continues");
}

#[test]
fn wait_as_long_as_earlier_ones_is_not_a_stall() {
    let mut job = Job::new();
    for _ in 0..3 {
        job.train(&[1.0; 500], 10.0);
        job.wait(40.0);
    }
    job.train(&[1.0; 100], 10.0);
    assert_eq!(after(job, 100.0), Activity::Training);
}

#[test]
fn cpu_cut_does_not_count_as_a_stall() {
    let mut job = Job::with_losses(&[1.0; 200], 1.0);
    job.train(&[1.0; 5], 0.04);
    assert_eq!(training(&job), Activity::Training, "1 s became 25 s");
    let mut job = Job::with_losses(&[1.0; 100], 0.1);
    job.train(&[1.0; 1], 1.0 / 150.0);
    assert_eq!(training(&job), Activity::Training, "10 s became 150 s");
}

#[test]
fn pause_is_set_by_the_loop() {
    let mut job = Job::with_losses(&[1.0; 100], 10.0);
    job.sample.paused = true;
    job.wait(800.0);
    assert_eq!(at(&job, Task::Evaluating, 10.0), Activity::Evaluating);
    assert_eq!(at(&job, Task::Checkpointing, 10.0), Activity::Checkpointing);
    job.sample.paused = false;
    job.wait(0.1);
    assert_eq!(at(&job, Task::Training, job.sample.at), Activity::Training, "just back");

    job.sample.paused = true;
    job.wait(900.0);
    assert_eq!(at(&job, Task::Checkpointing, 10.0), Activity::Checkpointing, "as long before");
    let stuck = Doing { task: Task::Evaluating, since: 10.0 };
    let first = Job::with_losses(&[1.0; 100], 10.0);
    assert_eq!(activity(&first.history, State::Running, stuck, 911.0), Activity::Stalled);
}

#[test]
fn a_process_that_was_stopped_has_not_stalled() {
    let mut job = Job::with_losses(&[1.0; 100], 10.0);
    job.freeze(3600.0);
    assert_eq!(training(&job), Activity::Training);
    assert_eq!(after(job, 31.0), Activity::Stalled, "running without progress");
}

#[test]
fn ended_job_stays_ended() {
    let mut job = Job::with_losses(&[1.0; 100], 10.0);
    job.wait(1000.0);
    for state in [State::Finished, State::Failed] {
        let ended = activity(&job.history, state, TRAINING, job.sample.at);
        assert_eq!(ended, Activity::Ended);
    }
}
