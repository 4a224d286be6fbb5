use proptest::prelude::*;

use super::*;
use crate::signals::samples::{Job, Random};

fn job(losses: usize, rate: f64) -> Job {
    let mut random = Random::new(1);
    let losses: Vec<f64> = (0..losses).map(|_| 5.0 + random.normal()).collect();
    Job::with_losses(&losses, rate)
}

/// The mean of all losses.
fn mean(history: &History) -> f64 {
    let count: f64 = history.buckets().iter().map(|bucket| bucket.count).sum();
    history.buckets().iter().map(|bucket| bucket.mean * bucket.count / count).sum()
}

#[test]
fn a_long_run_fits_and_loses_no_loss() {
    let job = job(100_000, 10.0);
    let Job { history, sample } = &job;
    assert_eq!(history.buckets().len(), CAPACITY);
    let count: f64 = history.buckets().iter().map(|bucket| bucket.count).sum();
    assert_eq!(count.total_cmp(&number(sample.count)), std::cmp::Ordering::Equal);
    assert!((mean(history) - sample.sum / number(sample.count)).abs() < 1e-9);
}

#[test]
fn both_ends_stay_finer_than_the_middle() {
    let job = job(100_000, 10.0);
    let spans: Vec<f64> = job.history.buckets().iter().map(Bucket::steps).collect();
    let [first, middle, last] = [spans[0], spans[CAPACITY / 2], spans[CAPACITY - 1]];
    assert!(first < 100.0 && last < 100.0 && middle < 1500.0, "{first} {middle} {last}");
    let recent: f64 = spans.iter().rev().take(20).sum();
    assert!(recent < 3000.0, "the last twenty hold {recent} steps");
}

#[test]
fn reports_of_an_earlier_process_are_no_part_of_the_record() {
    let sample = |at, step: u32| {
        let (count, sum) = (u64::from(step), 5.0 * f64::from(step));
        Sample { at, step: count, count, sum, ..Sample::default() }
    };
    let mut history = History::after(sample(0.0, 1000));
    history.push(sample(0.1, 1000));
    assert_eq!((history.buckets().len(), history.active_at()), (0, None));
    let later = Sample { sum: 5001.0, ..sample(9.0, 1001) };
    history.push(later);
    assert_eq!(history.active_at(), Some(9.0));
    assert!((mean(&history) - 1.0).abs() < 1e-9);
}

#[test]
fn huge_loss_leaves_no_mean_of_0_behind() {
    let mut history = History::new();
    for (at, count, sum, recent) in
        [(1.0, 1, 1e20, 1e20), (2.0, 2, 1e20 + 0.5, 5e19), (3.0, 8, 1e20 + 3.5, 0.5)]
    {
        let recent = Some(recent);
        history.push(Sample { at, step: count, count, sum, recent, ..Sample::default() });
    }
    let buckets = history.buckets().iter();
    let means: Vec<(f64, f64)> = buckets.map(|bucket| (bucket.count, bucket.mean)).collect();
    assert_eq!(means, [(1.0, 1e20), (0.0, 0.0), (6.0, 0.5)], "the second has no loss");
}

#[test]
fn the_period_grows_from_a_quarter_of_a_second_to_one() {
    assert_eq!(History::new().wanted_period().to_bits(), 0.25_f64.to_bits());
    assert_eq!(job(10_000, 10.0).history.wanted_period().to_bits(), 1.0_f64.to_bits());
}

#[test]
fn the_scatter_is_that_of_one_loss_whatever_the_speed() {
    for rate in [1.0, 20.0, 500.0] {
        let job = job(20_000, rate);
        let buckets = job.history.buckets();
        let triples: f64 = buckets.iter().map(|bucket| bucket.triples).sum();
        let scatter: f64 =
            buckets.iter().map(|bucket| bucket.scatter * bucket.triples / triples).sum();
        assert!((0.9..1.1).contains(&scatter), "{rate}: {scatter}");
    }
}

#[test]
fn announced_pause_and_process_stop_count_as_pauses() {
    let mut job = job(200, 10.0);
    job.pause(40.0);
    job.train(&[5.0; 200], 10.0);
    job.freeze(60.0);
    job.train(&[5.0; 200], 10.0);
    let paused: f64 = job.history.buckets().iter().map(|bucket| bucket.paused).sum();
    let longest = job.history.buckets().iter().map(|bucket| bucket.gap).fold(0.0, f64::max);
    assert!((98.0..=100.5).contains(&paused) && longest < 1.5, "{paused} {longest}");
    assert!((38.0..=41.0).contains(&job.history.longest_pause()));
}

#[test]
fn unannounced_wait_is_found_and_slow_steps_are_not() {
    let mut job = job(200, 10.0);
    job.wait(15.0);
    job.train(&[5.0; 200], 10.0);
    let paused = |job: &Job| job.history.buckets().iter().map(|bucket| bucket.paused).sum::<f64>();
    let waited = paused(&job);
    assert!((14.0..15.5).contains(&waited), "{waited}");
    // With a tenth of the CPU, 1 s is not a pause; with a hundredth, 10 s are, for three steps.
    job.train(&[5.0; 50], 1.0);
    assert!(paused(&job) - waited < 1.0);
    job.train(&[5.0; 30], 0.1);
    let gap = job.history.typical_gap().unwrap();
    assert!((8.0..10.1).contains(&gap) && paused(&job) - waited < 45.0, "{gap} {}", paused(&job));
}

#[test]
fn older_samples_and_step_numbers_undo_nothing() {
    let mut job = job(100, 10.0);
    let steps = job.history.steps;
    job.history.push(Sample { at: 1.0, ..job.sample });
    assert_eq!(job.history.last(), Some(job.sample), "an older sample is left out");
    job.sample.step = 50;
    job.train(&[5.0; 10], 10.0);
    // The steps between the rewind and the next sample are not seen.
    let done = job.history.steps - steps;
    assert!((6.0..=10.0).contains(&done), "{done} steps after a rewind");
}

#[test]
fn the_last_reports_say_whether_the_loss_is_a_number() {
    let mut job = job(100, 10.0);
    job.train(&[f64::NAN; 10], 10.0);
    assert!(job.history.nonfinite());
    job.train(&[5.0; 10], 10.0);
    assert!(!job.history.nonfinite());
    job.wait(5.0);
    assert!(!job.history.nonfinite());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn buckets_follow_one_another(
        stretches in prop::collection::vec((1..200_usize, 0.05..300.0_f64, 0.0..30.0_f64), 1..20)
    ) {
        let mut job = Job::new();
        for (steps, rate, pause) in stretches {
            job.pause(pause);
            job.train(&vec![1.0; steps], rate);
        }
        let buckets = job.history.buckets();
        prop_assert!(buckets.len() <= CAPACITY);
        for pair in buckets.windows(2) {
            prop_assert_eq!(pair[0].to.to_bits(), pair[1].from.to_bits());
            prop_assert_eq!(pair[0].to_at.to_bits(), pair[1].from_at.to_bits());
        }
        let steps: f64 = buckets.iter().map(Bucket::steps).sum();
        prop_assert!((steps - number(job.sample.step)).abs() < 1e-6);
        let late = buckets.iter().all(|bucket| bucket.paused <= bucket.to_at - bucket.from_at + 1e-9);
        prop_assert!(late, "no bucket has more pause than time");
    }
}
