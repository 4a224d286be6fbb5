use super::*;
use crate::signals::samples::Job;

fn pace(job: &Job) -> Pace {
    Pace::new(&job.history, job.sample.at).unwrap()
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.05, "{value} for {expected}");
}

#[test]
fn a_steady_job_keeps_its_pace() {
    for rate in [0.2, 1.0, 30.0, 1000.0] {
        let job = Job::with_losses(&[1.0; 2000], rate);
        assert_near(pace(&job).rate, rate);
        assert_near(pace(&job).seconds(600.0).unwrap(), 600.0 / rate);
    }
}

#[test]
fn the_time_before_the_first_report_does_not_count() {
    let mut job = Job::new();
    job.wait(300.0);
    job.train(&[1.0; 100], 20.0);
    assert_near(pace(&job).rate, 20.0);
}

#[test]
fn a_cut_of_the_cpu_shows_within_ten_seconds() {
    let mut job = Job::with_losses(&[1.0; 2000], 40.0);
    job.train(&[1.0; 101], 10.0);
    assert_near(pace(&job).rate, 10.0);
}

#[test]
fn pauses_count_for_the_time_to_come_and_not_for_the_rate() {
    let mut job = Job::new();
    for _ in 0..6 {
        job.train(&[1.0; 400], 20.0);
        job.pause(10.0);
    }
    job.train(&[1.0; 100], 20.0);
    assert_near(pace(&job).rate, 20.0);
    // Half a second for each second of training.
    assert!((0.4..0.6).contains(&pace(&job).pauses), "{:?}", pace(&job));
    let mut silent = Job::new();
    for _ in 0..6 {
        silent.train(&[1.0; 400], 20.0);
        silent.wait(10.0);
    }
    silent.train(&[1.0; 100], 20.0);
    assert_near(pace(&silent).rate, 20.0);
    assert!((0.4..0.6).contains(&pace(&silent).pauses), "{:?}", pace(&silent));
}

#[test]
fn a_job_that_waits_loses_pace() {
    let mut job = Job::with_losses(&[1.0; 2000], 20.0);
    job.wait(90.0);
    assert!(pace(&job).rate < 3.0, "{:?}", pace(&job));
}

#[test]
fn one_report_gives_no_pace() {
    assert_eq!(Pace::new(&Job::with_losses(&[1.0], 1.0).history, 1.0), None);
    assert_eq!(Pace::new(&Job::new().history, 1.0), None);
}

#[test]
fn the_ratio_ends_at_one() {
    assert_eq!([ratio(1, 4), ratio(4, 4), ratio(9, 4)], [Some(0.25), Some(1.0), Some(1.0)]);
    assert_eq!(ratio(0, 0), None);
}
