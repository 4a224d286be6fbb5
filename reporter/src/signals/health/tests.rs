use super::*;
use crate::signals::samples::{Job, Random};

fn health_of(losses: &[f64]) -> Health {
    let job = Job::with_losses(losses, 20.0);
    health(&job.history, Series::new(&job.history).as_ref(), &job.progress())
}

/// A loss that falls from 2.3 to 0.3.
fn learn(steps: u32) -> Vec<f64> {
    let mut random = Random::new(3);
    let level = |step: u32| 0.3 + 2.0 * (1.0 + f64::from(step) / 30.0).powi(-1);
    (0..steps).map(|step| level(step) + 0.1 * random.normal()).collect()
}

fn then(mut losses: Vec<f64>, steps: u32, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut random = Random::new(5);
    losses.extend((0..steps).map(|step| level(f64::from(step)) + 0.1 * random.normal()));
    losses
}

#[test]
fn falling_loss_is_healthy() {
    assert_eq!(health_of(&learn(2000)), Health::Fine);
    assert_eq!(health_of(&learn(5)), Health::Fine);
    assert_eq!(health_of(&[]), Health::Fine);
}

#[test]
fn nan_is_nonfinite_until_a_number_follows() {
    let mut losses = learn(500);
    losses.extend([f64::NAN; 40]);
    assert_eq!(health_of(&losses), Health::Nonfinite);
    losses.extend([0.5; 40]);
    assert_eq!(health_of(&losses), Health::Fine);
}

#[test]
fn a_report_newer_than_the_last_sample_counts() {
    let job = Job::with_losses(&learn(500), 20.0);
    let rejected = Progress { rejected: 1, ..job.progress() };
    assert_eq!(health(&job.history, None, &rejected), Health::Nonfinite);
    assert_eq!(health(&History::new(), None, &rejected), Health::Fine, "500 finite ones, 1 not");
}

#[test]
fn loss_back_at_its_start_diverges() {
    assert_eq!(health_of(&then(learn(2000), 300, |_| 2.3)), Health::Diverging);
    assert_eq!(health_of(&then(learn(2000), 400, |step| 0.3 + 0.01 * step)), Health::Diverging);
    let blown_up = then(learn(2000), 300, |step| 2_f64.powf(step / 10.0));
    assert_eq!(health_of(&blown_up), Health::Diverging);
}

#[test]
fn a_rate_of_learning_that_is_too_large_diverges_from_the_start() {
    let runaway: Vec<f64> = (0..600).map(|step| 2.3 * 1.02_f64.powi(step)).collect();
    assert_eq!(health_of(&runaway), Health::Diverging);
}

#[test]
fn a_spike_does_not_diverge() {
    assert_eq!(health_of(&then(then(learn(2000), 20, |_| 9.0), 300, |_| 0.4)), Health::Fine);
    assert_eq!(health_of(&then(learn(2000), 30, |_| 9.0)), Health::Fine, "it has not lasted");
}

#[test]
fn slight_overfitting_does_not_diverge() {
    assert_eq!(health_of(&then(learn(2000), 1000, |step| 0.33 + 3e-4 * step)), Health::Fine);
}

#[test]
fn oscillating_loss_does_not_diverge() {
    let swinging: Vec<f64> = (0..1730).map(|step| 1.0 + (f64::from(step) / 60.0).sin()).collect();
    assert_eq!(health_of(&swinging), Health::Fine);
}

#[test]
fn a_random_reward_does_not_diverge() {
    let mut alarms = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        // An autoregressive process: its swings last for a twentieth of the run.
        let mut drift = 0.0;
        let rewards: Vec<f64> = (0..2000)
            .map(|step| {
                drift = 0.99 * drift + 0.14 * random.normal();
                10.0 * (1.0 - (-f64::from(step) / 800.0).exp())
                    + 2.0 * drift
                    + 3.0 * random.normal()
            })
            .collect();
        for asked in [500, 1000, 2000] {
            let job = Job::with_losses(&rewards[..asked], 20.0);
            let mut progress = job.progress();
            progress.eval.direction = Direction::Maximize;
            let series = Series::new(&job.history);
            if health(&job.history, series.as_ref(), &progress) == Health::Diverging {
                alarms += 1;
            }
        }
    }
    assert!(alarms <= 9, "{alarms} alarms in 600");
}

#[test]
fn a_policy_that_collapsed_diverges() {
    let mut random = Random::new(9);
    let reward = |step: u32| if step < 1500 { f64::from(step) / 100.0 } else { 0.0 };
    let rewards: Vec<f64> = (0..2000).map(|step| reward(step) + random.normal()).collect();
    let job = Job::with_losses(&rewards, 20.0);
    let mut progress = job.progress();
    progress.eval.direction = Direction::Maximize;
    let series = Series::new(&job.history);
    assert_eq!(health(&job.history, series.as_ref(), &progress), Health::Diverging);
}
