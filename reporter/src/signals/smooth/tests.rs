use super::*;
use crate::signals::samples::{Job, Random};

fn smooth(losses: &[f64]) -> Smooth {
    let job = Job::with_losses(losses, 20.0);
    Smooth::new(&Series::new(&job.history).unwrap()).unwrap()
}

fn noisy(steps: u32, noise: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut random = Random::new(7);
    (1..=steps).map(|step| level(f64::from(step)) + noise * random.normal()).collect()
}

#[test]
fn a_flat_loss_is_averaged_over_many_reports() {
    let Smooth { level, slope } = smooth(&noisy(4000, 1.0, |_| 5.0));
    // A single report is off by 1, one sample by 0.4.
    assert!((level - 5.0).abs() < 0.12, "{level}");
    assert!(slope.unwrap().abs() < 2e-4, "{slope:?}");
}

#[test]
fn a_line_keeps_its_level_and_slope() {
    let Smooth { level, slope } = smooth(&noisy(2000, 0.0, |step| 10.0 - 0.004 * step));
    assert!((level - 2.0).abs() < 0.003, "{level}");
    assert!((slope.unwrap() + 0.004).abs() < 1e-6, "{slope:?}");
}

#[test]
fn a_bent_curve_is_followed() {
    let curve = |step: f64| 2.0 * (1.0 + step / 50.0).powf(-0.8);
    let Smooth { level, slope } = smooth(&noisy(2000, 0.02, curve));
    assert!((level - curve(2000.0)).abs() < 0.012, "{level} for {}", curve(2000.0));
    let expected = curve(2000.5) - curve(1999.5);
    assert!((slope.unwrap() / expected - 1.0).abs() < 0.8, "{slope:?} for {expected}");
}

#[test]
fn a_loss_that_turned_is_seen_to_rise() {
    let Smooth { level, slope } =
        smooth(&noisy(2000, 0.05, |step| 1.0 + 0.001 * (step - 1500.0).abs()));
    assert!((level - 1.5).abs() < 0.08 && slope.unwrap() > 0.0005, "{level} {slope:?}");
}

#[test]
fn a_spike_hardly_counts() {
    let mut losses = noisy(2000, 0.1, |_| 5.0);
    losses[1700] = 1e6;
    let Smooth { level, .. } = smooth(&losses);
    assert!((level - 5.0).abs() < 0.2, "{level}");
}

#[test]
fn little_is_said_of_few_losses() {
    assert_eq!(smooth(&[4.0]), Smooth { level: 4.0, slope: None });
    let huge = smooth(&[1e280; 100]);
    assert!((huge.level / 1e280 - 1.0).abs() < 1e-9, "{huge:?}");
}
